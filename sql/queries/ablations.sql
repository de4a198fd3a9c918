-- What did models that were trained on two datasets say of them? One row for each learning rate, the largest first.
SELECT
    x.root, x.number, x.kind, x.a_dataset, x.a_recipe, x.a_version, x.a_made_from, x.a_fingerprint, x.a_digest,
    x.b_dataset, x.b_recipe, x.b_version, x.b_made_from, x.b_fingerprint, x.b_digest,
    x.size, x.tokens, x.seeds, x.held_out, d.rate, d.value, d.low, d.high, x.outcome, x.override_reason,
    x.detectable, x.seconds, x.code, x.ablated_at
FROM ablations x
JOIN ablation_differences d ON d.root = x.root AND d.number = x.number
WHERE :recipe = '' OR x.a_recipe = :recipe OR x.b_recipe = :recipe
ORDER BY x.root, x.number, d.rate DESC;
