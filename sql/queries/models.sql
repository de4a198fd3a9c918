-- Did models wait for documents, or documents for models? Shares of the time of actors, of work, and of tasks.
SELECT
    l.recipe, l.snapshot, l.stage, l.engine, w.actors,
    w.held_seconds, w.idle_seconds, w.open_seconds, w.waited_seconds, w.tasks_seconds, w.model_seconds,
    CASE WHEN w.held_seconds > 0 THEN w.idle_seconds / w.held_seconds END AS idle_share,
    CASE WHEN w.open_seconds > 0 THEN w.waited_seconds / w.open_seconds END AS waited_share,
    CASE WHEN w.tasks_seconds > 0 THEN w.model_seconds / w.tasks_seconds END AS model_share
FROM latest_stages l
JOIN stage_models w ON w.recipe = l.recipe AND w.snapshot = l.snapshot AND w.manifest = l.manifest
WHERE (:snapshot = '' OR l.snapshot = :snapshot) AND (:recipe = '' OR l.recipe = :recipe)
ORDER BY l.recipe, l.snapshot, l.stage_rank;
