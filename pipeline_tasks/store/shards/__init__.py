"""The files of rows: shards, segments, and the rows of either."""
