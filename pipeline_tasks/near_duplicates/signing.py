"""What every stage of this room does with documents before it signs them, and with their signatures behind it."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.near_duplicates.id_order import in_id_order
from pipeline_tasks.near_duplicates.likeness import Likeness
from pipeline_tasks.near_duplicates.tables import BANDS, OUTLINES
from pipeline_tasks.stage import Batches
from pipeline_tasks.text.base.tables import batch_of

pc: Any = pyarrow.compute


def in_place(documents: Batches, likeness: Likeness) -> Iterator[pa.RecordBatch]:
    """Yield documents that are in order of `id`, and have what the policy compares.

    ContractError for a document out of order, RecipeError for a column that the policy needs and documents lack.
    """
    for batch in in_id_order(documents, likeness.stage):
        _check_columns(batch, likeness)
        yield batch


def _check_columns(batch: pa.RecordBatch, likeness: Likeness) -> None:
    if "quality" in likeness.policy and likeness.quality not in batch.schema.names:
        message = (
            f"{likeness.stage}: policy `quality` needs a column {likeness.quality!r}, and documents have none; "
            "put the stage that writes it before, or name another by `quality:`"
        )
        raise RecipeError(message)


def outline_signatures(signatures: Batches) -> Batches:
    """Yield `OUTLINES`."""
    for batch in signatures:
        yield batch.select(OUTLINES.names)


def spread_bands(outlines: Batches) -> Batches:
    """Yield `BANDS`."""
    for batch in outlines:
        keys = batch.column("keys")
        node = batch.column("node").take(pc.list_parent_indices(keys))
        yield batch_of(BANDS, key=pc.list_flatten(keys), node=node)
