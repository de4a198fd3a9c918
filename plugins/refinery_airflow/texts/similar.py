"""Gathers what the page Similar shows: the published documents most like one of them, and what was compared."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from fastapi import APIRouter, Depends, Response
from refinery_vectors.similar import Found, Query, compared_text, left_out, similar
from refinery_vectors.stores import default_store

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.conditions import split_conditions
from pipeline_tasks.publish.datasets.vectors import FACTS
from pipeline_tasks.publish.logs import version_log
from refinery_airflow.access.looks import LookRoute
from refinery_airflow.access.roles import curator
from refinery_airflow.pages.fields import UNPROCESSABLE, Term, Where
from refinery_airflow.pages.rendering import show
from refinery_airflow.runs.run import root

router = APIRouter(route_class=LookRoute)


MOST_BYTES = 256_000_000
"""Bytes of shards of snapshots without a store that a request reads."""

SHOWN = 25
"""Documents that are shown."""


@dataclass(frozen=True, slots=True)
class SimilarPage:
    """The page: what is asked for, and the documents like it, or the message of what is wrong."""

    recipe: str
    query: Mapping[str, str]
    found: Found | None = None
    message: str = ""

    @property
    def compared(self) -> str:
        """What was compared."""
        return compared_text(self.found) if self.found else ""

    @property
    def left_out(self) -> Sequence[str]:
        """What was not compared."""
        return list(left_out(self.found)) if self.found else []

    @property
    def columns(self) -> str:
        """The columns that conditions may name."""
        return ", ".join(FACTS.names)

    def command(self, root: str) -> str:
        """Return the command that prints the same, and has no bound."""
        asked = ["--document", self.query["doc"]] if self.query["doc"] else ["--url", self.query["url"] or "URL"]
        where = [word for condition in split_conditions(self.query["where"]) for word in ("--where", condition)]
        return shlex.join(["refinery", "look", "similar", root, "--recipe", self.recipe, *asked, *where])


def similar_page(root: str, recipe: str, query: Mapping[str, str]) -> SimilarPage:
    """Return the page of a query; without a document or URL it asks for one."""
    page = SimilarPage(recipe, query)
    if not (query["doc"] or query["url"]):
        return page
    url = "" if query["doc"] else query["url"]
    asked = Query(query["doc"], url, where=split_conditions(query["where"]), limit=SHOWN, most_bytes=MOST_BYTES)
    try:
        return replace(page, found=similar(root, recipe, asked, default_store()))
    except RecipeError as error:
        return replace(page, message=str(error))


def similar_query(doc: Term = "", url: Term = "", where: Where = "") -> dict[str, str]:
    """Return what documents are to be like, and conditions on them."""
    return {"doc": doc.strip(), "url": url.strip(), "where": where.strip()}


@router.get("/similar/{recipe}", dependencies=[Depends(curator)])
def similar_documents(recipe: str, query: Annotated[dict[str, str], Depends(similar_query)]) -> Response:
    """Show the published documents of a recipe that are most like one of them; a snapshot's shards up to many bytes."""
    version_log.current(root(), recipe)
    page = similar_page(root(), recipe, query)
    documents = page.found.documents if page.found else ()
    shown = show("similar.html", shown=page, command=page.command(root()))
    shown.of(len(documents), [each.id for each in documents])
    shown.status_code = UNPROCESSABLE if page.message else shown.status_code
    return shown
