"""Ends a comparison: its verdict is recorded, and a condition that it may be subject to lets it pass or refuses it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pipeline_tasks.errors import GateRefused, RecipeError
from pipeline_tasks.inspect.recipe.recipe_verdicts import why_not
from pipeline_tasks.recipe import NOT_WORSE, REQUIRED, margin_of
from refinery_ablate.comparison import judge
from refinery_ablate.recording import Recorded, record
from refinery_ablate.report import PAGE
from refinery_ablate.sizes import SMOKE
from refinery_ablate.verdict import Verdict, lines_of


@dataclass(frozen=True, slots=True)
class Condition:
    """What a verdict has to be, "" for anything; and who lets another one pass and why, "" if nobody does."""

    require: str = ""
    override: str = ""

    def refuses(self, verdict: Verdict) -> str:
        """Return why a verdict is not what it has to be, "" if it is."""
        return why_not(verdict, margin_of(self.require)) if self.require else ""


def condition_of(require: str, override: str, size: str) -> Condition:
    """Return a condition as a person wrote it.

    RecipeError for an override of which a part is missing or that overrides nothing, and for a condition on models that
    decide nothing.
    """
    name, _, why = (part.strip() for part in override.partition(":"))
    if override and not (name and why):
        message = f"override {override[:100]!a}: write NAME: WHY; both are kept in the ledger"
        raise RecipeError(message)
    if require and not REQUIRED.admits(require):
        message = f"require {require[:100]!a}: a verdict can be required to be {REQUIRED}"
        raise RecipeError(message)
    if override and not require:
        message = f"an override lets a refused verdict pass; require {NOT_WORSE}, too"
        raise RecipeError(message)
    if require and size == SMOKE:
        message = f"require {require}: a model of the size {SMOKE} decides nothing; name another size"
        raise RecipeError(message)
    return Condition(require, f"{name}: {why}" if override else "")


@dataclass(frozen=True, slots=True)
class Concluded:
    """A verdict, where it was recorded, and the condition on it, which a person may have overridden."""

    verdict: Verdict
    recorded: tuple[Recorded, ...]
    condition: Condition
    folder: Path

    def lines(self) -> Iterator[str]:
        """Yield the verdict for a person."""
        yield from lines_of(self.verdict)

    def where(self) -> Iterator[str]:
        """Yield where the report and the entries are."""
        yield f"report: {self.folder / PAGE}"
        yield from (f"recorded: {each}" for each in self.recorded)

    def require_passed(self) -> None:
        """Raise GateRefused for a refused verdict that nobody has let pass."""
        why = self.condition.refuses(self.verdict)
        if why and not self.condition.override:
            first, second = (arm.name for arm in self.verdict.plan.arms)
            message = (
                f"{second} beside {first}: {self.verdict.outcome}, and {self.condition.require} is required: {why}. "
                f"Look at {self.folder / PAGE}. If it may pass, run again with an override, 'NAME: WHY'"
            )
            raise GateRefused(message)


def conclude(folder: Path, condition: Condition, usd_per_hour: float, also: str) -> Concluded:
    """Judge a comparison whose runs have all ended, and record the verdict in the roots of its arms, and in `also`.

    What is refused is recorded, too. RecipeError while runs are missing.
    """
    verdict = judge(folder, usd_per_hour)
    recorded = record(verdict, folder, condition.override if condition.refuses(verdict) else "", also)
    return Concluded(verdict, tuple(recorded), condition, folder)
