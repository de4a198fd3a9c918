"""Puts documents into buckets by `id`, in order of it, as `dedup_exact` leaves them, and checks that they are there."""

from collections.abc import Iterator
from itertools import pairwise

import pyarrow as pa

from pipeline_tasks.errors import ContractError
from pipeline_tasks.stage import Batches, Engine, Shards, buckets_for
from pipeline_tasks.text.base.tables import unchanged

PLACE = ("snapshot", "file", "offset")
"""The columns that name one record, and so order documents with the same id; together they are unique."""


def in_buckets(shards: Shards, buckets: int, on: Engine) -> tuple[Shards, int]:
    """Return documents in buckets by `id`, and their number: `buckets`, for 0 that in which they come."""
    placed = buckets or on.in_buckets(shards)
    count = placed or buckets_for(shards)
    if len(shards) == placed:
        return shards, count
    return on.group(unchanged, shards, by="id", order=PLACE, buckets=count), count


def in_id_order(documents: Batches, stage: str) -> Iterator[pa.RecordBatch]:
    """Yield the documents of a bucket; ContractError for one that is not behind the last in order of `id`."""
    last = ""
    for batch in documents:
        ids = [last, *batch.column("id").to_pylist()]
        for before, after in pairwise(ids):
            if not before < after:
                raise out_of_place(stage, f"document {after} is not in id order behind {before}, or there twice")
        last = ids[-1]
        yield batch


def require_met(stage: str, met: int, returned: int) -> None:
    """Raise ContractError unless all rows that came back to a bucket were met by its documents."""
    if met != returned:
        raise out_of_place(stage, "documents are not in their buckets")


def out_of_place(stage: str, what: str) -> ContractError:
    """Return the error of documents that are not where `dedup_exact` leaves them."""
    return ContractError(f"{stage}: {what}; run dedup_exact before, with the same `buckets`")
