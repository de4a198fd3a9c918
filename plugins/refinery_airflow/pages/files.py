"""Serves files: the manifests, verdicts, Data Docs, reports and versions of a root, and the pages' own."""

import json
import re
from collections.abc import Mapping
from typing import Any

from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import HTMLResponse

from pipeline_tasks.ask.question import Role
from pipeline_tasks.manifest import ABANDONED
from pipeline_tasks.profiles.sums import SITE, SUMS
from pipeline_tasks.sealed import parse, unseal
from pipeline_tasks.store import storage
from refinery_airflow.access.looks import LookRoute
from refinery_airflow.access.roles import require
from refinery_airflow.pages import rendering
from refinery_airflow.pages.fields import NOT_FOUND
from refinery_airflow.pages.rendering import show
from refinery_airflow.runs.run import root

router = APIRouter(route_class=LookRoute)

SERVED = re.compile(
    r"([a-z_]+/[0-9a-f]{24}|publish/[0-9a-f]{24}|datasets/[\w.-]+)"
    r"/(manifest\.((partial-[0-9a-f]{12}|\d+)\.)?json|partitions/[0-9a-f]+(\.poison)?\.json|gate/[0-9a-f]+/(verdict\.json|docs/index\.html)|report-[0-9a-f]+\.html|\d{12}\.json)"
)
"""Paths of the files that are served as stored: manifests, verdicts, Data Docs, reports, versions; never rows."""


@router.get("/manifest/{path:path}")
def manifest_page(path: str) -> HTMLResponse:
    """Show a manifest: the fields of one stage's output, and its shards."""
    manifest = _json(path)
    shards = {name: manifest.pop(name, []) for name in ("shards", "rejects", "quarantine")}
    shards |= {f"history: {section}": saved for section, saved in manifest.pop("history", {}).items()}
    manifest.pop("metrics", None)
    return show("manifest.html", path=path, facts=json.dumps(manifest, indent=2, ensure_ascii=False), shards=shards)


@router.get("/static/{name}")
def static(name: str) -> Response:
    """Return a static file of the pages; its URL names its content, so a browser may keep it."""
    if name not in rendering.MEDIA_TYPES:
        raise HTTPException(NOT_FOUND, f"the pages have no file {name}")
    keep = {"Cache-Control": "private, max-age=31536000, immutable"}
    return Response(rendering.static_file(name), media_type=rendering.MEDIA_TYPES[name], headers=keep)


@router.get("/files/{path:path}")
def files(path: str, request: Request, user: GetUserDep) -> Response:
    """Return a manifest, verdict, dataset version, Data Docs page or report as it is stored.

    A report has rejected rows, for stewards; a manifest may have the names of sites, for curators.
    """
    if "/report-" in path:
        require(request, user, Role.STEWARD)
    body = _body(path)
    if path.endswith(".html"):
        return HTMLResponse(body, headers={"Content-Security-Policy": rendering.STORED_POLICY})
    if _names_sites(_json(path)):
        require(request, user, Role.CURATOR)
    return Response(body, media_type="application/json")


def _names_sites(manifest: Mapping[str, Any]) -> bool:
    """Return whether a manifest has profiles of rows by site, whichever profile says that it is one."""
    parts = [part for part in manifest.get("metrics", {}).values() if isinstance(part, dict)]
    if any(part.get(name) for part in parts for name, summed in SUMS.items() if summed.by == SITE):
        return True
    names = (name for part in parts for name in part.get("origins", {}).get("bins", {}))
    return any(name.removeprefix("own ").startswith("site ") for name in names)


def _json(path: str) -> dict[str, Any]:
    """Return the fields of stored JSON; ContractError if it was changed. The commit slot of abandoned work is shown."""
    body, way_out = _body(path), "`refinery verify` names the way to heal it"
    return parse(body, path, way_out) if body == ABANDONED else unseal(body, path, way_out)


def _body(path: str) -> bytes:
    if not SERVED.fullmatch(path):
        raise HTTPException(NOT_FOUND, "only manifests, verdicts, Data Docs, reports and dataset versions are served")
    try:
        return storage.connect(root()).read(path)
    except FileNotFoundError as error:
        raise HTTPException(NOT_FOUND, f"{path}: no such file") from error
