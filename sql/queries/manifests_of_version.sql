-- Which manifests belong to each published version? `snapshot` selects versions; the oldest version comes first.
SELECT v.recipe, v.number, d.snapshot, v.stage, v.manifest
FROM version_manifests v
JOIN dataset_versions d ON d.recipe = v.recipe AND d.number = v.number
LEFT JOIN manifests m ON m.manifest = v.manifest
WHERE (:recipe = '' OR v.recipe = :recipe) AND (:snapshot = '' OR d.snapshot = :snapshot)
ORDER BY v.recipe, v.number, COALESCE(m.stage_rank, -1), v.stage;
