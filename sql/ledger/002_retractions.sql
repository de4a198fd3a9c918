-- What was retracted, when and why. A row stays when its snapshot is brought back or refined anew.

CREATE TABLE retractions (
    recipe TEXT NOT NULL,
    number INTEGER NOT NULL,                -- its place in the dataset's log, among the numbers of versions
    snapshot TEXT NOT NULL,
    reason TEXT NOT NULL,                   -- empty if none was given
    retracted_at TEXT NOT NULL,             -- empty if the log has no time
    PRIMARY KEY (recipe, number)
);

-- The last retraction of each snapshot that nothing was published of since: what is retracted now.
CREATE VIEW retracted AS
SELECT r.*
FROM retractions r
WHERE NOT EXISTS (
    SELECT 1 FROM dataset_versions v WHERE v.recipe = r.recipe AND v.snapshot = r.snapshot AND v.number > r.number
) AND NOT EXISTS (
    SELECT 1 FROM retractions later
    WHERE later.recipe = r.recipe AND later.snapshot = r.snapshot AND later.number > r.number
);
