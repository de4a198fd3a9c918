"""The append-only logs of a root, and what tells that one of them was cut."""
