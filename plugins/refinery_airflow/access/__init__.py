"""Who may see what, for which purpose, and who has seen it."""
