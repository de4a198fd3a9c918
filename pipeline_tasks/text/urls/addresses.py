"""Writes addresses as browsers do, so that all forms of one address are equal: `canonical`.

It is the WHATWG URL standard's parser (https://url.spec.whatwg.org) for schemes that have an authority, and RFC 3986,
6.2.2, for what a browser leaves as it was written: percent forms of letters that need none. What a server alone can
know stays apart: the order of parameters, `+` and `%20`, upper case in paths, `www.`.

Addresses that are in that form, most of a crawl, are found at once; the others are written one by one.
"""

import ipaddress
import re
import unicodedata
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute

pc: Any = pyarrow.compute

PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21}
"""Special schemes, whose backslashes are slashes, with their default ports."""

_LABEL = "[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_PLAIN = (
    rf"^https?://(?:{_LABEL}\.)+[a-z][a-z0-9]*"
    r"(?:/(?:[A-Za-z0-9_~!$&'()*+,;=:@-][A-Za-z0-9_~!$&'()*+,;=:@.-]*/?)*)?(?:\?[A-Za-z0-9_~!$&()*+,;=:@/?.-]*)?$"
)
"""Addresses that are canonical: a host of letters, no dot at the start of a segment, no percent form, no fragment."""

_PUNYCODE = "xn--"
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
_PARTS = re.compile(r"([^/?#]*)([^?#]*)(?:\?([^#]*))?(?:#.*)?", re.DOTALL)
_PORT = re.compile(r"(.*?)(?::([0-9]*))?", re.DOTALL)
_PERCENT = re.compile(r"%([0-9A-Fa-f]{2})")
_UNSAFE = re.compile(r"[^A-Za-z0-9\-._~!$&'()*+,;=:@/?%]")
"""What a path or query has in percent form alone (RFC 3986, 3.3 and 3.4)."""

_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_EDGES = "".join(map(chr, range(33)))
_INVISIBLE = re.compile("[\u00ad\u200b\u2060\ufeff\ufe00-\ufe0f]")
_NUMBER = re.compile(r"(0[xX][0-9a-fA-F]*|[0-9]+)")
_MOST_DIGITS = 64
"""Digits of a number that may be (a part of) an address, zeros ahead included: no other is read."""


def canonical(urls: pa.Array) -> pa.Array:
    """Return each address in the one form that all its forms have; text that is none is trimmed, and null stays."""
    texts = urls.cast(pa.string())
    is_odd = pc.or_(pc.invert(pc.match_substring_regex(texts, _PLAIN)), pc.match_substring(texts, _PUNYCODE))
    odd = pc.fill_null(is_odd, fill_value=False)
    if not pc.any(odd, min_count=0).as_py():
        return texts
    codes = texts.filter(odd).dictionary_encode()
    written = pa.array([canonical_url(url) for url in codes.dictionary.to_pylist()], pa.string())
    return pc.replace_with_mask(texts, odd, written.take(codes.indices))


def canonical_url(url: str) -> str:
    """Return one address in its canonical form, without user and fragment; text that is none as it is, trimmed."""
    trimmed = url.strip(_EDGES).translate({9: None, 10: None, 13: None})
    match = _SCHEME.fullmatch(trimmed)
    if match is None:
        return url.strip()
    scheme, rest = match[1].lower(), match[2]
    if scheme in PORTS:
        before, mark, after = re.split(r"([?#]|\Z)", rest, maxsplit=1)
        rest = f"{before.replace(chr(92), '/')}{mark}{after}"
        if not rest.startswith("/"):
            return url.strip()
        rest = rest.lstrip("/")
    elif rest.startswith("//"):
        rest = rest[2:]
    else:
        return url.strip()
    parts = _PARTS.fullmatch(rest)
    assert parts is not None  # it matches any text
    authority, path, query = parts[1], parts[2], parts[3]
    where = _authority(authority, scheme)
    asked = "" if query is None else f"?{escaped(query.replace(chr(39), '%27') if scheme in PORTS else query)}"
    return f"{scheme}://{where}{_path(escaped(path))}{asked}"


def canonical_host(host: str) -> str:
    """Return a host as the domain name system has it: in lower case, labels with other letters as `xn--`."""
    if host.startswith("[") and host.endswith("]"):
        return _ipv6(host)
    mapped = unicodedata.normalize("NFKC", _INVISIBLE.sub("", unquote(host)))  # UTS 46 without its rarest letters
    lower = unicodedata.normalize("NFC", "".join(letter.lower() for letter in mapped)).replace("\u3002", ".")
    labels = [_label(label) for label in lower.strip(".").split(".")]
    return _ipv4(labels) or ".".join(labels)


def _label(label: str) -> str:
    """Return a label of a host with other letters in Punycode (RFC 3492); an encoded one as it would be encoded."""
    try:
        if label.startswith(_PUNYCODE):
            label = label.removeprefix(_PUNYCODE).encode("ascii").decode("punycode")
        return label if label.isascii() else f"{_PUNYCODE}{label.encode('punycode').decode()}"
    except UnicodeError:
        return label


def _ipv4(labels: list[str]) -> str:
    """Return an address of four numbers if a host is one in any of their forms, else ""."""
    if not 1 <= len(labels) <= len("1234"):
        return ""
    if not all(len(label) <= _MOST_DIGITS and _NUMBER.fullmatch(label) for label in labels):
        return ""
    numbers = [_number(label) for label in labels]
    last = 256 ** (5 - len(numbers))
    if any(number > 255 for number in numbers[:-1]) or numbers[-1] >= last:
        return ""
    whole = numbers[-1] + sum(number << (24 - 8 * at) for at, number in enumerate(numbers[:-1]))
    return str(ipaddress.IPv4Address(whole))


def _number(label: str) -> int:
    if label[:2] in ("0x", "0X"):
        return int(label[2:] or "0", 16)
    octal = label.startswith("0") and len(label) > 1 and set(label) <= set("01234567")
    return int(label, 8 if octal else 10)


def _ipv6(host: str) -> str:
    try:
        return f"[{ipaddress.IPv6Address(host[1:-1]).compressed}]"
    except ValueError:
        return host.lower()


def _authority(authority: str, scheme: str) -> str:
    """Return host and port, without a user, and without the port that the scheme implies."""
    match = _PORT.fullmatch(authority.rpartition("@")[2])
    assert match is not None  # it matches any text
    host = canonical_host(match[1])
    port = match[2] and (match[2].lstrip("0") or "0")  # text: a number of many digits is none for `int`
    return f"{host}:{port}" if port and port != str(PORTS.get(scheme)) else host


def escaped(text: str) -> str:
    """Return text in which percent forms are as short as they can be, and those that are left in upper case."""
    plain = _PERCENT.sub(_shortest, text)
    return _UNSAFE.sub(lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "replace")), plain)


def _shortest(match: re.Match[str]) -> str:
    letter = chr(int(match[1], 16))
    return letter if letter in _UNRESERVED else match[0].upper()


def _path(path: str) -> str:
    """Return a path without `.` and `..` (RFC 3986, 5.2.4)."""
    segments: list[str] = []
    parts = path.split("/")[1:] if path.startswith("/") else path.split("/")
    for at, part in enumerate(parts):
        is_last = at == len(parts) - 1
        if part == "..":
            segments[-1:] = []
        elif part != ".":
            segments.append(part)
            continue
        if is_last:
            segments.append("")
    return f"/{'/'.join(segments)}"
