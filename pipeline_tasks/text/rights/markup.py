"""Finds what the markup of a page says of its use: `<meta>`, `<link>`, `<a rel=license>` and embedded RSL.

Most pages say nothing, and are searched only for the beginnings of tags and for the word `license`, at some 500 MB/s.
A page in which something is found is searched again without its comments, scripts and styles.
"""

import html
import re
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet

from pipeline_tasks.text.rights.directives import (
    RSL_TYPE,
    directive_signals,
    license_signal,
    reservation_signals,
    usage_signals,
)
from pipeline_tasks.text.rights.signals import EVERYBODY, Signal

TAG_BYTES = 4096
"""Bytes of a tag that are looked at."""

MOST_TAGS = 1000
"""Tags of a kind that are looked at: a page of nothing but beginnings of tags takes no longer than another."""

_META, _LICENSE, _RSL = b"<meta", b"license", RSL_TYPE.encode()
_TAG = re.compile(rb"<(meta|link|a)(?=[ \t\n\f\r/])((?:=[ \t\n\f\r]*\"[^\"]*+\"|=[ \t\n\f\r]*'[^']*+'|[^>])*+)>")
"""A tag; marks of quotation quote behind `=` alone."""

_ATTRIBUTE = re.compile(rb"([a-z][a-z0-9:-]*)[ \t\n\f\r]*=[ \t\n\f\r]*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))")
_INERT = re.compile(
    rb"(?s)<!--(?:-?>|.*?(?:--!?>|\Z))"
    rb"|<(script|style|textarea|template|title|xmp|iframe|noembed|noframes)(?=[ \t\n\f\r/>])([^<>]{0,4096})>"
    rb"(.*?)(?:</\1(?=[ \t\n\f\r/>])|\Z)"
    rb"|(?P<tag><[a-z](?:=[ \t\n\f\r]*\"[^\"]{0,4096}\"|=[ \t\n\f\r]*'[^']{0,4096}'|[^<>]){0,200}+>)"
)
"""A comment (HTML, 13.2.5.43), an element whose content is no markup of the page, or another tag, which stays.

They are looked for at once: what begins a comment in a script or in an attribute begins none.
"""

_PROHIBITS = re.compile(rb"<prohibits\s+type=[\"']usage[\"']\s*>([^<]{0,1000})<")
_NAMES = (b"robots", b"tdm-reservation", b"tdm-policy", b"content-usage")
_MARKS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}


def markup_signals(page: bytes, agents: AbstractSet[str]) -> list[Signal]:
    """Return what the bytes of an HTML page say to everybody or to `agents` (in lower case), in its order."""
    encoding = _MARKS.get(page[:2])
    if encoding:
        page = page.decode(encoding, "replace").encode()
    lower = page.lower()
    names = frozenset((*_NAMES, *(agent.encode() for agent in agents)))
    if _RSL not in lower and not next(_signals(page, lower, names), None):
        return []
    bare, scripts = _without_inert(page)
    return [*_signals(bare, bare.lower(), names), *_embedded(scripts)]


def _without_inert(page: bytes) -> tuple[bytes, list[tuple[bytes, bytes]]]:
    """Return a page without what is text and no markup, and attributes and content of its scripts in lower case."""
    parts, scripts, at = [], [], 0
    for inert in _INERT.finditer(page.lower()):
        if inert["tag"]:
            continue
        parts.append(page[at : inert.start()])
        at = inert.end()
        if inert[1] == b"script":
            scripts.append((inert[2], inert[3]))
    return b"".join((*parts, page[at:])), scripts


def _signals(page: bytes, lower: bytes, names: AbstractSet[bytes]) -> Iterator[Signal]:
    """Yield what tags say; bytes of `page` and `lower` have the same places."""
    policy, reservations = "", []
    for at in _places(lower, _META):
        tag = _attributes(page, lower, at, b"meta")
        name, content = tag.get("name", "").strip().lower(), tag.get("content", "")
        if name.encode() not in names:
            continue
        if name == "tdm-policy":
            policy = content
        elif name == "tdm-reservation":
            reservations.append(content)
        elif name == "content-usage":
            yield from usage_signals(content, "html meta")
        else:
            yield from directive_signals(content, "html meta", EVERYBODY if name == "robots" else tag["name"].strip())
    for value in reservations:
        yield from reservation_signals(value, policy, "html meta")
    yield from _licenses(page, lower)


def _licenses(page: bytes, lower: bytes) -> Iterator[Signal]:
    """Yield the links to licenses: tags with the word in their `rel`."""
    last = -1
    for at in _places(lower, _LICENSE):
        start = lower.rfind(b"<", max(at - TAG_BYTES, 0), at)
        if start <= last or not lower.startswith((b"<a", b"<link"), start):
            continue
        last, kind = start, b"link" if lower.startswith(b"<link", start) else b"a"
        tag = _attributes(page, lower, start, kind)
        if "license" in tag.get("rel", "").lower().split() and tag.get("href", "").strip():
            yield license_signal(tag["href"], tag.get("type", ""), f"html {kind.decode()}")


def _embedded(scripts: Iterable[tuple[bytes, bytes]]) -> Iterator[Signal]:
    """Yield the RSL documents in scripts, with the uses that they prohibit."""
    for attributes, body in scripts:
        if _RSL in attributes:
            uses = b" ".join(_PROHIBITS.findall(body)).decode("utf-8", "replace").replace(",", " ").split()
            yield Signal("rsl", f"prohibits {','.join(uses)}" if uses else "embedded", "html script")


def _places(lower: bytes, word: bytes) -> Iterator[int]:
    at = -len(word)
    for _ in range(MOST_TAGS):
        at = lower.find(word, at + len(word))
        if at < 0:
            return
        yield at


def _attributes(page: bytes, lower: bytes, at: int, kind: bytes) -> dict[str, str]:
    """Return the attributes of the tag of a kind at a place, the first of each name; none if no such tag is there."""
    tag = _TAG.match(lower, at, at + TAG_BYTES)
    if tag is None or tag[1] != kind:
        return {}
    start = tag.start(2)
    values: dict[str, str] = {}
    for attribute in _ATTRIBUTE.finditer(tag[2]):
        group = attribute.lastindex or 1
        value = page[start + attribute.start(group) : start + attribute.end(group)].decode("utf-8", "replace")
        if attribute[4] and kind == b"meta":  # written as `content=noai/>`
            value = value.removesuffix("/")
        values.setdefault(attribute[1].decode("ascii"), html.unescape(value))
    return values
