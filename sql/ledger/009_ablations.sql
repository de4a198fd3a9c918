-- What models said of two training datasets: small ones were trained on both, and scored on held-out documents.

CREATE TABLE ablations (
    root TEXT NOT NULL,                     -- of which root, where a ledger serves several; empty for the ledger in a root
    number INTEGER NOT NULL,                -- its place in the root's log of ablations
    a_dataset TEXT NOT NULL,                -- ROOT/NAME@VERSION as a person named it
    a_recipe TEXT NOT NULL,                 -- name of the training dataset
    a_version INTEGER NOT NULL,             -- 0 if its root was gone when the ablation was recorded, as below
    a_made_from TEXT NOT NULL,              -- recipes of its snapshots, sorted, with commas between
    a_fingerprint TEXT NOT NULL,            -- of its packed sequences: what they were made from, and how
    a_digest TEXT NOT NULL,                 -- of what the loader read
    b_dataset TEXT NOT NULL,
    b_recipe TEXT NOT NULL,
    b_version INTEGER NOT NULL,
    b_made_from TEXT NOT NULL,
    b_fingerprint TEXT NOT NULL,
    b_digest TEXT NOT NULL,
    size TEXT NOT NULL,                     -- of the models
    tokens BIGINT NOT NULL,                 -- of each run
    seeds INTEGER NOT NULL,                 -- of each arm and rate
    held_out TEXT NOT NULL,                 -- digest of the documents that were scored
    outcome TEXT NOT NULL,                  -- b beside a: `better`, `worse`, `no difference seen` or `not decidable`
    override_reason TEXT NOT NULL,          -- who let a refused outcome pass, and why; empty if nobody did
    detectable DOUBLE PRECISION NOT NULL,   -- smallest difference that the seeds show, in bits per byte
    seconds DOUBLE PRECISION NOT NULL,      -- of all runs
    code TEXT NOT NULL,                     -- release of Refinery
    ablated_at TEXT NOT NULL,
    PRIMARY KEY (root, number)
);

CREATE TABLE ablation_differences (
    root TEXT NOT NULL,
    number INTEGER NOT NULL,
    rate DOUBLE PRECISION NOT NULL,         -- peak learning rate
    value DOUBLE PRECISION NOT NULL,        -- bits per byte of b minus a
    low DOUBLE PRECISION NOT NULL,          -- of the 95 % interval
    high DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (root, number, rate)
);
