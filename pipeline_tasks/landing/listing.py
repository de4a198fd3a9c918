"""Lists a landed snapshot: the files that it promises, whether all exist, and their digests."""

import gzip
import json
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa

from pipeline_tasks.errors import ContractError, NothingLanded, SnapshotIncomplete
from pipeline_tasks.manifest import Manifest, dump, identified, manifest_path
from pipeline_tasks.recipe import LAND
from pipeline_tasks.stage import LANDING, Engine, Shard, Shards, Stage
from pipeline_tasks.store import storage
from pipeline_tasks.store.protocol import Store

PROMISE = "snapshot.json"
"""The list of files that a producer writes last: `{"snapshot": id, "files": [{"path", "bytes", "sha256"}]}`."""

PATHS = ("warc.paths.gz", "warc.paths", "wet.paths.gz", "wet.paths")
"""Common Crawl's own listings: one path per line; a file may also be here under the last component of its path."""

ARCHIVES = (".warc", ".arc", ".wet")
TABLES = (".jsonl", ".ndjson", ".json", ".parquet")


@dataclass(frozen=True, slots=True)
class Listing:
    """A snapshot's files as (name, bytes, SHA-256 or "" if unknown), and the names in its folder that it leaves out."""

    snapshot: str
    files: tuple[tuple[str, int, str], ...]
    ignored: tuple[str, ...]


def list_snapshot(uri: str, snapshot: str = "") -> Listing:
    """List the snapshot at `uri` (a folder, a prefix or one file) against what it promises.

    A producer can promise files in `snapshot.json` or Common Crawl's `warc.paths.gz`: SnapshotIncomplete is raised
    while a promised file is missing or has another size. Without a promise the snapshot is all archives in the folder,
    or all tables if there are no archives. NothingLanded is raised where there are no files, or none are promised.
    """
    uri = _absolute(uri)
    folder, entries = _entries(uri)
    identifier = snapshot or uri.rstrip("/").rpartition("/")[2]
    if PROMISE in entries:
        return _promised(folder, entries, identifier)
    for name in PATHS:
        if name in entries:
            return _listed(folder, name, entries, identifier)
    return _unpromised(uri, entries, identifier)


def is_complete(uri: str) -> bool:
    """Return whether the snapshot at `uri` has landed as promised; False also when it does not exist yet.

    Errors that waiting cannot fix, such as wrong credentials, are raised.
    """
    try:
        return bool(list_snapshot(uri).files)
    except (SnapshotIncomplete, NothingLanded):
        return False


def _entries(uri: str) -> tuple[Store, dict[str, int]]:
    store = storage.connect(uri)
    entries = {entry.path: entry.bytes for entry in store.list("")}
    if entries:
        return store, entries
    parent, _, name = uri.rstrip("/").rpartition("/")
    size = storage.connect(parent or "/").size(name)
    if size is None:
        message = f"{uri} does not exist; name a folder or prefix of WARC, WET, JSONL or Parquet files, or one file"
        raise NothingLanded(message)
    return storage.connect(parent or "/"), {name: size}


def _promised(store: Store, entries: Mapping[str, int], snapshot: str) -> Listing:
    try:
        promise = json.loads(store.read(PROMISE))
        files = tuple((str(file["path"]), int(file["bytes"]), str(file["sha256"])) for file in promise["files"])
    except (ValueError, KeyError, TypeError) as error:
        message = f'{store.root}/{PROMISE} is not {{"snapshot", "files": [{{"path", "bytes", "sha256"}}]}} ({error})'
        raise ContractError(message) from error
    _require_some(store, PROMISE, [name for name, _, _ in files])
    missing = [name for name, size, _ in files if entries.get(name) != size]
    _require(store, missing, len(files))
    ignored = sorted(set(entries) - {name for name, _, _ in files} - {PROMISE})
    return Listing(str(promise.get("snapshot") or snapshot), files, tuple(ignored))


def _listed(store: Store, listing: str, entries: Mapping[str, int], snapshot: str) -> Listing:
    body = store.read(listing)
    try:
        lines = (gzip.decompress(body) if listing.endswith(".gz") else body).decode().split()
    except (EOFError, OSError, zlib.error, UnicodeDecodeError) as error:
        message = f"{store.root}/{listing} cannot be read ({error}); wait until it has landed, or land it again"
        raise SnapshotIncomplete(message) from error
    names = [line if line in entries else line.rpartition("/")[2] for line in lines]
    _require_some(store, listing, names)
    _require(store, [line for line, name in zip(lines, names, strict=True) if name not in entries], len(lines))
    return Listing(snapshot, tuple((name, entries[name], "") for name in names), ())


def _require_some(store: Store, listing: str, names: Sequence[str]) -> None:
    if not names:
        message = f"{store.root} is an empty snapshot: {listing} promises no files; land some, or skip this snapshot"
        raise NothingLanded(message)
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        message = (
            f"{store.root}/{listing} names {twice[0]} {names.count(twice[0])} times; correct it: a file is read once"
        )
        raise ContractError(message)


def _require(store: Store, missing: Iterable[str], promised: int) -> None:
    absent = list(missing)
    if absent:
        message = (
            f"{store.root}: {len(absent)} of {promised} promised files are missing or short, first {absent[0]}; "
            "wait until the snapshot has landed, or land those files again"
        )
        raise SnapshotIncomplete(message)


def _unpromised(uri: str, entries: Mapping[str, int], snapshot: str) -> Listing:
    visible = sorted(name for name in entries if not _base(name).startswith(("_", ".")))
    chosen = _of_kind(visible, ARCHIVES) or _of_kind(visible, TABLES)
    if not chosen:
        message = f"{uri} is an empty snapshot: none of its {len(entries)} files is WARC, ARC, WET, JSONL or Parquet"
        raise NothingLanded(message)
    ignored = tuple(name for name in visible if name not in chosen)
    return Listing(snapshot, tuple((name, entries[name], "") for name in chosen), ignored)


def _of_kind(names: Sequence[str], endings: tuple[str, ...]) -> list[str]:
    """Return the files with one of `endings`, behind which others may say how they are compressed."""
    return [name for name in names if any(ending in _base(name) for ending in endings)]


def _base(name: str) -> str:
    return name.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Params:
    """Which snapshot landed."""

    snapshot: str


def run(shards: Shards, params: Params, on: Engine) -> Shards:  # noqa: ARG001 -- a stage's signature
    """Return the landed files as they are: `ingest` reads them."""
    return shards


STAGE = Stage(
    name=LAND,
    run=run,
    params=Params,
    reads=pa.schema([]),
    writes=pa.schema([]),
    version=1,
    splits=False,
    reads_history=False,
    engine="local",
    title="The files of a snapshot",
)


def land(root: str, uri: str, snapshot: str = "") -> tuple[str, Manifest, Listing]:
    """Commit the manifest of a landed snapshot; its fingerprint follows from the names and bytes of its files."""
    uri = _absolute(uri)
    listing = list_snapshot(uri, snapshot)
    folder = _folder(uri, listing)
    shards = tuple(_shard(folder, name, size, digest) for name, size, digest in listing.files)
    whole = Manifest(
        stage=STAGE.name,
        version=STAGE.version,
        fingerprint="",
        params=asdict(Params(listing.snapshot)),
        parents=(),
        covers=(),
        schema=(),
        shards=shards,
        history={},
        rejects=(),
        quarantine=(),
        rows_in=0,
        bytes_in=sum(shard.bytes for shard in shards),
        rejected={},
        quarantined={},
        metrics={"kept": {}, "rejects": {}},
    )
    manifest = identified(whole)
    path = manifest_path(STAGE.name, manifest.fingerprint)
    storage.commit(storage.connect(root), path, dump(manifest))
    return path, manifest, listing


def landing_of(uri: str) -> str:
    """Return the folder that a snapshot's file names are relative to: `uri` itself unless it is one file."""
    return _folder(_absolute(uri), list_snapshot(uri))


def _absolute(uri: str) -> str:
    return uri if "://" in uri else str(Path(uri).absolute())


def _folder(uri: str, listing: Listing) -> str:
    folder = uri.rstrip("/")
    alone = len(listing.files) == 1 and folder.endswith(f"/{listing.files[0][0]}")
    return folder.rpartition("/")[0] if alone else folder


def _shard(folder: str, name: str, size: int, digest: str) -> Shard:
    if not digest:
        size, digest = storage.digest_of_file(f"{folder}/{name}")
    return Shard(f"{LANDING}{name}", 0, size, digest)
