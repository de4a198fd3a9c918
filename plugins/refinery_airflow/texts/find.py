"""Gathers what the page Find shows: uses in training datasets or published documents, and what was read for them."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Annotated
from urllib.parse import urlencode

from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse

from pipeline_tasks.ask.question import Role
from pipeline_tasks.inspect.conditions import split_conditions
from pipeline_tasks.inspect.search.find import Reach, current_versions, reach_of
from pipeline_tasks.inspect.search.phrases import PhraseSearch, looked_for, read_text, search_phrase
from pipeline_tasks.inspect.search.places import Place, placed
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.text.urls.takedown import DOC, SITE, URL
from pipeline_tasks.text.urls.takedown_entries import valid_entries
from refinery_airflow.access.looks import LookRoute
from refinery_airflow.access.roles import require
from refinery_airflow.pages.fields import Name, Row, Term, Where
from refinery_airflow.pages.rendering import show
from refinery_airflow.runs.run import base, root

router = APIRouter(route_class=LookRoute)


TEXT, WHERE = "text", "where"

PLACES_SHOWN = 200
"""Places that are shown of what is found."""

MOST_BYTES = 256_000_000
"""Bytes of lineages, or of texts, that a request reads."""

TEXTS_SHOWN = 50
"""Documents with a phrase that are shown."""


@dataclass(frozen=True, slots=True)
class Found:
    """The page: what is asked for, the places of its uses with the shards that were looked at, or texts with a phrase.

    `places` are None without a question; `more` is whether there are others in the shards that were looked at.
    """

    query: Mapping[str, str]
    places: Sequence[Place] | None = None
    more: bool = False
    reach: Reach | None = None
    texts: PhraseSearch | None = None

    @property
    def documents(self) -> Sequence[str]:
        """The ids of the documents that are shown, one for each place or text."""
        of_texts = [found.hit.id for found in self.texts.found] if self.texts else []
        return [place.use.id for place in self.places or ()] + of_texts

    @property
    def following(self) -> str:
        """The address of what is in the next shards; "" behind the last."""
        if self.reach is None or self.reach.end >= self.reach.total:
            return ""
        fields = {name: value for name, value in self.query.items() if value}
        return f"{base()}/find?{urlencode({**fields, 'start': self.reach.end})}"

    @property
    def read(self) -> str:
        """What was read of texts."""
        return read_text(self.texts) if self.texts else ""

    @property
    def asked(self) -> str:
        """What was looked for in texts and columns."""
        return looked_for(self.texts) if self.texts else ""

    def command(self, root: str) -> str:
        """Return the command that has no bound."""
        options = {"--document": DOC, "--url": URL, "--site": SITE, "--text": TEXT}
        asked = [part for option, name in options.items() if self.query[name] for part in (option, self.query[name])]
        asked += [word for condition in split_conditions(self.query[WHERE]) for word in ("--where", condition)]
        recipe = ["--dataset", self.query["recipe"]] if self.query["recipe"] else []
        return shlex.join(
            ["refinery", "look", "find", root, *asked, *recipe, *(["--most-bytes", "0"] if self.texts else [])]
        )


def find_of(root: str, query: Mapping[str, str], start: int) -> Found:
    """Return the page of a query, from a shard of the datasets on; RecipeError for what cannot be asked for."""
    if query[TEXT] or query[WHERE]:
        recipe = "" if version_log.is_build(root, query["recipe"]) else query["recipe"]
        where = split_conditions(query[WHERE])
        texts = search_phrase(root, recipe, query[TEXT], most_bytes=MOST_BYTES, most_hits=TEXTS_SHOWN, where=where)
        return Found(query, texts=texts)
    versions = current_versions(root, query["recipe"])
    entries = valid_entries((kind, query[kind]) for kind in (DOC, URL, SITE) if query[kind])
    if not entries:
        return Found(query)
    reach = reach_of(root, versions, start, MOST_BYTES)
    places = list(islice(placed(root, versions, entries, reach), PLACES_SHOWN + 1))
    return Found(query, places[:PLACES_SHOWN], len(places) > PLACES_SHOWN, reach)


def find_query(
    doc: Term = "", url: Term = "", site: Term = "", text: Name = "", where: Where = "", recipe: Term = ""
) -> dict[str, str]:
    """Return what is asked for."""
    asked = {"doc": doc, "url": url, "site": site, "text": text, "where": where}
    return {**{name: value.strip() for name, value in asked.items()}, "recipe": recipe}


@router.get("/find")
def find_page(
    request: Request, user: GetUserDep, query: Annotated[dict[str, str], Depends(find_query)], start: Row = 0
) -> HTMLResponse:
    """Show where a document, URL or site is used in training datasets, or which published documents have a phrase.

    What is found is shown to who may read texts; others see the form. Of datasets the lineage of each shard is read,
    from shard `start` on: as many as a request reads, up to the last place that is shown.
    """
    if any(query[asked] for asked in ("doc", "url", "site", "text", "where")):
        require(request, user, Role.CURATOR)
    page = find_of(root(), query, start)
    shown = show("find.html", shown=page, datasets=version_log.datasets(root()), command=page.command(root()))
    return shown.of(len(page.documents), page.documents)
