"""Files of the web: a list there names them, or the address of one does; each is downloaded whole before it is read."""

import contextlib
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeVar
from urllib.parse import quote, unquote, urlsplit

from pipeline_tasks.errors import ContractError, RecipeError, SnapshotIncomplete
from pipeline_tasks.landing.listing import LISTING_BYTES, LISTING_LINES, PROMISE, promised_file
from refinery_sources.download import discard, download
from refinery_sources.files.contents import unpacked
from refinery_sources.source import UNKNOWN, Flow, Part
from refinery_sources.web import Web, answered, body_of, require_address, tried

T = TypeVar("T")

_OK = frozenset({200})

_PATH = re.compile(r"(?:(?!\.{1,2}(?:/|\Z))[^/\\\0-\x1f\x7f\ud800-\udfff]+(?:/|\Z))+(?<!/)")
"""A path below a folder, in characters that can be written; an absolute address has an empty component."""

_LENGTH = frozenset({"content-length", "transfer-encoding"})
"""Headers of an answer, one of which says where its body ends."""


class File(NamedTuple):
    """A file by its path below its folder, its bytes, and what changes with its content: a time, a digest, an ETag.

    `sha256` is the digest that a list promises.
    """

    path: str
    bytes: int
    version: float | str
    sha256: str = ""


def address_of(place: str, path: str) -> str:
    """Return the address of a file of a folder, whose place ends with `/`, or that of the one file at a place."""
    return f"{place}{quote(path)}" if place.endswith("/") else place


def path_of(place: str, address: str) -> str:
    """Return the path of the file that has an address at a place."""
    return unquote(address.removeprefix(place) if place.endswith("/") else urlsplit(place).path.rpartition("/")[2])


def web_place(place: str, paths: str) -> str:
    """Return a place of the web as it is requested: a folder ends with `/`.

    RecipeError for an address without TLS that is not of this machine, one with user, query, fragment or `..`, and for
    a list outside of its folder.
    """
    require_address(place)
    parts = urlsplit(place)
    if parts.scheme == "http" and not _is_loopback(parts.hostname or ""):
        message = f"{place} is without TLS: who is on the way could change the files; name its address of https://"
        raise RecipeError(message)
    path = unquote(parts.path).removeprefix("/").removesuffix("/")
    if parts.fragment or (path and not _PATH.fullmatch(path)) or (paths and not _PATH.fullmatch(paths)):
        message = f"place {place[:200]!a}, paths {paths[:200]!a}: name a folder or a file, without #, //, . and .."
        raise RecipeError(message)
    is_folder = bool(paths) or not path
    return f"{place}/" if is_folder and not place.endswith("/") else place


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


# --- Names --------------------------------------------------------------------------------------------------------


def named_files(web: Web, place: str, paths: str) -> list[File]:
    """Return the files of a place by path: those of the list `paths` below it, of its `snapshot.json`, or the one.

    SnapshotIncomplete where there is no list or file; ContractError for a list that is cut, is none, or names a file
    twice or outside of the folder: nothing of it is downloaded.
    """
    if not place.endswith("/"):
        return [_there(place, "correct `place`; that of a folder ends with /", lambda: _one(web, place))]
    url = f"{place}{quote(paths or PROMISE)}"
    body = _there(url, _WAYS[bool(paths)], lambda: _body(web, url))
    try:
        files = _of_paths(body, url) if paths else [_promised(file) for file in json.loads(body)["files"]]
        _require_once(files)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        message = (
            f"{url} is no list of files below {place} ({str(error)[:300]}); nothing of it is downloaded: correct it"
        )
        raise ContractError(message) from error
    return sorted(files)


_WAYS: Mapping[bool, str] = {
    True: "correct `paths`",
    False: "a folder of the web has no list of its own: name a list of paths there by `paths`, or one file as `place`",
}


def _require_once(files: Sequence[File]) -> None:
    if not files:
        message = "it lists no files"
        raise ValueError(message)
    path, times = Counter(file.path for file in files).most_common(1)[0]
    if times > 1:
        message = f"it names {path[:200]!a} {times} times"
        raise ValueError(message)


def _there(url: str, way_out: str, request: Callable[[], T]) -> T:
    try:
        return request()
    except SnapshotIncomplete as error:
        message = f"{url} does not exist; {way_out}"
        raise SnapshotIncomplete(message) from error


def _one(web: Web, place: str) -> File:
    def head() -> File:
        with answered(web, place, method="HEAD", accepted=_OK) as response:
            length = response.headers.get("Content-Length", "")
            version = response.headers.get("ETag") or response.headers.get("Last-Modified", "")
        return File(path_of(place, place), int(length) if length.isdigit() else UNKNOWN, version)

    return tried(web, head)


def _body(web: Web, url: str) -> bytes:
    def body() -> bytes:
        with answered(web, url, accepted=_OK) as response:
            if not _LENGTH & set(response.headers):
                message = f"{url} is sent without its length, so nothing proves that it is whole; name another mirror"
                raise ContractError(message)
            return body_of(web, response, url, LISTING_BYTES)

    return tried(web, body)


def _of_paths(body: bytes, url: str) -> list[File]:
    content = unpacked(io.BytesIO(body), url).read(LISTING_BYTES + 1)
    lines = [line.removesuffix("\r") for line in content.decode().removesuffix("\n").split("\n")] if content else []
    if len(content) > LISTING_BYTES or len(lines) > LISTING_LINES:
        message = f"it has more than {LISTING_BYTES:,} bytes or {LISTING_LINES:,} lines"
        raise ValueError(message)
    return [File(_below(line), UNKNOWN, "") for line in lines]


def _promised(file: Mapping[str, object]) -> File:
    path, size, digest = promised_file(file)
    if "address" in file or size < 0:
        message = f"{path[:200]!a} is at an address of its own, or has fewer than no bytes"
        raise ValueError(message)
    return File(_below(path), size, digest, digest)


def _below(path: str) -> str:
    if not _PATH.fullmatch(path):
        message = f"{path[:200]!a} is no path below the folder"
        raise ValueError(message)
    return path


# --- Bytes --------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def content_on_web(web: Web, part: Part, raw: Path, flow: Flow) -> Iterator[BinaryIO]:
    """Download a file to `raw`, where it stays for the next try until it is discarded, and open its content.

    ContractError for damage, behind which it is downloaded anew; otherwise as `download`.
    """
    download(web, part, raw, flow)
    with discarded_if_damaged(raw), raw.open("rb") as stored:
        yield unpacked(stored, part.address)


@contextlib.contextmanager
def discarded_if_damaged(downloaded: Path) -> Iterator[None]:
    """Discard a download that proves damaged: the next pull would believe its length."""
    try:
        yield
    except ContractError:
        discard(downloaded)
        raise
