"""Ray as an engine: its tasks, pools of warm actors, and the jobs that drivers are there."""
