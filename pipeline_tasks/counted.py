"""Counts in words for messages, lines and pages: `1 place`, `1,234 places`."""


def counted(count: float, noun: str, nouns: str = "") -> str:
    """Return a count with its noun, in the plural (`nouns`, or `noun` with an s) unless the count is one."""
    number = f"{count:,.0f}" if count == round(count) else f"{count:,}"
    return f"{number} {noun if count == 1 else nouns or f'{noun}s'}"


def or_dash(amount: int) -> str:
    """Return an amount of tokens or sequences in a table: versions of snapshots have documents alone."""
    return f"{amount:,}" if amount else "-"
