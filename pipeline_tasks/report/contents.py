"""Holds what a report shows: a snapshot's manifests, verdicts and costs, and samples of its rows."""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import xxhash

from pipeline_tasks.cards import is_stage
from pipeline_tasks.gate.verdicts import Verdict, read_verdict
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.logs.version_log import Retraction
from pipeline_tasks.stage import Shards
from pipeline_tasks.store.reading import read_in_order, read_shards, sampled

SAMPLED_BYTES = 16 * 1024 * 1024
"""Whole shards of at most this many bytes per stage are read for samples."""

EMPTY: Mapping[str, Any] = {"kind": "name", "count": 0, "sum": 0, "bins": {}}
"""The profile of a column that a stage does not profile."""


@dataclass(frozen=True)
class Contents:
    """What a report shows. `paths` and `verdict_paths` are references by stage, relative to `root`.

    `out` is the folder under which the report is stored. `costs`, `hardware` and `models` are rows of the ledger's
    queries `cost`, `hardware` and `models`; `retractions` are those of earlier snapshots.
    """

    root: str
    recipe: str
    snapshot: str
    paths: Mapping[str, str]
    verdict_paths: Mapping[str, str]
    out: str
    costs: Sequence[Mapping[str, Any]] = ()
    retractions: Sequence[Retraction] = ()
    hardware: Sequence[Mapping[str, Any]] = ()
    models: Sequence[Mapping[str, Any]] = ()

    @cached_property
    def manifests(self) -> Mapping[str, Manifest]:
        """The manifests by stage, each after the one that it was made of, without that of the landed snapshot."""
        return read_in_order(self.root, {stage: path for stage, path in self.paths.items() if is_stage(stage)})

    @cached_property
    def verdicts(self) -> Mapping[str, Verdict]:
        """The verdicts by stage."""
        return {stage: read_verdict(self.root, path) for stage, path in self.verdict_paths.items()}

    def last_with(self, column: str) -> Manifest | None:
        """Return the manifest of the last stage that profiled a column of kept rows."""
        manifests = [manifest for manifest in self.manifests.values() if profile_of(manifest, column)["count"]]
        return manifests[-1] if manifests else None

    def sample(self, shards: Shards, columns: Sequence[str], most: int) -> list[dict[str, Any]]:
        """Return at most `most` rows with the lowest hashes of their records, from shards with the lowest digests.

        The choice depends on the records alone, so a report that is written again shows the same rows.
        """
        rows: list[dict[str, Any]] = []
        names = ("file", "offset", "record_id", *columns)
        for batch in read_shards(self.root, tuple(sampled(shards, SAMPLED_BYTES)), names):
            lowest = heapq.nsmallest(most, range(batch.num_rows), key=_draws(batch).__getitem__)
            rows = heapq.nsmallest(most, [*rows, *batch.take(pa.array(lowest, pa.int64())).to_pylist()], key=_draw)
        return rows


def profile_of(manifest: Manifest, column: str, rows: str = "kept") -> Mapping[str, Any]:
    """Return the profile of a column of `kept` rows or `rejects`; an empty one where the stage has none."""
    profile: Mapping[str, Any] = manifest.metrics.get(rows, {}).get(column, EMPTY)
    return profile


def _draws(batch: pa.RecordBatch) -> list[tuple[int, str, int]]:
    """Return the key by which each row is chosen."""
    return [_draw(row) for row in batch.select(["file", "offset"]).to_pylist()]


def _draw(row: Mapping[str, Any]) -> tuple[int, str, int]:
    record = f"{row['file']}\0{row['offset']}".encode()
    return xxhash.xxh64_intdigest(record), str(row["file"]), int(row["offset"] or 0)
