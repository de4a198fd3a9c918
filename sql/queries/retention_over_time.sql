-- How does the retention of each stage change from snapshot to snapshot, and what did its gate decide?
SELECT
    l.recipe, l.stage, l.snapshot, l.rows_in, l.rows_kept,
    CASE WHEN l.rows_in > 0 THEN CAST(l.rows_kept AS DOUBLE PRECISION) / (l.rows_in + l.offspring_in) END AS retention,
    v.outcome
FROM latest_stages l
LEFT JOIN latest_verdicts v ON v.recipe = l.recipe AND v.snapshot = l.snapshot AND v.manifest = l.manifest
    AND v.stage = l.stage
WHERE (:recipe = '' OR l.recipe = :recipe) AND (:stage = '' OR l.stage = :stage)
ORDER BY l.recipe, l.stage_rank, l.snapshot;
