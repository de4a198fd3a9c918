-- Which refusals did a person override, when and why?
SELECT recipe, snapshot, stage, override_reason, recorded_at, verdict
FROM gate_verdicts
WHERE override_reason <> '' AND (:recipe = '' OR recipe = :recipe)
ORDER BY recorded_at, recipe, snapshot, stage_rank;
