-- By these a commit looks at its own files alone, however many a table has; DuckDB does not need them, nor mind them.
CREATE INDEX refinery_file_begins ON ducklake_data_file (table_id, begin_snapshot);
CREATE INDEX refinery_file_ends ON ducklake_data_file (table_id, end_snapshot) WHERE end_snapshot IS NOT NULL;
CREATE INDEX refinery_file_paths ON ducklake_data_file (table_id, path);
CREATE INDEX refinery_file_values ON ducklake_file_partition_value (table_id, partition_key_index, partition_value);
CREATE INDEX refinery_tag_begins ON ducklake_tag (object_id, begin_snapshot);
CREATE INDEX refinery_tag_ends ON ducklake_tag (object_id, end_snapshot);
