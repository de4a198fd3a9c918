-- What did each stage of a snapshot cost, in time and in money?
SELECT
    recipe, snapshot, stage, engine, wall_seconds, cpu_hours, gpu_hours, cost_usd, rows_in,
    CASE WHEN wall_seconds > 0 THEN rows_in / wall_seconds END AS rows_per_second
FROM latest_stages
WHERE (:snapshot = '' OR snapshot = :snapshot) AND (:recipe = '' OR recipe = :recipe)
ORDER BY recipe, snapshot, stage_rank;
