"""Great Expectations: suites validated by it, and its Data Docs."""
