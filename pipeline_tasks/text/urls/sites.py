"""Names the site of each URL: its domain as somebody registered it, by the Public Suffix List."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.text.urls.keys import hosts
from pipeline_tasks.text.urls.suffixes import suffixes


def sites(urls: pa.Array) -> pa.Array:
    """Return the registered domain of each URL (the host itself where it has none), null where there is no host."""
    codes: Any = pc.dictionary_encode(hosts(urls))
    names = pa.array([_registered(host) for host in codes.dictionary.to_pylist()], pa.string())
    return names.take(codes.indices)


def _registered(host: str) -> str | None:
    """Return the registered domain of a host; an address or a name without dots is returned whole."""
    number = host.startswith("[") or host.replace(".", "").isdigit()
    return (host if number else suffixes(private=False).privatesuffix(host) or host) or None


def is_public_suffix(host: str) -> bool:
    """Return whether anybody may register names below a host, as below `co.uk`."""
    return "." in host and not host.replace(".", "").isdigit() and suffixes(private=False).privatesuffix(host) is None
