-- What is the state of each snapshot: stages, gate outcomes, published version or retraction, cost?
SELECT
    s.recipe, s.snapshot, s.stages, s.rows_in, s.cost_usd, COALESCE(g.refused, 0) AS refused,
    COALESCE(g.warned, 0) AS warned, d.number AS version, d.documents, d.tokens,
    r.retracted_at, r.reason AS retraction_reason
FROM (
    SELECT
        recipe, snapshot, COUNT(*) AS stages, SUM(cost_usd) AS cost_usd,
        CAST(MAX(CASE WHEN stage = 'ingest' THEN rows_in ELSE 0 END) AS BIGINT) AS rows_in
    FROM latest_stages
    WHERE recipe = '' OR snapshot <> '' -- a plan of a recipe is no snapshot of it
    GROUP BY recipe, snapshot
) s
LEFT JOIN (
    SELECT
        recipe, snapshot, SUM(CASE WHEN outcome = 'refuse' THEN 1 ELSE 0 END) AS refused,
        SUM(CASE WHEN outcome = 'warn' THEN 1 ELSE 0 END) AS warned
    FROM latest_verdicts
    GROUP BY recipe, snapshot
) g ON g.recipe = s.recipe AND g.snapshot = s.snapshot
LEFT JOIN retracted r ON r.recipe = s.recipe AND r.snapshot = s.snapshot
LEFT JOIN dataset_versions d ON r.number IS NULL AND d.recipe = s.recipe AND d.snapshot = s.snapshot AND d.number = (
    SELECT MAX(number) FROM dataset_versions newest WHERE newest.recipe = s.recipe AND newest.snapshot = s.snapshot
)
WHERE (:recipe = '' OR s.recipe = :recipe)
ORDER BY s.recipe, s.snapshot;
