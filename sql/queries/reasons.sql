-- Why was it set aside, most frequent reason first within each stage?
SELECT
    l.recipe, l.snapshot, l.stage, r.reason, r.kind, r.rows_lost,
    CASE WHEN l.rows_in > 0 THEN CAST(r.rows_lost AS DOUBLE PRECISION) / l.rows_in END AS share
FROM latest_stages l
JOIN rejections r ON r.manifest = l.manifest
WHERE (:snapshot = '' OR l.snapshot = :snapshot) AND (:recipe = '' OR l.recipe = :recipe)
    AND (:stage = '' OR l.stage = :stage)
ORDER BY l.recipe, l.snapshot, l.place, r.rows_lost DESC, r.reason;
