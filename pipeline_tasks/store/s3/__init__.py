"""Objects of any S3 server: clients, what its errors mean, and what it made us wait."""
