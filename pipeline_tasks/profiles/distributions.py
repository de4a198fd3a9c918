"""Says of which columns every stage that changes rows has a distribution in its manifest, for its gate to compare."""

from typing import Any

from pipeline_tasks.schema import N_GENERATED, ORIGIN
from pipeline_tasks.stage import Stage

DISTRIBUTIONS = ("chars", "language", "source")
"""Columns of documents whose distributions are compared between snapshots wherever rows are changed; where they are."""

EVERYWHERE = (ORIGIN, N_GENERATED)
"""Columns that every stage profiles where rows have them: behind any stage it is known how many are generated."""


def changes_rows(card: Stage[Any]) -> bool:
    """Return whether a stage rejects documents, or writes texts: what it leaves may be of another kind than its input.

    One that conserves tokens makes other rows of them, which are no documents.
    """
    return card.conserves != "tokens" and (bool(card.reasons) or "text" in card.writes.names)


def profiled_by(card: Stage[Any]) -> tuple[str, ...]:
    """Return the columns that are profiled of a stage's rows: its card's, and those of all that change rows.

    Those of `EVERYWHERE` are, too.
    """
    own = (*card.profiled, *(DISTRIBUTIONS if changes_rows(card) else ()), *EVERYWHERE)
    return tuple(dict.fromkeys(own))
