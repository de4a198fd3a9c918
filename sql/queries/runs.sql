-- In which order were the manifests of each snapshot committed and judged? The last that was recorded comes last.
SELECT s.recipe, s.snapshot, m.stage, s.manifest, m.fingerprint, '' AS verdict, '' AS outcome, s.recorded_at
FROM stage_metrics s
JOIN manifests m ON m.manifest = s.manifest
WHERE (:recipe = '' OR s.recipe = :recipe) AND (:snapshot = '' OR s.snapshot = :snapshot)
UNION ALL
SELECT v.recipe, v.snapshot, v.stage, v.manifest, '' AS fingerprint, v.verdict, v.outcome, v.recorded_at
FROM gate_verdicts v
WHERE (:recipe = '' OR v.recipe = :recipe) AND (:snapshot = '' OR v.snapshot = :snapshot)
ORDER BY recipe, snapshot, recorded_at, verdict, manifest;
