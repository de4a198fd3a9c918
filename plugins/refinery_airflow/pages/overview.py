"""Joins what the root and Airflow know of snapshots for the overview page: states, next steps, calendar and trends."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from urllib.parse import quote

from pipeline_tasks.flow.plan import dag_of
from pipeline_tasks.inspect.unpublished import UnpublishedRun
from pipeline_tasks.inspect.versions.overview import Overview, SnapshotState, overview_of, overviews
from pipeline_tasks.plots.calendar import calendar
from pipeline_tasks.plots.plot import Plot, is_date
from pipeline_tasks.plots.trends import Measure, Measured, trend
from pipeline_tasks.recipe import is_trial
from pipeline_tasks.report.summary import StageSummary, Summary
from refinery_airflow.runs.newest import SnapshotRun, dag_page, newest_runs, recipes_with_runs
from refinery_airflow.runs.run import landing, root, site

FEWEST = 2
"""Snapshots that a trend needs."""

LANDED = "landed"
"""State of a snapshot that is in the landing, and that nothing is known of."""

ACTIVE = ("queued", "waiting", "running", "awaiting")

WORST = ("refuse", "warn", "pass")

QUALITY = ("score", "language_score")
"""Columns of quality, the best one first: the model's score, else the certainty of the language."""

RETENTION = Measure("Retention", "share", "{:.1%}", "Published documents per landed record that could be a new page.")
DOCUMENTS = Measure("Documents", "number", "{:,.0f}", "Documents of each published snapshot.")
COST = Measure("Cost", "dollars", "${:,.4f}", "Dollars per thousand published documents, at the ledger's prices.")
SCORE = Measure("Quality", "number", "{:.3f}", "Mean quality score of the kept documents.")
LANGUAGE = Measure("Certainty of the language", "number", "{:.3f}", "Mean language score of the kept documents.")
BY_COLUMN = dict(zip(QUALITY, (SCORE, LANGUAGE), strict=True))


@dataclass(frozen=True, slots=True)
class Line:
    """A snapshot as the page shows it: its state, what to do next ("" if nothing), and its pages ("" without).

    `why` is where and why a run stopped that published nothing, "" for a snapshot with a version.
    """

    snapshot: str
    state: str
    why: str
    next_step: str
    address: str
    run: str
    known: SnapshotState | None

    @property
    def stages(self) -> dict[str, StageSummary]:
        """The stages of its version, by name."""
        summary = self.known.summary if self.known else None
        return {stage.stage: stage for stage in summary.stages} if summary else {}


@dataclass(frozen=True, slots=True)
class Task:
    """What a person has to do, or what is under way, for one snapshot or for several that follow each other."""

    first: Line
    last: Line
    snapshots: int


@dataclass(frozen=True, slots=True)
class RecipePage:
    """The part of the overview page that one recipe has, or the training dataset that a recipe builds."""

    recipe: str
    stages: Sequence[str]
    lines: Sequence[Line]
    calendar: Plot | None
    trends: Sequence[Plot]
    is_dataset: bool = False

    @property
    def versions(self) -> int:
        """The number of versions of all snapshots."""
        return sum(line.known.versions for line in self.lines if line.known)

    @property
    def counts(self) -> dict[str, int]:
        """The number of snapshots in each state."""
        counts: dict[str, int] = {}
        for line in self.lines:
            counts[line.state] = counts.get(line.state, 0) + 1
        return counts

    @property
    def to_do(self) -> list[Task]:
        """What is to be done or under way; the earliest first, as later snapshots read the history of earlier ones."""
        lines = [line for line in self.lines if line.next_step and line.state != "retracted"]
        groups = [list(group) for _, group in groupby(lines, key=lambda line: (line.state, line.next_step))]
        return [Task(group[0], group[-1], len(group)) for group in groups]


def recipe_pages(root: str, landed: Sequence[str] = ()) -> list[RecipePage]:
    """Return the overview of every recipe of a root from its first run on, refined snapshots before training datasets.

    `landed` are snapshots that a recipe may not have refined yet; trials and training datasets are not made of all.
    """
    known = {overview.recipe: overview for overview in overviews(root)}
    runs = {name: newest_runs(name, root) for name in {*known, *recipes_with_runs(root)}}
    begun = sorted(name for name in runs.keys() - known.keys() if _under_way(runs[name]))
    pages = [
        recipe_page(overview)
        if overview.builds
        else recipe_page(overview, runs[overview.recipe], () if is_trial(overview.recipe) else landed)
        for overview in [*known.values(), *(Overview(name, ()) for name in begun)]
    ]
    return sorted(pages, key=lambda page: page.is_dataset)


def _under_way(runs: Mapping[str, SnapshotRun]) -> list[str]:
    """Return the snapshots of runs that are not done: what a run has done, the root knows."""
    return [name for name, run in runs.items() if run.happening != "done"]


def recipe_page(
    overview: Overview, runs: Mapping[str, SnapshotRun] | None = None, landed: Sequence[str] = ()
) -> RecipePage:
    """Return what the page shows of a recipe, given the newest run of each snapshot, and those that have landed."""
    runs = runs or {}
    known = {snapshot.snapshot: snapshot for snapshot in overview.snapshots}
    names = sorted({*known, *landed, *_under_way(runs)})
    dag = dag_address(dag_of(overview.recipe))
    lines = [_line(overview.recipe, name, known.get(name), runs.get(name), dag) for name in names]
    shown = None if overview.builds else _calendar(lines)
    trends = [] if overview.builds else list(_trends(overview))
    return RecipePage(overview.recipe, overview.stages, lines, shown, trends, is_dataset=overview.builds)


def _calendar(lines: Sequence[Line]) -> Plot:
    """Return the calendar; a folder of another name, that has landed only, does not make days a row of names."""
    is_daily = all(is_date(line.snapshot) for line in lines if line.state != LANDED)
    shown = [line for line in lines if is_date(line.snapshot) or not is_daily]
    return calendar([(line.snapshot, line.state, line.address or line.run) for line in shown])


def state_of(root: str, recipe: str, snapshot: str, run: SnapshotRun | None) -> tuple[str, str]:
    """Return the state and the next step of a published snapshot, given its newest run, as the overview shows them."""
    states = overview_of(root, recipe).snapshots
    return _state(next(state for state in states if state.snapshot == snapshot), run)


def state_of_run(known: UnpublishedRun, run: SnapshotRun | None) -> tuple[str, str]:
    """Return the state and the next step of a run that published nothing, given the snapshot's newest in Airflow."""
    return _state(SnapshotState(known.snapshot, known.state, known.next_step, run=known), run)


def _line(recipe: str, name: str, known: SnapshotState | None, run: SnapshotRun | None, dag: str) -> Line:
    """Return the line of a snapshot; `dag` is the address of the recipe's DAG, "" without one."""
    if not known and (not run or run.happening == "done"):
        next_step = f"it has landed: {_to_start(recipe, has_dag=bool(dag))}"
        return Line(name, LANDED, "", next_step, "", dag, None)
    state, next_step = _state(known, run)
    address = f"{site()}/snapshot/{quote(recipe, safe='')}/{quote(name, safe='')}" if known else ""
    stopped = known.run if known and not known.version and state not in ACTIVE else None
    page = f"{airflow()}{run.next_page}" if run else ""
    return Line(name, state, stopped.account if stopped else "", next_step, address, page, known)


def _to_start(recipe: str, *, has_dag: bool) -> str:
    if has_dag:
        return f"unpause `arrivals`, which starts it, or trigger `{dag_of(recipe)}` with its name as `snapshot`"
    command = f"refinery run --input {landing() or 'LANDING'}/SNAPSHOT {root()} --recipe {recipe}.yaml"
    return f"no DAG here refines by {recipe}; `{command}` does, or a DAG once the recipe is in `REFINERY_RECIPES`"


def airflow() -> str:
    """Return the path under which the web server serves Airflow's own pages."""
    return site().removesuffix("/refinery")


def dag_address(dag: str) -> str:
    """Return the address of a DAG's page in Airflow, "" where there is no such DAG."""
    page = dag_page(dag)
    return f"{airflow()}{page}" if page else ""


def _state(known: SnapshotState | None, run: SnapshotRun | None) -> tuple[str, str]:
    """Return the state and the next step: of a run under way, else of the root, with what its last run failed of."""
    if run and (run.happening in ACTIVE or not known):
        return run.happening, _account(run)
    assert known, "a line is of a snapshot that the root or a run knows"
    stopped = run if run and run.happening != "done" else None
    if known.run and known.state == known.run.state:
        return (stopped.happening, _way_out(stopped)) if stopped else (known.state, known.next_step)
    steps = [known.next_step]
    if known.run:
        way_out = _way_out(stopped) if stopped else known.run.next_step
        steps.append(f"a newer run is not published: {known.run.account}; {way_out}")
    elif stopped and known.state != "retracted":
        steps.append(_account(stopped))
    return known.state, "; ".join(filter(None, steps))


def _way_out(run: SnapshotRun) -> str:
    """Return what to do about a run that stopped, where the page says why."""
    tasks = ", ".join(run.tasks)
    if run.happening == "refused":
        return f"mend the data, or let it pass: clear {tasks} to be asked again, or accept the gate in a new run"
    return f"mend what it names, then clear {tasks or 'the failed tasks'} in its run; what is committed is used again"


def _account(run: SnapshotRun) -> str:
    """Return what a run does, or what to do about it."""
    tasks = ", ".join(run.tasks)
    return {
        "queued": "its run is queued",
        "waiting": "its run waits until the snapshot has landed completely",
        "running": f"its run is in {tasks}" if tasks else "its run is between two tasks",
        "awaiting": f"{tasks} refuses, and awaits approval: open its run, read the form, and approve or reject",
        "refused": f"{tasks} refused in its last run: read the Data Docs, then mend the data or override the gate",
        "failed": f"its last run failed in {tasks}: read the end of that task's log, then clear the task",
        "done": "",
    }[run.happening]


# --- Trends -------------------------------------------------------------------------------------------------------


def _trends(overview: Overview) -> Iterable[Plot]:
    """Yield the trends of the published snapshots that have at least two points."""
    published = overview.published
    series: list[tuple[Measure, Mapping[str, float | None]]] = [
        (RETENTION, {state.snapshot: retention(state) for state in published}),
        (DOCUMENTS, {state.snapshot: float(state.version.documents) for state in published if state.version}),
        _quality(published),
        (COST, {state.snapshot: _unit_cost(state) for state in published}),
    ]
    outcomes = {state.snapshot: _worst(state.summary) for state in published}
    for measure, values in series:
        points = [Measured(name, value, outcomes[name]) for name, value in values.items() if value is not None]
        if len(points) >= FEWEST:
            yield trend(measure, points)


def retention(state: SnapshotState) -> float | None:
    """Return the published share of the records that could be a new page; None where that is not known.

    Generated documents are no records.
    """
    stages, generated = (state.summary.stages, state.summary.generated) if state.summary else ((), 0)
    records = stages[0].rows_in - sum(stage.no_page for stage in stages) if stages else 0
    return (state.version.documents - generated) / records if state.version and records else None


def _quality(published: Sequence[SnapshotState]) -> tuple[Measure, dict[str, float | None]]:
    """Return the means of the best column of quality that any snapshot has."""
    for column in QUALITY:
        means = {state.snapshot: state.summary.mean(column) if state.summary else None for state in published}
        if any(mean is not None for mean in means.values()):
            return BY_COLUMN[column], means
    return SCORE, {}


def _unit_cost(state: SnapshotState) -> float | None:
    """Return dollars per thousand documents; None where the ledger has no cost, or there are no documents."""
    if not state.cost or not state.version or not state.version.documents:
        return None
    return state.cost * 1e3 / state.version.documents


def _worst(summary: Summary | None) -> str:
    outcomes = {stage.outcome for stage in summary.stages} | {summary.outcome} if summary else set()
    return next((outcome for outcome in WORST if outcome in outcomes), "")
