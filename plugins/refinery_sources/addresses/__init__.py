"""Files by a list of their addresses, each fetched alone and kept as a crawler keeps it: a record of WARC."""
