"""Recognizes the addresses of licenses, and names these by their identifiers of the SPDX License List."""

import re
from collections.abc import Iterable

_CC = re.compile(
    r"(?i)(?:https?:)?//(?:www\.)?creativecommons\.org/(licenses|publicdomain)/([a-z+-]+)/(\d\.\d)(?:[/?#]|\Z)"
)
_TERMS = frozenset({"by", "by-sa", "by-nc", "by-nd", "by-nc-sa", "by-nc-nd"})
_WIKIPEDIA = r"[a-z-]+\.wikipedia\.org/wiki/Wikipedia:Text_of_(?:the_)?Creative_Commons_Attribution-ShareAlike_(\d\.\d)"
_OTHERS = (
    (_WIKIPEDIA, "CC-BY-SA-{}"),
    (r"apache\.org/licenses/LICENSE-2\.0", "Apache-2.0"),
    (r"opensource\.org/(?:licenses?)/mit(?:-license)?\b", "MIT"),
)
_OTHER = tuple((re.compile(rf"(?i)(?:https?:)?//(?:www\.)?{form}"), name) for form, name in _OTHERS)


def license_id(url: str) -> str | None:
    """Return the SPDX identifier of the license at an address, None for one that is not known.

    Creative Commons deeds are known in all versions and languages, without the suffix of a jurisdiction, which is no
    license of its own in 4.0.
    """
    url = url.strip()
    creative = _CC.match(url)
    if creative:
        return _creative(creative[1].lower(), creative[2].lower(), creative[3])
    for form, name in _OTHER:
        match = form.match(url)
        if match:
            return name.format(*match.groups())
    return None


def _creative(kind: str, terms: str, version: str) -> str | None:
    if kind == "licenses":
        terms = {"by-nd-nc": "by-nc-nd"}.get(terms, terms)  # the order of version 1.0
        return f"CC-{terms.upper()}-{version}" if terms in _TERMS else None
    return {"zero": f"CC0-{version}", "mark": f"CC-PDM-{version}"}.get(terms)


def agreed(urls: Iterable[str]) -> str | None:
    """Return the one license that addresses name, None if they name none, or several."""
    named = {identifier for identifier in map(license_id, urls) if identifier}
    return named.pop() if len(named) == 1 else None
