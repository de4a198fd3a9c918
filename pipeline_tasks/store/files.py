"""Files and folders that params name, such as models: their digests, which are identity, and copies on this machine."""

import hashlib
import re
from pathlib import Path

from pipeline_tasks.constraints import is_bucket
from pipeline_tasks.errors import DigestMismatch, MachineFailed, RecipeError
from pipeline_tasks.sealed import digest_of_folder, sha256, visible
from pipeline_tasks.store import storage
from pipeline_tasks.store.local_store import files_below
from pipeline_tasks.store.protocol import CHUNK, confined
from pipeline_tasks.store.temporary import user_folder

HUB = "hf://"
"""A model of the Hugging Face hub: `hf://owner/name@commit`, the commit by its 40 hex digits."""

_ON_HUB = re.compile(r"hf://([\w.-]+/[\w.-]+)@([0-9a-f]{40})")


def digest_of_named(uri: str) -> str:
    """Return the SHA-256 of a file, or of a folder: of its files' names and digests, sorted, hidden ones left out.

    OSError for what is not there, RecipeError for a model of the hub without a commit.
    """
    if uri.startswith(HUB):
        uri = str(_of_hub(uri))
    names = _files_of(uri)
    if names is None:
        return storage.digest_of_file(uri)[1]
    return digest_of_folder({name: storage.digest_of_file(f"{uri}/{name}")[1] for name in names})


def localize(uri: str, digest: str) -> str:
    """Return a local path of a file or folder: itself if local, else a copy in this user's cache.

    DigestMismatch unless it has the digest.
    """
    if uri.startswith(HUB):
        return localize(str(_of_hub(uri)), digest)
    copy = user_folder() / digest
    if is_bucket(uri) and copy.is_dir() and digest_of_named(str(copy)) == digest:
        return str(copy)  # of a folder, whole: nothing of it is fetched again
    names = _files_of(uri)
    if names is None:
        return storage.localize(uri, digest)
    digests = {name: storage.digest_of_file(f"{uri}/{name}")[1] for name in names}
    if digest_of_folder(digests) != digest:
        message = f"{uri}: its files are not those of when the run was planned; run it again"
        raise DigestMismatch(message)
    if not is_bucket(uri):
        return uri.removeprefix("file://")
    for name, known in digests.items():
        storage.fetch(f"{uri}/{name}", known, copy / confined(str(copy), name))
    for name in set(_files_of(str(copy)) or ()) - digests.keys():
        (copy / name).unlink(missing_ok=True)  # of a copy that another release made, or somebody changed
    return str(copy)


def _files_of(uri: str) -> list[str] | None:
    """Return the names of the files of a folder, sorted and relative to it; None for what is no folder."""
    if is_bucket(uri):
        parent, _, name = uri.rstrip("/").rpartition("/")
        store = storage.connect(parent)
        if store.size(name) is not None:
            return None
        names = [entry.path.removeprefix(f"{name}/") for entry in store.list(f"{name}/")]
    else:
        folder = Path(uri.removeprefix("file://"))
        if not folder.is_dir():
            return None
        names = [path.relative_to(folder).as_posix() for path in files_below(folder) if path.is_file()]
    return visible(names) or None


def _of_hub(uri: str) -> Path:
    """Return the folder of a model of the hub, downloaded once; RecipeError without a commit."""
    match = _ON_HUB.fullmatch(uri)
    if match is None:
        message = (
            f"{uri} names no commit; write hf://owner/name@<commit> with its 40 hex digits, which the hub shows under "
            "`Files`: a branch would be another model tomorrow"
        )
        raise RecipeError(message)
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(match[1], revision=match[2]))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        message = (
            f"{uri} could not be downloaded ({type(error).__name__}: {str(error)[:200]}); without internet, copy its "
            "folder here and name that"
        )
        raise MachineFailed(message) from error
    _require_whole(uri, folder)
    return folder


def _require_whole(uri: str, folder: Path) -> None:
    """Raise MachineFailed if a file in the cache of the hub is not what it was: that cache believes what exists.

    Its blobs are named as the hub names them: large files by their SHA-256, others as Git does by SHA-1.
    """
    for path in files_below(folder):
        blob = path.resolve()
        is_large = len(blob.name) == len(sha256(b""))
        if path.is_symlink() and blob.name != (storage.digest_of_file(str(blob))[1] if is_large else _git_name(blob)):
            message = f"{uri}: {blob} is not what the hub gave; remove it and {path}, and run again"
            raise MachineFailed(message)


def _git_name(path: Path) -> str:
    """Return the name that Git gives to a file of this content."""
    digest = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    with path.open("rb") as stream:
        while chunk := stream.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
