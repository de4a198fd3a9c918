"""Refinery's pages in Airflow's web UI, for logged-in users: snapshots, funnels, gates and evidence.

They only read, but for two pages: they store what a reader says of a document, and which one a reader finds foreign.
"""

import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import Annotated, Any

from airflow.api_fastapi.auth.managers.models.resource_details import AccessView
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_view
from airflow.plugins_manager import AirflowPlugin
from fastapi import Depends, FastAPI, Form, HTTPException, Query, Request, Response
from fastapi.exception_handlers import http_exception_handler
from fastapi.responses import HTMLResponse, RedirectResponse
from pydantic import BaseModel, Field
from starlette.types import ASGIApp, Receive, Scope, Send

from pipeline_tasks.ask.question import Role
from pipeline_tasks.cards import adds, makes_documents, reads_landed
from pipeline_tasks.deployment import deployment
from pipeline_tasks.errors import LookRefused, RecipeError, RefineryError, Transient
from pipeline_tasks.inspect.document.text_edits import COMPARED
from pipeline_tasks.inspect.document.trace import trace
from pipeline_tasks.inspect.evidence import evidence_of
from pipeline_tasks.inspect.funnel import funnel
from pipeline_tasks.inspect.read import outcome_line
from pipeline_tasks.inspect.read.answers import LONGEST
from pipeline_tasks.inspect.read.sample import Choice
from pipeline_tasks.inspect.rejects import reasons_of
from pipeline_tasks.inspect.report.judged_bounds import bounded_facts
from pipeline_tasks.inspect.report.plotted import Published
from pipeline_tasks.inspect.report.shares import site_shares
from pipeline_tasks.inspect.unpublished import Committed, UnpublishedRun, committed, readable_runs
from pipeline_tasks.inspect.whatif import JUDGE
from pipeline_tasks.inspect.whatif.stages import stage_bounds
from pipeline_tasks.manifest import ABANDONED, Manifest
from pipeline_tasks.profiles.sums import SITE, SUMS
from pipeline_tasks.publish.datasets.published_shards import refined_version
from pipeline_tasks.publish.logs import ablation_log, version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.publish.plots.funnel import funnel_plot
from pipeline_tasks.publish.plots.room import room_plot
from pipeline_tasks.recipe import BUILDS, COMPOSE, recipe_names
from pipeline_tasks.schema import EMBEDDING
from pipeline_tasks.sealed import parse, unseal
from pipeline_tasks.stage import Shards
from pipeline_tasks.store import storage
from pipeline_tasks.store.access_log import LONGEST as LONGEST_PURPOSE
from pipeline_tasks.store.reading import is_cleared, read_manifest, read_shards
from refinery_airflow.access.looks import LookRoute, Shown, ShownFile
from refinery_airflow.access.purpose import (
    PurposeNeeded,
    form_token,
    is_form_token,
    keep_purpose,
    own_address,
    purpose_of,
)
from refinery_airflow.access.roles import (
    OPEN,
    curator,
    holds,
    is_reader,
    may_see,
    reader,
    refuse,
    require,
    steward,
    verdicts_of,
)
from refinery_airflow.pages import ask, rendering
from refinery_airflow.pages.answers import answers_of
from refinery_airflow.pages.build import build_of
from refinery_airflow.pages.compare import SETTINGS_SHOWN, compared
from refinery_airflow.pages.dataset import SOURCES_SHOWN, card_of, dataset_of, is_dataset
from refinery_airflow.pages.lineage import LISTED, PLACES_SHOWN, lineage_page
from refinery_airflow.pages.overview import state_of, state_of_run
from refinery_airflow.pages.rendering import show
from refinery_airflow.pages.roots import root_overviews
from refinery_airflow.pages.snapshot import builds_of, links_of, plots_of, run_of_snapshot
from refinery_airflow.pages.standing import LINES, sources_page
from refinery_airflow.pages.verdicts import GROUPS_SHOWN as MIXED_SHOWN
from refinery_airflow.pages.verdicts import shares_of as totals_of
from refinery_airflow.pages.verdicts import verdict_page, verdicts_page
from refinery_airflow.pages.whatif import whatif_of
from refinery_airflow.runs.credentials import give_credentials_to_pages, give_ledger_to_pages
from refinery_airflow.runs.newest import newest_runs
from refinery_airflow.runs.run import OF, SHOWN, base, landing, root
from refinery_airflow.tasks.operators import DocsLink, ManifestLink
from refinery_airflow.texts.breakdown import GROUPS, breakdown_of
from refinery_airflow.texts.breakdown import SHOWN as BREAKDOWN_SHOWN
from refinery_airflow.texts.columns import GROUPS_SHOWN, columns_page
from refinery_airflow.texts.document import (
    BLOCKS_SHOWN,
    MEMBERS_SHOWN,
    MOST_HEADER,
    MOST_OF_CLUSTERS,
    TEXT_SHOWN,
    duplicates_command,
    explored,
    signals,
    single_facts,
    stretches,
)
from refinery_airflow.texts.document import MOST_BYTES as MOST_OF_DOCUMENT
from refinery_airflow.texts.find import find_of
from refinery_airflow.texts.intruder import SHOWN as INTRUDER_SHOWN
from refinery_airflow.texts.intruder import Asked, IntruderPage, intruder_page
from refinery_airflow.texts.intruder import answered as intruder_answered
from refinery_airflow.texts.map import map_page
from refinery_airflow.texts.read import MOST_DRAWN, STALE, ReadingPage, answered, is_token, reading_page, shares_of
from refinery_airflow.texts.rejects import MEDIA_TYPES as FILE_TYPES
from refinery_airflow.texts.rejects import MOST_ROWS, file_name, file_of, rejects_of
from refinery_airflow.texts.search import HITS_SHOWN, MOST_BYTES, search_page
from refinery_airflow.texts.similar import similar_page

log = logging.getLogger("refinery")

ROWS_SHOWN = 20
"""Rows, rejected or kept, that a page shows."""

SAMPLED = ("url", "language", "text")
"""Columns of kept rows that a page shows, of those that a stage has."""

MOST_SAMPLED = 64_000_000
"""Bytes of shards in which a request looks for rows of a sample; it reads the shard in which it comes to these."""

SAMPLE = 400
"""Characters of a row's text that are shown."""

Term = Annotated[str, Query(max_length=4096)]
"""What is asked for: no longer than a URL."""

Name = Annotated[str, Query(max_length=200)]
"""A version as a person names it, or a phrase."""

Where = Annotated[str, Query(max_length=400)]
"""Conditions on columns, in one line."""

Reason = Annotated[str, Query(max_length=200)]
"""The reason of rejected rows, "" for any."""

Names = Annotated[list[Reason], Query(max_length=20)]
"""Reasons or languages."""

Count = Annotated[int, Query(ge=0, le=MOST_DRAWN)]
"""How many documents are drawn."""

Seed = Annotated[int, Query(ge=0, lt=1 << 53)]
"""The seed of a sample."""

Row = Annotated[int, Query(ge=0)]
"""The number of a row."""

NOT_FOUND, FORBIDDEN, SEE_OTHER, UNPROCESSABLE = 404, 403, 303, 422

TITLES = {
    NOT_FOUND: "Not found",
    FORBIDDEN: "Not allowed",
    503: "Try again later",
    409: "Damaged",
    501: "Not installed here",
}
"""Titles of error pages, by status."""

COMMITTED = re.compile(r"[a-z_]+/[0-9a-f]{24}/manifest\.((partial-[0-9a-f]{12}|\d+)\.)?json")
"""Paths of the manifests whose rows are shown."""

SERVED = re.compile(
    r"([a-z_]+/[0-9a-f]{24}|publish/[0-9a-f]{24}|datasets/[\w.-]+)"
    r"/(manifest\.((partial-[0-9a-f]{12}|\d+)\.)?json|partitions/[0-9a-f]+(\.poison)?\.json|gate/[0-9a-f]+/(verdict\.json|docs/index\.html)|report-[0-9a-f]+\.html|\d{12}\.json)"
)
"""Paths of the files that are served as stored: manifests, verdicts, Data Docs, reports, versions; never rows."""


class ReadForm(BaseModel):
    """What the reading page's form sends: the document, the verdict on it, and why."""

    id: str = Field(max_length=64)
    verdict: str = Field("", max_length=10)
    why: str = Field("", max_length=LONGEST)
    after: int = Field(0, ge=0)
    token: str = Field("", max_length=100)


class PurposeForm(BaseModel):
    """What the form sends that asks for what somebody looks at texts."""

    purpose: str = Field("", max_length=LONGEST_PURPOSE)
    following: str = Field("", max_length=8192)
    token: str = Field("", max_length=100)


class IntruderForm(BaseModel):
    """What the page of the foreign document sends: the document that was chosen."""

    chosen: str = Field("", max_length=64)
    token: str = Field("", max_length=100)


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


app.router.route_class = LookRoute
app.include_router(ask.router)


@app.middleware("http")
async def harden(request: Request, call_next: Any) -> Response:  # noqa: ANN401 -- Starlette's own type is private
    """Add the headers that keep a page from running or fetching anything that is not of this plugin."""
    response: Response = await call_next(request)
    response.headers.setdefault("Content-Security-Policy", rendering.PAGE_POLICY)
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = "same-origin"
    response.headers.setdefault("Cache-Control", "no-store")
    return response


app.add_middleware(RootOfPath)


@app.exception_handler(RefineryError)
def refinery_error(_: Request, error: RefineryError) -> Response:
    """Show the error, which names the missing or damaged object and the way out.

    404 for what is not there, 503 for what may be there later, 409 for an object that is not what it should be: the
    page works, and the stored object does not.
    """
    if isinstance(error, LookRefused):
        return _error_page(FORBIDDEN, str(error))
    status = 503 if isinstance(error, Transient) else 404 if isinstance(error, RecipeError) else 409
    return _error_page(status, str(error))


@app.exception_handler(ModuleNotFoundError)
def lacking(_: Request, error: ModuleNotFoundError) -> Response:
    """Say what a page needs that this environment lacks: with the extra `airflow` alone, some work on texts."""
    if error.name is None or error.name.startswith(("pipeline_tasks", "refinery_")):
        raise error
    way_out = "install the package with its extra `refine` where the api-server runs"
    return _error_page(501, f"This page needs {error.name}, which is not installed here: {way_out}.")


@app.exception_handler(HTTPException)
async def http_error(request: Request, error: HTTPException) -> Response:
    """Show what is not there, or not allowed, as a page; who is not logged in gets Airflow's own answer."""
    if error.status_code not in TITLES:
        return await http_exception_handler(request, error)
    return _error_page(error.status_code, str(error.detail))


@app.exception_handler(PurposeNeeded)
def purpose_needed(request: Request, error: PurposeNeeded) -> Response:
    """Ask for the purpose, and lead back to the page; nothing of it is shown."""
    query = f"?{request.url.query}" if request.url.query and request.method == "GET" else ""
    address = f"{base()}{request.url.path.removeprefix(request.scope.get('root_path', ''))}{query}"
    shown = _purpose_page(error.user, "", address, str(error.detail))
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


# --- Pages -----------------------------------------------------------------------------------------------------


@app.get("/page")
def snapshots(user: GetUserDep) -> HTMLResponse:
    """Show the snapshots of recipes whose DAG a user may read: states, what to do, trends, and what each stage kept."""
    shown = root_overviews(lambda recipe: is_reader(user, recipe))
    pages = sorted((page for one in shown for page in one.pages), key=lambda page: page.is_dataset)
    messages = [one.message for one in shown if one.message]
    return show("snapshots.html", recipes=pages, landed=[one.landed for one in shown], messages=messages)


@app.get("/sources")
def sources() -> HTMLResponse:
    """Show per source what has landed and when, what is missing or not published, and which hosts refuse."""
    storage.require_folder(root())
    return show("sources.html", shown=sources_page(root()), most=LINES)


@app.get("/snapshot/{recipe}/{snapshot}")
def snapshot_page(request: Request, recipe: str, snapshot: str, user: GetUserDep) -> HTMLResponse:
    """Show what is left of a snapshot and why, its health, what has changed, and what to do now; the rest is folded.

    Names of sites are shown to those who may read texts. Of a run that published nothing its stages so far are shown,
    with where and why it stopped.
    """
    retraction = version_log.retractions(root(), recipe).get(snapshot)
    if retraction is not None and not readable_runs(root(), recipe, snapshot)[0]:
        return _retracted(retraction)
    shown = committed(root(), recipe, snapshot).shown
    return _run_page(shown) if isinstance(shown, UnpublishedRun) else _version_page(request, shown, user)


def _run_page(known: UnpublishedRun) -> HTMLResponse:
    """Show what is committed of a run that published nothing."""
    run = newest_runs(known.recipe, root()).get(known.snapshot)
    steps = funnel(root(), known)
    plot = funnel_plot(steps)
    return show("run.html", known=known, state=state_of_run(known, run), steps=steps, plot=plot, run=links_of(run))


def _version_page(request: Request, version: Version, user: GetUserDep) -> HTMLResponse:
    """Show a published snapshot."""
    recipe, snapshot = version.recipe, version.snapshot
    published = Published(root(), version)
    if is_dataset(version):
        return _dataset_page(request, published, user)
    earlier, run = published.earlier, run_of_snapshot(root(), version)
    known: dict[str, Any] = {name: getattr(published, name) for name in ("steps", "verdicts", "costs")}
    sites = site_shares(root(), version, earlier) if may_see(request, user, Role.CURATOR) else None
    return show(
        "snapshot.html",
        version=version,
        state=state_of(root(), recipe, snapshot, run),
        before=earlier[-1] if earlier else None,
        answers=answers_of(root(), version, published.steps, published.verdicts, earlier[-1] if earlier else None),
        builds=builds_of(recipe),
        has_vectors=any(adds(EMBEDDING, stage) for stage in version.manifests),
        can_predict=JUDGE in version.manifests or bool(stage_bounds(root(), version)),
        has_others=version.number > 1 or len(version_log.recipes(root())) > 1,
        plots=plots_of(root(), version, earlier, **known, run=run),
        sites=sites,
        run=links_of(run),
        **known,
    )


def _dataset_page(request: Request, published: Published, user: GetUserDep) -> HTMLResponse:
    """Show a version of a training dataset."""
    version, page = published.version, dataset_of(published)
    return show(
        "dataset.html",
        version=version,
        shown=page,
        state=state_of(root(), version.recipe, version.snapshot, None),
        has_others=version.number > 1 or len(version_log.recipes(root())) > 1,
        most=SOURCES_SHOWN,
        can_build=version.recipe in recipe_names(BUILDS),
        shows_groups=page.is_open or may_see(request, user, Role.CURATOR),
        room=room_plot(bounded_facts(version.recipe, published.verdicts)),
        steps=published.steps,
        verdicts=published.verdicts,
        costs=published.costs,
    )


@app.get("/card/{recipe}/{snapshot}", dependencies=[Depends(curator)])
def card_page(recipe: str, snapshot: str) -> HTMLResponse:
    """Show the card of a training dataset, which may name sites."""
    version = version_log.current(root(), recipe, snapshot)
    if not is_dataset(version):
        raise HTTPException(NOT_FOUND, f"snapshot {snapshot} has a report; a card is of a training dataset")
    return show("card.html", version=version, card=card_of(root(), version))


@app.get("/build/{recipe}")
def build_page(recipe: str, request: Request) -> Response:
    """Show what a build would take of the snapshots, weights and budget that are chosen; nothing is run."""
    page = build_of(root(), recipe, request.query_params.multi_items())
    shown = show("build.html", shown=page, exact=page.exact(root()))
    shown.status_code = UNPROCESSABLE if page.message and request.query_params else shown.status_code
    return shown


@app.get("/lineage/{recipe}/{snapshot}")
def lineage_of_snapshot(recipe: str, snapshot: str) -> HTMLResponse:
    """Show the manifests that a snapshot's version was made from, with their parents and what became of their rows."""
    shown = lineage_page(root(), version_log.current(root(), recipe, snapshot))
    limits = {"listed": LISTED, "places_shown": PLACES_SHOWN}
    return show("lineage.html", shown=shown, command=shown.command(root()), **limits)


@app.get("/whatif/{recipe}/{snapshot}")
def whatif_page(recipe: str, snapshot: str, request: Request) -> Response:
    """Show what other bounds would keep; its address names the bounds that were changed alone."""
    version = version_log.current(root(), recipe, snapshot)
    query = request.query_params.multi_items()
    page = whatif_of(root(), version, query, Published(root(), version).costs)
    if query != page.fields:
        return RedirectResponse(page.address, SEE_OTHER)
    shown = show(
        "whatif.html",
        whatif=page,
        version=version,
        forecast=page.forecast,
        command=page.command(root()),
        trial=page.trial(root()),
    )
    shown.status_code = UNPROCESSABLE if page.message and page.changes else shown.status_code
    return shown


@app.get("/columns/{recipe}/{snapshot}", dependencies=[Depends(curator)])
def columns_of_snapshot(recipe: str, snapshot: str, where: Where = "", by: Name = "", more: Where = "") -> Response:
    """Show how many documents would stay if only those with some values in their columns did, and one `more` value."""
    version = version_log.current(root(), recipe, snapshot)
    page = columns_page(root(), version, where.strip(), by.strip(), more.strip())
    shown = show("columns.html", shown=page, most=GROUPS_SHOWN, command=page.command(root()))
    shown.status_code = UNPROCESSABLE if page.message else shown.status_code
    return shown


@app.get("/breakdown/{recipe}/{snapshot}", dependencies=[Depends(curator)])
def breakdown_page(
    request: Request, recipe: str, snapshot: str, user: GetUserDep, by: Name = "", across: Name = ""
) -> Response:
    """Show documents by a column: kept, rejected for which reasons, and of which sites; or a table of two columns.

    Stewards see the values of rejected rows, too.
    """
    version = version_log.current(root(), recipe, snapshot)
    page = breakdown_of(root(), version, by, across, sees_all=may_see(request, user, Role.STEWARD))
    shown = show(
        "breakdown.html",
        shown=page,
        version=version,
        most=BREAKDOWN_SHOWN,
        most_groups=GROUPS,
        command=page.command(root()),
    )
    shown.status_code = UNPROCESSABLE if page.message else shown.status_code
    return shown


@app.get("/compare/{recipe}")
def compare_page(recipe: str, user: GetUserDep, a: Name = "", b: Name = "", documents: Name = "") -> Response:
    """Show what differs between two versions, named by number or snapshot; with `documents`, by id, too."""
    others = [name for name in version_log.recipes(root()) if name != recipe and is_reader(user, name)]
    page = compared(root(), recipe, a.strip(), b.strip(), documents=bool(documents), others=others)
    shown = show("compare.html", compared=page, settings_shown=SETTINGS_SHOWN, command=page.command(root()))
    shown.status_code = UNPROCESSABLE if page.message and (a or b) else shown.status_code
    return shown


@app.get("/verdicts")
def verdicts(user: GetUserDep) -> HTMLResponse:
    """Show which of two datasets gave the better models; and what recipes require: of those that the user may read."""
    storage.require_folder(root())
    page = verdicts_page(root(), verdicts_of(user), partial(is_reader, user))
    return show("verdicts.html", shown=page)


@app.get("/verdicts/{number}")
def verdict(request: Request, number: int, user: GetUserDep) -> HTMLResponse:
    """Show one verdict with its intervals, curves, groups, cost and evidence; names of sites to who may read texts."""
    page = verdict_page(root(), number)
    return show(
        "verdict.html",
        shown=page,
        entry=ablation_log.LOG.entry_path(number),
        totals=totals_of(page.evidence.mixture) if page.evidence else (0, 0),
        shows_groups=page.is_open or may_see(request, user, Role.CURATOR),
        most=MIXED_SHOWN,
    )


def _retracted(retraction: version_log.Retraction) -> HTMLResponse:
    """Show when and why a snapshot was retracted, and its versions."""
    versions = version_log.versions(root(), retraction.recipe)
    retracted = [version for version in versions if version.number in retraction.retracts]
    return show("retracted.html", retraction=retraction, versions=retracted)


@app.get("/rejects/{recipe}/{snapshot}/{stage}", dependencies=[Depends(steward)])
def rejects_page(recipe: str, snapshot: str, stage: str, reason: Reason = "", start: Row = 0) -> HTMLResponse:
    """Show rows that a stage rejected or quarantined, from row `start` on, with the evidence."""
    known, manifest = _of_stage(recipe, snapshot, stage)
    page = rejects_of(root(), known.shown, manifest, reason, start)
    of = {"version": known.shown, "is_published": known.version is not None}
    limits = {"most_rows": MOST_ROWS, "sample": SAMPLE}
    known_ids = [str(row["id"]) for row in page.shown.rows if row.get("id")]
    return show(
        "rejects.html", **of, shown_page=page, evidence_of=evidence_of, **limits, command=page.command(root())
    ).of(len(page.shown.rows), known_ids)


@app.get("/rejects/{recipe}/{snapshot}/{stage}/rows.{kind}", dependencies=[Depends(steward)])
def rejects_file(recipe: str, snapshot: str, stage: str, kind: str, reason: Reason = "") -> Response:
    """Return rows that a stage rejected or quarantined as a file, CSV or JSON lines: of many the first ones."""
    if kind not in FILE_TYPES:
        raise HTTPException(NOT_FOUND, f"rows are written as {' or '.join(FILE_TYPES)}, and not as {kind}")
    _, manifest = _of_stage(recipe, snapshot, stage)
    body, is_whole = file_of(root(), manifest, reason, kind)
    name = file_name(manifest, reason, kind, is_whole=is_whole)
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    rows = reasons_of(manifest)
    wanted = rows.get(reason, 0) if reason else sum(rows.values())
    return ShownFile(body, media_type=FILE_TYPES[kind], headers=headers).of(min(wanted, MOST_ROWS))


def _of_stage(recipe: str, snapshot: str, stage: str) -> tuple[Committed, Manifest]:
    """Return what is committed of a snapshot, and the manifest of one of its stages; 404 if it has none."""
    known = committed(root(), recipe, snapshot)
    if stage not in known.shown.manifests:
        raise HTTPException(NOT_FOUND, f"snapshot {snapshot} has no stage {stage}")
    return known, read_manifest(root(), known.shown.manifests[stage])


def _sample(shards: Shards, reason: str = "", columns: Sequence[str] | None = None) -> Iterator[Mapping[str, Any]]:
    """Yield the first rows that have `reason` (any, if it is ""), their texts cut short; all columns unless given.

    They are looked for in the first shards, up to `MOST_SAMPLED` bytes of these.
    """
    left = ROWS_SHOWN
    read = accumulate(shard.weight for shard in shards)
    first = [shard for shard, bytes_ in zip(shards, read, strict=True) if bytes_ - shard.weight < MOST_SAMPLED]
    for batch in read_shards(root(), first, columns):
        for row in batch.to_pylist():
            if left and reason in ("", row.get("reason")):
                left -= 1
                yield {**row, "text": str(row.get("text") or "")[:SAMPLE]}
        if not left:
            return


@app.get("/sample/{path:path}", dependencies=[Depends(curator)])
def sample_page(request: Request, path: str, user: GetUserDep, reason: str = "") -> HTMLResponse:
    """Show rows that a manifest keeps, and to stewards those that it rejected, before what a gate refused is approved.

    Texts that came through no stage that clears personal data have it, so that these rows are for stewards, too.
    """
    if not COMMITTED.fullmatch(path):
        raise HTTPException(NOT_FOUND, f"{path} is not the path of a manifest")
    manifest = read_manifest(root(), path)
    if not is_cleared(root(), manifest):
        require(request, user, Role.STEWARD)
    sees_all = may_see(request, user, Role.STEWARD)
    is_landed = reads_landed(manifest.stage) and not makes_documents(manifest.stage)
    unread = {"text"} if is_landed else set[str]()  # it is read from the landed files, by a run alone
    columns = [name for name, _ in manifest.schema if name in SAMPLED and name not in unread]
    kept = list(_sample(manifest.shards, columns=columns)) if columns else []
    rejected = list(_sample(manifest.rejects + manifest.quarantine, reason)) if sees_all else []
    return show(
        "sample.html",
        path=path,
        stage=manifest.stage,
        kept=kept,
        rejected=rejected,
        sees_all=sees_all,
        reasons={**manifest.rejected, **manifest.quarantined},
        reason=reason,
        evidence_of=evidence_of,
        most_bytes=MOST_SAMPLED,
    ).of(len(kept) + len(rejected))


@app.get("/trace/{recipe}/{snapshot}", dependencies=[Depends(curator)])
def trace_page(request: Request, recipe: str, snapshot: str, user: GetUserDep, token: int = 0) -> HTMLResponse:
    """Show the document and the landed record that a packed token comes from; its id and header are for stewards."""
    version = version_log.current(root(), recipe, snapshot)
    if COMPOSE not in version.manifests:
        raise HTTPException(NOT_FOUND, f"snapshot {snapshot} has documents; tokens are of a training dataset")
    origin = trace(root(), version, token, MOST_HEADER)
    source = refined_version(root(), version, origin.snapshot)
    origin = origin if holds(request, user, Role.STEWARD) else replace(origin, header=(), record="")
    return show("trace.html", version=version, origin=origin, source=source).of(1, [origin.document])


@app.get("/document/{recipe}/{snapshot}", dependencies=[Depends(curator)])
def document_page(
    request: Request, recipe: str, snapshot: str, user: GetUserDep, doc: Term = "", file: Term = ""
) -> Response:
    """Show every decision on a document of a snapshot, its duplicates, its landed records, its tokens and its text.

    Curators see documents that were kept, without what was found or cut in them and without their duplicates.

    A page that leads here may name the landed `file` of a record of it, so that the shards of that are read first.
    """
    version = version_log.current(root(), recipe, snapshot)
    sees_all = may_see(request, user, Role.STEWARD)
    page = explored(root(), version, doc.strip(), file, sees_all=sees_all)
    values = {"evidence_of": evidence_of, "singles_of": single_facts, "signals_of": signals, "stretches_of": stretches}
    limits = {"most": MEMBERS_SHOWN, "longest": TEXT_SHOWN, "compared": COMPARED}
    limits |= {"most_bytes": MOST_OF_DOCUMENT, "most_clusters": MOST_OF_CLUSTERS, "most_blocks": BLOCKS_SHOWN}
    commands = {"command": page.command(root()), "duplicates": duplicates_command(root(), version, page.wanted)}
    known = page.document
    shown = show("document.html", version=version, explored=page, sees_all=sees_all, **values, **limits, **commands)
    shown.of(len(known.records) if known else 0, [known.id] if known else [])
    shown.status_code = NOT_FOUND if page.message else shown.status_code
    return shown


def search_query(phrase: Name = "", url: Term = "", where: Where = "") -> dict[str, str]:
    """Return what is looked for in a snapshot."""
    return {"phrase": phrase.strip(), "url": url.strip(), "where": where.strip()}


@app.get("/search/{recipe}/{snapshot}", dependencies=[Depends(curator)])
def search_of_snapshot(
    request: Request,
    recipe: str,
    snapshot: str,
    user: GetUserDep,
    query: Annotated[dict[str, str], Depends(search_query)],
    start: Row = 0,
) -> Response:
    """Show a snapshot's documents by phrase, URL or columns, from row `start` on, up to many bytes.

    Curators search those that were kept, stewards rejected ones, too.
    """
    kept_only = not may_see(request, user, Role.STEWARD)
    version = version_log.current(root(), recipe, snapshot)
    page = search_page(root(), version, **query, start=start, kept_only=kept_only)
    limits = {"most_hits": HITS_SHOWN, "most_bytes": MOST_BYTES}
    hits = page.search.hits if page.search else ()
    shown = show("search.html", shown=page, **limits, kept_only=kept_only, command=page.command(root()))
    shown.of(len(hits), [hit.id for hit in hits])
    shown.status_code = UNPROCESSABLE if page.message else shown.status_code
    return shown


def read_choice(
    reason: Names = [],  # noqa: B006 -- FastAPI copies it
    language: Names = [],  # noqa: B006
    kept: Count = 30,
    rejected: Count = 30,
    seed: Seed = 1,
) -> Choice:
    """Return which documents are drawn to be read; empty fields of the form choose nothing."""
    return Choice(kept, rejected, seed, *(tuple(filter(None, names)) for names in (reason, language)))


Drawing = Annotated[Choice, Depends(read_choice)]


@app.get("/read/{recipe}/{snapshot}")
def read_page(
    request: Request, recipe: str, snapshot: str, user: GetUserDep, choice: Drawing, after: Row = 0
) -> HTMLResponse:
    """Show a document of a blind sample beside its landed page, to judge it, and what readers have said so far.

    Who may not read texts sees the shares alone; curators read kept documents, without the landed page.
    """
    version = version_log.current(root(), recipe, snapshot)
    if not holds(request, user, Role.CURATOR):
        return _read_response(version, shares_of(root(), version), Role.VIEWER)
    role = _reader(request, user)
    page = reading_page(root(), version, _readable(choice, role), after, user.get_name(), beside=role is Role.STEWARD)
    return _read_response(version, page, role)


@app.post("/read/{recipe}/{snapshot}", dependencies=[Depends(curator)])
def read_answer(
    request: Request, recipe: str, snapshot: str, user: GetUserDep, choice: Drawing, form: Annotated[ReadForm, Form()]
) -> Response:
    """Store a reader's answer, and show the next document; 403 for a form that is not of this reader's page."""
    version, reader, role = version_log.current(root(), recipe, snapshot), user.get_name(), _reader(request, user)
    choice = _readable(choice, role)
    _require_own(request, form.token, reader, version)
    try:
        following = answered(root(), version, choice, reader, form.model_dump())
    except RecipeError as error:
        page = reading_page(root(), version, choice, form.after, reader, beside=role is Role.STEWARD)
        shown = _read_response(version, replace(page, message=str(error)), role)
        shown.status_code = UNPROCESSABLE
        return shown
    return RedirectResponse(following, SEE_OTHER)


def _reader(request: Request, user: GetUserDep) -> Role:
    """Return as what a curator or steward reads, and have the look logged."""
    role = Role.STEWARD if holds(request, user, Role.STEWARD) else Role.CURATOR
    require(request, user, role)
    return role


def _readable(choice: Choice, role: Role) -> Choice:
    """Return the sample without rejected documents for who is no steward."""
    return choice if role is Role.STEWARD else replace(choice, rejected=0, reasons=())


def _require_own(request: Request, token: str, reader: str, version: Version) -> None:
    """Raise 403 for a form that is not of this reader's page."""
    _require_own_form(request, has_token=is_token(token, reader, version))


def _require_own_form(request: Request, *, has_token: bool) -> None:
    """Raise 403 for a form of another site, or one without the token of its user."""
    is_own = request.headers.get("sec-fetch-site", "same-origin") == "same-origin"
    if not is_own or not has_token:
        raise HTTPException(FORBIDDEN, STALE)


def _read_response(version: Version, page: ReadingPage, role: Role) -> HTMLResponse:
    values = {"command": page.command(root()), "outcome_of": outcome_line, "may_read": role is not Role.VIEWER}
    values |= {"is_steward": role is Role.STEWARD}
    known = [document.id for document in (page.document, page.judged) if document]
    return show("read.html", version=version, shown=page, most=MOST_DRAWN, **values).of(len(known), known)


def intruder_asked(by: Name = "", column: Name = "", bands: Name = "", group: Reason = "", seed: Seed = 1) -> Asked:
    """Return which draw is asked for: an address names the grouping, the form its column and bands."""
    named = f"{column.strip()}/{bands.strip()}" if bands.strip() else column.strip()
    return Asked(by.strip() or named, group.strip(), seed)


IntruderDraw = Annotated[Asked, Depends(intruder_asked)]


@app.get("/intruder/{recipe}/{snapshot}")
def intruder_of_snapshot(
    request: Request, recipe: str, snapshot: str, user: GetUserDep, asked: IntruderDraw
) -> HTMLResponse:
    """Show five documents, four of one group, to say which is foreign, and how often readers have found it.

    Who may not read texts sees the shares alone.
    """
    version = version_log.current(root(), recipe, snapshot)
    may_read = holds(request, user, Role.CURATOR)
    if may_read:
        require(request, user, Role.CURATOR)
    page = intruder_page(root(), version, asked, user.get_name() if may_read else "")
    shown = _intruder_response(page, may_read=may_read)
    shown.status_code = UNPROCESSABLE if page.message and request.query_params else shown.status_code
    return shown


@app.post("/intruder/{recipe}/{snapshot}", dependencies=[Depends(curator)])
def intruder_answer(
    request: Request,
    recipe: str,
    snapshot: str,
    user: GetUserDep,
    asked: IntruderDraw,
    form: Annotated[IntruderForm, Form()],
) -> Response:
    """Store a reader's answer, and show the draw with what was foreign; 403 for a form not of this reader's page."""
    version, reader = version_log.current(root(), recipe, snapshot), user.get_name()
    _require_own(request, form.token, reader, version)
    try:
        address = intruder_answered(root(), version, asked, reader, form.model_dump())
    except RecipeError as error:
        page = replace(intruder_page(root(), version, asked, reader), message=str(error))
        shown = _intruder_response(page)
        shown.status_code = UNPROCESSABLE
        return shown
    return RedirectResponse(address, SEE_OTHER)


def _intruder_response(page: IntruderPage, *, may_read: bool = True) -> HTMLResponse:
    values = {"command": page.command(root()), "may_read": may_read, "longest": INTRUDER_SHOWN}
    known = [document.id for document in page.documents]
    return show("intruder.html", version=page.version, shown=page, **values).of(len(known), known)


def find_query(
    doc: Term = "", url: Term = "", site: Term = "", text: Name = "", where: Where = "", recipe: Term = ""
) -> dict[str, str]:
    """Return what is asked for."""
    asked = {"doc": doc, "url": url, "site": site, "text": text, "where": where}
    return {**{name: value.strip() for name, value in asked.items()}, "recipe": recipe}


@app.get("/find")
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


def similar_query(doc: Term = "", url: Term = "", where: Where = "") -> dict[str, str]:
    """Return what documents are to be like, and conditions on them."""
    return {"doc": doc.strip(), "url": url.strip(), "where": where.strip()}


@app.get("/similar/{recipe}", dependencies=[Depends(curator)])
def similar_documents(recipe: str, query: Annotated[dict[str, str], Depends(similar_query)]) -> Response:
    """Show the published documents of a recipe that are most like one of them; a snapshot's shards up to many bytes."""
    version_log.current(root(), recipe)
    page = similar_page(root(), recipe, query)
    documents = page.found.documents if page.found else ()
    shown = show("similar.html", shown=page, command=page.command(root()))
    shown.of(len(documents), [each.id for each in documents])
    shown.status_code = UNPROCESSABLE if page.message else shown.status_code
    return shown


@app.get("/map/{recipe}/{snapshot}", dependencies=[Depends(curator)])
def map_of_snapshot(recipe: str, snapshot: str, by: Name = "") -> Response:
    """Show documents of a snapshot as points that are near by their vectors, colored by a column."""
    page = map_page(root(), version_log.current(root(), recipe, snapshot), by.strip())
    shown = show("map.html", map=page, command=page.command(root())).of(len(page.shown.points) if page.shown else 0)
    shown.status_code = UNPROCESSABLE if page.message else shown.status_code
    return shown


@app.get("/purpose")
def purpose_page(request: Request, user: GetUserDep, following: Term = "") -> HTMLResponse:
    """Ask for what the user looks at texts today."""
    return _purpose_page(user.get_name(), purpose_of(request, user.get_name()), following)


@app.post("/purpose")
def purpose_answer(request: Request, user: GetUserDep, form: Annotated[PurposeForm, Form()]) -> Response:
    """Keep the purpose in the browser until the end of the day, and show the page that was asked for."""
    _require_own_form(request, has_token=is_form_token(form.token, user.get_name()))
    answer = RedirectResponse(own_address(form.following), SEE_OTHER)
    keep_purpose(request, answer, user.get_name(), form.purpose)
    return answer


def _purpose_page(user: str, purpose: str, following: str, message: str = "") -> Shown:
    values = {"token": form_token(user), "following": own_address(following), "longest": LONGEST_PURPOSE}
    return show("purpose.html", purpose=purpose, message=message, **values)


@app.get("/manifest/{path:path}")
def manifest_page(path: str) -> HTMLResponse:
    """Show a manifest: the fields of one stage's output, and its shards."""
    manifest = _json(path)
    shards = {name: manifest.pop(name, []) for name in ("shards", "rejects", "quarantine")}
    shards |= {f"history: {section}": saved for section, saved in manifest.pop("history", {}).items()}
    manifest.pop("metrics", None)
    return show("manifest.html", path=path, facts=json.dumps(manifest, indent=2, ensure_ascii=False), shards=shards)


# --- Files -----------------------------------------------------------------------------------------------------


@app.get("/static/{name}")
def static(name: str) -> Response:
    """Return a static file of the pages; its URL names its content, so a browser may keep it."""
    if name not in rendering.MEDIA_TYPES:
        raise HTTPException(NOT_FOUND, f"the pages have no file {name}")
    keep = {"Cache-Control": "private, max-age=31536000, immutable"}
    return Response(rendering.static_file(name), media_type=rendering.MEDIA_TYPES[name], headers=keep)


@app.get("/files/{path:path}")
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
