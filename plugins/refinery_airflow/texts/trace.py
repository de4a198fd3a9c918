"""Shows where a packed token comes from."""

from dataclasses import replace

from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.responses import HTMLResponse

from pipeline_tasks.ask.question import Role
from pipeline_tasks.inspect.document.trace import trace
from pipeline_tasks.publish.datasets.published_shards import refined_version
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.recipe import COMPOSE
from refinery_airflow.access.looks import LookRoute
from refinery_airflow.access.roles import curator, holds
from refinery_airflow.pages.fields import NOT_FOUND
from refinery_airflow.pages.rendering import show
from refinery_airflow.runs.run import root
from refinery_airflow.texts.document import MOST_HEADER

router = APIRouter(route_class=LookRoute)


@router.get("/trace/{recipe}/{snapshot}", dependencies=[Depends(curator)])
def trace_page(request: Request, recipe: str, snapshot: str, user: GetUserDep, token: int = 0) -> HTMLResponse:
    """Show the document and the landed record that a packed token comes from; its id and header are for stewards."""
    version = version_log.current(root(), recipe, snapshot)
    if COMPOSE not in version.manifests:
        raise HTTPException(NOT_FOUND, f"snapshot {snapshot} has documents; tokens are of a training dataset")
    origin = trace(root(), version, token, MOST_HEADER)
    source = refined_version(root(), version, origin.snapshot)
    origin = origin if holds(request, user, Role.STEWARD) else replace(origin, header=(), record="")
    return show("trace.html", version=version, origin=origin, source=source).of(1, [origin.document])
