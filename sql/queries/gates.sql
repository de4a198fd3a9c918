-- What did the gates say of a snapshot, and which bounds did it break?
SELECT
    v.recipe, v.snapshot, v.stage, v.outcome, v.override_reason, v.evaluated,
    f.severity, f.fact, f.observed, f.least, f.most, f.why, v.docs
FROM latest_verdicts v
LEFT JOIN gate_failures f ON f.verdict = v.verdict
WHERE (:snapshot = '' OR v.snapshot = :snapshot) AND (:recipe = '' OR v.recipe = :recipe)
ORDER BY v.recipe, v.snapshot, v.place, f.rank;
