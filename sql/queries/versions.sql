-- Which versions have been published, oldest first, and where do they lie?
SELECT recipe, number, snapshot, documents, tokens, sequences, home, recorded_at
FROM dataset_versions
WHERE (:recipe = '' OR recipe = :recipe) AND (:snapshot = '' OR snapshot = :snapshot)
ORDER BY recipe, number;
