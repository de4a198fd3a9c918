"""Gathers the overview of every root of a deployment, each read by the connections of its own recipes."""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import APIRouter
from fastapi.responses import HTMLResponse, RedirectResponse

from pipeline_tasks.deployment import deployed, deployment, names_of, plain
from pipeline_tasks.errors import RefineryError
from pipeline_tasks.store import storage
from refinery_airflow.access.looks import LookRoute
from refinery_airflow.access.roles import is_reader
from refinery_airflow.pages.landed import Landed, landed_now
from refinery_airflow.pages.overview import RecipePage, recipe_pages
from refinery_airflow.pages.rendering import show
from refinery_airflow.runs.credentials import give_credentials_to_pages, give_ledger_to_pages
from refinery_airflow.runs.newest import recipes_with_runs
from refinery_airflow.runs.run import SHOWN, base, landing, root

router = APIRouter(route_class=LookRoute)


log = logging.getLogger("refinery")


@dataclass(frozen=True, slots=True)
class RootOverview:
    """What a user may see of a root: its recipes, and what has landed for them; `message` says why it is not read."""

    pages: Sequence[RecipePage] = ()
    landed: Landed = field(default_factory=lambda: Landed(""))
    message: str = ""


def root_overviews(may_read: Callable[[str], bool]) -> list[RootOverview]:
    """Return the overview of each root, of recipes that a user may read; errors of an only one are raised.

    A root that cannot be read hides no other one, and is named to those alone who may read a recipe of it.
    """
    entries = list(_entries())
    if len(entries) == 1:
        return [_overview(may_read, is_only=True)]
    shown = []
    for entry in entries:
        token = SHOWN.set(entry)
        try:
            give_credentials_to_pages(root(), landing(), recipe=entry)
            give_ledger_to_pages(root())
            overview = _overview(may_read, is_only=False)
        except RefineryError as error:
            log.warning("The page does not show %s: %s", root(), error)
            is_own = any(map(may_read, [*filter(None, [entry]), *recipes_with_runs(root())]))
            overview = RootOverview(message=f"{root()} is not shown: {error}" if is_own else "")
        finally:
            SHOWN.reset(token)
        if overview.pages or overview.message:
            shown.append(overview)
    return shown


def _entries() -> Iterator[str]:
    """Yield an entry of the deployment for each pair of root and landing, "" for the defaults."""
    yield from (names_of(entry)[0] for entry, _ in deployment().landed())


def _overview(may_read: Callable[[str], bool], *, is_only: bool) -> RootOverview:
    storage.require_folder(root())
    landed = landed_now()
    pages = [page for page in recipe_pages(root(), landed.snapshots) if may_read(page.recipe)]
    return RootOverview([page for page in pages if is_only or _is_here(page.recipe)], landed)


def _is_here(recipe: str) -> bool:
    """Return whether a recipe goes to the root and the landing that are shown."""
    if not deployment().is_at(recipe, root()):
        return False
    return plain(deployed(recipe).its_landing) == plain(deployed(SHOWN.get()).its_landing)


@router.get("/")
def first() -> RedirectResponse:
    """Lead to the page of snapshots who opens the address of the pages alone."""
    return RedirectResponse(f"{base()}/page")


@router.get("/page")
def snapshots(user: GetUserDep) -> HTMLResponse:
    """Show the snapshots of recipes whose DAG a user may read: states, what to do, trends, and what each stage kept."""
    shown = root_overviews(lambda recipe: is_reader(user, recipe))
    pages = sorted((page for one in shown for page in one.pages), key=lambda page: page.is_dataset)
    messages = [one.message for one in shown if one.message]
    return show("snapshots.html", recipes=pages, landed=[one.landed for one in shown], messages=messages)
