"""Looks for made-up values in fixed texts, as for those of documents: what a task does not find there, it misses."""

import pyarrow as pa

from pipeline_tasks.text.pii.candidates import Limits
from pipeline_tasks.text.pii.findings import find_pii
from pipeline_tasks.text.pii.kinds import KINDS, TABLE, Kind
from pipeline_tasks.text.pii.suspects import suspects

REGIONS = ("US",)
"""The countries of the canaries, whatever a recipe's are."""


def missed_canaries(kinds: frozenset[Kind]) -> tuple[Kind, ...]:
    """Return of which of some kinds this process misses a canary now, in the order of the table."""
    return tuple(kind for kind in KINDS if kind in kinds and not _are_found(kind, kinds))


def _are_found(kind: Kind, kinds: frozenset[Kind]) -> bool:
    """Return whether the text of each canary of a kind is suspect, and has one value and nothing else."""
    texts = TABLE[kind].canaries
    if not all(suspects(pa.array(texts, pa.large_string()), kinds).to_pylist()):
        return False
    limits = Limits(REGIONS, kinds=kinds)
    return all([span.kind for span in find_pii(text.encode(), limits)] == [kind] for text in texts)
