"""Finds IP addresses: patterns propose them, `ipaddress` accepts them, and version numbers are left alone."""

import ipaddress
from collections.abc import Iterator

from pipeline_tasks.text.pii.candidates import LETTERS, Limits, Span, before, candidates, context, is_separate, pattern

IPV4 = r"\d+(?:\.\d+){3,}"
IPV6 = r"[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,}(?:\.\d{1,3}){0,3}(?:%[0-9A-Za-z]+)?"
VERSION_CUE = r"(?i)(?:version|release|revision|build|update|section|chapter|\bver|\brev|\bv)[\s.:=#]*$"

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_LONGEST_IPV4, _LONGEST_IPV6 = len("255.255.255.255"), 64
_PSEUDONYM_NETWORKS = (ipaddress.ip_network("198.18.0.0/15"), ipaddress.ip_network("2001:db8::/32"))
_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")  # RFC 4291 2.4: the only IPv6 space that is assigned
_LOW_PART = 20  # 1.2.3.4 and 2.0.0.10 are versions or public resolvers, not people


def find_ipv4s(text: bytes, limits: Limits) -> Iterator[Span]:
    """Yield the IPv4 addresses of `text`, left to right."""
    for start, end in candidates(IPV4, text):
        if end - start > _LONGEST_IPV4 or not is_separate(text, start, end, b".") or _is_version(text, start):
            continue
        address = _parse(text[start:end])
        if address is not None and _counts(address, limits):
            yield Span(start, end, "ip", address.compressed)


def find_ipv6s(text: bytes, limits: Limits) -> Iterator[Span]:
    """Yield the IPv6 addresses of `text`, left to right."""
    for start, end in candidates(IPV6, text):
        if end - start > _LONGEST_IPV6 or not is_separate(text, start, end, b":."):
            continue
        address = _parse(text[start:end])
        if address is not None and _counts(address, limits):
            yield Span(start, end, "ip", address.compressed)


def _is_version(text: bytes, start: int) -> bool:
    far, near = before(text, start)
    product = near in b"/-" and far in LETTERS  # `Mozilla/5.0.1.2`, `foo-1.2.3.4`
    return product or bool(pattern(VERSION_CUE).search(context(text, start)))


def _parse(value: bytes) -> Address | None:
    try:
        return ipaddress.ip_address(value.decode())
    except ValueError:
        return None


def _counts(address: Address, limits: Limits) -> bool:
    if limits.keep_pseudonyms and any(address in network for network in _PSEUDONYM_NETWORKS):
        return False
    if isinstance(address, ipaddress.IPv6Address):
        return not limits.public_ips or (address.is_global and address in _GLOBAL_UNICAST)
    return not limits.public_ips or (address.is_global and max(address.packed) >= _LOW_PART)
