-- Which versions are published, and where are their files? The oldest version comes first.
SELECT recipe, number, snapshot, documents, tokens, sequences, prefix, recorded_at
FROM dataset_versions
WHERE (:recipe = '' OR recipe = :recipe) AND (:snapshot = '' OR snapshot = :snapshot)
ORDER BY recipe, number;
