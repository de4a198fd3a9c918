-- How many rows did each stage reject or quarantine, by reason, the most frequent reason first?
SELECT
    l.recipe, l.snapshot, l.stage, r.reason, r.kind, r.row_count,
    CASE WHEN l.rows_in > 0 THEN CAST(r.row_count AS DOUBLE PRECISION) / (l.rows_in + l.offspring_in) END AS share
FROM latest_stages l
JOIN rejections r ON r.manifest = l.manifest
WHERE (:snapshot = '' OR l.snapshot = :snapshot) AND (:recipe = '' OR l.recipe = :recipe)
    AND (:stage = '' OR l.stage = :stage)
ORDER BY l.recipe, l.snapshot, l.stage_rank, r.row_count DESC, r.reason;
