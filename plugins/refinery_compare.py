"""Gathers what the page that compares two versions shows: what differs, and plots of both."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import quote, urlencode

from refinery_run import base

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.chosen import chosen_version
from pipeline_tasks.inspect.diff import Diff, compare
from pipeline_tasks.inspect.distributions import paired_distributions
from pipeline_tasks.inspect.document_sets import Amount
from pipeline_tasks.inspect.stage_differences import Shift, StageDifference
from pipeline_tasks.inspect.versions import VersionLine, list_versions
from pipeline_tasks.publish import version_log
from pipeline_tasks.publish.plots.change import change_plot
from pipeline_tasks.publish.plots.distributions import distribution
from pipeline_tasks.publish.plots.funnel import COPIES
from pipeline_tasks.publish.plots.plot import Plot
from pipeline_tasks.publish.version_log import Version

FEWEST = 2
"""Versions that a comparison needs."""

MOST_DOCUMENTS = 1_000_000
"""Documents of both versions up to which a request reads their ids."""

LEAST_SHIFT = 0.01
"""Population stability index from which on the page lists a shift."""

GROUPS_SHOWN = 12
"""Groups of a column that the page lists, those with most documents."""

COLORS = ("--plot-1", "--plot-2")
"""The colors of the second version and of the first, as snapshots and those before them have them."""

Group = tuple[str, tuple[Amount, Amount]]


@dataclass(frozen=True, slots=True)
class Compared:
    """The page: the versions to choose from, the names of both sides, and what differs or what is wrong.

    `documents` is whether their documents are compared by id. Without `diff` nothing could be compared.
    """

    recipe: str
    versions: Sequence[VersionLine]
    a: str
    b: str
    documents: bool
    message: str = ""
    diff: Diff | None = None
    stages: Plot | None = None
    distributions: Sequence[Plot] = ()

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
        return list({each.snapshot: each for each in (self.diff.a, self.diff.b)}.values()) if self.diff else []

    @property
    def shifts(self) -> list[Shift]:
        """The shifts that the page lists."""
        return [shift for shift in self.diff.shifts if shift.psi >= LEAST_SHIFT] if self.diff else []

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
    return None if stage in COPIES or not rows_in or rows is None else rows / rows_in


def _largest(groups: Mapping[str, tuple[Amount, Amount]]) -> list[Group]:
    return sorted(groups.items(), key=lambda group: (-sum(amount.documents for amount in group[1]), group[0]))


def address_of(recipe: str, a: str, b: str, *, documents: bool) -> str:
    """Return the address of a comparison."""
    fields = {"a": a, "b": b} | ({"documents": "on"} if documents else {})
    return f"{base()}/compare/{quote(recipe, safe='')}?{urlencode(fields)}"


def documents_of(a: Version, b: Version) -> int:
    """Return how many documents two versions have, those of both counted twice."""
    return a.documents + b.documents


def compared(root: str, recipe: str, a: str, b: str, *, documents: bool) -> Compared:
    """Return the page of two versions, by number or snapshot; RecipeError if the recipe has not been published.

    Without `b` it is the newest version, without `a` the one that `b` follows.
    """
    versions = list_versions(root, recipe)
    if not versions:
        version_log.current(root, recipe)  # raises: it says what is published
    page = Compared(recipe, versions[::-1], a, b, documents)
    if len(versions) < FEWEST:
        return replace(page, message=f"{recipe} has one version; there is none to compare it with")
    try:
        return _filled(root, page, versions)
    except RecipeError as error:
        return replace(page, message=str(error))


def _filled(root: str, page: Compared, versions: Sequence[VersionLine]) -> Compared:
    """Return the page with what differs; RecipeError for a version that is not there, or too many documents."""
    b = chosen_version(root, page.recipe, page.b or str(versions[-1].number))
    a = chosen_version(root, page.recipe, page.a or str(_followed(versions, b)))
    page = replace(page, a=str(a.number), b=str(b.number))
    if a.number == b.number:
        message = f"version {a.number} of {page.recipe} is on both sides; choose another for one of them"
        raise RecipeError(message)
    if page.documents and documents_of(a, b) > MOST_DOCUMENTS:
        message = (
            f"versions {a.number} and {b.number} have {documents_of(a, b):,} documents, and a page compares the ids of "
            f"{MOST_DOCUMENTS:,}; use `refinery diff {a.number} {b.number} --documents`"
        )
        raise RecipeError(message)
    diff = compare(root, a, b, documents=page.documents)
    return replace(page, diff=diff, stages=_stages(diff), distributions=_distributions(root, a, b))


def _followed(versions: Sequence[VersionLine], version: Version) -> int:
    """Return the version before this one, of its snapshot if there is any; the first one is followed itself."""
    before = [line for line in versions if line.number < version.number]
    own = [line for line in before if line.snapshot == version.snapshot]
    return (own or before or versions[1:])[-1].number


def _colors(a: Version, b: Version) -> dict[str, str]:
    return dict(zip((side_name(b), side_name(a)), COLORS, strict=True))


def side_name(version: Version) -> str:
    """Return how plots name a version."""
    return f"{version.number}: {version.snapshot}"


def _stages(diff: Diff) -> Plot | None:
    counts = {stage.stage: _kept(stage) for stage in diff.stages if stage.stage not in COPIES}
    colors = dict(reversed(_colors(diff.a, diff.b).items()))
    return change_plot("Rows that each stage kept", "stage", counts, colors=colors, ranked=False)


def _kept(stage: StageDifference) -> tuple[int, int]:
    a, b = stage.rows
    return a or 0, b or 0


def _distributions(root: str, a: Version, b: Version) -> list[Plot]:
    colors = _colors(a, b)
    return [
        distribution(stage, column, dict(zip(colors, reversed(profiles), strict=True)), colors)
        for stage, column, profiles in paired_distributions(root, a, b)
    ]
