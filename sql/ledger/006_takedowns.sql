-- Which takedowns a root recorded: a witness of its log, whose last entries may be removed with their heads.

CREATE TABLE takedowns (
    root TEXT NOT NULL,                     -- of which root, where a ledger serves several; empty for the ledger in a root
    number INTEGER NOT NULL,                -- its place in the root's log of takedowns
    entries INTEGER NOT NULL,               -- how many documents, URLs and sites it names
    undo INTEGER NOT NULL,                  -- 1 if it allows them again
    reason TEXT NOT NULL,
    taken_down_at TEXT NOT NULL,
    PRIMARY KEY (root, number)
);
