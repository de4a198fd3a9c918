"""Looks for personal data in a sample of the texts that a snapshot leaves, as its recipe looks for it."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import dropwhile

import pyarrow as pa

from pipeline_tasks.cards import known_card, refines
from pipeline_tasks.report.contents import Contents
from pipeline_tasks.schema import DOCUMENT
from pipeline_tasks.store.reading import clears_personal_data

LOOKED_AT = 500
"""Documents of the sample: they take a second."""

COLUMNS = ("text", "chars", "language", "url")


@dataclass(frozen=True, slots=True)
class LeftOver:
    """Documents of a sample, and in how many of them each kind of personal data is found."""

    documents: int
    found: Mapping[str, int]


def left_over(contents: Contents) -> LeftOver | None:
    """Return what is found in a sample of the documents that the last stage left; None if nobody can look, or at none.

    A stage behind the one that clears may have joined what was apart, so these are the texts that leave.
    """
    cleared = [*dropwhile(lambda each: not clears_personal_data(each.stage), contents.manifests.values())]
    documents = [manifest for manifest in cleared if manifest.rows and refines(manifest.stage)]
    card = known_card(cleared[0].stage) if documents else None
    if not (card and card.spans and card.spans.left):
        return None
    sample = contents.sample(documents[-1].shards, COLUMNS, LOOKED_AT)
    schema = pa.schema([DOCUMENT.field(name) if name in DOCUMENT.names else (name, pa.string()) for name in COLUMNS])
    batch = pa.RecordBatch.from_pylist([{name: row.get(name) for name in COLUMNS} for row in sample], schema)
    return LeftOver(len(sample), card.spans.left(cleared[0].params, batch))
