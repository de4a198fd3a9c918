"""Normalizes URLs to keys, so that the many ways to write a page's address are equal; names the host of each."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.text.urls.addresses import canonical, escaped
from pipeline_tasks.text.words.language_codes import SHORT

PARTS = r"(?s)^(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<host>[^/?]*?)(?P<port>:[0-9]+)?(?P<path>(?:/[^?]*)?)(?:\?(?P<query>.*))?$"
"""The parts of canonical addresses (`addresses`)."""

_BARE = r"^https?://[^/?:]+(?:/[^?;]*)?$"
"""Canonical addresses that are keys as they are but for scheme and slashes at the end: half the time of the others."""

_END = "\x01"
"""Marks where a part of a path ends: no canonical address has it."""


def keys(urls: pa.Array, tracking: tuple[str, ...] = ()) -> pa.Array:
    """Return the key of each URL; null where there is none. Text that is no URL is its own key, trimmed.

    All forms that browsers take for one address are equal (`addresses`). `http` and `https` are equal, too, and left
    out, as are slashes at the end of a path and parameters that `tracking` names, of the query and of the path behind
    `;` (in any case; `utm_*` matches all that begin with `utm_`). Everything else counts: other schemes and ports,
    `www.`, the case and the order of paths and parameters.
    """
    written: Any = pc.utf8_trim_whitespace(canonical(urls))
    is_odd = pc.fill_null(pc.invert(pc.match_substring_regex(written, _BARE)), fill_value=True)
    bare = pc.utf8_rtrim(pc.replace_substring_regex(written, "^https?://", ""), "/")
    if not pc.any(is_odd, min_count=0).as_py():
        return bare
    return pc.replace_with_mask(bare, is_odd, _odd_keys(written.filter(is_odd), tracking))


def _odd_keys(written: pa.Array, tracking: tuple[str, ...]) -> pa.Array:
    """Return the keys of canonical addresses with a port, a query or parameters, or of another scheme; and of none."""
    parts: Any = pc.extract_regex(written, PARTS)
    scheme, host, port, path, query = (pc.struct_field(parts, [name]) for name in parts.type.names)
    web = pc.is_in(scheme, value_set=pa.array(["http", "https"]))
    prefix = pc.if_else(web, "", pc.binary_join_element_wise(scheme, "://", ""))
    path = pc.utf8_rtrim(_paths(path, tracking), "/")
    rest = pc.binary_join_element_wise(prefix, host, port, path, _queries(query, tracking), "")
    whole = pc.coalesce(rest, written)
    return pc.if_else(pc.equal(whole, ""), pa.scalar(None, pa.string()), whole)


def _paths(paths: pa.Array, tracking: tuple[str, ...]) -> pa.Array:
    """Return paths without the parameters of their segments (RFC 3986, 3.3) that `tracking` names."""
    if not tracking or not pc.any(pc.match_substring(paths, ";"), min_count=0).as_py():
        return paths
    ended = pc.replace_substring_regex(paths, "([;/]|$)", rf"{_END}\1")
    left = pc.replace_substring_regex(ended, f";(?i:{_names(tracking, ';/')})(?:=[^{_END}]*)?{_END}", _END)
    return pc.replace_substring(left, _END, "")


def _queries(queries: pa.Array, tracking: tuple[str, ...]) -> pa.Array:
    """Return `?` and the parameters that stay, in order; empty where none does."""
    fenced = pc.binary_join_element_wise("&", pc.replace_substring(queries, "&", "&&"), "&", "")
    if tracking:
        fenced = pc.replace_substring_regex(fenced, f"&(?i:{_names(tracking, '&')})(?:=[^&]*)?&", "")
    left = pc.utf8_trim(pc.replace_substring_regex(fenced, "&+", "&"), "&")
    return pc.if_else(pc.equal(left, ""), "", pc.binary_join_element_wise("?", left, ""))


def _names(tracking: tuple[str, ...], ends: str) -> str:
    """Return parameters' names as a regular expression; a star at the end of one matches up to a letter of `ends`."""
    return "|".join(_pattern(name, ends) for name in tracking)


def _pattern(name: str, ends: str) -> str:
    stem = escaped(name.removesuffix("*"))
    literal = "".join(letter if letter.isalnum() or letter == "_" else f"\\x{{{ord(letter):x}}}" for letter in stem)
    return f"{literal}[^={ends}]*" if name.endswith("*") else literal


def hosts(urls: pa.Array) -> pa.Array:
    """Return the host of each URL as the domain name system has it, null where there is none."""
    parts: Any = pc.extract_regex(canonical(urls), PARTS)
    return pc.struct_field(parts, ["host"])


def origins(urls: pa.Array) -> pa.Array:
    """Return scheme, host and port of each URL of the web, without a default port; null where there is none."""
    parts: Any = pc.extract_regex(canonical(urls), r"^(?P<origin>https?://[^/?]+)")
    return pc.struct_field(parts, ["origin"])


_LANGUAGE = rf"(?:{'|'.join(sorted(SHORT.values()))})(?:[-_](?:[a-z]{{2}}|[a-z]{{4}}|[0-9]{{3}}))?"
"""A tag of BCP 47 as addresses have it: language, and region or script."""

_VERSION = r"v?[0-9]+(?:\.[0-9]+)+"
_OF_HOST = rf"^(?:www\.|(?:{_LANGUAGE}|v?[0-9]+(?:\.[0-9]+)*)\.((?:[^./]+\.)+))"
_OF_PATH = rf"(?i)[/.](?:{_LANGUAGE}|{_VERSION}|html?)([/.?]|$)"
_OF_QUERY = r"(?i)([?&](?:lang|language|hl|locale)=)[^&]*"


def edition_hosts(urls: pa.Array) -> pa.Array:
    """Return the host of each URL without `www.`, a language or a version in front; null where there is none."""
    return pc.replace_substring_regex(hosts(urls), _OF_HOST, r"\1")


def edition_pages(urls: pa.Array) -> pa.Array:
    """Return the key of each URL without languages and versions: editions of one page have one; null where is none."""
    folded = pc.replace_substring_regex(keys(urls), _OF_HOST, r"\1")
    folded = pc.replace_substring_regex(folded, _OF_QUERY, r"\1")
    for _ in range(2):  # two in a row share what parts them
        folded = pc.replace_substring_regex(folded, _OF_PATH, r"\1")
    return folded
