-- What computed the scores of each snapshot's models, as shares of the documents that they read?
SELECT
    l.recipe, l.snapshot, l.stage, h.computed, h.hardware, h.row_count,
    CASE WHEN l.rows_in > 0 THEN CAST(h.row_count AS DOUBLE PRECISION) / l.rows_in END AS share
FROM latest_stages l
JOIN stage_hardware h ON h.recipe = l.recipe AND h.snapshot = l.snapshot AND h.manifest = l.manifest
WHERE (:snapshot = '' OR l.snapshot = :snapshot) AND (:recipe = '' OR l.recipe = :recipe)
ORDER BY l.recipe, l.snapshot, l.stage_rank, h.computed, h.row_count DESC, h.hardware;
