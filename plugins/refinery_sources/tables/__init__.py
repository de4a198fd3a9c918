"""Sources that are tables with a log: the rows of one of their versions, and what has changed since another."""
