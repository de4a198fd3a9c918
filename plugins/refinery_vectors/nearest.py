"""Finds the documents nearest to a vector: by the table of its model where there is one, else in the published shards.

Both give the same exact similarities: the cosine of vectors as they are stored, in float64.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.publish.datasets.vectors import FACTS, Dataset, Made, source_of, vectors_of
from pipeline_tasks.schema import EMBEDDING
from pipeline_tasks.text.near.vectors import unpacked
from pipeline_tasks.text.urls.takedown import URL, evidence, of_entries
from refinery_vectors.stores import VectorTable
from refinery_vectors.where import Condition

pc: Any = pyarrow.compute

SIMILARITY = "similarity"

_SPARE = 16
"""Rows that are asked for beyond those wanted: Lance's distances are float32, and some may have left the dataset."""


@dataclass(frozen=True, slots=True)
class Similar:
    """A document and the cosine of its vector with the one that was asked for."""

    similarity: float
    snapshot: str
    id: str
    url: str
    title: str


class Origin(NamedTuple):
    """A document that others are to be like: its row, `FACTS` and `embedding`, with its vector."""

    snapshot: str
    id: str
    url: str
    title: str
    vector: npt.NDArray[np.float64]


def nearest_in_shards(
    dataset: Dataset, snapshots: Iterable[str], vector: npt.NDArray[np.float64], where: Sequence[Condition], limit: int
) -> tuple[list[Similar], int]:
    """Return the nearest documents of some snapshots, all of whose vectors are compared, and how many there were."""
    best, compared = _empty(), 0
    for snapshot in snapshots:
        for batch in vectors_of(dataset.root, dataset.versions[snapshot], dataset.left):
            compared += batch.num_rows
            best = _best([best, _compared(_chosen(batch, where), vector)], limit)
    return _similar(best), compared


def nearest_in_table(
    dataset: Dataset,
    table: VectorTable,
    vector: npt.NDArray[np.float64],
    where: Sequence[Condition],
    limit: int,
    *,
    exact: bool = False,
) -> list[Similar]:
    """Return the nearest documents of a table, without any that left the dataset since the table was synced."""
    sql, count = " AND ".join(f"({each.sql})" for each in where), limit + _SPARE
    while True:
        rows = table.nearest(vector.tolist(), count, sql, exact=exact)
        kept = _current(dataset, table, rows)
        if kept.num_rows >= limit or rows.num_rows < count:
            return _similar(_best([_compared(kept.combine_chunks(), vector)], limit))
        count *= 2


def merged(first: Sequence[Similar], second: Sequence[Similar], limit: int) -> list[Similar]:
    """Return the most similar of two lists that are in order, in the same order."""
    by_id = sorted([*first, *second], key=lambda each: each.id)
    by_snapshot = sorted(by_id, key=lambda each: each.snapshot, reverse=True)
    return sorted(by_snapshot, key=lambda each: -each.similarity)[:limit]


def synced(dataset: Dataset, table: VectorTable) -> list[str]:
    """Return the snapshots of a dataset whose present documents a table has."""
    sources = table.state.sources
    return [name for name, version in dataset.versions.items() if sources.get(name) == source_of(version)]


def origin_of(
    dataset: Dataset, tables: Sequence[VectorTable], models: Mapping[str, Made | None], *, id_: str = "", url: str = ""
) -> tuple[Origin, str] | None:
    """Return a published document by its id or URL, in the newest snapshot that has it, and the model of its vector."""
    if id_:
        for table in tables:
            rows = table.vectors_of(id_)
            known = _current(dataset, table, rows).to_pylist()
            if known:
                return _origin(max(known, key=lambda row: str(row["snapshot"]))), table.model
    wanted = of_entries([(URL, url)]) if url else None
    for snapshot, version in sorted(dataset.versions.items(), reverse=True):
        made = models[snapshot]
        for batch in vectors_of(dataset.root, version, dataset.left) if made else ():
            is_it = pc.equal(batch["id"], id_) if wanted is None else pc.is_valid(evidence(wanted, batch))
            for row in batch.filter(is_it).to_pylist():
                assert made is not None
                return _origin(row), made.model
    return None


def _current(dataset: Dataset, table: VectorTable, rows: pa.Table) -> pa.Table:
    """Return the rows of a table whose documents did not leave since it was synced."""
    left = dataset.left.of(rows)
    is_synced = pc.is_in(rows["snapshot"], pa.array(synced(dataset, table), pa.string()))
    return rows.filter(pc.and_(is_synced, pc.invert(left)))


def _origin(row: dict[str, Any]) -> Origin:
    vector = unpacked(pa.array([row[EMBEDDING]], pa.large_binary()))[0]
    return Origin(row["snapshot"], row["id"], row["url"] or "", row["title"] or "", vector)


def _chosen(batch: pa.RecordBatch, where: Sequence[Condition]) -> pa.Table:
    for condition in where:
        batch = batch.filter(condition.holds(batch))
    return pa.Table.from_batches([batch])


def _empty() -> pa.Table:
    return FACTS.append(pa.field(SIMILARITY, pa.float64())).empty_table()


def _compared(rows: pa.Table, vector: npt.NDArray[np.float64]) -> pa.Table:
    """Return rows with the cosine of each in place of its vector."""
    facts = rows.select(FACTS.names)
    if not rows.num_rows:
        return _empty()
    vectors = unpacked(rows[EMBEDDING].combine_chunks())
    lengths = np.sqrt((vectors * vectors).sum(axis=1) * (vector * vector).sum())
    cosines = (vectors * vector).sum(axis=1) / lengths
    return facts.append_column(SIMILARITY, pa.array(cosines, pa.float64())).cast(_empty().schema)


def _best(tables: Iterable[pa.Table], limit: int) -> pa.Table:
    """Return the most similar rows; of those that are alike the newest snapshot's, then the lowest id."""
    order = [(SIMILARITY, "descending"), ("snapshot", "descending"), ("id", "ascending")]
    return pa.concat_tables(tables).sort_by(order).slice(0, limit)


def _similar(rows: pa.Table) -> list[Similar]:
    names = ("snapshot", "id", "url", "title")
    return [Similar(round(row[SIMILARITY], 6), *(row[name] or "" for name in names)) for row in rows.to_pylist()]
