"""Finds IP addresses: compiled loops propose them, `ipaddress` accepts them, and version numbers are left alone."""

import ipaddress
from collections.abc import Iterator

from pipeline_tasks.text.pii.address_runs import ipv4_ranges, ipv6_ranges
from pipeline_tasks.text.pii.candidates import CONTEXT, LETTERS, Limits, Span, before, context, pattern

VERSION_CUE = (
    r"(?i)(?:"
    r"(?:versions?|releases?|revisions?|builds?|updates?|patch(?:es)?|firmware|kernel|drivers?"
    r"|(?:up|down)grade[sd]?)(?:[ _-](?:numbers?|no\.?|ids?|strings?|codes?|is|was|to|from|of|than|between))*"
    r"|(?:added|available|deprecated|fixed|introduced|removed|resolved) in|\bsince"
    r"|(?:sections?|chapters?|clauses?|paragraphs?|articles?|appendix|annex|tables?|figures?|\bfigs?|\bsecs?|\bpara)"
    r"|\b(?:ec|oid|ver|rev|v)(?:[ _-](?:numbers?|no\.?))?"
    r"|\x{a7}|[<>~]=|[^\s\"']==|~>"
    r")[\s.:=#\"'()<>\[\]^~v]{0,4}$"
    r"|[\"'][\^~]$"  # of a package's manifest
    r"|\.so\.$"
)
"""What announces a version, a section, an enzyme (EC) or an object identifier (OID)."""

COMPARED = r"(?i)(?:\bip|addr|host)[a-z0-9_]{0,20}\s?[<>~=]=\s?[\"']?$"
"""An address that is compared, as programs do."""

VERSION_END = (
    r"(?i)^(?:[-+~_][a-z]|\.(?:tar|t?gz|zip|7z|exe|msi|deb|rpm|jar|war|dll|so|whl|gem|dmg|pkg|apk|x86|amd64|el[0-9]))"
)
"""What a version goes on with: a label of its stage, or the ending of a file."""

_LINK = r"(?i)^[\s\"')]*(?:,|;|/|&|-|\x{2013}|and|or|to|through|,\s*(?:and|or))[\s\"'(]*$"
"""What is between two versions of a list."""

ADDRESS_CUE = (
    r"(?i)(?:\bip(?:v4)?|\bip[ -]?addr(?:ess(?:es)?)?|\binet|\baddr(?:ess(?:es)?)?|\bhosts?|\bpeers?"
    r"|\bping|\bdns|\bnameservers?|\bgateway|\bproxy|\bssh|\btraceroute|\bsubnet"
    r"|<IP>|\x{02})"
    r"(?: (?:is|was|at|to|of))?[\s:=,;/('\"\[]{1,3}(?:(?:and|or) )?$"
)
"""What announces an address whose numbers are all small, as `1.2.3.4` is; another address before it does, too."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_PSEUDONYM_NETWORKS = (ipaddress.ip_network("198.18.0.0/15"), ipaddress.ip_network("2001:db8::/32"))
_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")  # RFC 4291 2.4: the only IPv6 space that is assigned
_LOW_PART = 20  # four numbers below are a version or a section (`1.2.3.4`), unless the context says otherwise


def find_ipv4s(text: bytes, limits: Limits) -> Iterator[Span]:
    """Yield the IPv4 addresses of `text`, left to right."""
    last = version = -1  # where the last address and the last version ended
    for start, end in ipv4_ranges(text):
        if is_version(text, start, end, version):
            version = end
            continue
        address = _parse(text[start:end])
        if address is None or not _counts(address, limits):
            continue
        if limits.public_ips and max(address.packed) < _LOW_PART and not _is_announced(text, start, last):
            continue
        last = end
        yield Span(start, end, "ip", address.compressed)


def find_ipv6s(text: bytes, limits: Limits) -> Iterator[Span]:
    """Yield the IPv6 addresses of `text`, left to right."""
    for start, end in ipv6_ranges(text):
        address = _parse(text[start:end])
        if address is not None and _counts(address, limits):
            yield Span(start, end, "ip", address.compressed)


def is_version(text: bytes, start: int, end: int, last: int) -> bool:
    """Return whether four numbers are a version, a section or the like: by what is beside them, or by the one before.

    `last` is where the version before them ended, -1 if there was none.
    """
    far, near = before(text, start)
    product = near in b"/-" and far in LETTERS  # `Mozilla/5.0.1.2`, `foo-1.2.3.4`
    is_linked = last >= 0 and start - last <= LONGEST_LINK and bool(pattern(_LINK).search(text[last:start]))
    ahead = context(text, start)
    is_announced = pattern(VERSION_CUE).search(ahead) and not pattern(COMPARED).search(ahead)
    if _is_heading(text, start, end):
        return True
    return product or is_linked or bool(is_announced or pattern(VERSION_END).search(text[end : end + len(".amd64")]))


def _is_heading(text: bytes, start: int, end: int) -> bool:
    """Return whether four small numbers begin a line, and a title follows."""
    begins = start == 0 or text[start - 1 : start] == b"\n"
    numbered = begins and bool(pattern(HEADING_BEHIND).search(text[end : end + CONTEXT]))
    return numbered and max(map(int, text[start:end].split(b"."))) <= _MOST_OF_HEADING


def _is_announced(text: bytes, start: int, last: int) -> bool:
    """Return whether an address cue, or the address that ended at `last`, is right before `start`."""
    ahead = b"<IP>" + text[last:start] if last >= 0 and start - last < LONGEST_LINK else context(text, start)
    return bool(pattern(ADDRESS_CUE).search(ahead))


HEADING_BEHIND = r"^\.?[ \t]+\p{Lu}"
_MOST_OF_HEADING = 99
"""The number of a section begins a line, and its title follows: `5.6.31.1. Remarks`."""

LONGEST_LINK = len(" , and ")
"""Bytes between two addresses of a list, at most."""


def _parse(value: bytes) -> Address | None:
    try:
        return ipaddress.ip_address(value.decode())
    except ValueError:
        return None


def _counts(address: Address, limits: Limits) -> bool:
    if limits.keep_pseudonyms and any(address in network for network in _PSEUDONYM_NETWORKS):
        return False
    if not limits.public_ips:
        return True
    return address.is_global and not address.is_multicast and (address.version == 4 or address in _GLOBAL_UNICAST)
