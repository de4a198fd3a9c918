"""Files that are documents themselves: each is one record, its bytes the payload, told by the ending of its name."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from urllib.parse import quote

from pipeline_tasks.file_types import brought_types
from pipeline_tasks.landing.archives.http_body import CAP
from pipeline_tasks.landing.archives.record import Row, sha1
from pipeline_tasks.landing.decompression import Reader

OTHER = "application/octet-stream"
"""What a file is called whose bytes tell its type."""

_OWN = {
    **dict.fromkeys(("html", "htm", "xhtml"), "text/html"),
    **dict.fromkeys(("txt", "text"), "text/plain"),
    **dict.fromkeys(("md", "markdown"), "text/markdown"),
}
"""The labels of the endings that the core's own types have."""

_ENDING = re.compile(r"\.(\w+)\Z")


def is_whole(name: str) -> bool:
    """Return whether a file is a document itself, by its name."""
    return bool(_label(name))


def _label(name: str) -> str:
    """Return the media type by which a file is called a document, "" for any other file."""
    ending = _ENDING.search(name.lower())
    return _labels().get(ending[1], "") if ending else ""


@cache
def _labels() -> Mapping[str, str]:
    """Return the media type of each ending; the first type that has an ending gives it."""
    cards = reversed([*brought_types().values()])
    return {ending: next(iter(card.media_types), OTHER) for card in cards for ending in card.endings} | _OWN


def address_of(name: str) -> str:
    """Return the address of a document in its folder: it is known by it in later snapshots, and found by people."""
    return f"file:///{quote(name)}"


def read_whole(reader: Reader, name: str, *, is_checked: bool) -> Iterator[Row]:
    """Yield the one record of a file; damage if it has more than `CAP` bytes."""
    if reader.fill(CAP + 1):
        size = reader.skip(1 << 62)
        yield Row(0, size, error="oversize", error_detail=f"more than {CAP} bytes")
        return
    body = reader.peek(CAP)
    reader.skip(len(body))
    digest = sha1(body) if is_checked else None
    yield Row(0, len(body), f"{name}:0", address_of(name), None, digest, "file", None, _label(name), body)
