"""Writes addresses as Common Crawl's indexes sort them: `url_surtkey`, the SURT form of a canonical address.

Its rules are those of the Internet Archive's Wayback Machine, as the crawler applies them to what it writes into its
index (`WaybackURLKeyMaker` of https://github.com/iipc/webarchive-commons). They are lossy: `www.`, the scheme, the case
of paths, session ids and the order of parameters are left out. Keys of equal pages are equal, not those of one page.
"""

import re
from contextlib import suppress
from ipaddress import IPv4Address
from typing import NamedTuple

import pyarrow as pa

OPAQUE = ("filedesc", "warcinfo")
"""How the addresses of records begin that describe their file: they are their own keys."""

DNS = "dns:"

PORTS = {"http": 80, "https": 443}
"""Schemes with the port that their keys leave out; of others that is 0."""

MOST = 255
"""The largest number of an address of four."""

_EDGES = "".join(map(chr, range(33)))
_STRAY = re.compile("[\n\r\t\u0085\u2028\u2029]+")
_KNOWN = re.compile(r"(?:https?|ftp|mms|rtsp|wais)://", re.IGNORECASE)
_SLASHES = re.compile(r"(https?://)/+")
_PARTS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)([^?#]*)(?:\?([^#]*))?", re.DOTALL)
_PORT = re.compile(r"(\[[^\]]*\]|[^:]*)(?::(.*))?", re.DOTALL)
_NUMBER = re.compile(r"[+-]?[0-9]{1,10}")

_ESCAPED = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_NESTED = re.compile("%(?:25){2,}")
_UNDECODED = re.compile("[\udc80-\udcff]")
_UNSAFE = re.compile(rb"%[0-9A-Fa-f]{2}|[^!-\x7f]|[#%]")

_WWW = re.compile(r"(?:www[0-9]*\.)+")
_DOTS = re.compile(r"\.{2,}")
_DIGITS = re.compile(r"[0-9]{1,18}")
_OCTETS = re.compile(r"(?:0[0-7]*(?:\.[0-7]+){3}|[1-9][0-9]*(?:\.[0-9]+){3})")

_SESSIONS_OF_PATHS = (
    re.compile(r"(.*/)\((?:[a-z]\([0-9a-z]{24}\))+\)/([^?]+\.aspx.*)", re.IGNORECASE),
    re.compile(r"(.*/)\([0-9a-z]{24}\)/([^?]+\.aspx.*)", re.IGNORECASE),
)
_SESSIONS = tuple(
    re.compile(rf"(.*){session}(?:&(.*))?", re.IGNORECASE)
    for session in (
        "jsessionid=[0-9a-z]{32}",
        "phpsessid=[0-9a-z]{32}",
        "sid=[0-9a-z]{32}",
        "aspsessionid[a-z]{8}=[a-z]{24}",
        "cfid=[^&]+&cftoken=[^&]+",
    )
)
"""Ids of visits, which servers write into paths and queries: keys leave them out."""


class _Address(NamedTuple):
    """The parts of an address that its key has; the port is "" for none, the query None."""

    host: str
    port: str
    path: str
    query: str | None


def surt_keys(urls: pa.Array) -> pa.Array:
    """Return the key of each address, null for null and for text that is no address: the index has no row of it."""
    return pa.array([None if url is None else surt_key(url) for url in urls.to_pylist()], pa.string())


def surt_key(url: str) -> str | None:
    """Return the key of an address, None for one that cannot be read."""
    if url.startswith(OPAQUE):
        return url
    if url.startswith(DNS):
        return f"{_reversed(url.removeprefix(DNS))})"
    address = _parsed(url)
    if address is None:
        return None
    asked = "" if address.query is None else f"?{address.query}"
    return f"{_reversed(address.host)}{address.port}){address.path}{asked}"


def _parsed(url: str) -> _Address | None:
    text = _STRAY.sub("", url.strip(_EDGES))
    if not text:
        return None
    text = _SLASHES.sub(r"\1", text if _KNOWN.match(text) else f"http://{text}", count=1)
    parts = _PARTS.match(text)
    if parts is None:
        return None
    own = _PORT.fullmatch(parts[2].partition("@")[2] if "@" in parts[2] else parts[2])
    port = _port(own[2] or "", parts[1].lower()) if own else None
    if own is None or port is None:
        return None
    return _Address(_host(own[1]), port, _path(parts[3]), _query(parts[4]))


def _port(written: str, scheme: str) -> str | None:
    """Return the port of a key, "" for the usual one, None for no port."""
    if not written:
        return ""
    if not _NUMBER.fullmatch(written):
        return None
    return "" if int(written) in (PORTS.get(scheme, 0), -1) else f":{int(written)}"


# --- Hosts ------------------------------------------------------------------------------------------------------------


def _host(written: str) -> str:
    if written.startswith("["):
        return written.strip("[]").lower()
    host = _unescaped(written)
    if not host.isascii():
        with suppress(UnicodeError):  # of a letter that no name may have the bytes are escaped
            host = host.encode("idna").decode()
    host = _DOTS.sub(".", host.strip("."))
    host = _ipv4(host) or _escaped(host.lower()).lower()
    www = _WWW.match(host)
    return host[www.end() :] if www else host


def _ipv4(host: str) -> str:
    """Return an address of four numbers, of which octal ones begin with 0, or that is one number; else ""."""
    if _DIGITS.fullmatch(host):
        return str(IPv4Address(int(host) & 0xFFFFFFFF))
    if not _OCTETS.fullmatch(host):
        return ""
    octets = [int(octet, 8 if host.startswith("0") else 10) for octet in host.split(".")]
    return ".".join(map(str, octets)) if max(octets) <= MOST else ""


def _reversed(host: str) -> str:
    return ",".join(reversed(host.split(".")))


# --- Paths and queries ------------------------------------------------------------------------------------------------


def _path(written: str) -> str:
    path = _escaped(_resolved(_unescaped(written))).lower()
    for session in _SESSIONS_OF_PATHS:
        if match := session.fullmatch(path):
            path = f"{match[1]}{match[2]}"
    return path[:-1] if path.endswith("/") and len(path) > 1 else path


def _resolved(path: str) -> str:
    """Return a path without `.`, `..` and empty segments; a `..` that has nothing before it stays."""
    kept: list[str] = []
    for segment in path.split("/")[1:]:
        if segment == ".." and kept:
            kept.pop()
        elif segment != ".":
            kept.append(segment)
    return f"/{'/'.join([*filter(None, kept[:-1]), *kept[-1:]])}"


def _query(written: str | None) -> str | None:
    """Return a query with its parameters in order, None for an empty one."""
    if written is None:
        return None
    query = _escaped(_unescaped(written))
    for session in _SESSIONS:
        if match := session.fullmatch(query):
            query = f"{match[1]}{match[2] or ''}"
    ordered = sorted(param.partition("=") for param in query.lower().split("&"))
    return "&".join("".join(param) for param in ordered) or None


# --- Escapes ----------------------------------------------------------------------------------------------------------


def _unescaped(text: str) -> str:
    """Return text without percent forms, however often they were escaped, but of bytes that are not UTF-8."""
    text = _NESTED.sub("%25", text)  # at once: an address of a megabyte may be escaped as often
    while "%" in text and (plain := _ESCAPED.sub(_decoded, text)) != text:
        text = plain
    return text


def _decoded(match: re.Match[str]) -> str:
    text = bytes.fromhex(match[0].replace("%", "")).decode("utf-8", "surrogateescape")
    return _UNDECODED.sub(lambda byte: f"%{ord(byte[0]) - 0xDC00:02X}", text)


def _escaped(text: str) -> str:
    """Return text with percent forms of blanks, signs, `#`, `%` and all bytes of other letters than ASCII's."""
    return _UNSAFE.sub(_form, text.encode("utf-8", "replace")).decode("ascii")


def _form(match: re.Match[bytes]) -> bytes:
    return match[0].upper() if len(match[0]) > 1 else b"%%%02X" % match[0][0]
