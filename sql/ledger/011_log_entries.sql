-- Which entries has each log of a root, and with which digest? A witness of logs that is kept outside of them.

CREATE TABLE log_entries (
    root TEXT NOT NULL,                     -- of which root, where a ledger serves several; empty for the ledger in a root
    log TEXT NOT NULL,                      -- the folder of its entries: datasets/RECIPE, takedowns, erasures, ablations
    number INTEGER NOT NULL,
    digest TEXT NOT NULL,                   -- of the entry as it is stored; empty of what an earlier release recorded
    PRIMARY KEY (root, log, number)
);

INSERT INTO log_entries SELECT '', 'datasets/' || recipe, number, '' FROM dataset_versions;
INSERT INTO log_entries SELECT '', 'datasets/' || recipe, number, '' FROM retractions WHERE 1 = 1 ON CONFLICT DO NOTHING;
INSERT INTO log_entries SELECT root, 'takedowns', number, '' FROM takedowns;
INSERT INTO log_entries SELECT root, 'ablations', number, '' FROM ablations;
