"""Find e-mail addresses, phone numbers and IP addresses in UTF-8 text, in linear time.

Every pattern over text is RE2 (no backtracking), because an unbounded e-mail pattern in a backtracking
engine takes 21 s on 80 kB of `a`. What a pattern proposes, a validator disposes: public-suffix list for mail
domains, libphonenumber for phones, `ipaddress` for addresses.
"""

import ipaddress
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Literal, NamedTuple

Kind = Literal["email", "phone", "ip"]
KINDS: tuple[Kind, ...] = ("email", "phone", "ip")
PLACEHOLDERS: dict[Kind, bytes] = {"email": b"<EMAIL>", "phone": b"<PHONE>", "ip": b"<IP>"}


class Span(NamedTuple):
    """One finding: byte range in the text, kind, and the value in the form that identifies it."""

    start: int
    end: int
    kind: Kind
    value: str


@dataclass(frozen=True, slots=True)
class Limits:
    """What counts: phone regions, whether private addresses do, whether our own pseudonyms are passed over."""

    regions: tuple[str, ...] = ("US",)
    public_ips: bool = True
    keep_pseudonyms: bool = False


_GAP = r"[ .\-\x{a0}\x{2010}-\x{2013}]"
_EXTENSION = r"(?:,? ?(?:x|X|[eE]xt(?:\.|ension)?)[ .:]?\d{1,6})?"
_PATTERNS = {
    "email": r"[A-Za-z0-9._%+'\-]+@[\pL\pN\-]+(?:\.[\pL\pN\-]+)+",
    "ipv4": r"\d+(?:\.\d+){3,}",
    "ipv6": r"[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,}(?:\.\d{1,3}){0,3}(?:%[0-9A-Za-z]+)?",
    "international": rf"\+\d{{1,4}}(?:[/]?{_GAP}?\(?\d{{1,5}}\)?){{1,8}}{_EXTENSION}",
    "nanp": rf"(?:\+?1{_GAP}?)?(?:\(\d{{3}}\) ?|\d{{3}}{_GAP}?)\d{{3}}{_GAP}?\d{{4}}{_EXTENSION}",
    "national": rf"\(?\d{{2,5}}\)?(?:[/]?{_GAP}?\(?\d{{2,8}}\)?){{1,5}}{_EXTENSION}",
    "phone_cue": r"(?i)(?:phone|telef|tel|call|fax|mobile|cell|dial|whatsapp|sms|hotline|cep|\x{7535}\x{8bdd})"
    r"[^0-9<>]{0,20}$",
    "version_cue": r"(?i)(?:version|release|revision|build|update|section|chapter|\bver|\brev|\bv)[\s.:=#]*$",
    "pseudonym": r"^user_[0-9a-f]{12}@example\.com$",
}
_PREFILTER = r"@[\pL\pN]|\+\d|\d\.\d{1,3}\.\d{1,3}\.\d|:[0-9A-Fa-f]{0,4}:|" + rf"\d{{3}}\)?{_GAP}?\d{{3}}{_GAP}?\d{{4}}"
_CONTEXT = 48  # bytes looked back for a cue
_LETTERS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_")
_DIGITS = frozenset(b"0123456789")
_PSEUDONYM_NETWORKS = (ipaddress.ip_network("198.18.0.0/15"), ipaddress.ip_network("2001:db8::/32"))
_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")  # RFC 4291 2.4: the only IPv6 space that is handed out
_VERSIONISH = 20  # 1.2.3.4 and 2.0.0.10 are versions or public resolvers, not people
_MAX_LOCAL, _MAX_DOMAIN = 64, 253  # RFC 5321 4.5.3.1
_PHONE_DIGITS = range(7, 16)  # E.164: at most 15
_TRIES = 4  # trailing digit groups given up before a candidate is dropped


def prefilter(limits: Limits) -> str:
    """Return the RE2 pattern that every text with a finding matches; for a whole Arrow column at once."""
    foreign = "" if _is_nanp_only(limits.regions) else r"|(?:\d[ .\-/()\x{a0}]{0,2}){7}"
    return _PREFILTER + foreign


def find(text: bytes, limits: Limits) -> list[Span]:
    """Return the findings of `text` (UTF-8), ordered and disjoint; mail wins over IP wins over phone."""
    taken: list[Span] = []
    for finder in (_emails, _ipv4s, _ipv6s, _phones):
        for span in finder(text, limits):
            if not _overlaps(span, taken):
                insort(taken, span)
    return taken


def replace(text: bytes, spans: list[Span], name: Callable[[Span], bytes]) -> bytes:
    """Return `text` with every span replaced by `name(span)`."""
    pieces: list[bytes] = []
    at = 0
    for span in spans:
        pieces += [text[at : span.start], name(span)]
        at = span.end
    return b"".join([*pieces, text[at:]])


def _overlaps(span: Span, taken: list[Span]) -> bool:
    at = bisect_left(taken, (span.start,))
    after = at < len(taken) and taken[at].start < span.end
    return after or (at > 0 and taken[at - 1].end > span.start)


@cache
def _pattern(name: str) -> Any:  # noqa: ANN401 -- re2 has no stubs
    import re2

    return re2.compile(_PATTERNS[name].encode())


def _candidates(name: str, text: bytes) -> Iterator[tuple[int, int]]:
    for match in _pattern(name).finditer(text):
        yield match.span()


# Neighbors. A placeholder left by an earlier pass counts as the kind of character that the value had there,
# so that a candidate is judged alike before and after its neighbors were replaced: scrubbing is idempotent.


def _before(text: bytes, start: int) -> bytes:
    """Return the two bytes before `start`, placeholders read as `00` (number) or `xx` (mail)."""
    head = text[max(0, start - 8) : start]
    for back in (0, 1):
        body, rest = head[: len(head) - back], head[len(head) - back :]
        if body.endswith((b"<PHONE>", b"<IP>")):
            return (b"00" + rest)[-2:]
        if body.endswith(b"<EMAIL>"):
            return (b"xx" + rest)[-2:]
    return (b"  " + head)[-2:]


def _after(text: bytes, end: int) -> bytes:
    """Return the two bytes after `end`, placeholders read as `00` (number) or `xx` (mail)."""
    tail = text[end : end + 8]
    for skip in (0, 1):
        if tail[skip:].startswith((b"<PHONE>", b"<IP>")):
            return (tail[:skip] + b"00")[:2]
        if tail[skip:].startswith(b"<EMAIL>"):
            return (tail[:skip] + b"xx")[:2]
    return (tail + b"  ")[:2]


def _stands_alone(text: bytes, start: int, end: int, glue: bytes) -> bool:
    """Say whether text[start:end] is no part of a word or, through a `glue` byte, of a longer number."""
    far, near = _before(text, start)
    first, second = _after(text, end)
    if near in _LETTERS or near in _DIGITS or first in _LETTERS or first in _DIGITS:
        return False
    return not (near in glue and far in _DIGITS) and not (first in glue and second in _DIGITS)


def _emails(text: bytes, limits: Limits) -> Iterator[Span]:
    if b"@" not in text:
        return
    pattern, at = _pattern("email"), 0
    while (match := pattern.search(text, at)) is not None:
        start, end = match.span()
        local, _, domain = match.group().partition(b"@")
        stripped = local.lstrip(b"._%+'-")
        host = _mail_domain(domain)
        if host is None or not stripped or len(stripped) > _MAX_LOCAL or local.endswith(b".") or b".." in stripped:
            at = start + len(local) + 1  # the rejected domain may be the local part of the next address
            continue
        start += len(local) - len(stripped)
        end = start + len(stripped) + 1 + len(host)
        at = end
        value = text[start:end].decode().lower()
        if not (limits.keep_pseudonyms and _pattern("pseudonym").search(value.encode())):
            yield Span(start, end, "email", value)


@lru_cache(maxsize=65536)
def _mail_domain(domain: bytes) -> bytes | None:
    """Return the longest run of leading labels that is a registrable domain, or None."""
    if len(domain) > _MAX_DOMAIN:
        return None
    labels = domain.split(b".")
    for count in range(len(labels), max(1, len(labels) - _TRIES), -1):
        if _is_registrable(b".".join(labels[:count])):
            return b".".join(labels[:count])
    return None


def _is_registrable(domain: bytes) -> bool:
    if any(label.startswith(b"-") or label.endswith(b"-") for label in domain.split(b".")):
        return False
    try:
        ascii_form = domain.decode().lower().encode("idna").decode()
    except UnicodeError:
        return False
    return _suffixes().privatesuffix(ascii_form) is not None


@lru_cache(maxsize=1)
def _suffixes() -> Any:  # noqa: ANN401 -- the list has no stubs
    from publicsuffixlist import PublicSuffixList

    return PublicSuffixList(accept_unknown=False)


def _ipv4s(text: bytes, limits: Limits) -> Iterator[Span]:
    for start, end in _candidates("ipv4", text):
        if end - start > len("255.255.255.255") or not _stands_alone(text, start, end, b"."):
            continue
        if _is_version(text, start):
            continue
        address = _address(text[start:end])
        if address is not None and _counts(address, limits):
            yield Span(start, end, "ip", address.compressed)


def _is_version(text: bytes, start: int) -> bool:
    far, near = _before(text, start)
    product = near in b"/-" and far in _LETTERS  # `Mozilla/5.0.1.2`, `foo-1.2.3.4`
    return product or bool(_pattern("version_cue").search(_context(text, start)))


def _context(text: bytes, start: int) -> bytes:
    return text[max(0, start - _CONTEXT) : start].decode(errors="ignore").encode()


def _ipv6s(text: bytes, limits: Limits) -> Iterator[Span]:
    for start, end in _candidates("ipv6", text):
        if end - start > 64 or not _stands_alone(text, start, end, b":."):
            continue
        address = _address(text[start:end])
        if address is not None and _counts(address, limits):
            yield Span(start, end, "ip", address.compressed)


def _address(value: bytes) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(value.decode())
    except ValueError:
        return None


def _counts(address: ipaddress.IPv4Address | ipaddress.IPv6Address, limits: Limits) -> bool:
    if limits.keep_pseudonyms and any(address in network for network in _PSEUDONYM_NETWORKS):
        return False
    if isinstance(address, ipaddress.IPv6Address):
        return not limits.public_ips or (address.is_global and address in _GLOBAL_UNICAST)
    return not limits.public_ips or (address.is_global and max(address.packed) >= _VERSIONISH)


def _phones(text: bytes, limits: Limits) -> Iterator[Span]:
    if b"+" in text:
        yield from _international(text)
    if any(_is_nanp(region) for region in limits.regions):
        yield from _nanp(text)
    for region in limits.regions:
        if not _is_nanp(region):
            yield from _national(text, region)


def _international(text: bytes) -> Iterator[Span]:
    for start, end in _candidates("international", text):
        yield from _longest(text, start, end, None)


def _longest(text: bytes, start: int, end: int, region: str | None) -> Iterator[Span]:
    """Yield the longest valid number at `start`, giving up trailing groups that stand apart."""
    for _ in range(_TRIES):
        value = _valid_phone(text[start:end], region) if _stands_alone(text, start, end, b".-/+") else None
        if value is not None:
            yield Span(start, end, "phone", value)
            return
        cut = text.rfind(b" ", start, end)
        if cut <= start:
            return
        end = cut


def _nanp(text: bytes) -> Iterator[Span]:
    for start, end in _candidates("nanp", text):
        plain = not any(mark in text[start:end] for mark in (b"-", b".", b"(", b"+", b"\xe2"))
        if not _stands_alone(text, start, end, b".-/+") or text[max(0, start - 1) : start] in (b"$", b"%"):
            continue
        if plain and not _has_cue(text, start):  # ten bare digits are more often an id than a phone
            continue
        value = _valid_phone(text[start:end], "US")
        if value is not None:
            yield Span(start, end, "phone", value)


def _national(text: bytes, region: str) -> Iterator[Span]:
    for start, end in _candidates("national", text):
        grouped = text[start : start + 1] in (b"0", b"(") and any(
            mark in text[start:end] for mark in (b" ", b"-", b"/", b")")
        )
        if grouped or _has_cue(text, start):
            yield from _longest(text, start, end, region)


def _has_cue(text: bytes, start: int) -> bool:
    return bool(_pattern("phone_cue").search(_context(text, start)))


def _valid_phone(value: bytes, region: str | None) -> str | None:
    """Return the E.164 form of a valid number, or None; 555-01xx is reserved for fiction and nobody's."""
    import phonenumbers

    if sum(byte in _DIGITS for byte in value.lower().split(b"x")[0].split(b"e")[0]) not in _PHONE_DIGITS:
        return None
    try:
        number = phonenumbers.parse(value.decode(), region)
    except phonenumbers.NumberParseException:
        return None
    fiction = number.country_code == 1 and (number.national_number or 0) // 100 % 100_000 == 55_501
    if fiction or not phonenumbers.is_valid_number(number):
        return None
    return str(phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164))


@lru_cache(maxsize=256)
def _is_nanp(region: str) -> bool:
    import phonenumbers

    return bool(phonenumbers.country_code_for_region(region) == 1)


def _is_nanp_only(regions: tuple[str, ...]) -> bool:
    return all(_is_nanp(region) for region in regions)
