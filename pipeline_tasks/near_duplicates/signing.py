"""What every stage of this room does with documents before it signs them, and with their signatures behind it."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.near_duplicates.likeness import Likeness
from pipeline_tasks.near_duplicates.tables import BANDS, OUTLINES
from pipeline_tasks.stage import Batches
from pipeline_tasks.text.base.tables import batch_of

pc: Any = pyarrow.compute


def in_place(documents: Batches, likeness: Likeness) -> Iterator[pa.RecordBatch]:
    """Yield documents that are in order of `id`, and have what the policy compares.

    ContractError for a document out of order, RecipeError for a column that the policy needs and documents lack.
    """
    last = ""
    for batch in documents:
        _check_order(batch, last, likeness)
        _check_columns(batch, likeness)
        last = batch.column("id")[-1].as_py() if batch.num_rows else last
        yield batch


def _check_order(batch: pa.RecordBatch, last: str, likeness: Likeness) -> None:
    for before, after in pairwise([last, *batch.column("id").to_pylist()]):
        if not before < after:
            raise ContractError(likeness.out_of_place(f"document {after} follows {before}"))


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
