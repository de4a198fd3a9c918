"""Normalizes URLs to keys, so that the many ways to write a page's address are equal; names the host of each."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.text.urls.addresses import canonical, escaped

PARTS = r"(?s)^(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<host>[^/?]*?)(?P<port>:[0-9]+)?(?P<path>(?:/[^?]*)?)(?:\?(?P<query>.*))?$"
"""The parts of canonical addresses (`addresses`)."""


def keys(urls: pa.Array, tracking: tuple[str, ...] = ()) -> pa.Array:
    """Return the key of each URL; null where there is none. Text that is no URL is its own key, trimmed.

    All forms that browsers take for one address are equal (`addresses`). `http` and `https` are equal, too, and left
    out, as are slashes at the end of a path and parameters that `tracking` names (in any case; `utm_*` matches all that
    begin with `utm_`). Everything else counts: other schemes and ports, `www.`, the case and the order of paths and
    parameters.
    """
    written: Any = pc.utf8_trim_whitespace(canonical(urls))
    parts: Any = pc.extract_regex(written, PARTS)
    scheme, host, port, path, query = (pc.struct_field(parts, [name]) for name in parts.type.names)
    web = pc.is_in(scheme, value_set=pa.array(["http", "https"]))
    prefix = pc.if_else(web, "", pc.binary_join_element_wise(scheme, "://", ""))
    rest = pc.binary_join_element_wise(prefix, host, port, pc.utf8_rtrim(path, "/"), _queries(query, tracking), "")
    whole = pc.coalesce(rest, written)
    return pc.if_else(pc.equal(whole, ""), pa.scalar(None, pa.string()), whole)


def _queries(queries: pa.Array, tracking: tuple[str, ...]) -> pa.Array:
    """Return `?` and the parameters that stay, in order; empty where none does."""
    fenced = pc.binary_join_element_wise("&", pc.replace_substring(queries, "&", "&&"), "&", "")
    if tracking:
        fenced = pc.replace_substring_regex(fenced, f"&(?i:{'|'.join(map(_pattern, tracking))})(?:=[^&]*)?&", "")
    left = pc.utf8_trim(pc.replace_substring_regex(fenced, "&+", "&"), "&")
    return pc.if_else(pc.equal(left, ""), "", pc.binary_join_element_wise("?", left, ""))


def _pattern(name: str) -> str:
    """Return a parameter's name as a regular expression; a star at its end matches any suffix."""
    stem = escaped(name.removesuffix("*"))
    literal = "".join(letter if letter.isalnum() or letter == "_" else f"\\x{{{ord(letter):x}}}" for letter in stem)
    return f"{literal}[^=&]*" if name.endswith("*") else literal


def hosts(urls: pa.Array) -> pa.Array:
    """Return the host of each URL as the domain name system has it, null where there is none."""
    parts: Any = pc.extract_regex(canonical(urls), PARTS)
    return pc.struct_field(parts, ["host"])


def origins(urls: pa.Array) -> pa.Array:
    """Return scheme, host and port of each URL of the web, without a default port; null where there is none."""
    parts: Any = pc.extract_regex(canonical(urls), r"^(?P<origin>https?://[^/?]+)")
    return pc.struct_field(parts, ["origin"])
