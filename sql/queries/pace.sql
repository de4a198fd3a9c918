-- How many seconds did each stage take per row, in each snapshot that it was run for?
SELECT recipe, stage, snapshot, wall_seconds, rows_in, wall_seconds / rows_in AS seconds_per_row
FROM latest_stages
WHERE snapshot <> '' AND (:recipe = '' OR recipe = :recipe) AND (:stage = '' OR stage = :stage) AND rows_in > 0 AND wall_seconds > 0
ORDER BY recipe, stage_rank, snapshot;
