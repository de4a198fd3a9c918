"""Gathers what the page that compares two versions, of one recipe or two, shows: what differs, and plots of both."""

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import quote, urlencode

from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import APIRouter, Response

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.chosen import chosen_version, named_version
from pipeline_tasks.inspect.diff import Diff, Retention, compare
from pipeline_tasks.inspect.diff.document_sets import Amount
from pipeline_tasks.inspect.diff.stages import Difference, Rows, Shift, StageDifference
from pipeline_tasks.inspect.recipe.recipe_verdicts import said
from pipeline_tasks.inspect.report.distributions import paired_distributions
from pipeline_tasks.inspect.report.plotted import Published
from pipeline_tasks.inspect.versions import VersionLine, list_versions
from pipeline_tasks.plots.change import change_plot
from pipeline_tasks.plots.distributions import distribution
from pipeline_tasks.plots.funnel import counts_documents
from pipeline_tasks.plots.plot import Plot
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from refinery_airflow.access.looks import LookRoute
from refinery_airflow.access.roles import is_reader
from refinery_airflow.pages.fields import UNPROCESSABLE, Name
from refinery_airflow.pages.rendering import show
from refinery_airflow.runs.run import base, root

router = APIRouter(route_class=LookRoute)


FEWEST = 2
"""Versions that a comparison needs."""

MOST_DOCUMENTS = 1_000_000
"""Documents of both versions up to which a request reads their ids."""

LEAST_SHIFT = 0.01
"""Population stability index from which on the page lists a shift."""

SETTINGS_SHOWN = MOVED_SHOWN = 6
"""Settings and reasons that the first screen lists."""

SHIFTS_SHOWN = 3
"""Shifts that the first screen names."""

GROUPS_SHOWN = 12
"""Groups of a column that the page lists, those with most documents."""

OTHERS_SHOWN = 50
"""Versions of each other recipe that the page lets choose, the newest."""

COLORS = ("--plot-1", "--plot-2")
"""The colors of the second version and of the first, as snapshots and those before them have them."""

Group = tuple[str, tuple[Amount, Amount]]

Pair = tuple[float | None, float | None]


@dataclass(frozen=True, slots=True)
class StageCosts:
    """The seconds and dollars that a stage took in each version, as the ledger has them; None without a record."""

    stage: str
    seconds: Pair
    usd: Pair


@dataclass(frozen=True, slots=True)
class Compared:
    """The page: the versions to choose from, the names of both sides, and what differs or what is wrong.

    A side is named as `refinery diff` takes it: by a number, or `RECIPE:NUMBER` of another recipe. `documents` is
    whether their documents are compared by id. Without `diff` nothing could be compared.
    """

    recipe: str
    versions: Sequence[VersionLine]
    others: Mapping[str, Sequence[VersionLine]]
    a: str
    b: str
    documents: bool
    message: str = ""
    diff: Diff | None = None
    stages: Plot | None = None
    distributions: Sequence[Plot] = ()
    costs: Sequence[StageCosts] = ()

    @property
    def title(self) -> str:
        """What is compared."""
        recipes = {each.recipe: None for each in (self.diff.a, self.diff.b)} if self.diff else {self.recipe: None}
        return f"Compare versions of {' and '.join(recipes)}"

    @property
    def names(self) -> tuple[str, str]:
        """The numbers of both versions; with the recipes if these differ."""
        if self.diff is None:
            return self.a, self.b
        return short_name(self.diff.a, self.diff), short_name(self.diff.b, self.diff)

    @property
    def reasons(self) -> list[tuple[str, str, Rows]]:
        """The rows of each reason, by stage, in both versions."""
        stages = self.diff.stages if self.diff else ()
        return [(stage.stage, reason, rows) for stage in stages for reason, rows in stage.reasons.items()]

    @property
    def verdict(self) -> str:
        """What models say that both trained, "" without a verdict."""
        return said(self.diff.verdict) if self.diff and self.diff.verdict else ""

    @property
    def settings(self) -> list[tuple[str, Difference]]:
        """The settings that differ of the stages that both versions have, with their stages."""
        stages = self.diff.stages if self.diff else ()
        return [(stage.stage, each) for stage in stages if all(stage.present) for each in stage.differences]

    @property
    def moved(self) -> list[tuple[str, int, int]]:
        """The reasons whose rows changed most, of those that both versions counted."""
        known = [(reason, a, b) for _, reason, (a, b) in self.reasons if a is not None and b is not None and a != b]
        return sorted(known, key=lambda each: (-abs(each[2] - each[1]), each[0]))[:MOVED_SHOWN]

    @property
    def retention(self) -> Sequence[Retention]:
        """The languages that are listed, the largest."""
        return self.diff.retention[:GROUPS_SHOWN] if self.diff else ()

    @property
    def swapped(self) -> str:
        """The address of the same page with the sides changed."""
        return address_of(self.recipe, self.b, self.a, documents=self.documents)

    @property
    def with_documents(self) -> str:
        """The address of the same page with documents compared by id; "" if they are, or are too many."""
        if self.documents or self.diff is None or documents_of(self.diff.a, self.diff.b) > MOST_DOCUMENTS:
            return ""
        return address_of(self.recipe, self.a, self.b, documents=True)

    @property
    def snapshots(self) -> list[Version]:
        """The versions whose snapshots the page links to: one of each snapshot."""
        sides = (self.diff.a, self.diff.b) if self.diff else ()
        return list({(each.recipe, each.snapshot): each for each in sides}.values())

    @property
    def shifts(self) -> list[Shift]:
        """The shifts that the page lists."""
        return [shift for shift in self.diff.shifts if shift.psi >= LEAST_SHIFT] if self.diff else []

    @property
    def sure_shifts(self) -> list[Shift]:
        """The shifts that the first screen names: moderate and large ones, of enough rows."""
        return [shift for shift in self.shifts if shift.is_sure][:SHIFTS_SHOWN]

    @property
    def groups(self) -> dict[str, list[Group]]:
        """The groups of each column that are listed, those with most documents first."""
        if self.diff is None:
            return {}
        return {by: _largest(groups)[:GROUPS_SHOWN] for by, groups in self.diff.groups.items() if groups}

    def shares(self, stage: StageDifference) -> tuple[float | None, float | None]:
        """Return the share of rows that a stage kept in each version; None where rows become other things."""
        a, b = (_share(stage.stage, *rows) for rows in zip(stage.rows_in, stage.rows, strict=True))
        return a, b

    def command(self, root: str) -> str:
        """Return the command that prints the same."""
        parts = ["refinery", "diff", self.a, self.b, root, "--recipe", self.recipe]
        return shlex.join([*parts, *(["--documents"] if self.documents else [])])


def _share(stage: str, rows_in: int | None, rows: int | None) -> float | None:
    return None if not counts_documents(stage) or not rows_in or rows is None else rows / rows_in


def _largest(groups: Mapping[str, tuple[Amount, Amount]]) -> list[Group]:
    return sorted(groups.items(), key=lambda group: (-sum(amount.documents for amount in group[1]), group[0]))


def address_of(recipe: str, a: str, b: str, *, documents: bool) -> str:
    """Return the address of a comparison."""
    fields = {"a": a, "b": b} | ({"documents": "on"} if documents else {})
    return f"{base()}/compare/{quote(recipe, safe='')}?{urlencode(fields)}"


def documents_of(a: Version, b: Version) -> int:
    """Return how many documents two versions have, those of both counted twice."""
    return a.documents + b.documents


def compared(root: str, recipe: str, a: str, b: str, *, documents: bool, others: Collection[str]) -> Compared:
    """Return the page of two versions, by number or snapshot; RecipeError if the recipe has not been published.

    `RECIPE:NAME` names one of another recipe, of those in `others`. Without `b` it is the newest version, and without
    `a` the one that `b` follows: the newest if `b` is of another recipe, and that of another recipe if there is no
    other of this one.
    """
    versions = list_versions(root, recipe)
    if not versions:
        version_log.current(root, recipe)  # raises: it says what is published
    page = Compared(recipe, versions[::-1], _others(root, others), a, b, documents)
    if len(versions) < FEWEST and not page.others:
        return replace(page, message=f"{recipe} has one version; there is none to compare it with")
    try:
        return _filled(root, page, versions)
    except RecipeError as error:
        return replace(page, message=str(error))


def _filled(root: str, page: Compared, versions: Sequence[VersionLine]) -> Compared:
    """Return the page with what differs; RecipeError for a version that is not there, or too many documents."""
    b = _named(root, page, page.b or str(versions[-1].number))
    a = _named(root, page, page.a or _followed(page, versions, b))
    page = replace(page, a=_side(page.recipe, a), b=_side(page.recipe, b))
    if page.a == page.b:
        message = f"version {a.number} of {a.recipe} is on both sides; choose another for one of them"
        raise RecipeError(message)
    if page.documents and documents_of(a, b) > MOST_DOCUMENTS:
        message = (
            f"versions {a.number} and {b.number} have {documents_of(a, b):,} documents, and a page compares the ids of "
            f"{MOST_DOCUMENTS:,}; use `refinery diff {page.a} {page.b} --documents`"
        )
        raise RecipeError(message)
    diff = compare(root, a, b, documents=page.documents)
    return replace(
        page, diff=diff, stages=_stages(diff), distributions=_distributions(root, diff), costs=_costs(root, diff)
    )


def _named(root: str, page: Compared, name: str) -> Version:
    """Return a version by its name; who may not see its recipe is told what they would be of one that is not there."""
    is_shown = name.partition(":")[0] in (page.recipe, *page.others)
    return named_version(root, page.recipe, name) if is_shown else chosen_version(root, page.recipe, name)


def _others(root: str, recipes: Collection[str]) -> dict[str, Sequence[VersionLine]]:
    """Return the newest versions of each other recipe, the newest first."""
    lines = {name: list_versions(root, name)[::-1][:OTHERS_SHOWN] for name in recipes}
    return {name: versions for name, versions in lines.items() if versions}


def _side(recipe: str, version: Version) -> str:
    return str(version.number) if version.recipe == recipe else f"{version.recipe}:{version.number}"


def _costs(root: str, diff: Diff) -> list[StageCosts]:
    """Return what the stages of both took; of two versions of one snapshot the ledger has the newest run alone."""
    if (diff.a.recipe, diff.a.snapshot) == (diff.b.recipe, diff.b.snapshot):
        return []
    a, b = ({row["stage"]: row for row in Published(root, version).costs} for version in (diff.a, diff.b))
    stages = [stage.stage for stage in diff.stages if stage.stage in a or stage.stage in b]
    none = {"wall_seconds": None, "cost_usd": None}
    rows = [(stage, a.get(stage, none), b.get(stage, none)) for stage in stages]
    return [
        StageCosts(stage, (x["wall_seconds"], y["wall_seconds"]), (x["cost_usd"], y["cost_usd"]))
        for stage, x, y in rows
    ]


def _followed(page: Compared, versions: Sequence[VersionLine], version: Version) -> str:
    """Return the name of the version before this one, of its snapshot if there is any; the first is followed itself.

    A version of another recipe follows the newest of this one, and the only one of its recipe the newest of another.
    """
    if version.recipe != page.recipe:
        return str(versions[-1].number)
    if len(versions) < FEWEST:
        name, lines = next(iter(page.others.items()))
        return f"{name}:{lines[0].number}"
    before = [line for line in versions if line.number < version.number]
    own = [line for line in before if line.snapshot == version.snapshot]
    return str((own or before or versions[1:])[-1].number)


def _colors(diff: Diff) -> dict[str, str]:
    return dict(zip((side_name(diff.b, diff), side_name(diff.a, diff)), COLORS, strict=True))


def short_name(version: Version, diff: Diff) -> str:
    """Return the number of a version, with its recipe if those of both sides differ."""
    return str(version.number) if diff.a.recipe == diff.b.recipe else f"{version.recipe} {version.number}"


def side_name(version: Version, diff: Diff) -> str:
    """Return how plots name a version."""
    return f"{short_name(version, diff)}: {version.snapshot}"


def _stages(diff: Diff) -> Plot | None:
    counts = {stage.stage: stage.rows for stage in diff.stages if counts_documents(stage.stage)}
    colors = dict(reversed(_colors(diff).items()))
    return change_plot("Rows that each stage kept", "stage", counts, colors=colors, ranked=False)


def _distributions(root: str, diff: Diff) -> list[Plot]:
    colors = _colors(diff)
    return [
        distribution(stage, column, dict(zip(colors, reversed(profiles), strict=True)), colors)
        for stage, column, profiles in paired_distributions(root, diff.a, diff.b)
    ]


@router.get("/compare/{recipe}")
def compare_page(recipe: str, user: GetUserDep, a: Name = "", b: Name = "", documents: Name = "") -> Response:
    """Show what differs between two versions, named by number or snapshot; with `documents`, by id, too."""
    others = [name for name in version_log.recipes(root()) if name != recipe and is_reader(user, name)]
    page = compared(root(), recipe, a.strip(), b.strip(), documents=bool(documents), others=others)
    shown = show("compare.html", compared=page, settings_shown=SETTINGS_SHOWN, command=page.command(root()))
    shown.status_code = UNPROCESSABLE if page.message and (a or b) else shown.status_code
    return shown
