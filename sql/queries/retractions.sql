-- Which snapshots were retracted, when and why, and which version restored each of them?
SELECT
    r.recipe, r.snapshot, r.number, r.retracted_at, r.reason,
    (
        SELECT MIN(v.number)
        FROM dataset_versions v
        WHERE v.recipe = r.recipe AND v.snapshot = r.snapshot AND v.number > r.number
    ) AS restored_in_version
FROM retractions r
WHERE (:recipe = '' OR r.recipe = :recipe) AND (:snapshot = '' OR r.snapshot = :snapshot)
ORDER BY r.recipe, r.number;
