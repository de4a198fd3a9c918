"""Studying data: maps, the foreign document, reading, breakdowns, SQL, contamination, plans. Imports the core alone."""
