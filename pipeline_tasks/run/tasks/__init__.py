"""What workers run: one kernel over one shard or bucket, the rows that it reads and sorts, and its states."""
