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
    robots_tag_signals,
    rsl_signals,
    strictest,
    usage_signals,
)
from pipeline_tasks.text.rights.signals import EVERYBODY, Signal

TAG_BYTES = 4096
"""Bytes of a tag that are looked at."""

MOST_LICENSES = 1000
"""Places of the word `license` that are looked at: each is searched for the beginning of its tag."""

_META, _LICENSE, _RSL = b"<meta", b"license", RSL_TYPE.encode()
_TAG = re.compile(rb"<(meta|link|a)(?=[ \t\n\f\r/])((?:=[ \t\n\f\r]*\"[^\"]*+\"|=[ \t\n\f\r]*'[^']*+'|[^>])*+)>")
"""A tag; marks of quotation quote behind `=` alone."""

_ATTRIBUTE = re.compile(rb"([a-z][a-z0-9:-]*)[ \t\n\f\r]*=[ \t\n\f\r]*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))")
_INERT = re.compile(
    rb"(?s)<!--(?:-?>|.*?(?:--!?>|\Z))"
    rb"|(?P<foreign></?(?:svg|math)(?=[ \t\n\f\r/>])[^<>]{0,4096}>)"
    rb"|(?P<open><(?P<name>script|style|textarea|template|title|xmp|iframe|noembed|noframes)(?=[ \t\n\f\r/>])"
    rb"(?P<attributes>[^<>]{0,4096})>)"
    rb"|(?P<tag><[a-z](?:=[ \t\n\f\r]*\"[^\"]{0,4096}\"|=[ \t\n\f\r]*'[^']{0,4096}'|[^<>]){0,200}+>)"
)
"""A comment (HTML, 13.2.5.43), an element whose content is no markup of the page, or another tag, which stays.

They are looked for at once: what begins a comment in a script or in an attribute begins none. In `svg` and `math` a
`title`, `style` or `script` is an element as any other (HTML, 13.2.6.5).
"""

_BREAKOUT = re.compile(
    rb"<(?:b|big|blockquote|body|br|center|code|dd|div|dl|dt|em|embed|h[1-6]|head|hr|i|img|li|listing|menu|meta|nobr|ol"
    rb"|p|pre|ruby|s|small|span|strong|strike|sub|sup|table|tt|u|ul|var)[ \t\n\f\r/>]"
)
"""Tags that end an `svg` or `math` which is not closed (HTML, 13.2.6.5)."""

_END = rb"</%s(?=[ \t\n\f\r/>])"
_ENDS = {
    name: re.compile(_END % name.encode())
    for name in ("script", "style", "textarea", "template", "title", "xmp", "iframe", "noembed", "noframes")
}
_PROHIBITS = re.compile(
    rb"<(?:\w+:)?prohibits(?=[\s/>])(?=[^<>]{0,1000}?\stype\s*=\s*[\"']usage[\"'])[^<>]{0,1000}>"
    rb"\s*(?:<!\[cdata\[)?([^<>\]]{0,1000})[<\]]"
)
_NAMES = (b"robots", b"tdm-reservation", b"tdm-policy", b"content-usage", b"x-robots-tag")
_MARKS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_BEGINNING = 256
"""Bytes by which UTF-16 without a mark is known: half of those of markup are zeros."""


def markup_signals(page: bytes, agents: AbstractSet[str]) -> list[Signal]:
    """Return what the bytes of an HTML page say to everybody or to `agents` (in lower case), in its order."""
    encoding = _MARKS.get(page[:2]) or _unmarked(page[:_BEGINNING])
    if encoding:
        page = page.decode(encoding, "replace").encode()
    lower = page.lower()
    if _RSL not in lower and not _is_nested(lower) and not next(_signals(page, lower, agents), None):
        return []
    bare, scripts = _without_inert(page)
    return [*_signals(bare, bare.lower(), agents), *_embedded(scripts)]


def _unmarked(beginning: bytes) -> str:
    """Return the encoding of UTF-16 without a byte order mark, "" for another."""
    half = len(beginning) // 2
    for encoding, zeros, letters in (("utf-16-le", 1, 0), ("utf-16-be", 0, 1)):
        if half and beginning[zeros::2].count(0) * 4 > half * 3 and not beginning[letters::2].count(0):
            return encoding
    return ""


def _without_inert(page: bytes) -> tuple[bytes, list[tuple[bytes, bytes]]]:
    """Return a page without what is text and no markup, and attributes and content of its scripts in lower case."""
    parts, scripts, at, foreign = [], [], 0, 0
    lower, place = page.lower(), 0
    while inert := _INERT.search(lower, place):
        place = inert.end()
        if inert["foreign"]:
            is_end, is_empty = inert["foreign"].startswith(b"</"), inert["foreign"].endswith(b"/>")
            foreign = max(foreign - 1, 0) if is_end else foreign + (not is_empty)
        elif inert["tag"] and _BREAKOUT.match(inert["tag"]):
            foreign = 0
        if inert["tag"] or inert["foreign"] or (inert["open"] and foreign):
            continue
        parts.append(page[at : inert.start()])
        if inert["open"]:
            end = _ENDS[inert["name"].decode()].search(lower, place)
            body, place = lower[place : end.start() if end else len(lower)], end.end() if end else len(lower)
            if inert["name"] == b"script":
                scripts.append((inert["attributes"], body))
        at = place
    return b"".join((*parts, page[at:])), scripts


def _signals(page: bytes, lower: bytes, agents: AbstractSet[str]) -> Iterator[Signal]:
    """Yield what tags say; bytes of `page` and `lower` have the same places."""
    policy, reservations, usages = "", list[str](), list[Signal]()
    names = frozenset((*_NAMES, *(agent.encode() for agent in agents)))
    for match in _metas(lower):
        tag = _attributes_of(page, match) if match else {}
        name, content = (tag.get("name") or tag.get("http-equiv", "")).strip().lower(), tag.get("content", "")
        if name.encode() not in names:
            continue
        if name == "tdm-policy":
            policy = content
        elif name == "tdm-reservation":
            reservations.append(content)
        elif name == "content-usage":
            usages += usage_signals(content, "html meta")
        elif name == "x-robots-tag":
            yield from robots_tag_signals(content, agents, "html meta")
        else:
            yield from directive_signals(content, "html meta", EVERYBODY if name == "robots" else tag["name"].strip())
    yield from strictest(usages)
    yield from reservation_signals(",".join(reservations), policy, "html meta")
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
            yield from rsl_signals(uses, "html script")


def _is_nested(lower: bytes) -> bool:
    """Return whether a tag begins in a `<meta>`, or one has no end: it may have begun in a comment or a script."""
    return any(tag is None or b"<" in tag[2] for tag in _metas(lower))


def _metas(lower: bytes) -> Iterator[re.Match[bytes] | None]:
    """Yield each `<meta>`, None for one that is too long, which ends at its first `>`: no byte is read twice."""
    at = lower.find(_META)
    while at >= 0:
        tag = _TAG.match(lower, at, at + TAG_BYTES)
        is_meta = lower[at + len(_META) : at + len(_META) + 1] in b" \t\n\f\r/"
        if is_meta:
            yield tag
        end = tag.end() if tag else lower.find(b">", at + TAG_BYTES) if is_meta else at + len(_META)
        at = lower.find(_META, end) if end >= 0 else -1


def _places(lower: bytes, word: bytes) -> Iterator[int]:
    at = -len(word)
    for _ in range(MOST_LICENSES):
        at = lower.find(word, at + len(word))
        if at < 0:
            return
        yield at


def _attributes(page: bytes, lower: bytes, at: int, kind: bytes) -> dict[str, str]:
    """Return the attributes of the tag of a kind at a place; none if no such tag is there."""
    tag = _TAG.match(lower, at, at + TAG_BYTES)
    return _attributes_of(page, tag) if tag and tag[1] == kind else {}


def _attributes_of(page: bytes, tag: re.Match[bytes]) -> dict[str, str]:
    """Return the attributes of a tag, the first of each name."""
    kind = tag[1]
    start = tag.start(2)
    values: dict[str, str] = {}
    for attribute in _ATTRIBUTE.finditer(tag[2]):
        group = attribute.lastindex or 1
        value = page[start + attribute.start(group) : start + attribute.end(group)].decode("utf-8", "replace")
        if attribute[4] and kind == b"meta":  # written as `content=noai/>`
            value = value.removesuffix("/")
        values.setdefault(attribute[1].decode("ascii"), html.unescape(value))
    return values
