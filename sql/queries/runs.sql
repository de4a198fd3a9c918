-- In which order were the manifests of each snapshot committed and judged? The last that was recorded comes last.
-- What has no snapshot is of no run, such as the plan of a build.
SELECT s.recipe, s.snapshot, m.stage, s.manifest, m.fingerprint, '' AS verdict, '' AS outcome, s.recorded_at
FROM stage_metrics s
JOIN manifests m ON m.manifest = s.manifest
WHERE s.snapshot <> '' AND (:recipe = '' OR s.recipe = :recipe) AND (:snapshot = '' OR s.snapshot = :snapshot)
UNION ALL
SELECT v.recipe, v.snapshot, v.stage, v.manifest, '' AS fingerprint, v.verdict, v.outcome, v.recorded_at
FROM gate_verdicts v
WHERE (:recipe = '' OR v.recipe = :recipe) AND (:snapshot = '' OR v.snapshot = :snapshot)
ORDER BY recipe, snapshot, recorded_at, verdict, manifest;
