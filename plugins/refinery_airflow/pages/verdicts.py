"""Gathers what the pages of verdicts show: which recipe's data gave better models, how sure that is, and on what."""

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from urllib.parse import quote

from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from refinery_ablate.attribution import COSTS, PAYS, WORDS
from refinery_ablate.evidence import Evidence, read_evidence
from refinery_ablate.plots import forest_plot, plot_of_curves

from pipeline_tasks.ask.question import Role
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.recipe.choices import choices_of
from pipeline_tasks.inspect.recipe.recipe_verdicts import (
    UNCOUNTED,
    Judged,
    Standing,
    chosen_otherwise,
    short_names,
    standing,
)
from pipeline_tasks.plots.plot import Plot
from pipeline_tasks.publish.logs import ablation_log, version_log
from pipeline_tasks.publish.logs.ablation_log import (
    ATTRIBUTION,
    MIXTURE,
    AblatedArm,
    Ablation,
    RateDifference,
    ablations,
)
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.recipe import BUILDS, Recipe, load_build, load_recipe, recipe_names
from pipeline_tasks.store import storage
from refinery_airflow.access.looks import LookRoute
from refinery_airflow.access.roles import is_reader, may_see, verdicts_of
from refinery_airflow.pages.compare import address_of
from refinery_airflow.pages.dataset import OPEN
from refinery_airflow.pages.rendering import show
from refinery_airflow.runs.run import base, root

router = APIRouter(route_class=LookRoute)


LOOKS = {"better": "pass", "worse": "refuse", "not decidable": "warn"}
"""The class of the style for an outcome; one without is neither good nor bad."""

STAGE_LOOKS = {PAYS: "pass", COSTS: "refuse"}
"""The same for what a stage does."""

GROUPS_SHOWN = 12
"""Groups of the mixtures that are shown at once; the rest is folded."""


@dataclass(frozen=True, slots=True)
class Shown:
    """An ablation as pages show it. `arms` are short names of both, and `differs` the stages that chose otherwise."""

    ablation: Ablation
    arms: tuple[str, str]
    differs: Sequence[str]

    @property
    def decisive(self) -> RateDifference:
        """The difference at the larger rate, which decides."""
        return max(self.ablation.differences, key=lambda difference: difference.rate)

    @property
    def is_attribution(self) -> bool:
        """Whether b is a without a stage."""
        return self.ablation.kind == ATTRIBUTION

    @property
    def is_search(self) -> bool:
        """Whether both arms are mixtures of one dataset."""
        return self.ablation.kind == MIXTURE

    @property
    def title(self) -> str:
        """What was compared, for people."""
        if self.is_attribution:
            return f"{', '.join(self.ablation.arms[0].made_from) or self.arms[0]} without {', '.join(self.differs)}"
        if self.is_search:
            return f"{self.arms[1]}, beside the {self.arms[0].partition(' ')[0]}"
        return f"{self.arms[1]} beside {self.arms[0]}"

    @property
    def says(self) -> str:
        """Its outcome: of an attribution what the stage does, which is worse, or better, without it."""
        return WORDS.get(self.ablation.outcome, self.ablation.outcome) if self.is_attribution else self.ablation.outcome

    @property
    def looks(self) -> str:
        """The class of its outcome."""
        return (STAGE_LOOKS if self.is_attribution else LOOKS).get(self.says, "")

    @property
    def counts(self) -> bool:
        """Whether models of its size say something of larger ones."""
        return self.ablation.size != UNCOUNTED

    @property
    def words(self) -> str:
        """What it says, in a sentence."""
        value, detectable = self.decisive.value, self.ablation.detectable
        if self.ablation.outcome in ("better", "worse"):
            fewer = "fewer" if value < 0 else "more"
            return (
                f"Models that b trains need {abs(value):.4f} bits per byte {fewer} than those of a on held-out "
                "documents, and every learning rate points the same way."
            )
        if self.ablation.outcome == "not decidable":
            return "The learning rates disagree: the answer depends on how a model is trained."
        return (
            "No difference was seen. That is no proof of equality: as far as seeds alone decide, one of "
            f"{detectable:.4f} would have been seen in four of five comparisons."
        )


@dataclass(frozen=True, slots=True)
class VerdictsPage:
    """The page of all verdicts of a root, the newest first, and the recipes that require one with where they stand."""

    verdicts: Sequence[Shown]
    required: Sequence[tuple[Standing | None, Recipe, str]]


@dataclass(frozen=True, slots=True)
class VerdictPage:
    """The page of one verdict. Without `evidence`, that of an earlier release, it has its intervals alone.

    `links` are the addresses of the pages of both arms, "" of one that is not in this root; `compare` is that of the
    page which compares them. `stages` are those of the run of an attribution, those that pay most first.
    """

    told: Shown
    evidence: Evidence | None
    forest: Plot | None
    curves: Sequence[Plot]
    links: tuple[str, str]
    compare: str
    command: str
    stages: Sequence[Shown]

    @property
    def is_open(self) -> bool:
        """Whether the names of the groups of the mixtures are for all."""
        return self.evidence is not None and set(self.evidence.by.split("+")) <= OPEN

    @property
    def runs(self) -> int:
        """How many models were trained."""
        return self.told.ablation.seeds * len(self.told.ablation.differences) * len(self.told.arms)


def verdicts_page(root: str, sees: Callable[[Ablation], bool], reads: Callable[[str], bool]) -> VerdictsPage:
    """Return the page of the verdicts that somebody `sees`, and of the recipes that they read.

    ContractError for a damaged log.
    """
    required = [row for row in _required(root) if reads(row[1].name)]
    return VerdictsPage([_shown(ablation) for ablation in reversed(ablations(root)) if sees(ablation)], required)


def _shown(ablation: Ablation) -> Shown:
    return Shown(ablation, short_names(ablation), chosen_otherwise(ablation))


def _required(root: str) -> Iterator[tuple[Standing | None, Recipe, str]]:
    """Yield the recipes of this deployment that require a verdict, with where they stand, or why that is not known."""
    loaded = [*map(load_recipe, recipe_names()), *map(load_build, recipe_names(BUILDS))]
    for recipe in loaded:
        if recipe.requires is not None:
            try:
                choices = choices_of(recipe.steps)
            except RecipeError as error:  # a file that is on workers alone
                yield None, recipe, str(error)
                continue
            judged = Judged(recipe.name, choices, recipe.requires, builds=recipe.versions is not None)
            yield standing(root, judged), recipe, ""


def verdict_page(root: str, number: int) -> VerdictPage:
    """Return the page of the verdict of a number; RecipeError if there is none, ContractError for damaged evidence."""
    known = {ablation.number: ablation for ablation in ablations(root)}
    if number not in known:
        there = f"the newest is {max(known)}" if known else "it has none"
        message = f"{root} has no verdict {number}; {there}"
        raise RecipeError(message)
    ablation = known[number]
    evidence = read_evidence(root, ablation)
    versions = [_version(root, arm) for arm in ablation.arms]
    first, second = (_address(version) for version in versions)
    return VerdictPage(
        _shown(ablation),
        evidence,
        forest_plot(evidence.differences, evidence.groups) if evidence else None,
        [plot_of_curves(rate, rows) for rate, rows in sorted(evidence.curves.items(), reverse=True)]
        if evidence
        else (),
        (first, second),
        _compared(versions),
        _command(ablation),
        _stages(ablation, known.values()) if ablation.kind == ATTRIBUTION else (),
    )


def _stages(ablation: Ablation, known: Iterable[Ablation]) -> list[Shown]:
    """Return the attributed stages of the run that an entry is of: what has the same arm a, models and scored texts."""
    same = {each.arms[1].digest: _shown(each) for each in known if _run_of(each) == _run_of(ablation)}
    return sorted(same.values(), key=lambda shown: -shown.decisive.value)


def _run_of(ablation: Ablation) -> tuple[object, ...]:
    rates = tuple(each.rate for each in ablation.differences)
    own = (ablation.kind, ablation.size, ablation.tokens, ablation.seeds, ablation.held_out)
    return (*own, rates, ablation.arms[0].dataset, ablation.arms[0].digest)


def _version(root: str, arm: AblatedArm) -> Version | None:
    """Return the version of this root that an arm is, None if it is of another one."""
    if not arm.version or arm.recipe not in version_log.recipes(root):
        return None
    own = [version for version in version_log.versions(root, arm.recipe) if version.number == arm.version]
    return next((version for version in own if dict(version.manifests) == dict(arm.manifests)), None)


def _address(version: Version | None) -> str:
    return f"{base()}/snapshot/{quote(version.recipe, safe='')}/{quote(version.snapshot, safe='')}" if version else ""


def _compared(versions: Sequence[Version | None]) -> str:
    first, second = versions
    if first is None or second is None or (first.recipe, first.number) == (second.recipe, second.number):
        return ""
    a = str(first.number) if first.recipe == second.recipe else f"{first.recipe}:{first.number}"
    return address_of(second.recipe, a, str(second.number), documents=False)


def _command(ablation: Ablation) -> str:
    """Return the command that compares, or searches, the same with more seeds."""
    size = ["--size", ablation.size, "--seeds", str(ablation.seeds + 2)]
    if ablation.kind == MIXTURE:
        named = ["model", "mixture", "--dataset", ablation.arms[0].dataset]
        return shlex.join(["refinery", *named, "--held-out", "FILE", *size, "--to", "FOLDER"])
    arms = ",".join(arm.dataset for arm in ablation.arms)
    named = ["--datasets", arms]
    if ablation.kind == ATTRIBUTION:
        named = ["--attribute", ",".join(ablation.arms[0].made_from) or "RECIPE", "--input", "LANDED"]
    return shlex.join(["refinery", "ablate", *named, "--held-out", "FILE", *size, "--to", "FOLDER"])


def shares_of(rows: Sequence[Mapping[str, Sequence[int]]]) -> tuple[int, int]:
    """Return the tokens of all groups, of both arms."""
    first, second = (sum(row["tokens"][arm] for row in rows) for arm in (0, 1))
    return first, second


@router.get("/verdicts")
def verdicts(user: GetUserDep) -> HTMLResponse:
    """Show which of two datasets gave the better models; and what recipes require: of those that the user may read."""
    storage.require_folder(root())
    page = verdicts_page(root(), verdicts_of(user), partial(is_reader, user))
    return show("verdicts.html", shown=page)


@router.get("/verdicts/{number}")
def verdict(request: Request, number: int, user: GetUserDep) -> HTMLResponse:
    """Show one verdict with its intervals, curves, groups, cost and evidence; names of sites to who may read texts."""
    page = verdict_page(root(), number)
    return show(
        "verdict.html",
        shown=page,
        entry=ablation_log.LOG.entry_path(number),
        totals=shares_of(page.evidence.mixture) if page.evidence else (0, 0),
        shows_groups=page.is_open or may_see(request, user, Role.CURATOR),
        most=GROUPS_SHOWN,
    )
