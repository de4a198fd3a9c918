"""A call of an API for one part: the URLs of its pages, and what its records become."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, parse_qsl, urlencode, urljoin, urlsplit, urlunsplit

from pipeline_tasks.errors import ContractError
from refinery_sources.api.journal import Record
from refinery_sources.api.query import Query, url_with

LONGEST = 16_384
"""Characters of a URL at most."""


@dataclass(frozen=True, slots=True)
class Call:
    """What is asked for one part: its name, its address and params but that of paging, and how its records are read.

    `since` is the place in time before which no record changed, and `until` that of the pull. `known` are the digests
    of the records at the border by their ids, and `schema` is that of the snapshot before. `may_be_empty` is false
    where no record would be strange.
    """

    name: str
    query: Query
    url: str
    params: Mapping[str, Any]
    records: str
    record: Callable[[Any, str], Record]
    is_data: bool = True
    since: float = -math.inf
    until: float | None = None
    known: Mapping[str, str] = field(default_factory=dict)
    schema: Mapping[str, Any] = field(default_factory=dict)
    may_be_empty: bool = True

    @property
    def first(self) -> str:
        """The URL of the first page."""
        return self.page(self.query.pages.start)

    def page(self, value: str | int) -> str:
        """Return the URL of a page by the value of its param, of the first one without it."""
        pages = self.query.pages
        size = {pages.size_param: pages.size} if pages.size_param else {}
        own = {pages.param: value} if pages.param and value != "" else {}
        return url_with(self.url, {**self.params, **size, **own})

    def followed(self, page: str, target: str) -> str:
        """Return the URL that a page names as the next one, without secrets; ContractError for one of another host.

        It is asked for by the scheme and port of the page: behind a proxy many an API knows neither.
        """
        own = urlsplit(page)
        parts = _parts(page, target)
        if parts.scheme not in ("https", "http") or parts.hostname != own.hostname:
            message = (
                f"{page} names a next page at {parts.scheme}://{parts.netloc[:100]}, which is another address; pages "
                "are followed at one address alone, as others may not have what says who asks"
            )
            raise ContractError(message)
        parts = parts._replace(scheme=own.scheme, netloc=own.netloc)
        auth = self.query.auth
        pairs = parse_qsl(parts.query, keep_blank_values=True)
        if auth is not None and auth.by == "query" and any(name == auth.name for name, _ in pairs):
            pairs = [(name, value) for name, value in pairs if name != auth.name]
            parts = parts._replace(query=urlencode(pairs))
        return urlunsplit(parts._replace(fragment=""))


def _parts(page: str, target: str) -> SplitResult:
    """Return the parts of a URL that a page names; ContractError for one that is none."""
    try:
        parts = urlsplit(urljoin(page, target))
        is_url = parts.hostname is not None and target.isprintable() and len(target) <= LONGEST
    except ValueError:
        is_url = False
    if not is_url:
        message = f"{page} names a next page at {target[:100]!a}, which is no URL"
        raise ContractError(message)
    return parts
