"""Gathers what the page of sources shows: what has landed, what is not published, and the newest run of each DAG."""

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import quote

from fastapi import APIRouter
from fastapi.responses import HTMLResponse
from refinery_sources.recipe import SourceRecipe, chosen_sources
from refinery_sources.standing import LandedSource, Standing, standings

from pipeline_tasks.errors import RefineryError
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.recipe import is_trial
from pipeline_tasks.store import storage
from refinery_airflow.access.looks import LookRoute
from refinery_airflow.pages.overview import airflow, dag_address
from refinery_airflow.pages.rendering import show
from refinery_airflow.runs.newest import NewestRun, newest_run
from refinery_airflow.runs.run import base, landing, root

router = APIRouter(route_class=LookRoute)


log = logging.getLogger("refinery")

LINES = 20
"""Landed snapshots of a source that are listed, the newest."""


@dataclass(frozen=True, slots=True)
class Landing:
    """A landed snapshot: the recipes that have published it, with the addresses of its pages, and its age in seconds.

    A snapshot that was retracted has been published, and has no page.
    """

    landed: LandedSource
    published: Mapping[str, str]
    age: float


@dataclass(frozen=True, slots=True)
class SourceView:
    """A source as the page shows it; `dag` is the address of its DAG, "" for one that has none."""

    standing: Standing
    landings: Sequence[Landing]
    dag: str
    run: NewestRun | None
    run_address: str

    @property
    def backlog(self) -> Sequence[Landing]:
        """What has landed and no recipe has published; a snapshot of deletions alone has nothing to publish."""
        return [landing for landing in self.landings if not landing.published and landing.landed.files]

    @property
    def oldest(self) -> float:
        """Seconds since the first of the backlog has landed."""
        return max((landing.age for landing in self.backlog), default=0.0)

    @property
    def truncated(self) -> int | None:
        """Records that were cut at the source, of the landings that count them; None if none does."""
        counts = [landing.landed.truncated for landing in self.landings if landing.landed.truncated is not None]
        return sum(counts) if counts else None


@dataclass(frozen=True, slots=True)
class SourcesPage:
    """The sources whose snapshots land below `landing`; `messages` say what is not shown, and why."""

    landing: str
    sources: Sequence[SourceView] = ()
    messages: Sequence[str] = field(default_factory=list)


def sources_page(root: str) -> SourcesPage:
    """Return the sources of `REFINERY_SOURCES`, else of the package, and of all that has landed below the landing."""
    place = landing()
    messages: list[str] = []
    recipes: list[SourceRecipe] = []
    try:
        recipes = chosen_sources(os.environ.get("REFINERY_SOURCES", ""))
    except RefineryError as error:
        messages.append(f"Recipes of sources are not known: {error}")
    if not place:
        messages.append("What has landed is not shown: REFINERY_LANDING is not set.")
        return SourcesPage("", (), messages)
    try:
        known = standings(place, recipes)
    except RefineryError as error:
        log.warning("The page does not show what has landed: %s", error)
        return SourcesPage(place, (), [*messages, f"What has landed below {place} is not shown: {error}"])
    published, now = _published(root), datetime.now(UTC)
    return SourcesPage(place, [_view(standing, published, now) for standing in known], messages)


def _published(root: str) -> dict[str, dict[str, str]]:
    """Return the recipes that have published each snapshot, with the address of its page, "" if it is retracted."""
    datasets = version_log.datasets(root)
    found: dict[str, dict[str, str]] = {}
    for recipe in version_log.recipes(root):
        if recipe in datasets or is_trial(recipe):
            continue
        for entry in version_log.log(root, recipe):
            page = f"{base()}/snapshot/{quote(recipe, safe='')}/{quote(entry.snapshot, safe='')}"
            found.setdefault(entry.snapshot, {})[recipe] = page if isinstance(entry, Version) else ""
    return found


def _view(standing: Standing, published: Mapping[str, Mapping[str, str]], now: datetime) -> SourceView:
    dag = f"pull_{standing.name}"
    run = newest_run(dag) if standing.recipe else None
    landings = [
        Landing(landed, published.get(landed.folder, {}), (now - datetime.fromisoformat(landed.at)).total_seconds())
        for landed in standing.landed
    ]
    address = dag_address(dag) if standing.recipe else ""
    return SourceView(standing, landings, address, run, f"{airflow()}{run.path}" if run else "")


@router.get("/sources")
def sources() -> HTMLResponse:
    """Show per source what has landed and when, what is missing or not published, and which hosts refuse."""
    storage.require_folder(root())
    return show("sources.html", shown=sources_page(root()), most=LINES)
