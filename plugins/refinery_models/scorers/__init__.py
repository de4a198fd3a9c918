"""Checks models that score documents before they decide, and compares two of them; imports the core."""
