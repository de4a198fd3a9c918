-- How many damaged records does each snapshot have, of which kind, and in which manifest do they lie?
SELECT
    l.recipe, l.snapshot, l.stage, r.reason, r.rows_lost,
    CASE WHEN l.rows_in > 0 THEN CAST(r.rows_lost AS DOUBLE PRECISION) / l.rows_in END AS share, l.manifest
FROM latest_stages l
JOIN rejections r ON r.manifest = l.manifest
WHERE r.kind = 'quarantined' AND (:snapshot = '' OR l.snapshot = :snapshot) AND (:recipe = '' OR l.recipe = :recipe)
ORDER BY l.recipe, l.snapshot, l.place, r.rows_lost DESC, r.reason;
