"""Normalizes URLs to keys, so that the many ways to write a page's address are equal; names the site of each."""

from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList

PARTS = (
    r"(?s)^(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<host>[^/?#]*)(?P<path>[^?#]*)"
    r"(?:\?(?P<query>[^#]*))?(?:#.*)?$"
)
"""RFC 3986, appendix B, for URLs that have an authority."""


def keys(urls: pa.Array, tracking: tuple[str, ...] = ()) -> pa.Array:
    """Return the key of each URL; null where there is none. Text that is no URL is its own key, trimmed.

    `http` and `https` are equal and left out, as are fragments, default ports, the dot after a host, slashes at the
    end of a path and parameters that `tracking` names (in any case; `utm_*` matches all that begin with `utm_`).
    The host is in lower case. Everything else counts: other schemes and ports, `www.`, the case and the order of
    paths and parameters.
    """
    trimmed: Any = pc.utf8_trim_whitespace(urls.cast(pa.string()))
    parts: Any = pc.extract_regex(trimmed, PARTS)
    scheme, host, path, query = (pc.struct_field(parts, [name]) for name in ("scheme", "host", "path", "query"))
    scheme = pc.ascii_lower(scheme)
    web = pc.is_in(scheme, value_set=pa.array(["http", "https"]))
    prefix = pc.if_else(web, "", pc.binary_join_element_wise(scheme, "://", ""))
    rest = pc.binary_join_element_wise(
        prefix, _hosts(host, scheme), pc.utf8_rtrim(path, "/"), _queries(query, tracking), ""
    )
    whole = pc.coalesce(rest, trimmed)
    return pc.if_else(pc.equal(whole, ""), pa.scalar(None, pa.string()), whole)


def _hosts(hosts: pa.Array, schemes: pa.Array) -> pa.Array:
    """Return authorities in lower case, without a port that the scheme implies."""
    lower = pc.utf8_lower(hosts)
    for scheme, port in (("http", "80"), ("https", "443")):
        bare = pc.replace_substring_regex(lower, f":{port}$", "")
        lower = pc.if_else(pc.equal(schemes, scheme), bare, lower)
    return pc.replace_substring_regex(lower, r"\.?:?$", "")


def _queries(queries: pa.Array, tracking: tuple[str, ...]) -> pa.Array:
    """Return `?` and the parameters that stay, in order; empty where none does."""
    fenced = pc.binary_join_element_wise("&", pc.replace_substring(queries, "&", "&&"), "&", "")
    if tracking:
        fenced = pc.replace_substring_regex(fenced, f"&(?i:{'|'.join(map(_pattern, tracking))})(?:=[^&]*)?&", "")
    left = pc.utf8_trim(pc.replace_substring_regex(fenced, "&+", "&"), "&")
    return pc.if_else(pc.equal(left, ""), "", pc.binary_join_element_wise("?", left, ""))


def _pattern(name: str) -> str:
    """Return a parameter's name as a regular expression; a star at its end matches any suffix."""
    escaped = "".join(letter if letter.isalnum() or letter == "_" else f"\\x{{{ord(letter):x}}}" for letter in name)
    return escaped.removesuffix("\\x{2a}") + "[^=&]*" if name.endswith("*") else escaped


def hosts(urls: pa.Array) -> pa.Array:
    """Return the host of each URL in lower case, null where there is none."""
    trimmed: Any = pc.utf8_trim_whitespace(urls.cast(pa.string()))
    authorities: Any = pc.struct_field(pc.extract_regex(trimmed, PARTS), ["host"])
    return pc.utf8_rtrim(pc.replace_substring_regex(pc.utf8_lower(authorities), r"^.*@|:[0-9]*$", ""), ".")


def sites(urls: pa.Array) -> pa.Array:
    """Return the registered domain of each URL (the host itself where it has none), null where there is no host."""
    codes: Any = pc.dictionary_encode(hosts(urls))
    names = pa.array([_registered(host) for host in codes.dictionary.to_pylist()], pa.string())
    return names.take(codes.indices)


@cache
def _suffixes() -> "PublicSuffixList":
    from publicsuffixlist import PublicSuffixList

    return PublicSuffixList(only_icann=True)


def _registered(host: str) -> str | None:
    """Return the registered domain of a host; an address or a name without dots is returned whole."""
    number = host.startswith("[") or host.replace(".", "").isdigit()
    return (host if number else _suffixes().privatesuffix(host) or host) or None


def is_public_suffix(host: str) -> bool:
    """Return whether anybody may register names below a host, as below `co.uk`."""
    return "." in host and not host.replace(".", "").isdigit() and _suffixes().privatesuffix(host) is None
