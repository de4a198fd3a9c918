"""What a DAG run is about: its params, dates and places, and how the newest runs of snapshots go."""
