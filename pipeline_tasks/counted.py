"""Counts in words for messages, lines and pages: `1 place`, `1,234 places`."""


def counted(count: float, noun: str, nouns: str = "") -> str:
    """Return a count with its noun, in the plural (`nouns`, or `noun` with an s) unless the count is one."""
    return f"{count:,} {noun if count == 1 else nouns or f'{noun}s'}"
