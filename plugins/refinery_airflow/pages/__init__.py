"""What pages of versions show, from snapshots to training datasets."""
