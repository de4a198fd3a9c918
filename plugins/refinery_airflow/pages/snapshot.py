"""Gathers what the page of a snapshot shows: its plots, and what its newest run in Airflow took."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from pipeline_tasks.gate.verdicts import Verdict
from pipeline_tasks.inspect.report.distributions import distributions
from pipeline_tasks.inspect.report.judged_bounds import bounded_facts
from pipeline_tasks.inspect.report.plotted import known_manifests
from pipeline_tasks.inspect.report.shares import language_shares, name_courses
from pipeline_tasks.publish.comparisons import Comparison, comparisons
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.publish.plots.comparison import comparison_plot
from pipeline_tasks.publish.plots.distributions import distribution
from pipeline_tasks.publish.plots.funnel import funnel_plot
from pipeline_tasks.publish.plots.languages import languages_plot
from pipeline_tasks.publish.plots.plot import Plot
from pipeline_tasks.publish.plots.room import room_plot
from pipeline_tasks.publish.plots.shares import shares_plot
from pipeline_tasks.publish.plots.times import Partition, partition_times, slow_partitions, stage_times
from pipeline_tasks.recipe import BUILDS, COMPOSE, load_build, recipe_names
from refinery_airflow.pages.overview import airflow
from refinery_airflow.runs.newest import SnapshotRun, newest_runs, partition_seconds

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
