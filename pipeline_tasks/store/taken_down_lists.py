"""Lists of what is taken down that manifests pin: small objects that name an entry of the log, and its runs."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline_tasks.manifest import NAMED, shard_of
from pipeline_tasks.sealed import canonical, sha256
from pipeline_tasks.stage import Shard, Shards
from pipeline_tasks.store import storage
from pipeline_tasks.store.log_chain import ChainEntry
from pipeline_tasks.store.once import Once
from pipeline_tasks.store.reading import read_named
from pipeline_tasks.store.shards.segment import Segments
from pipeline_tasks.store.taken_down import BATCH_ROWS, FOLDER, taken_down, without
from pipeline_tasks.text.urls.takedown import DOC, MATCHING, SITE, URL, TakenDown, matched, of_rows

LISTS = f"{FOLDER}/lists"
"""Where the lists are that stages read, named by their content."""


_GONE, _WAY_OUT = "no such list of takedowns", "restore it from a backup"


class Pinned(NamedTuple):
    """A list: the takedown that it is of, the digest of that entry ("" of an earlier release), and what is in it.

    `bytes` is its size, and `shards` are its segments.
    """

    number: int
    entry: str
    taken: Callable[[], TakenDown]
    shards: Shards
    bytes: int


def store_list(root: str, last: ChainEntry, runs: Iterable[Shard], counts: Mapping[str, int]) -> str:
    """Store the list of what is taken down behind an entry of the log; return its digest.

    It follows from the log alone: a list of the same entry is the same list, whoever stores it, and when.
    """
    facts = {"entry": last.digest, "takedown": last.number, "matching": MATCHING, "counts": dict(counts)}
    body = canonical({**facts, "segments": list(runs)})
    digest = sha256(body)
    storage.commit(storage.connect(root), f"{LISTS}/{digest[:NAMED]}.json", body)
    return digest


_PATHS: Once[str] = Once(lambda _: 1, 1 << 12)
"""The paths of lists, by root and digest."""


def list_path(root: str, digest: str) -> str:
    """Return the path of the list with a digest: one of an earlier release is a table of its rows."""
    path, earlier = (f"{LISTS}/{digest[:NAMED]}.{suffix}" for suffix in ("json", "parquet"))

    def found() -> str:
        store = storage.connect(root)
        there = [each for each in (path, earlier) if store.size(each) is not None]
        if not there:
            raise FileNotFoundError(path)
        return there[0]

    try:
        return _PATHS.get((root, digest), found)
    except FileNotFoundError:
        return path


def pinned_by(root: str, digest: str) -> Pinned:
    """Return the list with a digest; ContractError if it is damaged or gone."""
    path = list_path(root, digest)
    body = read_named(root, path, digest, _GONE, _WAY_OUT)
    if path.endswith(".parquet"):
        rows = pq.read_table(pa.BufferReader(body)).to_pylist()
        last = max((row["takedown"] for row in rows), default=0)
        return Pinned(last, "", partial(of_rows, rows), (), len(body))
    facts = json.loads(body)
    shards = tuple(map(shard_of, facts["segments"]))
    taken = TakenDown(Segments(root, shards, BATCH_ROWS), facts["counts"])
    return Pinned(facts["takedown"], facts["entry"], partial(matched, taken, facts["matching"]), shards, len(body))


_SEGMENTS: Once[Shards] = Once(len, 1 << 12)


def segments_named(uri: str, digest: str) -> Shards:
    """Return the segments that the list at a URI names, none of one that has its rows itself; it is read once."""

    def read() -> Shards:
        folder, _, name = uri.rpartition("/")
        body = read_named(folder, name, digest, _GONE, _WAY_OUT)
        return tuple(map(shard_of, json.loads(body)["segments"]))

    return _SEGMENTS.get(digest, read) if uri.endswith(".json") else ()


def is_of(listed: Pinned, chain: Sequence[ChainEntry]) -> bool:
    """Return whether a list is of an entry of a log: what the log says behind it is all that the list lacks."""
    return 0 < listed.number <= len(chain) and chain[listed.number - 1].digest == listed.entry


def lacks(root: str, listed: Pinned, *, ever: bool = False) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of a list that are not taken down now (or, with `ever`, never were): all of the list is read."""
    taken, now = listed.taken(), replace(taken_down(root), ever=ever)
    for kind in (DOC, SITE, URL):
        rows = taken.of_kind(kind)
        yield from without(rows, now.held(rows["key"])).to_pylist()
