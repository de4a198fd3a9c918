"""Gathers what the page that searches a snapshot shows: documents by phrase, URL or columns, and what was searched."""

import shlex
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Annotated
from urllib.parse import quote, urlencode

from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import APIRouter, Depends, Request, Response

from pipeline_tasks.ask.question import Role
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.conditions import split_conditions
from pipeline_tasks.inspect.search import Bounds, TextSearch, part_text, search_texts, search_urls
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from refinery_airflow.access.looks import LookRoute
from refinery_airflow.access.roles import curator, may_see
from refinery_airflow.pages.fields import UNPROCESSABLE, Name, Row, Term, Where
from refinery_airflow.pages.rendering import show
from refinery_airflow.runs.run import base, root

router = APIRouter(route_class=LookRoute)


MOST_BYTES = 256_000_000
"""Bytes of texts that a request searches; the page leads to the next part."""

HITS_SHOWN = 20
"""Documents that a page lists; the page leads to those behind them."""


@dataclass(frozen=True, slots=True)
class SearchPage:
    """The page: the phrase or else the URL, conditions, and what meets them, or the message of what is wrong."""

    version: Version
    phrase: str
    url: str
    where: str = ""
    message: str = ""
    search: TextSearch | None = None

    @property
    def searched(self) -> str:
        """What was searched, by stage and outcome."""
        parts = self.search.parts if self.search else ()
        return ", ".join(part_text(part) for part in parts if part.searched) or "none"

    @property
    def unsearched(self) -> str:
        """What is searched next, and after it: the parts that have rows behind the last that was searched."""
        if self.search is None:
            return ""
        ends = accumulate(part.rows for part in self.search.parts)
        left = [part for part, last in zip(self.search.parts, ends, strict=True) if last > self.search.end]
        return ", ".join(f"{part.outcome} by {part.stage}" if part.outcome != "kept" else "kept" for part in left)

    @property
    def following(self) -> str:
        """The address of the next part; "" behind the last."""
        if self.search is None or self.search.end >= self.search.rows:
            return ""
        wanted = {"phrase": self.phrase} if self.phrase else {"url": self.url} if self.url else {}
        wanted |= {"where": self.where} if self.where else {}
        path = f"{quote(self.version.recipe, safe='')}/{quote(self.version.snapshot, safe='')}"
        return f"{base()}/search/{path}?{urlencode({**wanted, 'start': self.search.end})}"

    def command(self, root: str) -> str:
        """Return the command that searches all texts, or finds a URL in training datasets."""
        if self.url and not self.phrase:
            return shlex.join(["refinery", "look", "find", root, "--url", self.url])
        phrase = self.phrase or ("" if self.where else "PHRASE")
        where = [word for condition in split_conditions(self.where) for word in ("--where", condition)]
        named = ["refinery", "search", phrase, root, "--recipe", self.version.recipe]
        return shlex.join([*named, "--snapshot", self.version.snapshot, *where, "--limit", "0"])

    @property
    def asked(self) -> str:
        """What is looked for, in words."""
        what = "the phrase" if self.phrase else "the URL" if self.url else ""
        return " and ".join(filter(None, (what, "these columns" if self.where else "")))


def search_page(
    root: str, version: Version, phrase: str, url: str, where: str, start: int, *, kept_only: bool = False
) -> SearchPage:
    """Return the page of a phrase or else a URL, and of conditions, from a row on; without any it asks for one.

    With `kept_only` rows that a stage rejected are not searched.
    """
    page = SearchPage(version, phrase, url, where)
    if not (phrase or url or where):
        return page
    bounds, conditions = Bounds(start, HITS_SHOWN, MOST_BYTES), split_conditions(where)
    try:
        if url and not phrase:
            return replace(page, search=search_urls(root, version, url, bounds, conditions, kept_only=kept_only))
        found = search_texts(root, version, phrase, bounds, where=conditions, kept_only=kept_only)
        return replace(page, search=found)
    except RecipeError as error:
        return replace(page, message=str(error))


def search_query(phrase: Name = "", url: Term = "", where: Where = "") -> dict[str, str]:
    """Return what is looked for in a snapshot."""
    return {"phrase": phrase.strip(), "url": url.strip(), "where": where.strip()}


@router.get("/search/{recipe}/{snapshot}", dependencies=[Depends(curator)])
def search_of_snapshot(
    request: Request,
    recipe: str,
    snapshot: str,
    user: GetUserDep,
    query: Annotated[dict[str, str], Depends(search_query)],
    start: Row = 0,
) -> Response:
    """Show a snapshot's documents by phrase, URL or columns, from row `start` on, up to many bytes.

    Curators search those that were kept, stewards rejected ones, too.
    """
    kept_only = not may_see(request, user, Role.STEWARD)
    version = version_log.current(root(), recipe, snapshot)
    page = search_page(root(), version, **query, start=start, kept_only=kept_only)
    limits = {"most_hits": HITS_SHOWN, "most_bytes": MOST_BYTES}
    hits = page.search.hits if page.search else ()
    shown = show("search.html", shown=page, **limits, kept_only=kept_only, command=page.command(root()))
    shown.of(len(hits), [hit.id for hit in hits])
    shown.status_code = UNPROCESSABLE if page.message else shown.status_code
    return shown
