"""People and rights: takedowns, erasing, statements and signatures, and what a version discloses."""
