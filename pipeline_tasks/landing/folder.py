"""What lies in the place of a snapshot: the files that can be read, and the entries that are skipped, with reasons."""

import os
import re
import stat
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pipeline_tasks.constraints import is_bucket
from pipeline_tasks.errors import NothingLanded, RecipeError, SnapshotIncomplete
from pipeline_tasks.store import storage
from pipeline_tasks.store.local_store import files_below, os_errors
from pipeline_tasks.store.protocol import Store

HIDDEN = ("_", ".")
"""First characters of names that are no data, by a rule of Hadoop and Spark; in a folder's name they hide its files."""

_KINDS = {stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}
_TABLES = {
    "a Delta table": re.compile(r"(?:\A|/)_delta_log/"),
    "a Hudi table": re.compile(r"(?:\A|/)\.hoodie/"),
    "an Iceberg table": re.compile(r"(?:\A|/)metadata/(?:[^/]+\.metadata\.json|version-hint\.text)\Z"),
}


@dataclass(frozen=True, slots=True)
class Folder:
    """A store, the bytes of each file in it, and why other entries are skipped."""

    store: Store
    files: Mapping[str, int]
    skipped: Mapping[str, str]

    @property
    def visible(self) -> list[str]:
        """The names of the files that are not hidden, in order."""
        return sorted(name for name in self.files if hidden_part(name) is None)


def look(uri: str) -> Folder:
    """Look into the folder or prefix at `uri`, or at the one file that it names; NothingLanded where there is nothing.

    SnapshotIncomplete is raised where a file vanishes meanwhile: something is still moving.
    """
    folder = _entries(uri)
    if folder.files or folder.skipped:
        return folder
    parent, _, name = uri.rstrip("/").rpartition("/")
    store = storage.connect(parent or "/")
    size = store.size(name)
    if size is None:
        raise _nothing(uri, "has no files" if Path(folder.store.root).is_dir() else "does not exist")
    return Folder(store, {name: size}, {})


def last_change(uri: str) -> float:
    """Return when the newest file of a folder or prefix, or the one file at `uri`, came there (Unix time).

    On a disk it is the time of the inode, which a copy that keeps the times of its files does not set back.
    """
    if is_bucket(uri):
        return max((entry.modified for entry in storage.connect(uri).list("")), default=0.0)
    top = Path(uri.removeprefix("file://"))
    files = files_below(top) if top.is_dir() else iter([top])
    return max((file.lstat().st_ctime for file in files), default=0.0)


def require_place(uri: str) -> None:
    """Raise NothingLanded for a local path that does not exist, without a look at what is there."""
    try:
        exists = "://" in uri or Path(uri).exists()
    except OSError:
        return  # `look` says what is wrong
    if storage.is_other_kind(uri):
        storage.connect(uri)
    if not exists:
        raise _nothing(uri, "does not exist")


def _nothing(uri: str, state: str) -> NothingLanded:
    return NothingLanded(
        f"{uri} {state}; name a folder or prefix of WARC, WET, JSONL, Parquet or documents, or one file"
    )


def hidden_part(name: str) -> str | None:
    """Return the path down to the first part that hides a file, None if no part does."""
    parts = name.split("/")
    hidden = next((place for place, part in enumerate(parts) if part.startswith(HIDDEN)), None)
    return None if hidden is None else "/".join(parts[: hidden + 1]) + ("/" if hidden < len(parts) - 1 else "")


def refuse_table(folder: Folder) -> None:
    """Raise RecipeError for the folder of a Delta, Iceberg or Hudi table: it keeps files whose rows were removed."""
    for kind, mark in _TABLES.items():
        name = next(filter(mark.search, folder.files), None)
        if name is not None:
            message = (
                f"{folder.store.root} is {kind} (it has {shown(name)}): its folder also has files whose rows were "
                "removed. Pull a version of a Delta or Iceberg table by a recipe of a source (kinds `delta` and "
                "`iceberg`), or export its current rows, such as by Spark's `table.write.parquet(path)`, and land that "
                "folder; or name the files to read in snapshot.json"
            )
            raise RecipeError(message)


def refuse_overlap(root: str, uri: str) -> None:
    """Raise RecipeError where a snapshot lies in the root, or the root in the snapshot's folder."""
    output, landing = _canonical(root), _canonical(uri)
    if output == landing:
        relation = "is the output"
    elif output.startswith(f"{landing.rstrip('/')}/"):
        relation = "contains the output"
    elif landing.startswith(f"{output.rstrip('/')}/"):
        relation = "lies in the output"
    else:
        return
    message = f"the input {uri} {relation} {root}; keep them apart, or a later run reads what an earlier one wrote"
    raise RecipeError(message)


def shown(name: str) -> str:
    """Return a name as it can be printed: what does not print is escaped."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in name)[:500]


def _canonical(uri: str) -> str:
    """Return a place as one text: without symlinks, repeated slashes, and `..`."""
    if "://" in uri and not uri.startswith("file://"):
        scheme, _, rest = uri.partition("://")
        return f"{scheme}://" + "/".join(part for part in rest.split("/") if part)
    return os.path.realpath(uri.removeprefix("file://"))


def _entries(uri: str) -> Folder:
    store = storage.connect(uri)
    files: dict[str, int] = {}
    skipped: dict[str, str] = {}
    for name, size in _objects(store) if is_bucket(uri) else _walk(store.root):
        reason = _wrong_name(name) or (size if isinstance(size, str) else None)
        if reason is not None:
            skipped[shown(name)] = reason
        elif isinstance(size, int):
            files[name] = size
    return Folder(store, files, skipped)


def _objects(store: Store) -> Iterator[tuple[str, int | str]]:
    for entry in store.list(""):
        yield entry.path, entry.bytes


def _wrong_name(name: str) -> str | None:
    """Return why a name is none that manifests, logs and pages can carry."""
    kinds = {unicodedata.category(char) for char in name} if not name.isprintable() else set()
    if "Cs" in kinds:
        return "its name is not UTF-8"
    return "its name has control characters" if "Cc" in kinds else None


def _walk(root: str) -> Iterator[tuple[str, int | str]]:
    """Yield each entry below a folder, with its bytes, or why it is no file to read."""
    top = os.path.realpath(root)
    folders = [top] if Path(top).is_dir() else []
    while folders:
        folder = folders.pop()
        with os_errors(shown(folder)):
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
            else:
                yield (
                    os.path.relpath(entry.path, top),
                    _link(entry.path, top) if entry.is_symlink() else _size(entry.path),
                )


def _size(path: str) -> int | str:
    """Return the bytes of a file, or what it is instead."""
    try:
        status = os.stat(path)  # noqa: PTH116 -- a Path cannot be made of every name
    except FileNotFoundError as error:
        message = f"{shown(path)} vanished while its folder was listed; land again when nothing moves there any more"
        raise SnapshotIncomplete(message) from error
    kind = stat.S_IFMT(status.st_mode)
    return status.st_size if kind == stat.S_IFREG else _KINDS.get(kind, "no file")


def _link(path: str, top: str) -> int | str:
    """Return the bytes of the file that a symlink leads to, or why it is not read."""
    try:
        target = os.path.realpath(path, strict=True)
    except OSError:
        return "a symlink that leads nowhere"
    if os.path.commonpath([target, top]) != top:
        return "a symlink that leaves the folder; copy the file, or land the folder where it is"
    if Path(target).is_dir():
        return "a symlink to a folder"
    if hidden_part(os.path.relpath(target, top)) is None:
        return "a symlink to a file that is read itself"
    return _size(target)
