"""The views of a version, for SQL, tables and exports: its rows as shards have them, and what is known of them."""
