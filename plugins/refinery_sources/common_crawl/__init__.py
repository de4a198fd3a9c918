"""Common Crawl: whole files, news, and records by its columnar index."""
