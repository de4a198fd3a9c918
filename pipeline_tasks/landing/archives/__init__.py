"""WARC and ARC: records, their headers, and the HTTP messages in them."""
