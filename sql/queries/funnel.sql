-- How many rows did each stage of a snapshot read, keep and reject?
SELECT
    recipe, snapshot, stage, rows_in, offspring_in, rows_kept, rows_generated, rows_rejected, rows_quarantined,
    CASE WHEN rows_in > 0 THEN CAST(rows_kept AS DOUBLE PRECISION) / (rows_in + offspring_in) END AS retention,
    bytes_in, bytes_out, tokens, manifest
FROM latest_stages
WHERE (:snapshot = '' OR snapshot = :snapshot) AND (:recipe = '' OR recipe = :recipe)
ORDER BY recipe, snapshot, stage_rank;
