-- Columns get the names that the manifest, the suites and the dataset's log use: `prefix` (was `home`), `stage_rank`
-- (was `place`), `row_count` (was `rows_lost`), `min_value` and `max_value` (were `least` and `most`).
-- PostgreSQL fixes a view's columns when the view is created, so the views are created again.

DROP VIEW latest_verdicts;
DROP VIEW latest_stages;

ALTER TABLE dataset_versions RENAME COLUMN home TO prefix;
ALTER TABLE manifests RENAME COLUMN place TO stage_rank;
ALTER TABLE gate_verdicts RENAME COLUMN place TO stage_rank;
ALTER TABLE rejections RENAME COLUMN rows_lost TO row_count;
ALTER TABLE gate_failures RENAME COLUMN least TO min_value;
ALTER TABLE gate_failures RENAME COLUMN most TO max_value;

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

-- The newest verdict on each of those manifests.
CREATE VIEW latest_verdicts AS
SELECT v.*
FROM gate_verdicts v
JOIN latest_stages l ON l.recipe = v.recipe AND l.snapshot = v.snapshot AND l.manifest = v.manifest
WHERE NOT EXISTS (
    SELECT 1
    FROM gate_verdicts later
    WHERE later.recipe = v.recipe AND later.snapshot = v.snapshot AND later.manifest = v.manifest
        AND (later.recorded_at > v.recorded_at OR (later.recorded_at = v.recorded_at AND later.verdict > v.verdict))
);
