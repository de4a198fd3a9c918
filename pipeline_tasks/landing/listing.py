"""Lists a landed snapshot: the files that it promises, whether all exist, and their digests."""

import gzip
import io
import json
import math
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline_tasks.binding import require_known, require_mapping
from pipeline_tasks.constraints import OMITTED, FieldName, Share
from pipeline_tasks.counted import counted
from pipeline_tasks.errors import ContractError, DigestMismatch, NothingLanded, RecipeError, SnapshotIncomplete
from pipeline_tasks.landing import brought_formats, cuts
from pipeline_tasks.landing.brought_formats import PACKED, brought_format, library_of, versions_of
from pipeline_tasks.landing.first_look import UNREAD, refusal_of_table, require_text
from pipeline_tasks.landing.folder import Folder, hidden_part, look, refuse_overlap, refuse_table, shown
from pipeline_tasks.landing.formats import NO_FIELDS
from pipeline_tasks.landing.sampling import Piece, sampled
from pipeline_tasks.landing.splits import WAY_OUT, other_splits, split_of_folder
from pipeline_tasks.landing.whole_files import is_whole
from pipeline_tasks.manifest import WRITER, Manifest, dump, identified, manifest_path, rows_by
from pipeline_tasks.recipe import LAND
from pipeline_tasks.schema import FIELDS
from pipeline_tasks.sealed import canonical
from pipeline_tasks.stage import LANDING, Engine, Shard, Shards, Stage
from pipeline_tasks.store import storage
from pipeline_tasks.store.listed_store import LIST, listed_files, require_named
from pipeline_tasks.store.protocol import PARALLEL_REQUESTS

PROMISE = LIST
"""The list of files that a producer writes last: `{"snapshot": id, "files": [{"path", "bytes", "sha256"}]}`.

It may have `fields`: the names that some of `schema.FIELDS` have in the files; and `schema_version`, a number that is
raised when the fields of records change, so that they are not compared with those before. A file that has an `address`
and an `etag` is not in the folder but there, in the store that its `store` names, below a place that the operator
names."""

PULL = ".pull/"
"""Folder of what a pull of a source has brought so far: it is there until `snapshot.json` is."""

PATHS = ("warc.paths.gz", "warc.paths", "wet.paths.gz", "wet.paths")
"""Common Crawl's own listings: one path per line; a file may also be here under the last component of its path."""

ARCHIVES = re.compile(rf"(?i)\.(?:{'|'.join(brought_formats.ARCHIVES)}){PACKED}")
TABLES = re.compile(rf"(?i)\.(?:{'|'.join(brought_formats.TABLES)}){PACKED}")
"""The last ending of a name says of what kind the file is, and others behind it how it is compressed: digests, indexes
and unfinished files have theirs behind."""

ABOUT = frozenset(
    {
        "dataset_info.json",
        "dataset_infos.json",
        "dataset_dict.json",
        "state.json",
        "config.json",
        "croissant.json",
        "datapackage.json",
        "dataset-metadata.json",
        "metadata.json",
    }
)
"""Files that describe the data beside them: those of Hugging Face's `datasets` and Hub, of Croissant, of Frictionless
Data and of Kaggle. Other files about data (`README.md`, `LICENSE`) have endings of their own."""

_ABOUT = re.compile(r"(?i)(?:readme|licen[cs]e|notice|citation)(?:\.\w{1,4})?|\.gitattributes")

BESIDE_ARCHIVES = (
    "the name is a table's, and beside archives no tables are read; land it by itself, or name it .warc if it is one"
)
"""Why tables are left out, and what to do."""

LISTING_BYTES = 64 << 20
"""Bytes that `snapshot.json` or a list of paths may have, inflated; Common Crawl's have 14 MB."""

LISTING_LINES = 1_000_000

PARENT = 2
"""Snapshots in a folder from which on it is no snapshot itself."""

NAMED = 10
"""Files that an error names."""

_SHA256 = re.compile(r"(?:[0-9a-f]{64})?\Z")


@dataclass(frozen=True, slots=True)
class Listing:
    """A snapshot's files as (name, bytes, SHA-256 or "" if unknown), and what is left out of them.

    `ignored` are files that are promised by no list, or of other kinds; `skipped` are (name, reason) of entries that
    are not read whatever they are called. `promise` is the name of the list that promises the files, "" without one;
    `fields` are the names that it gives to some of `schema.FIELDS`, and `missing` its files that have not landed whole,
    which a snapshot may be refined without. `elsewhere` are the names of files that are read where the promise says,
    and `schema_version` is the promise's.
    """

    snapshot: str
    files: tuple[tuple[str, int, str], ...]
    ignored: tuple[str, ...]
    skipped: tuple[tuple[str, str], ...] = ()
    promise: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    elsewhere: frozenset[str] = frozenset()
    schema_version: int = 1

    def read_by(self, fields: Mapping[str, str]) -> dict[str, str]:
        """Return the names of fields by which the files are read: those of a recipe go before the promise's.

        A text that a recipe names is read in place of the promise's HTML.
        """
        replaced = {"html"} if fields.get("text", self.fields.get("text")) != self.fields.get("text") else set()
        return {**{target: name for target, name in self.fields.items() if target not in replaced}, **fields}


def list_snapshot(uri: str, snapshot: str = "", accept: float = 1.0) -> Listing:
    """List the snapshot at `uri` (a folder, a prefix or one file) against what it promises.

    A producer can promise files in `snapshot.json` or Common Crawl's `warc.paths.gz`: SnapshotIncomplete is raised
    while a promised file is missing or has another size, or while `refinery pull` has not ended. Without a promise the
    snapshot is all archives in the folder, or all tables if there are no archives: without those of other splits than
    train (`splits`). Its name is `snapshot`, else the one in `snapshot.json`, else that of the folder. NothingLanded is
    raised where there are no files, or none are promised, RecipeError for the folder of a Delta, Iceberg or Hudi table,
    and for one that contains several promised snapshots and promises no files itself.

    With less than 1 to `accept` a share of the promised files is enough: the others are `missing`.
    """
    uri = _absolute(uri)
    folder = look(uri)
    last = uri.rstrip("/").rpartition("/")[2]
    if PROMISE in folder.files:
        return _promised(folder, snapshot, last, accept)
    _require_no_pull(uri, folder)
    identifier = snapshot or last
    for name in PATHS:
        if name in folder.files:
            return _listed(folder, name, identifier, accept)
    return _unpromised(uri, folder, identifier)


def _require_no_pull(uri: str, folder: Folder) -> None:
    """Raise SnapshotIncomplete for a landing whose pull has not ended: what is there is not all of it."""
    if any(name.startswith(PULL) for name in folder.files):
        message = f"{uri} has not landed whole: its pull has not ended; run the same `refinery pull` again"
        raise SnapshotIncomplete(message)


def _promised(folder: Folder, snapshot: str, last: str, accept: float) -> Listing:
    try:
        promise = json.loads(_list_body(folder, PROMISE))
        files = tuple(promised_file(file) for file in promise["files"])
        fields, version = _promised_fields(promise.get("fields", {})), _promised_version(promise)
        listed, beside = listed_files(promise), _beside(promise)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        message = (
            f'{folder.store.root}/{PROMISE} is not {{"snapshot", "files": [{{"path", "bytes", "sha256"}}]}} '
            f"({str(error)[:200]!a}); correct it"
        )
        raise ContractError(message) from error
    require_named(promise, listed, folder.store.root)
    _require_some(folder, PROMISE, [name for name, _, _ in files])
    elsewhere = frozenset(listed)
    here = {name: size for name, size, _ in files if name not in elsewhere}
    missing = _require(folder, here, len(files), accept)
    ignored = sorted(set(folder.files) - here.keys() - beside - {PROMISE})
    skipped = tuple(entry for entry in _skipped(folder) if entry[0] not in beside)
    named = snapshot or str(promise.get("snapshot") or last)
    there, absent = tuple(file for file in files if file[0] not in missing), tuple(sorted(missing))
    return Listing(named, there, tuple(ignored), skipped, PROMISE, fields, absent, elsewhere, version)


def _beside(promise: Mapping[str, Any]) -> frozenset[str]:
    """Return the files that a pull has landed beside the data, as it says: nobody misses their records."""
    source = promise.get("source")
    known = [*source.get("beside", ()), *source.get("rights", ())] if isinstance(source, dict) else []
    return frozenset(str(file["path"]) for file in known)


def promised_file(file: Mapping[str, object]) -> tuple[str, int, str]:
    """Return name, bytes and SHA-256 of a file of `snapshot.json`; ValueError, TypeError or KeyError if it has none."""
    name, size, digest = file["path"], file["bytes"], file["sha256"]
    if not isinstance(name, str) or type(size) is not int or not isinstance(digest, str) or not _SHA256.match(digest):
        message = f"{str(name)[:100]!a} has no bytes or SHA-256 that could be true"
        raise ValueError(message)
    return name, size, digest


def _promised_fields(promised: object) -> dict[str, str]:
    written = require_mapping(promised, "fields")
    fields = {target: name for target, name in written.items() if target in FIELDS and isinstance(name, str) and name}
    if len(fields) < len(written):
        message = f"its fields {written!a:.100} are not names for some of {', '.join(FIELDS)}"
        raise ValueError(message)
    return fields


def _promised_version(promise: Mapping[str, Any]) -> int:
    version = promise.get("schema_version", 1)
    if type(version) is not int or version < 1:
        message = f"its schema_version {version!a:.100} is no number from 1 on"
        raise ValueError(message)
    return version


def _listed(folder: Folder, listing: str, snapshot: str, accept: float) -> Listing:
    try:
        lines = _list_body(folder, listing).decode().split()
    except (EOFError, OSError, zlib.error, UnicodeDecodeError) as error:
        message = f"{folder.store.root}/{listing} cannot be read ({error}); wait until it has landed, or land it again"
        raise SnapshotIncomplete(message) from error
    if len(lines) > LISTING_LINES:
        message = f"{folder.store.root}/{listing} has {len(lines)} lines, more than {LISTING_LINES}; land it in parts"
        raise ContractError(message)
    names = [line if line in folder.files else line.rpartition("/")[2] for line in lines]
    _require_some(folder, listing, names)
    skipped = {name for name in names if shown(name) in folder.skipped}
    pairs = zip(lines, names, strict=True)
    absent = {name if name in skipped else line: -1 for line, name in pairs if name not in folder.files}
    missing = _require(folder, absent, len(lines), accept)
    there = tuple((name, folder.files[name], "") for name in names if name in folder.files)
    return Listing(snapshot, there, (), _skipped(folder), listing, missing=tuple(sorted(missing)))


def _list_body(folder: Folder, name: str) -> bytes:
    """Return a list of files, inflated; ContractError if it is too large to be one."""
    with folder.store.open(name) as stored:
        stream = gzip.GzipFile(fileobj=stored) if name.endswith(".gz") else stored
        body = io.BytesIO()
        while (part := stream.read(1 << 20)) and body.tell() <= LISTING_BYTES:
            body.write(part)
    if body.tell() > LISTING_BYTES:
        message = f"{folder.store.root}/{name} has more than {LISTING_BYTES} bytes, inflated; it is no list of files"
        raise ContractError(message)
    return body.getvalue()


def _require_some(folder: Folder, listing: str, names: Sequence[str]) -> None:
    root = folder.store.root
    if not names:
        message = f"{root} is an empty snapshot: {listing} promises no files; land some, or skip this snapshot"
        raise NothingLanded(message)
    name, times = Counter(names).most_common(1)[0]
    if times > 1:
        message = f"{root}/{listing} names {shown(name)} {times} times; correct it: a file is read once"
        raise ContractError(message)


def _require(folder: Folder, promised: Mapping[str, int], total: int, accept: float) -> frozenset[str]:
    """Return the files that are missing, or of another size than is promised: none, unless a share is accepted.

    SnapshotIncomplete, which names them, if less than the share `accept` of the `total` has landed whole, or nothing.
    """
    missing = [name for name in promised if name not in folder.files]
    short = [name for name, size in promised.items() if folder.files.get(name, size) != size]
    whole = total - len(missing) - len(short)
    if whole < accept * total or not whole:
        reasons = [
            f"{len(missing)} missing: {_some(_absent(folder, name) for name in missing)}" if missing else "",
            f"{len(short)} of another size: "
            + _some(f"{shown(name)} has {folder.files[name]:,} of {promised[name]:,} bytes" for name in short)
            if short
            else "",
        ]
        message = (
            f"{folder.store.root}: {len(missing) + len(short):,} of {total:,} promised files have not landed whole, "
            f"{' and '.join(filter(None, reasons))}; wait until the snapshot has landed, or land those files again"
        )
        raise SnapshotIncomplete(message)
    return frozenset([*missing, *short])


def _absent(folder: Folder, name: str) -> str:
    """Return a name as text, and why what is there under it is not read."""
    return f"{shown(name)} ({folder.skipped[shown(name)]})" if shown(name) in folder.skipped else shown(name)


def _some(names: Iterable[str]) -> str:
    """Return the first names, and how many more there are."""
    every = list(names)
    more = f" and {len(every) - NAMED:,} more" if len(every) > NAMED else ""
    return ", ".join(every[:NAMED]) + more


def _unpromised(uri: str, folder: Folder, snapshot: str) -> Listing:
    refuse_table(folder)
    _refuse_parent(uri, folder)
    visible = folder.visible
    tables = _of_kind(visible, TABLES)
    others = _other_splits(uri, tables)
    train = [name for name in tables if name not in others]
    chosen = _of_kind(visible, ARCHIVES) or train or list(filter(brought_format, visible)) or _documents(visible)
    skipped = _skipped(folder)
    if not chosen and others:
        splits = " and ".join(sorted(set(others.values())))
        tables_are = counted(len(others), "table is", "tables are")
        message = f"{uri} has no data to train on: {tables_are} of the split {splits}; {WAY_OUT}"
        raise NothingLanded(message)
    if not chosen:
        entries = counted(len(folder.files) + len(folder.skipped), "file")
        message = f"{uri} is an empty snapshot: none of {entries} is WARC, ARC, WET, JSONL, Parquet or a document"
        other = next(filter(UNREAD.search, visible), None)
        if other is not None:
            message += f". {refusal_of_table(f'{folder.store.root}/{other}')}"
        if skipped:
            message += f"; {len(skipped)} are skipped, first {skipped[0][0]} ({skipped[0][1]})"
        raise NothingLanded(message)
    left_out = {name: f"of the split {split}; {WAY_OUT}" for name, split in others.items()}
    if chosen != train:
        left_out = dict.fromkeys(tables, BESIDE_ARCHIVES)
    ignored = tuple(sorted(set(visible) - set(chosen) - left_out.keys()))
    skipped = tuple(sorted((*skipped, *left_out.items())))
    return Listing(snapshot, tuple((name, folder.files[name], "") for name in chosen), ignored, skipped)


def _other_splits(uri: str, tables: Sequence[str]) -> dict[str, str]:
    """Return the tables of other splits; none of one file that is named itself, nor of the split whose folder is."""
    last = uri.rstrip("/").rpartition("/")[2]
    if tables == [last]:
        return {}
    return other_splits(tables, split_of_folder(last))


def _refuse_parent(uri: str, folder: Folder) -> None:
    """Raise RecipeError for a folder of snapshots, of which each has a promise of its own."""
    named = (name for name in folder.visible if name.endswith(f"/{PROMISE}"))
    first = list(islice((name for name in named if _is_promise(folder, name)), PARENT))
    if len(first) < PARENT:
        return
    places = [shown(name.removesuffix(f"/{PROMISE}")) for name in first]
    message = (
        f"{uri} contains several snapshots, {' and '.join(places)} among them: each has a {PROMISE} of its own. Refine "
        f"one after the other (--input {uri.rstrip('/')}/{places[0]}); to refine them as one snapshot, name the files "
        f"of all in {uri.rstrip('/')}/{PROMISE}"
    )
    raise RecipeError(message)


def _is_promise(folder: Folder, name: str) -> bool:
    """Return whether a file has the form of a promise: data may have its name."""
    try:
        promise = json.loads(_list_body(folder, name))
        return isinstance(promise, dict) and all(map(promised_file, promise["files"]))
    except (ValueError, KeyError, TypeError, RecursionError, OSError, ContractError):
        return False


def _skipped(folder: Folder) -> tuple[tuple[str, str], ...]:
    """Return what is skipped, with reasons: also the hidden files, those of a hidden folder by its name."""
    hidden = dict.fromkeys(filter(None, map(hidden_part, folder.files)), "hidden: its name begins with . or _")
    return tuple(sorted({**folder.skipped, **hidden}.items()))


def _of_kind(names: Sequence[str], endings: re.Pattern[str]) -> list[str]:
    """Return the files of a kind, by their endings."""
    return [name for name in names if endings.search(name) and name.rpartition("/")[2] not in ABOUT]


def _documents(names: Sequence[str]) -> list[str]:
    """Return the files that are documents themselves, but for those about the data beside them."""
    return [name for name in names if is_whole(name) and not _ABOUT.fullmatch(name.rpartition("/")[2])]


@dataclass(frozen=True, slots=True)
class Params:
    """Which snapshot landed, which share of its bytes a trial reads, and the names of fields that differ from ours.

    `fields` maps some of `schema.FIELDS` to the names that they have in the snapshot's JSON lines and tables. `missing`
    are the promised files that had not landed whole. `schema_version` is what the snapshot's promise says of them all.
    """

    snapshot: str
    sample: Share = field(default=1.0, metadata={OMITTED: 1.0})
    fields: Mapping[str, FieldName] = field(default_factory=dict, metadata={OMITTED: {}})
    missing: tuple[str, ...] = field(default=(), metadata={OMITTED: ()})
    schema_version: int = field(default=1, metadata={OMITTED: 1})


def run(shards: Shards, _params: Params, _on: Engine) -> Shards:
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


def land(
    root: str,
    uri: str,
    snapshot: str = "",
    resources: Mapping[str, str] | None = None,
    sample: float = 1.0,
    fields: Mapping[str, str] = NO_FIELDS,
    accept: float = 1.0,
) -> tuple[str, Manifest, Listing]:
    """Commit the manifest of a landed snapshot; its fingerprint follows from the names and bytes of its files.

    Files whose digests a list promises are not read, unless they are so large that they are cut into pieces: `ingest`
    compares what it reads with the digest. Others are read here, several at once. What another distribution reads is
    one shard, and its version is identity.

    `resources` are the digests of what later stages read besides, and are part of identity. A trial reads a `sample`
    of the files and their pieces: those that make up this share of all bytes, and at least one. `fields` name some of
    `schema.FIELDS` as the files do, and go before those of the snapshot's promise; RecipeError if the first records
    have no text by these names. Of the promised files a share is enough if less than 1 is accepted; the manifest names
    those that are missing.
    """
    uri = _absolute(uri)
    refuse_overlap(root, uri)
    require_known(fields, FIELDS, "fields")
    listing = list_snapshot(uri, snapshot, accept)
    folder = _folder(uri, listing)
    require_readable(uri, listing, fields)
    fields = listing.read_by(fields)
    piece = cuts.piece_bytes(size for _, size, _ in listing.files)
    wanted = sample * sum(size for _, size, _ in listing.files) if sample < 1 else math.inf  # empty files are read
    files = _sampled_files(listing.files, wanted)
    read_by = canonical(fields).decode() if fields else ""
    with ThreadPoolExecutor(PARALLEL_REQUESTS, thread_name_prefix="land") as pool:  # hashing leaves Python to others
        listed = pool.map(partial(_shards, folder, piece), files)
        read = tuple(replace(shard, fields=read_by) for shards in listed for shard in shards)
    shards = _sampled_shards(read, wanted)
    is_whole = len(files) == len(listing.files) and shards == read
    whole = Manifest(
        stage=STAGE.name,
        version=STAGE.version,
        fingerprint="",
        params=json.loads(
            canonical(
                Params(
                    listing.snapshot, 1.0 if is_whole else sample, dict(fields), listing.missing, listing.schema_version
                )
            )
        ),
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
        resources=resources or {},
        writer=rows_by(WRITER),  # it writes no shard: landed again after a patch release, it is the same manifest
        libraries=versions_of(" ".join(sorted({shard.library for shard in shards}))),
    )
    manifest = identified(whole)
    path = manifest_path(STAGE.name, manifest.fingerprint)
    storage.commit(storage.connect(root), path, dump(manifest))
    return path, manifest, listing


def _sampled_files(files: Sequence[tuple[str, int, str]], wanted: float) -> Sequence[tuple[str, int, str]]:
    chosen = sampled((Piece(name, 0, size) for name, size, _ in files), wanted)
    return [file for file in files if (file[0], 0) in chosen]


def _sampled_shards(shards: Shards, wanted: float) -> Shards:
    chosen = sampled((Piece(shard.path, shard.start, shard.bytes) for shard in shards), wanted)
    return tuple(shard for shard in shards if (shard.path, shard.start) in chosen)


def is_about(name: str) -> bool:
    """Return whether a file describes the data beside it, so that nobody misses its records."""
    own = name.rpartition("/")[2]
    return own in ABOUT or _ABOUT.fullmatch(own) is not None


def require_readable(uri: str, listing: Listing, fields: Mapping[str, str]) -> None:
    """Raise RecipeError if the first records of a listed snapshot have no text, by the names of `fields`."""
    require_text(folder_of(uri, listing), [name for name, _, _ in listing.files], listing.read_by(fields))


def landing_of(uri: str) -> str:
    """Return the folder that a snapshot's file names are relative to: `uri` itself unless it is one file."""
    return folder_of(uri, list_snapshot(uri))


def stores_of(uri: str) -> list[str]:
    """Return the names of stores in which a landing lists files; none if it cannot be read, or may not point there."""
    store = storage.connect(_absolute(uri))
    try:
        promise = json.loads(store.read(PROMISE))
        listed = listed_files(promise)
        require_named({}, listed, store.root)
        return sorted({file.store for file in listed.values()} - {""})
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # who reads its files says what is wrong
        return []


def missing_line(names: Sequence[str]) -> str:
    """Return in words which promised files are not there: `had not landed whole: a, b and 3 more`."""
    return f"had not landed whole: {_some(map(shown, names))}"


def left_out_lines(skipped: Sequence[Sequence[str]]) -> list[str]:
    """Return a line for each reason for which entries are not read: how many, the first names, and the reason."""
    names: dict[str, list[str]] = {}
    for name, reason in skipped:
        names.setdefault(reason, []).append(name)
    return [f"{counted(len(each), 'file')} left out: {_some(each)} ({reason})" for reason, each in names.items()]


def folder_of(uri: str, listing: Listing) -> str:
    """Return the folder that the file names of a snapshot that was listed at `uri` are relative to.

    Where files are elsewhere it is the list itself, by which a store finds them.
    """
    return _folder(_absolute(uri), listing)


def _absolute(uri: str) -> str:
    """Return the absolute URI of a landing: of its folder, where its list is named."""
    return (uri if "://" in uri else str(Path(uri).absolute())).removesuffix(f"/{PROMISE}")


def _folder(uri: str, listing: Listing) -> str:
    folder = uri.rstrip("/")
    if listing.elsewhere:
        return f"{folder}/{PROMISE}"
    alone = len(listing.files) == 1 and folder.endswith(f"/{listing.files[0][0]}")
    return folder.rpartition("/")[0] if alone else folder


def _shards(folder: str, piece: int, file: tuple[str, int, str]) -> Shards:
    """Return a file as one shard, or a large one as its pieces of about `piece` bytes."""
    name, size, digest = file
    path, uri = f"{LANDING}{name}", f"{folder}/{name}"
    try:
        library = library_of(name)
        if library or not cuts.is_large(size, piece):
            size, digest = (size, digest) if digest else storage.digest_of_file(uri)
            return (Shard(path, 0, size, digest, library=library),)
        with storage.open_landed(uri) as stream:
            actual, pieces = cuts.cut(stream, size, piece)
    except FileNotFoundError as error:
        message = f"{uri} vanished after it was listed; land again when nothing moves there any more"
        raise SnapshotIncomplete(message) from error
    if digest not in ("", actual):
        message = f"{uri}: SHA-256 is {actual}, and {PROMISE} promises {digest}; land the file again, or correct that"
        raise DigestMismatch(message)
    if len(pieces) == 1:
        return (Shard(path, 0, pieces[0].size, actual),)
    return tuple(Shard(path, 0, part.size, part.digest, start=part.start) for part in pieces)
