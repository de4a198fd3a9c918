-- Which refusals did a person override, when and why? Those of `refinery ablate --require` have the stage `ablate`.
SELECT recipe, snapshot, stage, override_reason, recorded_at, verdict, stage_rank
FROM gate_verdicts
WHERE override_reason <> '' AND (:recipe = '' OR recipe = :recipe)
UNION ALL
SELECT b_recipe, '', 'ablate', override_reason, ablated_at, '', -1
FROM ablations
WHERE override_reason <> '' AND (:recipe = '' OR b_recipe = :recipe)
ORDER BY recorded_at, recipe, snapshot, stage_rank;
