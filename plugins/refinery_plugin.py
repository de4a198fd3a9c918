"""Refinery's pages in Airflow's web UI: snapshots, funnels, gates and evidence, read-only, for logged-in users."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from airflow.api_fastapi.auth.managers.models.resource_details import AccessView
from airflow.api_fastapi.core_api.security import requires_access_view
from airflow.plugins_manager import AirflowPlugin
from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from refinery_operators import DocsLink, ManifestLink
from refinery_run import base

from pipeline_tasks.errors import RecipeError, RefineryError, Transient
from pipeline_tasks.gate.verdicts import Verdict, read_verdict
from pipeline_tasks.inspect import funnel
from pipeline_tasks.inspect.trace import trace
from pipeline_tasks.manifest import ABANDONED
from pipeline_tasks.profiles.columns import quantile
from pipeline_tasks.publish import version_log
from pipeline_tasks.sealed import parse, unseal
from pipeline_tasks.stage import Shards
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import read_manifest, read_shards

REJECTS_SHOWN = 20
"""Rejected rows that a stage's page shows."""

SAMPLE = 400
"""Characters of a row's text that are shown."""

SERVED = re.compile(
    r"([a-z_]+/[0-9a-f]{24}|publish/[0-9a-f]{24}|datasets/[\w.-]+)"
    r"/(manifest\.json|partitions/[0-9a-f]+\.json|gate/[0-9a-f]+/(verdict\.json|docs/index\.html)|report-[0-9a-f]+\.html|\d{12}\.json)"
)
"""Paths of the files that are served as stored: manifests, verdicts, Data Docs, reports, versions; never rows."""

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'self'; frame-ancestors 'self'"
"""A page is text and style: it runs no script and fetches nothing."""

PAGES = Environment(
    loader=FileSystemLoader(Path(__file__).with_name("refinery_pages")), autoescape=True, undefined=StrictUndefined
)
PAGES.globals["base"] = base()

app = FastAPI(
    title="Refinery",
    docs_url=None,
    redoc_url=None,
    openapi_url=None,
    dependencies=[Depends(requires_access_view(AccessView.WEBSITE))],
)


def root() -> str:
    """Return the root whose content is shown: `REFINERY_ROOT`."""
    return os.environ.get("REFINERY_ROOT", "s3://refinery/refined")


@app.middleware("http")
async def harden(request: Request, call_next: Any) -> Response:  # noqa: ANN401 -- Starlette's own type is private
    """Add the headers that keep a page from running or fetching anything."""
    response: Response = await call_next(request)
    response.headers["Content-Security-Policy"] = POLICY
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Cache-Control"] = "no-store"
    return response


@app.exception_handler(RefineryError)
def refinery_error(_: Request, error: RefineryError) -> Response:
    """Show the error, which names the missing or damaged object and the way out.

    404 for what is not there, 503 for what may be there later, 409 for an object that is not what it should be: the
    page works, and the stored object does not.
    """
    titles = {404: "Not found", 503: "Try again later", 409: "Damaged"}
    status = 503 if isinstance(error, Transient) else 404 if isinstance(error, RecipeError) else 409
    page = PAGES.get_template("error.html").render(title=titles[status], message=str(error), root=root())
    return HTMLResponse(page, status_code=status)


def render(page: str, **values: Any) -> HTMLResponse:  # noqa: ANN401 -- values of a template are of any type
    """Render a page; every value is escaped."""
    return HTMLResponse(PAGES.get_template(page).render(root=root(), **values))


# --- Pages -----------------------------------------------------------------------------------------------------


@app.get("/page")
def snapshots() -> HTMLResponse:
    """Show every recipe's snapshots, with retention per stage over time."""
    storage.require_folder(root())
    return render("snapshots.html", recipes=[_recipe(name) for name in version_log.recipes(root())])


def _recipe(name: str) -> dict[str, Any]:
    funnels = [(version, funnel.funnel(root(), version)) for version in version_log.latest_by_snapshot(root(), name)]
    return {
        "name": name,
        "stages": [step["stage"] for step in funnels[-1][1]] if funnels else [],
        "snapshots": [_snapshot(version, steps) for version, steps in reversed(funnels)],
        "retractions": version_log.retractions(root(), name).values(),
    }


def _snapshot(version: version_log.Version, steps: list[dict[str, Any]]) -> dict[str, Any]:
    kept = {
        step["stage"]: step["rows"] / step["rows_in"] if step["rows_in"] else None
        for step in steps
        if step["stage"] != "pack"
    }
    outcomes = {stage: verdict.outcome for stage, verdict in _verdicts(version).items()}
    return {"version": version, "kept": kept, "outcomes": outcomes, "records": steps[0]["rows_in"] if steps else 0}


def _verdicts(version: version_log.Version) -> dict[str, Verdict]:
    return {stage: read_verdict(root(), path) for stage, path in version.verdicts.items() if path}


@app.get("/snapshot/{recipe}/{snapshot}")
def snapshot_page(recipe: str, snapshot: str) -> HTMLResponse:
    """Show a snapshot's funnel, the outcomes of its gates, its distributions next to the previous ones, its cost."""
    retraction = version_log.retractions(root(), recipe).get(snapshot)
    if retraction is not None:
        return _retracted(retraction)
    version = version_log.current(root(), recipe, snapshot)
    steps = funnel.funnel(root(), version)
    earlier = version_log.earlier(root(), recipe, snapshot)
    before = earlier[-1] if earlier else None
    return render(
        "snapshot.html",
        version=version,
        steps=steps,
        most=max((step["rows_in"] for step in steps), default=1) or 1,
        verdicts=_verdicts(version),
        before=before,
        profiled=list(_profiles(version, before)),
        costs=_costs(recipe, snapshot),
    )


def _retracted(retraction: version_log.Retraction) -> HTMLResponse:
    """Show when and why a snapshot was retracted, and its versions."""
    versions = version_log.versions(root(), retraction.recipe)
    retracted = [version for version in versions if version.number in retraction.retracts]
    return render("retracted.html", retraction=retraction, versions=retracted)


def _profiles(version: version_log.Version, before: version_log.Version | None) -> Iterator[dict[str, Any]]:
    """Yield each profiled column of a stage with its quantiles in this version and in the one before."""
    for stage, path in version.manifests.items():
        now = _kept_profiles(path)
        previous = _kept_profiles(before.manifests[stage]) if before and stage in before.manifests else {}
        for column in sorted(now):
            if now[column]["kind"] != "name" and now[column]["count"]:
                spreads = {"now": _spread(now, column), "previous": _spread(previous, column)}
                yield {"stage": stage, "column": column, **spreads}


def _kept_profiles(manifest_path: str) -> Mapping[str, Any]:
    profiles: Mapping[str, Any] = read_manifest(root(), manifest_path).metrics["kept"]
    return profiles


def _spread(profiles: Mapping[str, Any], column: str) -> list[float] | None:
    """Return the quantiles at 5 %, 50 % and 95 % of a column, None where it has no values."""
    if not profiles.get(column, {}).get("count"):
        return None
    return [quantile(profiles[column], at) for at in (0.05, 0.5, 0.95)]


def _costs(recipe: str, snapshot: str) -> list[Mapping[str, Any]]:
    """Return the cost of each stage from the ledger; no rows where no run was recorded."""
    from pipeline_tasks.publish.ledger import Ledger, ledger_of

    with Ledger.open(ledger_of(root())) as ledger:
        return list(ledger.query("cost", recipe=recipe, snapshot=snapshot))


@app.get("/rejects/{recipe}/{snapshot}/{stage}")
def rejects_page(recipe: str, snapshot: str, stage: str, reason: str = "") -> HTMLResponse:
    """Show a sample of the rows that a stage rejected or quarantined, with the evidence."""
    version = version_log.current(root(), recipe, snapshot)
    if stage not in version.manifests:
        raise HTTPException(404, f"snapshot {snapshot} has no stage {stage}")
    manifest = read_manifest(root(), version.manifests[stage])
    rows = list(_sample_rejects(manifest.rejects + manifest.quarantine, reason))
    reasons = {**manifest.rejected, **manifest.quarantined}
    return render("rejects.html", version=version, stage=stage, rows=rows, reasons=reasons, reason=reason)


def _sample_rejects(shards: Shards, reason: str) -> Iterator[Mapping[str, Any]]:
    """Yield the first rows that have `reason` (any, if it is ""), their texts cut short."""
    left = REJECTS_SHOWN
    for batch in read_shards(root(), shards):
        for row in batch.to_pylist():
            if left and reason in ("", row.get("reason")):
                left -= 1
                yield {**row, "text": str(row.get("text") or "")[:SAMPLE]}
        if not left:
            return


@app.get("/trace/{recipe}/{snapshot}")
def trace_page(recipe: str, snapshot: str, token: int = 0) -> HTMLResponse:
    """Show the document and the landed record that a packed token comes from."""
    version = version_log.current(root(), recipe, snapshot)
    if not 0 <= token < version.tokens:
        raise HTTPException(404, f"snapshot {snapshot} has tokens 0 to {version.tokens - 1}")
    return render("trace.html", version=version, origin=trace(root(), version, token))


@app.get("/manifest/{path:path}")
def manifest_page(path: str) -> HTMLResponse:
    """Show a manifest: the fields of one stage's output, and its shards."""
    manifest = _json(path)
    shards = {name: manifest.pop(name, []) for name in ("shards", "rejects", "quarantine")}
    shards |= {f"history: {section}": saved for section, saved in manifest.pop("history", {}).items()}
    manifest.pop("metrics", None)
    return render("manifest.html", path=path, facts=json.dumps(manifest, indent=2, ensure_ascii=False), shards=shards)


# --- Files -----------------------------------------------------------------------------------------------------


@app.get("/files/{path:path}")
def files(path: str) -> Response:
    """Return a manifest, verdict, report, dataset version or Data Docs page as it is stored."""
    body = _body(path)
    if path.endswith(".html"):
        return HTMLResponse(body)
    _json(path)
    return Response(body, media_type="application/json")


def _json(path: str) -> dict[str, Any]:
    """Return the fields of stored JSON; ContractError if it was changed. The commit slot of abandoned work is shown."""
    body, way_out = _body(path), "`refinery verify` names the way to heal it"
    return parse(body, path, way_out) if body == ABANDONED else unseal(body, path, way_out)


def _body(path: str) -> bytes:
    if not SERVED.fullmatch(path):
        raise HTTPException(404, "only manifests, verdicts, Data Docs, reports and dataset versions are served")
    try:
        return storage.connect(root()).read(path)
    except FileNotFoundError as error:
        raise HTTPException(404, f"{path}: no such file") from error


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
