"""Parquet files that landed: nothing in one raises, and memory is bounded."""
