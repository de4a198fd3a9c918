"""Shows errors as pages: what is not there, not allowed, damaged, or not installed here."""

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.exception_handlers import http_exception_handler
from fastapi.responses import HTMLResponse

from pipeline_tasks.deployment import deployment
from pipeline_tasks.errors import LibraryMissing, LookRefused, RecipeError, RefineryError, Transient
from refinery_airflow.access.purpose import FORBIDDEN, PurposeNeeded
from refinery_airflow.pages import rendering
from refinery_airflow.pages.fields import NOT_FOUND
from refinery_airflow.pages.purpose import purpose_form
from refinery_airflow.runs.run import base, root

TITLES = {
    NOT_FOUND: "Not found",
    FORBIDDEN: "Not allowed",
    503: "Try again later",
    409: "Damaged",
    501: "Not installed here",
}
"""Titles of error pages, by status."""


def refinery_error(_: Request, error: RefineryError) -> Response:
    """Show the error, which names the missing or damaged object and the way out.

    404 for what is not there, 503 for what may be there later, 409 for an object that is not what it should be: the
    page works, and the stored object does not.
    """
    if isinstance(error, LookRefused):
        return _error_page(FORBIDDEN, str(error))
    if isinstance(error, LibraryMissing):
        return _error_page(501, str(error))
    status = 503 if isinstance(error, Transient) else 404 if isinstance(error, RecipeError) else 409
    return _error_page(status, str(error))


def lacking(_: Request, error: ModuleNotFoundError) -> Response:
    """Say what a page needs that this environment lacks: with the extra `airflow` alone, some work on texts."""
    if error.name is None or error.name.startswith(("pipeline_tasks", "refinery_")):
        raise error
    way_out = "install the package with its extra `refine` where the api-server runs"
    return _error_page(501, f"This page needs {error.name}, which is not installed here: {way_out}.")


async def http_error(request: Request, error: HTTPException) -> Response:
    """Show what is not there, or not allowed, as a page; who is not logged in gets Airflow's own answer."""
    if error.status_code not in TITLES:
        return await http_exception_handler(request, error)
    return _error_page(error.status_code, str(error.detail))


def purpose_needed(request: Request, error: PurposeNeeded) -> Response:
    """Ask for the purpose, and lead back to the page; nothing of it is shown."""
    query = f"?{request.url.query}" if request.url.query and request.method == "GET" else ""
    address = f"{base()}{request.url.path.removeprefix(request.scope.get('root_path', ''))}{query}"
    shown = purpose_form(error.user, "", address, str(error.detail))
    shown.status_code = error.status_code
    return shown


def _error_page(status: int, message: str) -> Response:
    page = rendering.render("error.html", title=TITLES[status], message=message, root=_told_root(status))
    return HTMLResponse(page, status_code=status)


def _told_root(status: int) -> str:
    """Return the root that a page of an error names: "" where it may be another team's, or where no page has one."""
    try:
        return "" if status == FORBIDDEN and deployment().path else root()
    except RecipeError:  # the file of the deployment, or the recipe's entry, is refused: the message says so
        return ""


def show_errors(app: FastAPI) -> None:
    """Have an app show errors by these pages."""
    app.exception_handler(RefineryError)(refinery_error)
    app.exception_handler(ModuleNotFoundError)(lacking)
    app.exception_handler(HTTPException)(http_error)
    app.exception_handler(PurposeNeeded)(purpose_needed)
