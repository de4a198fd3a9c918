-- What did the gates of a snapshot decide, and which bounds were broken?
SELECT
    v.recipe, v.snapshot, v.stage, v.outcome, v.override_reason, v.evaluated,
    f.severity, f.fact, f.observed, f.min_value, f.max_value, f.why, v.docs
FROM latest_verdicts v
LEFT JOIN gate_failures f ON f.verdict = v.verdict
WHERE (:snapshot = '' OR v.snapshot = :snapshot) AND (:recipe = '' OR v.recipe = :recipe)
ORDER BY v.recipe, v.snapshot, v.stage_rank, f.rank;
