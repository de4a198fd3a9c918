"""Gathers what the page of a snapshot shows: its plots, and what its newest run in Airflow took."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.responses import HTMLResponse

from pipeline_tasks.ask.question import Role
from pipeline_tasks.cards import adds
from pipeline_tasks.gate.verdicts import Verdict
from pipeline_tasks.inspect.funnel import funnel
from pipeline_tasks.inspect.report.distributions import distributions
from pipeline_tasks.inspect.report.judged_bounds import bounded_facts
from pipeline_tasks.inspect.report.plotted import Published, known_manifests
from pipeline_tasks.inspect.report.shares import language_shares, name_courses, site_shares
from pipeline_tasks.inspect.unpublished import UnpublishedRun, committed, readable_runs
from pipeline_tasks.inspect.whatif import JUDGE
from pipeline_tasks.inspect.whatif.stages import stage_bounds
from pipeline_tasks.plots.distributions import distribution
from pipeline_tasks.plots.funnel import funnel_plot
from pipeline_tasks.plots.languages import languages_plot
from pipeline_tasks.plots.plot import Plot
from pipeline_tasks.plots.room import room_plot
from pipeline_tasks.plots.shares import shares_plot
from pipeline_tasks.plots.times import Partition, partition_times, slow_partitions, stage_times
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.recipe import BUILDS, COMPOSE, load_build, recipe_names
from pipeline_tasks.report.comparison_plots import comparison_plot
from pipeline_tasks.report.comparisons import Comparison, comparisons
from pipeline_tasks.schema import EMBEDDING
from refinery_airflow.access.looks import LookRoute
from refinery_airflow.access.roles import curator, may_see
from refinery_airflow.pages.answers import answers_of
from refinery_airflow.pages.dataset import SOURCES_SHOWN, card_of, dataset_of, is_dataset
from refinery_airflow.pages.fields import NOT_FOUND
from refinery_airflow.pages.overview import airflow, state_of, state_of_run
from refinery_airflow.pages.rendering import show
from refinery_airflow.runs.newest import SnapshotRun, newest_runs, partition_seconds
from refinery_airflow.runs.run import root

router = APIRouter(route_class=LookRoute)


SLOW_SHOWN = 10
"""Slow partitions that are listed."""


@dataclass(frozen=True, slots=True)
class SnapshotPlots:
    """The plots of a snapshot; None or empty where nothing is known that they could show."""

    funnel: Plot | None
    room: Plot | None
    languages: Plot | None
    names: Sequence[Plot]
    distributions: Sequence[Plot]
    comparisons: Sequence[tuple[Comparison, Plot | None]]
    times: Plot | None
    partitions: Plot | None
    slow: Sequence[Partition]


@dataclass(frozen=True, slots=True)
class RunLinks:
    """The address of a snapshot's newest run in Airflow."""

    address: str

    def group(self, stage: str) -> str:
        """Return the address of a stage's tasks."""
        return f"{self.address}/tasks/group/{quote(stage, safe='')}"


def run_of_snapshot(root: str, version: Version) -> SnapshotRun | None:
    """Return the newest run of a version's snapshot; None for a build, or where Airflow has none."""
    return None if COMPOSE in version.manifests else newest_runs(version.recipe, root).get(version.snapshot)


def links_of(run: SnapshotRun | None) -> RunLinks | None:
    """Return the addresses of a run."""
    return RunLinks(f"{airflow()}{run.path}") if run else None


def builds_of(recipe: str) -> list[str]:
    """Return the recipes of builds that take their documents from the snapshots of a recipe; none for a trial."""
    builds = [load_build(name) for name in recipe_names(BUILDS)]
    return [build.name for build in builds if build.versions and build.versions.recipe == recipe]


def plots_of(
    root: str,
    version: Version,
    earlier: Sequence[Version],
    *,
    steps: Sequence[Mapping[str, Any]],
    verdicts: Mapping[str, Verdict],
    costs: Sequence[Mapping[str, Any]],
    run: SnapshotRun | None,
) -> SnapshotPlots:
    """Return the plots of a version."""
    partitions = list(_partitions(run)) if run else []
    return SnapshotPlots(
        funnel=funnel_plot(steps),
        room=room_plot(bounded_facts(version.recipe, verdicts)),
        languages=_languages(root, version, earlier),
        names=[plot for each in name_courses(root, version, earlier) if (plot := shares_plot(*each))],
        distributions=[distribution(*shown) for shown in distributions(root, version, earlier)],
        comparisons=[(each, comparison_plot(each)) for each in comparisons(known_manifests(root, version))],
        times=stage_times(costs) if any(row["wall_seconds"] for row in costs) else None,
        partitions=partition_times(partitions) if partitions else None,
        slow=slow_partitions(partitions)[:SLOW_SHOWN],
    )


def _languages(root: str, version: Version, earlier: Sequence[Version]) -> Plot | None:
    languages = language_shares(root, version, earlier)
    if languages is None:
        return None
    note = f"Documents came into {languages.first} and were kept after {languages.last}. Shares are of those kept."
    return languages_plot(languages.shares, note)


def _partitions(run: SnapshotRun) -> list[Partition]:
    """Return the time of each partition of a run, with its page in Airflow."""
    return [
        Partition(stage, at, seconds, f"{airflow()}{run.path}/tasks/{quote(f'{stage}.partition', safe='')}/mapped/{at}")
        for stage, at, seconds in partition_seconds(run)
    ]


@router.get("/snapshot/{recipe}/{snapshot}")
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


@router.get("/card/{recipe}/{snapshot}", dependencies=[Depends(curator)])
def card_page(recipe: str, snapshot: str) -> HTMLResponse:
    """Show the card of a training dataset, which may name sites."""
    version = version_log.current(root(), recipe, snapshot)
    if not is_dataset(version):
        raise HTTPException(NOT_FOUND, f"snapshot {snapshot} has a report; a card is of a training dataset")
    return show("card.html", version=version, card=card_of(root(), version))


def _retracted(retraction: version_log.Retraction) -> HTMLResponse:
    """Show when and why a snapshot was retracted, and its versions."""
    versions = version_log.versions(root(), retraction.recipe)
    retracted = [version for version in versions if version.number in retraction.retracts]
    return show("retracted.html", retraction=retraction, versions=retracted)
