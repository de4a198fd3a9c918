"""What leaves a run: alerts, metrics, and events of its lineage."""
