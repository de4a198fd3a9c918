"""The tables of a version: their columns, what parts and sorts their files, and the shards that their rows are of."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa

from pipeline_tasks.inspect.views.column_types import united
from pipeline_tasks.inspect.views.named import KEPT, LINEAGE, OUTCOME, OUTCOMES, REJECTS, STAGES, VERDICTS, VersionViews
from pipeline_tasks.inspect.views.rows import ID, STAGE, Hidden, Part, Rows
from pipeline_tasks.publish.datasets.building import file_of
from pipeline_tasks.publish.datasets.published_shards import open_build
from pipeline_tasks.publish.exports.shards import PIECES
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.recipe import COMPOSE
from pipeline_tasks.stage import Shard
from pipeline_tasks.text.urls.takedown import TakenDown
from refinery_exports.tables.catalog import PARTED, Table
from refinery_exports.tables.columns import table_schema
from refinery_exports.text.texts import TEXT_RATIO

DATASETS = "datasets"
"""The table of the documents of a training dataset, with the places of their tokens."""

LANGUAGE, SOURCE = "language", "source"

DATASET, SHARD = "dataset", "shard"
"""Columns of `DATASETS`: the training dataset, and the file of the ids of its tokens, from the root."""

GROUP_BYTES = 256 << 20
"""Bytes of text, about, whose rows are sorted and written together."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Shards whose rows come into files of a table together; `number` is that of the piece within its table.

    `adds` are columns that all of its rows have one value of. `stage` is the one that did not keep the rows.
    """

    table: str
    shards: tuple[Shard, ...]
    stage: str = ""
    adds: tuple[tuple[str, str], ...] = ()
    number: int = 0

    @property
    def weight(self) -> int:
        """Bytes that are read of it, about."""
        return sum(shard.weight for shard in self.shards)


@dataclass(frozen=True, slots=True)
class Layout:
    """The tables of a version, by name, and the pieces of those that have rows of shards.

    `small` are the rows of those that manifests and verdicts are.
    """

    tables: Mapping[str, Table]
    pieces: tuple[Piece, ...]
    small: Mapping[str, pa.Table]

    def rows(self, name: str) -> int:
        """Return how many rows the shards of a table have."""
        return sum(shard.rows for piece in self.pieces if piece.table == name for shard in piece.shards)


def layout_of(root: str, version: Version, taken: TakenDown) -> Layout:
    """Return the tables of a version: those of a snapshot, or of a training dataset."""
    views = VersionViews(root, version, Hidden(taken))
    pieces: list[Piece] = []
    schemas: dict[str, pa.Schema] = {}
    is_build = COMPOSE in version.manifests
    own = () if is_build else ((PARTED, version.snapshot),)  # rows of a build are of the snapshots that it was made of
    if is_build:
        pieces += _of_build(root, version)
        schemas[DATASETS] = pa.schema([(DATASET, pa.string()), (SHARD, pa.string()), *PIECES])
    elif KEPT in views.names:
        kept = _rows(views, KEPT)
        schemas[KEPT] = _with(kept.schema, PARTED, SOURCE, LANGUAGE)
        pieces += _pieces(KEPT, kept.parts, own)
    left = {name: _rows(views, name) for name in OUTCOMES}
    schemas[REJECTS] = _with(united(rows.schema for rows in left.values()), OUTCOME, PARTED, STAGE)
    for name, rows in left.items():
        pieces += _pieces(REJECTS, rows.parts, (*own, (OUTCOME, OUTCOMES[name])))
    small = {name: _small(views, name, version) for name in (STAGES, VERDICTS, LINEAGE)}
    make = partial(_table, version.recipe)
    schemas |= {name: rows.schema for name, rows in small.items()}
    tables = {name: make(name, schema) for name, schema in schemas.items()}
    return Layout(tables, tuple(_numbered(pieces)), small)


def _rows(views: VersionViews, name: str) -> Rows:
    rows = views.of(name)
    assert isinstance(rows, Rows)
    return rows


def _with(schema: pa.Schema, *names: str) -> pa.Schema:
    """Return a schema with columns of text of these names, which it has or gets."""
    return pa.schema([*schema, *(pa.field(name, pa.string()) for name in names if name not in schema.names)])


_PARTED: Mapping[str, tuple[str, ...]] = {
    KEPT: (PARTED, SOURCE, LANGUAGE),
    REJECTS: (PARTED, STAGE),
    STAGES: (PARTED,),
    VERDICTS: (PARTED,),
    LINEAGE: (PARTED,),
    DATASETS: (),
}

_SORTED: Mapping[str, tuple[str, ...]] = {KEPT: (ID,), REJECTS: (ID,)}


def _table(recipe: str, name: str, schema: pa.Schema) -> Table:
    return Table(recipe, name, table_schema(schema), _PARTED[name], _SORTED.get(name, ()))


def _pieces(table: str, parts: Sequence[Part], adds: tuple[tuple[str, str], ...]) -> Iterator[Piece]:
    """Yield the pieces of a table: neighbors among the shards of one stage, up to `GROUP_BYTES` of text."""
    for part in parts:
        for shards in _groups([shard for shard in part.shards if shard.rows]):
            yield Piece(table, shards, part.stage, adds)


def _numbered(pieces: Sequence[Piece]) -> Iterator[Piece]:
    next_of: Counter[str] = Counter()
    for piece in pieces:
        yield replace(piece, number=next_of[piece.table])
        next_of[piece.table] += 1


def _groups(shards: Sequence[Shard]) -> Iterator[tuple[Shard, ...]]:
    group: list[Shard] = []
    for shard in shards:
        if group and TEXT_RATIO * sum(each.weight for each in (*group, shard)) > GROUP_BYTES:
            yield tuple(group)
            group = []
        group.append(shard)
    if group:
        yield tuple(group)


def _of_build(root: str, version: Version) -> Iterator[Piece]:
    """Yield a piece for the lineage of each packed shard."""
    build = open_build(root, version)
    for entry in build.index["shards"]:
        lineage, ids = file_of(entry["lineage"]), file_of(entry["bin"])
        shard = Shard(lineage.path, 0, lineage.bytes, lineage.digest)
        yield Piece(DATASETS, (shard,), adds=((DATASET, version.recipe), (SHARD, ids.path)))


_CHANGING = ("version", "state")
"""Columns of `lineage` that change when others publish; the rows of a table do not."""

_OF_PARENT = {"recipe": "parent_recipe", "snapshot": "parent_snapshot"}


def _small(views: VersionViews, name: str, version: Version) -> pa.Table:
    """Return a view that is a table, with the snapshot of the version."""
    view: Any = views.of(name)
    view = view.drop_columns([column for column in _CHANGING if name == LINEAGE and column in view.column_names])
    view = view.rename_columns([_OF_PARENT.get(column, column) for column in view.column_names])
    snapshots = pa.array([version.snapshot] * view.num_rows, pa.string())
    whole: pa.Table = view.add_column(0, PARTED, snapshots)
    return whole
