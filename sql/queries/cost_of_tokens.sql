-- What did a million published tokens cost, snapshot by snapshot?
SELECT
    d.recipe, d.snapshot, d.number, d.tokens, c.cpu_hours, c.gpu_hours, c.cost_usd,
    CASE WHEN d.tokens > 0 THEN c.cost_usd * 1000000 / d.tokens END AS usd_per_million_tokens
FROM dataset_versions d
JOIN (
    SELECT
        v.recipe, v.number, SUM(s.cpu_hours) AS cpu_hours, SUM(s.gpu_hours) AS gpu_hours, SUM(s.cost_usd) AS cost_usd
    FROM version_manifests v
    JOIN dataset_versions d ON d.recipe = v.recipe AND d.number = v.number
    JOIN stage_metrics s ON s.manifest = v.manifest AND s.recipe = d.recipe AND s.snapshot = d.snapshot
    GROUP BY v.recipe, v.number
) c ON c.recipe = d.recipe AND c.number = d.number
WHERE (:recipe = '' OR d.recipe = :recipe)
ORDER BY d.recipe, d.number;
