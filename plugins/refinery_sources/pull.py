"""Pulls a snapshot into a landing: all of its files, checked, and then `snapshot.json`; or no `snapshot.json`."""

import contextlib
import fcntl
import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from pipeline_tasks.constraints import is_bucket
from pipeline_tasks.counted import counted
from pipeline_tasks.errors import (
    ContractError,
    RecipeError,
    RefineryError,
    SnapshotIncomplete,
    SourceBusy,
)
from pipeline_tasks.landing.listing import NAMED, PROMISE, PULL
from pipeline_tasks.sealed import canonical
from pipeline_tasks.store import storage
from pipeline_tasks.store.credential import masked
from pipeline_tasks.store.local_store import flush_folder, os_errors
from pipeline_tasks.store.protocol import Store
from refinery_sources.admission import admitted, admitted_in_threads
from refinery_sources.budget import Stopped
from refinery_sources.download import discard
from refinery_sources.rights import receive_rights, rights_parts
from refinery_sources.source import UNKNOWN, Flow, InPlace, Mapped, Part, Received, Source
from refinery_sources.web import Web

QUERY = f"{PULL}query.json"
"""What the files of an unfinished landing are: the query, its recipe, and the number and a digest of its parts."""

RECEIPT = ".receipt.json"


@dataclass(frozen=True, slots=True)
class Landing:
    """Where a snapshot arrives, and the local folder of its partial files: its own `.pull`, or a spool for a bucket."""

    uri: str
    work: Path

    @property
    def store(self) -> Store:
        """The store of the landing."""
        return storage.connect(self.uri)


@dataclass(frozen=True, slots=True)
class Pull:
    """How a snapshot is pulled: client and rate, files at once, how bytes are written, and by which recipe, if any.

    `rights` are the addresses of files that say under which rights the data is; they land beside it.
    """

    web: Web
    workers: int
    flow: Flow = field(default_factory=Flow)
    recipe: str = ""
    rights: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Landed:
    """A landed snapshot: its name, files and bytes, and the files that were complete before this pull.

    `is_new` is false where the snapshot had landed whole before, so that this pull asked for nothing. `in_place` is
    the number of files that stay in their store.
    """

    snapshot: str
    files: int
    bytes: int
    found: int = 0
    is_new: bool = True
    in_place: int = 0


class Fault(NamedTuple):
    """A part that did not arrive, with its error."""

    part: Part
    error: RefineryError


def landing_at(uri: str, spool: Path) -> Landing:
    """Return a landing, RecipeError for one of another kind; partial files of a bucket's landing are below `spool`."""
    root = storage.connect(uri).root
    if is_bucket(root):
        return Landing(root, spool / hashlib.sha256(root.encode()).hexdigest()[:16])
    return Landing(root, Path(root, PULL))


def pull(source: Source, landing: Landing, by: Pull) -> Landed:
    """Land the snapshot of a query, or go on where an earlier pull ended; nothing is requested if it has landed.

    RecipeError if the landing has anything else, or another query. SourceRefused, SourceBusy, ContractError for files
    or lists that are not whole, SnapshotIncomplete for those that do not exist: what is complete stays for the next.
    """
    storage.require_folder(landing.uri)
    storage.require_usable(landing.uri)
    with admitted(source, by.web.gate, by.rights):
        return _landed_or_pulled(source, landing, by)


def _landed_or_pulled(source: Source, landing: Landing, by: Pull) -> Landed:
    landed = _landed(source, landing)
    if landed and not any(name.startswith(PULL) for name in sizes(landing)):
        return landed
    if landed is None:
        _require_unused(landing)
    parts = () if landed else all_parts(source, by)  # nothing is written before all that can be refused is
    with _locked(landing):
        landed = landed or _landed(source, landing) or _pulled(source, parts, landing, by)
        _clean(landing)
    return landed


def all_parts(source: Source, by: Pull) -> list[Part]:
    """Return the parts of a query, and the files of rights that its recipe names; RecipeError for two of one name."""
    parts = [*source.parts(by.web), *rights_parts(by.rights)]
    name, times = Counter(part.name for part in parts).most_common(1)[0] if by.rights else ("", 1)
    if times > 1:
        message = f"rights: the source itself lands a file {name}; leave it out"
        raise RecipeError(message)
    return parts


def _pulled(source: Source, parts: Sequence[Part], landing: Landing, by: Pull) -> Landed:
    _require_query(source, parts, landing, by)
    complete = _receipts(landing, parts)
    by.flow.on_parts(parts, complete.keys())
    _receive_all(source, landing, parts, complete, by)
    return replace(_promise(source, parts, landing, by), found=len(complete))


# --- What has landed ----------------------------------------------------------------------------------------------


def _landed(source: Source, landing: Landing) -> Landed | None:
    """Return the snapshot that has landed by this query, None if none has; RecipeError if another one has."""
    try:
        promise = json.loads(landing.store.read(PROMISE))
        block = promise.get("source", {})
        files = {file["path"]: file["bytes"] for file in promise["files"]}
        elsewhere = {file["path"] for file in promise["files"] if "address" in file}
        beside = {file["path"]: file["bytes"] for file in (*block.get("beside", ()), *block.get("rights", ()))}
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"{landing.uri}/{PROMISE} cannot be read ({str(error)[:100]!a}); name another --to"
        raise RecipeError(message) from error
    _require_same(block.get("query"), source.query(), f"{landing.uri}/{PROMISE}")
    there = sizes(landing)
    broken = [name for name, size in {**files, **beside}.items() if name not in elsewhere and there.get(name) != size]
    if broken:
        message = (
            f"{landing.uri} landed whole, and has lost {_some(broken)} since, or has other bytes of it; restore it, or "
            f"remove {PROMISE} and {_them(broken)}, and run the same command again"
        )
        raise ContractError(message)
    total = sum(files.values())
    return Landed(promise["snapshot"], len(files), total, len(files), is_new=False, in_place=len(elsewhere))


def _require_same(there: Mapping[str, Any] | None, query: Mapping[str, Any], where: str) -> None:
    """Raise RecipeError, which names what differs, unless two queries are equal."""
    if there != query:
        was = there or {}
        differing = [name for name in query if was.get(name) != query[name]]
        differing = ["source"] if "source" in differing else differing  # kinds have few fields in common
        shown = ", ".join(f"{name} {was.get(name)!r} and not {query[name]!r}" for name in differing) or "other fields"
        message = f"{where} is of another query, with {shown}; name another --to, or ask as then"
        raise RecipeError(message)


def _require_unused(landing: Landing) -> None:
    """Raise RecipeError for a place with files that no pull has brought."""
    names = sizes(landing)
    if QUERY not in names:
        other = sorted(name for name in names if not name.startswith(PULL))
        if other:
            message = (
                f"{landing.uri} has files that no pull has brought, first {other[0]!a}; name an empty place by --to"
            )
            raise RecipeError(message)


def _require_query(source: Source, parts: Sequence[Part], landing: Landing, by: Pull) -> None:
    """Note the query and its parts in a new landing; RecipeError if the landing has others."""
    digest = hashlib.sha256(canonical([asdict(part) for part in parts])).hexdigest()
    note = {"query": dict(source.query()), "parts": digest, "recipe": by.recipe, "files": len(parts)}
    there = json.loads(storage.keep(landing.store, QUERY, canonical(note) + b"\n"))
    _require_same(there["query"], source.query(), f"{landing.uri}/{QUERY}")
    if there["parts"] == digest:
        return
    message = (
        f"{source.snapshot} lists other files now than when {landing.uri} was begun; remove that landing, or name "
        "another --to, and pull again"
    )
    raise RecipeError(message)


def sizes(landing: Landing) -> dict[str, int]:
    """Return the bytes of each file in the place of a landing, partial ones among them."""
    return {entry.path: entry.bytes for entry in landing.store.list("")}


def _receipts(landing: Landing, parts: Sequence[Part]) -> dict[str, Received]:
    """Return the receipts of the parts that are complete: a receipt is written before its file takes its name.

    A part without rows has a receipt and no file, and so has one that stays where it is.
    """
    there = sizes(landing)
    names = [part.name for part in parts if f"{PULL}{part.name}{RECEIPT}" in there]
    receipts = zip(names, storage.each(landing.store, partial(_receipt, landing), names), strict=True)
    return {
        name: receipt
        for name, receipt in receipts
        if not receipt.rows or receipt.address or receipt.bytes == there.get(name)
    }


def _receipt(landing: Landing, name: str) -> Received:
    try:
        return Received(**json.loads(landing.store.read(f"{PULL}{name}{RECEIPT}")))
    except (ValueError, TypeError):
        return Received(UNKNOWN, "", "")


# --- Parts --------------------------------------------------------------------------------------------------------


def _receive_all(
    source: Source, landing: Landing, parts: Sequence[Part], complete: Mapping[str, Received], by: Pull
) -> None:
    """Land the parts that are not complete, several at once.

    A part that does not exist, or is damaged, leaves the others to go on; any other error ends all of them.
    """
    missing = [part for part in parts if part.name not in complete]
    pool = ThreadPoolExecutor(by.workers, thread_name_prefix="pull")
    try:
        land = admitted_in_threads(partial(_land, source, landing, by))
        faults = list(filter(None, pool.map(land, missing)))
    except RefineryError as error:
        _stop(pool, by)
        done = len(_receipts(landing, parts))
        files = counted(len(parts), "file")
        message = f"{error}. {done:,} of {files} are complete in {landing.uri}, and stay there"
        raise type(error)(message) from error
    finally:
        _stop(pool, by)
    if faults:
        there = f"{len(_receipts(landing, parts)):,} of {counted(len(parts), 'file')}"
        raise _incomplete(faults, there, landing, can_leave_out="without" in source.query())


def _stop(pool: ThreadPoolExecutor, by: Pull) -> None:
    by.web.stop.set()
    pool.shutdown(cancel_futures=True)


def _land(source: Source, landing: Landing, by: Pull, part: Part) -> Fault | None:
    """Receive one part and give it its name in the landing; return what is wrong with it alone."""
    if by.web.stop.is_set():
        return None
    local = landing.work / f"{part.name}.part"
    try:
        _make_folder(local.parent)
        receive = receive_rights if part.address in by.rights else source.receive
        received = receive(by.web, part, local, by.flow)
        _require_rows(part, received)
        _keep(landing, part.name, local, received)
        by.flow.on_part(part.name, received.bytes)
    except (SnapshotIncomplete, ContractError) as error:
        return Fault(part, error)
    except Stopped:  # what ended the pull is raised where it happened
        return None
    except BaseException:
        by.web.stop.set()
        raise
    return None


def _require_rows(part: Part, received: Received) -> None:
    """Raise ContractError for a part with other rows than its source promises."""
    if part.rows not in (UNKNOWN, received.rows):
        message = f"{part.address} gave {counted(received.rows, 'row')}, and its source promises {part.rows:,}"
        raise ContractError(message)


def _keep(landing: Landing, name: str, local: Path, received: Received) -> None:
    """Write the receipt of a file, and then the file if it has rows: a file without a receipt is not believed."""
    store, receipt, body = landing.store, f"{PULL}{name}{RECEIPT}", canonical(asdict(received))
    if not store.create(receipt, body):
        store.delete(receipt)
        storage.commit(store, receipt, body)
    if not received.rows or received.address:
        discard(local)
        return
    if is_bucket(landing.uri):
        store.put_file(name, local, received.sha256, spare=True)
    else:
        target = Path(landing.uri, name)
        _make_folder(target.parent)
        with os_errors(str(target)):  # in one step: between two a kill would lose the file
            local.replace(target)
            flush_folder(target.parent)
    discard(local)


def _make_folder(folder: Path) -> None:
    """Make a folder below a landing, and those above it; each is on the disk before anything is in it."""
    if not folder.is_dir():
        _make_folder(folder.parent)
        with os_errors(str(folder)):
            folder.mkdir(exist_ok=True)
            flush_folder(folder.parent)


def _incomplete(faults: Sequence[Fault], complete: str, landing: Landing, *, can_leave_out: bool) -> RefineryError:
    """Return the error that names the parts that did not arrive: SnapshotIncomplete, or ContractError for damage."""
    damaged = [fault for fault in faults if isinstance(fault.error, ContractError)]
    absent = [fault.part.address for fault in faults if not isinstance(fault.error, ContractError)]
    reasons = [
        f"{counted(len(absent), 'file')} that the source lists {_verb(absent)} not there: {_some(absent)}"
        if absent
        else "",
        f"{counted(len(damaged), 'file')} {_verb(damaged)} refused: " + _some([str(fault.error) for fault in damaged])
        if damaged
        else "",
    ]
    message = (
        f"{' and '.join(filter(None, reasons))}. Nothing has landed: {complete} are complete in {landing.uri}, and "
        "stay there. Run the same command again later"
        + (", or leave those files out by --without NAME in a new landing" if can_leave_out else "")
    )
    return ContractError(message) if damaged else SnapshotIncomplete(message)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _verb(things: Sequence[object]) -> str:
    return "is" if len(things) == 1 else "are"


def _them(things: Sequence[object]) -> str:
    return "it" if len(things) == 1 else "them"


# --- The promise --------------------------------------------------------------------------------------------------


def _promise(source: Source, parts: Sequence[Part], landing: Landing, by: Pull) -> Landed:
    """Look once more that all parts are there by their receipts, and write `snapshot.json`.

    It is not written where no part has rows: nothing has landed, and the next pull asks for the same.
    """
    receipts = _receipts(landing, parts)
    lost = [part.name for part in parts if part.name not in receipts]
    if lost:
        message = f"{landing.uri} has lost {_some(lost)} while others were pulled; run the same command again"
        raise SnapshotIncomplete(message)
    store = source.store if isinstance(source, InPlace) and source.in_place else ""
    there = [(part, _file(part.name, receipts[part.name], store)) for part in parts if receipts[part.name].rows]
    files = [file for part, file in there if not part.beside]
    beside = [file for part, file in there if part.beside and not part.is_rights]
    rights = [{**file, "address": part.address} for part, file in there if part.is_rights]
    if not files and not beside:
        landing.store.delete_many([file["path"] for file in rights])
        return Landed(source.snapshot, 0, 0)
    total = sum(receipts[file["path"]].bytes for file in files)
    promise = {
        "snapshot": source.snapshot,
        "source": {
            "recipe": by.recipe,
            "query": dict(source.query()),
            "cursor": source.cursor,
            "terms": source.terms.block(),
            "pulled": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "files": len(files),
            "bytes": total,
            **_known("rows", sum(file.get("rows", 0) for file in files)),
            **_known("beside", beside),
            **_known("rights", rights),
            **_known("facts", {name: receipt.facts for name, receipt in receipts.items() if receipt.facts}),
        },
        **_known("fields", dict(source.read_by) if isinstance(source, Mapped) else {}),
        **_known("schema_version", source.query().get("schema_version", 0)),
        "files": files,
    }
    storage.keep(landing.store, PROMISE, masked(json.dumps(promise, indent=1).encode())[0] + b"\n")
    return Landed(source.snapshot, len(files), total, in_place=sum("address" in file for file in files))


def _file(name: str, receipt: Received, store: str) -> dict[str, Any]:
    file = {"path": name, "bytes": receipt.bytes, "sha256": receipt.sha256}
    if receipt.address:
        file |= {"address": receipt.address, "etag": receipt.etag, **_known("store", store)}
    return file if receipt.rows == UNKNOWN else {**file, "rows": receipt.rows}


def _known(name: str, value: object) -> dict[str, Any]:
    """Return what there is to say under a name: nothing for no rows, files or facts."""
    return {name: value} if value else {}


def _clean(landing: Landing) -> None:
    """Remove what only an unfinished pull needs; a listing skips what cannot be removed, as hidden."""
    for entry in list(landing.store.list(PULL)):
        with contextlib.suppress(RefineryError):
            landing.store.delete(entry.path)
    shutil.rmtree(landing.work, ignore_errors=True)
    if not is_bucket(landing.uri):
        with contextlib.suppress(OSError):  # it goes if it is empty, as nothing has landed
            Path(landing.uri).rmdir()


@contextlib.contextmanager
def _locked(landing: Landing) -> Iterator[None]:
    """Hold the landing of this machine; SourceBusy if another pull has it."""
    with os_errors(str(landing.work)):
        landing.work.mkdir(parents=True, exist_ok=True)
        with (landing.work / "lock").open("w") as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                message = f"another pull is at work on {landing.uri}; wait for it, or end it"
                raise SourceBusy(message) from error
            yield
