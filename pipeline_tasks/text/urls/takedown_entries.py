"""Checks what people ask to take down: ids of documents, URLs and sites, as they are written."""

import re
from collections.abc import Iterable

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.text.urls.addresses import canonical_url
from pipeline_tasks.text.urls.sites import is_public_suffix
from pipeline_tasks.text.urls.takedown import DOC, SITE, URL, Entry, keys_of

_ID = re.compile(r"[0-9a-f]{32}")
_NO = r"\s/?#@:*,;|<>()\[\]{}\"'`\\%"
"""Characters that no host has: `*.example.com` and `a.example,b.example` name no site."""

_SITE = re.compile(rf"(?!.*\.\.)([^{_NO}]+\.[^{_NO}]*[^{_NO}.\d][^{_NO}]*|\d+(\.\d+){{3}}|localhost)")
_ADDRESS = re.compile(r"file:///\S|[a-z][a-z0-9+.-]*://(?:[^\s/?#@]*@)?[^\s/?#@:]", re.IGNORECASE)
_BARE = re.compile(r"(\[[0-9a-f:.]+\]|[^\s/?#:]+\.[^\s/?#:.]+\.?|localhost)(:\d+)?([/?#]\S*)?", re.IGNORECASE)
_FORMS = {
    DOC: "the id of a document, 32 hex digits",
    URL: "an address with its host, as `https://example.com/page`, or `file:///NAME` of a file",
    SITE: "a host, as `example.com`",
}
_NAMED = 100


def valid_entries(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Return entries without repetition, sorted; RecipeError for one that names no document, URL or site."""
    pairs = [(kind, with_scheme(value.strip()) if kind == URL else value.strip()) for kind, value in entries]
    for (kind, value), key in zip(pairs, keys_of(pairs), strict=True):
        if not _is_named(kind, value, key):
            message = f"{kind} {value[:_NAMED]!r} has to be {_FORMS[kind]}"
            raise RecipeError(message)
        if kind == SITE and is_public_suffix(key):
            message = f"site {value[:_NAMED]!r} is a public suffix, below which anybody has a site; name the site"
            raise RecipeError(message)
    return tuple(sorted(set(pairs)))


def with_scheme(written: str) -> str:
    """Return an address without a scheme with one, which is as good as any other; what is no address as it is."""
    bare = written.removeprefix("//")
    return f"http://{bare}" if _BARE.fullmatch(bare) else written


def _is_named(kind: str, value: str, key: str) -> bool:
    if kind == DOC:
        return bool(_ID.fullmatch(value.lower()))
    if kind == URL:
        return bool(_ADDRESS.match(canonical_url(value))) and bool(key)
    return bool(_SITE.fullmatch(value.strip(".")))


def parse_lines(lines: Iterable[str], where: str) -> list[Entry]:
    """Return the entries of a file: a document's id, a URL or a site in each line; `#` begins a comment.

    RecipeError names a line that is none of these.
    """
    entries: list[Entry] = []
    values = [re.sub(r"(^|\s)#.*", "", line).strip() for line in lines]
    keys = keys_of((URL, value) for value in values)
    for number, (value, key) in enumerate(zip(values, keys, strict=True), 1):
        if not value:
            continue
        kinds = [kind for kind in (DOC, URL, SITE) if _is_named(kind, value, key)]
        if not kinds:
            message = (
                f"{where}: line {number}: {value[:_NAMED]!r} is no id of a document (32 hex digits), URL (with its "
                "scheme and host) or site (a host)"
            )
            raise RecipeError(message)
        entries.append((kinds[0], value))
    return entries
