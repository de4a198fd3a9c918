-- In which task, and why, did the last run of each snapshot end that failed or was refused?
SELECT recipe, snapshot, root, task, stage, error, message, recorded_at
FROM failures
WHERE (:recipe = '' OR recipe = :recipe) AND (:snapshot = '' OR snapshot = :snapshot)
ORDER BY recipe, snapshot, root;
