-- How many records did each stage of a snapshot quarantine, for which reason, and in which manifest?
SELECT
    l.recipe, l.snapshot, l.stage, r.reason, r.row_count,
    CASE WHEN l.rows_in > 0 THEN CAST(r.row_count AS DOUBLE PRECISION) / (l.rows_in + l.offspring_in) END AS share, l.manifest
FROM latest_stages l
JOIN rejections r ON r.manifest = l.manifest
WHERE r.kind = 'quarantined' AND (:snapshot = '' OR l.snapshot = :snapshot) AND (:recipe = '' OR l.recipe = :recipe)
ORDER BY l.recipe, l.snapshot, l.stage_rank, r.row_count DESC, r.reason;
