"""People and rights: takedowns, erasing, signed statements, and what a version discloses. Imports the core alone."""
