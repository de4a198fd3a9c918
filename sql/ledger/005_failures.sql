-- Why the last run of a snapshot that failed or was refused ended. What is recorded of the snapshot later outdates it.

CREATE TABLE failures (
    recipe TEXT NOT NULL,
    snapshot TEXT NOT NULL,
    root TEXT NOT NULL,                     -- of which root, where a ledger serves several; empty for the ledger in a root
    task TEXT NOT NULL,                     -- the task that failed, such as `extract.partition`
    stage TEXT NOT NULL,                    -- its stage, or the task itself
    error TEXT NOT NULL,                    -- class of the error; `GateRefused` for a gate that refused for good
    message TEXT NOT NULL,                  -- why; of a refusal, what a person decided
    recorded_at TEXT NOT NULL,
    PRIMARY KEY (recipe, snapshot, root)
);
