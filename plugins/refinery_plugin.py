"""Refinery's page in Airflow's web UI: snapshots, their funnel, gates and evidence, read-only, for logged-in users."""

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
from fastapi.responses import HTMLResponse, JSONResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from refinery_operators import DocsLink, ManifestLink
from refinery_run import base

from pipeline_tasks.errors import RefineryError
from pipeline_tasks.gate.verdicts import Verdict, read_verdict
from pipeline_tasks.inspect import funnel
from pipeline_tasks.inspect.trace import trace
from pipeline_tasks.profiles.columns import quantile
from pipeline_tasks.publish import version_log
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import read_manifest, read_shards

ASIDE_SHOWN = 20
"""Rows set aside that a stage's page shows."""

SAMPLE = 400
"""Characters of a row's text that are shown."""

SERVED = re.compile(
    r"(?P<place>[a-z_]+/[0-9a-f]{24}|publish/[0-9a-f]{24}|datasets/[\w.-]+)"
    r"/(manifest\.json|partitions/[0-9a-f]+\.json|gate/[0-9a-f]+/(verdict\.json|docs/index\.html)|report\.html|\d{12}\.json)"
)
"""What is served as it is: manifests, verdicts, Data Docs, reports and dataset versions; never rows."""

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'self'; frame-ancestors 'self'"
"""Pages are text and style: nothing runs and nothing is fetched."""

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
    answer: Response = await call_next(request)
    answer.headers["Content-Security-Policy"] = POLICY
    answer.headers["X-Content-Type-Options"] = "nosniff"
    answer.headers["Cache-Control"] = "no-store"
    return answer


@app.exception_handler(RefineryError)
def refused(_: Request, error: RefineryError) -> Response:
    """Answer 404 where something named is not there or is damaged; the message says what and the way out."""
    return HTMLResponse(PAGES.get_template("error.html").render(message=str(error)), status_code=404)


def shown(page: str, **facts: Any) -> HTMLResponse:  # noqa: ANN401 -- what the page shows
    """Return a page; everything in it is escaped."""
    return HTMLResponse(PAGES.get_template(page).render(root=root(), **facts))


# --- Pages -----------------------------------------------------------------------------------------------------


@app.get("/page")
def snapshots() -> HTMLResponse:
    """Show every recipe's snapshots, with retention per stage over time."""
    return shown("snapshots.html", recipes=[_recipe(name) for name in version_log.recipes(root())])


def _recipe(name: str) -> dict[str, Any]:
    newest = [(version, funnel.funnel(root(), version)) for version in version_log.latest_by_snapshot(root(), name)]
    stages = [step["stage"] for step in newest[-1][1]] if newest else []
    gone = version_log.retractions(root(), name).values()
    return {"name": name, "stages": stages, "snapshots": [_snapshot(*one) for one in reversed(newest)], "gone": gone}


def _snapshot(version: version_log.Version, steps: list[dict[str, Any]]) -> dict[str, Any]:
    kept = {step["stage"]: share(step["rows"], step["rows_in"]) for step in steps if step["stage"] != "pack"}
    outcomes = {stage: _verdict(path).outcome for stage, path in version.verdicts.items() if path}
    return {"version": version, "kept": kept, "outcomes": outcomes, "records": steps[0]["rows_in"] if steps else 0}


def share(part: float, whole: float) -> float | None:
    """Return part / whole, None for nothing of nothing."""
    return part / whole if whole else None


def _verdict(path: str) -> Verdict:
    return read_verdict(root(), path)


@app.get("/snapshot/{recipe}/{snapshot}")
def snapshot_page(recipe: str, snapshot: str) -> HTMLResponse:
    """Show a snapshot's funnel, what its gates found, its distributions beside the previous snapshot's, its cost."""
    gone = version_log.retractions(root(), recipe).get(snapshot)
    if gone is not None:
        return _retracted(gone)
    version = version_log.current(root(), recipe, snapshot)
    steps = funnel.funnel(root(), version)
    verdicts = {stage: _verdict(path) for stage, path in version.verdicts.items() if path}
    earlier = version_log.earlier(root(), recipe, snapshot)
    before = earlier[-1] if earlier else None
    most = max((step["rows_in"] for step in steps), default=1) or 1
    return shown(
        "snapshot.html",
        version=version,
        steps=steps,
        most=most,
        verdicts=verdicts,
        before=before,
        profiled=list(_measures(version, before)),
        costs=_costs(recipe, snapshot),
    )


def _retracted(gone: version_log.Retraction) -> HTMLResponse:
    """Show when and why a snapshot was retracted, and where what was published of it lies."""
    versions = [one for one in version_log.versions(root(), gone.recipe) if one.number in gone.retracts]
    return shown("retracted.html", gone=gone, versions=versions)


def _measures(version: version_log.Version, before: version_log.Version | None) -> Iterator[dict[str, Any]]:
    """Yield per stage and column the quantiles now and before."""
    for stage, path in version.manifests.items():
        now = read_manifest(root(), path).metrics["kept"]
        known = before is not None and stage in before.manifests
        past = read_manifest(root(), before.manifests[stage]).metrics["kept"] if before and known else {}
        for column in sorted(now):
            if now[column]["kind"] != "name" and now[column]["count"]:
                yield {"stage": stage, "column": column, "now": _spread(now, column), "past": _spread(past, column)}


def _spread(measures: Mapping[str, Any], column: str) -> list[float] | None:
    if not measures.get(column, {}).get("count"):
        return None
    return [quantile(measures[column], at) for at in (0.05, 0.5, 0.95)]


def _costs(recipe: str, snapshot: str) -> list[Mapping[str, Any]]:
    """Return what each stage cost, from the ledger; nothing where no run was recorded."""
    from pipeline_tasks.publish.ledger import Ledger
    from pipeline_tasks.service.requests import ledger_of

    with Ledger.open(ledger_of(root())) as ledger:
        return list(ledger.ask("cost", recipe=recipe, snapshot=snapshot))


@app.get("/aside/{recipe}/{snapshot}/{stage}")
def aside(recipe: str, snapshot: str, stage: str, reason: str = "") -> HTMLResponse:
    """Show a sample of the rows that a stage set aside, with the evidence."""
    version = version_log.current(root(), recipe, snapshot)
    if stage not in version.manifests:
        raise HTTPException(404, f"snapshot {snapshot} has no stage {stage}")
    made = read_manifest(root(), version.manifests[stage])
    rows = list(_aside(made.rejects + made.quarantine, reason))
    reasons = {**made.rejected, **made.quarantined}
    return shown("aside.html", version=version, stage=stage, rows=rows, reasons=reasons, reason=reason)


def _aside(shards: Any, reason: str) -> Iterator[Mapping[str, Any]]:  # noqa: ANN401 -- Shards
    left = ASIDE_SHOWN
    for batch in read_shards(root(), shards):
        for row in batch.to_pylist():
            if left and reason in ("", row.get("reason")):
                left -= 1
                yield {**row, "text": str(row.get("text") or "")[:SAMPLE]}
        if not left:
            return


@app.get("/trace/{recipe}/{snapshot}")
def trace_page(recipe: str, snapshot: str, token: int = 0) -> HTMLResponse:
    """Show the way of one packed token back to its landed record."""
    version = version_log.current(root(), recipe, snapshot)
    if not 0 <= token < version.tokens:
        raise HTTPException(404, f"snapshot {snapshot} has tokens 0 to {version.tokens - 1}")
    return shown("trace.html", version=version, found=trace(root(), version, token))


@app.get("/manifest/{path:path}")
def manifest(path: str) -> HTMLResponse:
    """Show a manifest: the account of one stage."""
    made = json.loads(_body(path))
    short = {
        key: value for key, value in made.items() if key not in ("shards", "rejects", "quarantine", "memory", "metrics")
    }
    shards = {key: made.get(key, []) for key in ("shards", "rejects", "quarantine", "memory")}
    return shown("manifest.html", path=path, facts=json.dumps(short, indent=2, ensure_ascii=False), shards=shards)


# --- Files -----------------------------------------------------------------------------------------------------


@app.get("/files/{path:path}")
def files(path: str) -> Response:
    """Return a manifest, verdict, report, dataset version or Data Docs page as it is stored."""
    body = _body(path)
    if path.endswith(".html"):
        return HTMLResponse(body)
    return JSONResponse(json.loads(body))


def _body(path: str) -> bytes:
    if not SERVED.fullmatch(path):
        raise HTTPException(404, "only manifests, verdicts, Data Docs, reports and dataset versions are served")
    try:
        return storage.connect(root()).read(path)
    except FileNotFoundError as error:
        raise HTTPException(404, f"{path}: nothing there") from error


class RefineryPlugin(AirflowPlugin):  # type: ignore[misc]  # loaded lazily: Any
    """Registers the page, its entry in the navigation, and the links from tasks."""

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
