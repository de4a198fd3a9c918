"""What is published, as tables in a catalog of others: Iceberg and DuckLake read the files that the root has."""
