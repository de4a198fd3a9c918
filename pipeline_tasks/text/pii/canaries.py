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
    return tuple(kind for kind in KINDS if kind in kinds and not all(_is_found(kind, kinds)))


def _is_found(kind: Kind, kinds: frozenset[Kind]) -> list[bool]:
    """Return of each canary of a kind whether its text is suspect, and has one value and nothing else."""
    texts = TABLE[kind].canaries
    marks = suspects(pa.array(texts, pa.large_string()), kinds).to_pylist()
    found = [[span.kind for span in find_pii(text.encode(), Limits(REGIONS, kinds=kinds))] for text in texts]
    return [is_suspect and names == [kind] for is_suspect, names in zip(marks, found, strict=True)]
