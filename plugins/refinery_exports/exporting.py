"""Writes the shards of an export wherever the work runs, stores them, and lists all files when all are stored."""

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pipeline_tasks.engines.each import On, Work
from pipeline_tasks.engines.workers import Workers
from pipeline_tasks.errors import RowsVanished
from pipeline_tasks.publish.exported import FILES, RECEIPTS
from pipeline_tasks.sealed import seal, sha256
from pipeline_tasks.store import storage
from pipeline_tasks.training.index import StoredFile
from refinery_exports.format import Written
from refinery_exports.place import CLAIM, Facts, claim, encoded


@dataclass(frozen=True, slots=True)
class Shards:
    """What the shards of an export are made of: an item each, of which `write` writes the files below a local folder.

    It returns what the shard has, and `weight` about how many bytes are read. Workers get all of them as bytes.
    """

    write: Callable[[Any, Path], Mapping[str, int]]
    items: Sequence[Any]
    weight: Callable[[Any], int]


@dataclass(frozen=True, slots=True)
class Export:
    """What is exported: its identity, its shards, the files about all shards by their names, and what all have."""

    facts: Facts
    shards: Shards
    beside: Callable[[Sequence[Written]], Mapping[str, bytes]]
    expected: Mapping[str, int]


def processes(count: int = 0) -> Workers:
    """Return so many processes, as many as this one has processors for 0: shards are computed."""
    return Workers(count or len(os.sched_getaffinity(0)), are_processes=True)


def run(export: Export, to: str, on: On) -> dict[str, Any]:
    """Store an export at a place, where `on` says; return its list of files.

    The bytes are the same wherever it runs. The same export again returns what is there, or goes on. RowsVanished if
    the shards together do not have what is expected of them.
    """
    work, there = Work("export", to, RECEIPTS, on), claim(to, export.facts)
    if there is not None:
        work.forget()
        return there
    of = export.shards
    stored = work.each("shards", partial(_stored, of.write, to), of.items, key=lambda item: item, weight=of.weight)
    shards = [Written(each["counts"], tuple(StoredFile(**file) for file in each["files"])) for each in stored]
    totals = _totals(export, shards, to)
    bodies = {**export.beside(shards), CLAIM: encoded(export.facts)}
    beside = [_put(to, name, body) for name, body in sorted(bodies.items())]
    files = sorted([*beside, *(file for shard in shards for file in shard.files)], key=lambda file: file.path)
    listed = {
        "format": 1,
        **export.facts,
        **totals,
        "shards": [{**shard.counts, "files": [file.path for file in shard.files]} for shard in shards],
        "files": [asdict(file) for file in files],
    }
    storage.commit(storage.connect(to), FILES, seal(listed))
    work.forget()
    return listed


def _totals(export: Export, shards: Sequence[Written], to: str) -> Mapping[str, int]:
    totals: Counter[str] = Counter()
    for shard in shards:
        totals.update(shard.counts)
    for name, count in export.expected.items():
        if totals[name] != count:
            message = f"{to}: the shards have {totals[name]} {name}, and the version has {count}; verify its root"
            raise RowsVanished(message)
    return totals


def _stored(write: Callable[[Any, Path], Mapping[str, int]], to: str, item: object) -> dict[str, Any]:
    """Write the files of a shard, and store them at the place; return what `Written` has."""
    with tempfile.TemporaryDirectory(prefix="refinery-export-") as place:
        folder = Path(place)
        counts = write(item, folder)
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        files = [_put_file(to, str(path.relative_to(folder)), path) for path in paths]
        return {"counts": counts, "files": files}


def _put_file(to: str, path: str, local: Path) -> StoredFile:
    size, digest = storage.digest_of_file(str(local))
    storage.connect(to).put_file(path, local, digest)
    return StoredFile(path, size, digest)


def _put(to: str, path: str, body: bytes) -> StoredFile:
    with tempfile.NamedTemporaryFile(prefix="refinery-") as local:
        local.write(body)
        local.flush()
        storage.connect(to).put_file(path, Path(local.name), sha256(body))
    return StoredFile(path, len(body), sha256(body))
