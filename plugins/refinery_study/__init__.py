"""Studying data: maps, the foreign document, SQL, contamination, plans."""
