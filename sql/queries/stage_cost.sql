-- What did each stage of each published version cost? A stage that several versions share is in each of them.
SELECT
    v.recipe, v.number, v.stage, v.manifest, s.engine, s.wall_seconds, s.cpu_hours, s.gpu_hours, s.cost_usd
FROM version_manifests v
JOIN dataset_versions d ON d.recipe = v.recipe AND d.number = v.number
JOIN stage_metrics s ON s.manifest = v.manifest AND s.recipe = d.recipe AND s.snapshot = d.snapshot
WHERE (:recipe = '' OR v.recipe = :recipe) AND (:number = '' OR CAST(v.number AS VARCHAR(20)) = :number)
ORDER BY v.recipe, v.number, v.stage;
