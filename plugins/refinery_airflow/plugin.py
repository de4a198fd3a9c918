"""Refinery's pages in Airflow's web UI, for logged-in users: snapshots, funnels, gates and evidence.

They only read, but for two pages: they store what a reader says of a document, and which one a reader finds foreign.
"""

from collections.abc import Awaitable, Callable, Iterator
from importlib import import_module
from pkgutil import iter_modules

from airflow.api_fastapi.auth.managers.models.resource_details import AccessView
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_view
from airflow.plugins_manager import AirflowPlugin
from fastapi import APIRouter, Depends, FastAPI, Request, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from pipeline_tasks.ask.question import Role
from refinery_airflow import pages, texts
from refinery_airflow.access.roles import OPEN, is_reader, reader, refuse
from refinery_airflow.pages import rendering
from refinery_airflow.pages.errors import show_errors
from refinery_airflow.runs.credentials import give_credentials_to_pages, give_ledger_to_pages
from refinery_airflow.runs.run import OF, SHOWN, landing, root
from refinery_airflow.tasks.operators import DocsLink, ManifestLink


async def of_recipe(request: Request) -> None:
    """Let a page of a recipe show the root of that recipe, by whichever path it is opened."""
    if named := request.path_params.get("recipe"):
        SHOWN.set(str(named))
    elif request.scope["route"].path in OPEN:  # who may not read a recipe is not told its root
        SHOWN.set("")


def reader_of_named(user: GetUserDep) -> None:
    """Let nobody else than who may read a recipe see a page that names it, and not even why its root is not read."""
    named = SHOWN.get()
    if named and not is_reader(user, named):
        refuse(Role.VIEWER)


def with_credentials() -> None:
    """Let a page read its root and landing, and open its ledger, as the tasks of its recipe do."""
    give_credentials_to_pages(root(), landing(), recipe=SHOWN.get())
    give_ledger_to_pages(root())


class RootOfPath:
    """Lets a page whose path begins with `/of/<recipe>` show the root of that recipe."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Note the recipe, and go on with the rest of the path."""
        above = str(scope.get("root_path", ""))
        recipe, _, rest = str(scope.get("path", "")).removeprefix(above + OF).partition("/")
        is_named = str(scope.get("path", "")).startswith(above + OF) and bool(recipe)
        SHOWN.set(recipe if is_named else "")
        await self.app({**scope, "path": f"{above}/{rest}"} if is_named else scope, receive, send)


def routers() -> Iterator[APIRouter]:
    """Yield the routes of each module of `pages` and `texts` that has any: a new page is a new module."""
    for room in (pages, texts):
        for each in iter_modules(room.__path__, f"{room.__name__}."):
            module = import_module(each.name)
            if hasattr(module, "router"):
                yield module.router


app = FastAPI(
    title="Refinery",
    docs_url=None,
    redoc_url=None,
    openapi_url=None,
    dependencies=[
        Depends(requires_access_view(AccessView.WEBSITE)),
        Depends(of_recipe),
        Depends(reader_of_named),
        Depends(with_credentials),
        Depends(reader),
    ],
)


show_errors(app)
for _router in routers():
    app.include_router(_router)


@app.middleware("http")
async def harden(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
    """Add the headers that keep a page from running or fetching anything that is not of this plugin."""
    response = await call_next(request)
    response.headers.setdefault("Content-Security-Policy", rendering.PAGE_POLICY)
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = "same-origin"
    response.headers.setdefault("Cache-Control", "no-store")
    return response


app.add_middleware(RootOfPath)


class RefineryPlugin(AirflowPlugin):  # type: ignore[misc]  # loaded lazily: Any
    """Registers the pages, their entry in the navigation, and the links from tasks."""

    name = "refinery"
    fastapi_apps = ({"app": app, "url_prefix": "/refinery", "name": "Refinery"},)
    external_views = (
        {
            "name": "Refinery",
            "href": "/refinery/page",
            "destination": "nav",
            "url_route": "refinery",
            "nav_top_level": True,
        },
    )
    operator_extra_links = (ManifestLink(), DocsLink())
