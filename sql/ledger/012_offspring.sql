-- Generated texts of a stage's rows, each of which became a row, and those of the kept rows that are generated documents.

DROP VIEW latest_verdicts;
DROP VIEW latest_stages;

ALTER TABLE manifests ADD COLUMN offspring_in BIGINT NOT NULL DEFAULT 0;
ALTER TABLE manifests ADD COLUMN rows_generated BIGINT NOT NULL DEFAULT 0;

-- The newest manifest of each stage of a snapshot. The manifests of an earlier form of the recipe stay in the tables.
CREATE VIEW latest_stages AS
SELECT m.*, s.recipe, s.snapshot, s.engine, s.attempt, s.wall_seconds, s.cpu_hours, s.gpu_hours, s.cost_usd
FROM stage_metrics s
JOIN manifests m ON m.manifest = s.manifest
WHERE NOT EXISTS (
    SELECT 1
    FROM stage_metrics later
    JOIN manifests other ON other.manifest = later.manifest
    WHERE later.recipe = s.recipe AND later.snapshot = s.snapshot AND other.stage = m.stage
        AND (later.recorded_at > s.recorded_at OR (later.recorded_at = s.recorded_at AND later.manifest > s.manifest))
);

-- The newest verdict of each gate on each of the newest manifests.
CREATE VIEW latest_verdicts AS
SELECT v.*
FROM gate_verdicts v
JOIN latest_stages l ON l.recipe = v.recipe AND l.snapshot = v.snapshot AND l.manifest = v.manifest
WHERE NOT EXISTS (
    SELECT 1
    FROM gate_verdicts later
    WHERE later.recipe = v.recipe AND later.snapshot = v.snapshot AND later.manifest = v.manifest
        AND later.stage = v.stage
        AND (later.recorded_at > v.recorded_at OR (later.recorded_at = v.recorded_at AND later.verdict > v.verdict))
);
