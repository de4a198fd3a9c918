"""Counts how many records of selected snapshots each document stands for: its near duplicates, and equal texts."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.cards import copies_of, stage_names
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.profiles.removals import WINNER
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version, stages_that
from pipeline_tasks.publish.superseded import SUPERSEDED, read_superseded
from pipeline_tasks.stage import Batches
from pipeline_tasks.store.reading import read_manifest, read_shards
from pipeline_tasks.text.base.tables import flags

SIZES = pa.schema([pa.field("id", pa.string()), pa.field("cluster_size", pa.int64())])
"""Documents that stand for more than themselves, sorted by id: the records of their cluster, themselves included.

Documents that no selected snapshot kept may be there, too.
"""

NAMED = pa.schema([SUPERSEDED.field(name) for name in ("id", "snapshot", "winner", "winner_snapshot")])
"""Documents that lost to a near duplicate, as evidence and tables of superseded documents name both."""

LOST = pa.schema({"id": pa.string(), "chosen": pa.bool_(), "winner": pa.string(), "winner_chosen": pa.bool_()})
"""The same, with whether the snapshots of both are selected: their names took as much memory as the ids."""

WINNER_SNAPSHOT = r'"snapshot":(?P<name>"(?:[^"\\]|\\.)*")'
"""The snapshot of the winner in evidence, as JSON."""

pc: Any = pyarrow.compute

_Nodes = npt.NDArray[np.int32]
_Flags = npt.NDArray[np.bool_]


def sizes_within(root: str, recipe: str, versions: Sequence[Version], until: int | None = None) -> pa.Table:
    """Return the cluster sizes of documents over the records of these versions: rows of `SIZES`.

    They follow from the rows that deduplication rejected, so that versions of any age have them. It takes 160 to
    250 bytes of memory for each of these. RecipeError if no version was deduplicated. `until` is the number of the last
    entry of the recipe's log that counts.
    """
    if not any(_has_clusters(stage) for version in versions for stage in version.manifests):
        stages = ", ".join(filter(_has_clusters, stage_names()))
        message = f"versions.cluster_sizes: recipe {recipe} has none of {stages}, so there are no clusters"
        raise RecipeError(message)
    exact = _manifests(root, versions, lambda stage: copies_of(stage).equal)
    latest = version_log.latest_by_snapshot(root, recipe, until)
    near = _manifests(root, latest, lambda stage: copies_of(stage).over_snapshots)
    chosen = pa.array([version.snapshot for version in versions], pa.string())
    return sizes_of(root, exact, near, read_superseded(root, recipe, until), chosen)


def _has_clusters(stage: str) -> bool:
    copies = copies_of(stage)
    return copies.equal or copies.over_snapshots


def _manifests(root: str, versions: Sequence[Version], are: Callable[[str], bool]) -> list[Manifest]:
    """Return the manifests of the stages of versions of which something holds."""
    return [
        read_manifest(root, version.manifests[stage])
        for version in versions
        for stage in stages_that(root, version, are)
    ]


def sizes_of(
    root: str, exact: Sequence[Manifest], near: Sequence[Manifest], moves: Batches, chosen: pa.Array
) -> pa.Table:
    """Return the cluster sizes over the snapshots `chosen`, by what deduplication rejected.

    `exact` are the manifests of `chosen`, `near` those of all snapshots: a line of winners may lead through any.
    `moves` are the documents that `near` superseded, with the columns of `NAMED`.
    """
    shown = ("id", "snapshot", "evidence")
    rejects = (batch for manifest in near for batch in read_shards(root, manifest.rejects, shown))
    equal = [batch["id"] for manifest in exact for batch in read_shards(root, manifest.rejects, ("id",))]
    return cluster_sizes(
        pa.chunked_array(equal, pa.string()), _lost(map(_named, rejects), chosen), _lost(moves, chosen)
    )


def _named(rejects: pa.RecordBatch) -> pa.RecordBatch:
    """Return rejects of near duplicates as rows of `NAMED`, from their evidence."""
    evidence = rejects["evidence"]
    winners = pc.struct_field(pc.extract_regex(evidence, WINNER), ["id"])
    named = pc.struct_field(pc.extract_regex(evidence, WINNER_SNAPSHOT), ["name"]).dictionary_encode()
    snapshots = pa.array([json.loads(name) for name in named.dictionary.to_pylist()], pa.string())
    return pa.RecordBatch.from_arrays(
        [rejects["id"], rejects["snapshot"], winners, snapshots.take(named.indices)], schema=NAMED
    )


def _lost(named: Batches, chosen: pa.Array) -> pa.Table:
    """Return rows with the columns of `NAMED` as rows of `LOST`."""
    among = partial(pc.is_in, value_set=chosen)
    rows = (
        [batch["id"], among(batch["snapshot"]), batch["winner"], among(batch["winner_snapshot"])] for batch in named
    )
    return pa.Table.from_batches((pa.RecordBatch.from_arrays(columns, schema=LOST) for columns in rows), schema=LOST)


def cluster_sizes(equal: pa.ChunkedArray, lost: pa.Table, moves: pa.Table) -> pa.Table:
    """Return `SIZES` of the documents that stay when the chosen snapshots are one dataset.

    `equal` has the id of each record of these that repeats the text of a document, `lost` the documents of any
    snapshot that lost to another, and `moves` the winners that were superseded later, those of newer versions last.
    Each record is counted for the last document of its line of winners that a chosen snapshot kept.
    """
    columns = [equal, lost["id"], lost["winner"], moves["id"], moves["winner"]]
    is_lost, is_won, is_moved, is_mover = (
        flags(each[of]) for each in (lost, moves) for of in ("chosen", "winner_chosen")
    )
    ends = np.cumsum([len(column) for column in columns])
    ids = pa.chunked_array([chunk for column in columns for chunk in column.chunks], pa.string())
    encoded = ids.dictionary_encode().chunks or [pa.array([], pa.string()).dictionary_encode()]
    del equal, lost, moves, columns, ids  # from here on only each distinct id is a text
    numbers = np.concatenate([chunk.indices.to_numpy(zero_copy_only=False) for chunk in encoded])
    distinct = encoded[0].dictionary  # that of all chunks
    repeats, losers, winners, moved, movers = np.split(numbers, ends[:-1])
    count = len(distinct)

    parent, kept = np.arange(count, dtype=np.int32), np.ones(count, np.bool_)
    parent[moved], parent[losers] = movers, winners
    for nodes, are_chosen in ((winners, is_won), (movers, is_mover), (moved, is_moved)):
        kept[nodes] = are_chosen
    kept[losers] = False
    records = np.bincount(repeats, minlength=count) + kept
    records += np.bincount(losers[is_lost], minlength=count)

    stays = kept & ~_has_kept_above(parent, kept)
    sizes = np.zeros(count, np.int64)
    np.add.at(sizes, _tops(np.where(stays, np.arange(count, dtype=np.int32), parent)), records)
    rows = pa.array(np.flatnonzero(stays & (sizes > 1)))
    table = pa.table([distinct.take(rows), pa.array(sizes).take(rows)], schema=SIZES)
    return table.sort_by("id")


def _has_kept_above(parent: _Nodes, kept: _Flags) -> _Flags:
    """Return which nodes have a kept one further along their line, which ends where a node is its own parent."""
    above: _Flags = kept[parent] & (parent != np.arange(len(parent)))
    jump = parent
    for _ in range(len(parent).bit_length()):  # each round looks twice as far
        above, jump = above | above[jump], jump[jump]
    return above


def _tops(parent: _Nodes) -> _Nodes:
    """Return the last node of each node's line."""
    for _ in range(len(parent).bit_length()):
        parent = parent[parent]
    return parent
