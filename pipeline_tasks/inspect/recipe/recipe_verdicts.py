"""Finds what ablations say of a recipe: the one that sees most counts in which its data was the second arm."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pipeline_tasks.inspect.recipe.choices import Choices, choices_made
from pipeline_tasks.publish.logs.ablation_log import COMPARISON, LOG, MIXTURE, AblatedArm, Ablation, ablations
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.recipe import COMPOSE, NOT_WORSE, Requirement, margin_of
from pipeline_tasks.store.reading import read_manifest

UNDECIDED = "not decidable"
"""The outcome of a comparison in which two learning rates contradict each other."""

UNCOUNTED = "smoke"
"""The size of models whose verdict says nothing of larger ones."""

MOST_STAGES = 8
"""Stages that a line names."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A recipe that is to run: its name, what it chooses, what it requires, and whether it builds a dataset."""

    name: str
    choices: Choices
    requires: Requirement
    builds: bool


@dataclass(frozen=True, slots=True)
class Standing:
    """What the log of a root says of a recipe.

    `verdicts` are the ablations that count, oldest first. `other` is the newest one of a recipe of the same name, None
    if there is none or one counts: `differing` are the stages that chose otherwise then.
    """

    root: str
    judged: Judged
    verdicts: tuple[Ablation, ...]
    other: Ablation | None = None
    differing: tuple[str, ...] = ()

    @property
    def strongest(self) -> Ablation | None:
        """The verdict that decides: that of most scored texts, seeds times documents. None without any.

        Of equals it is the newest one that refuses, if one does: who repeats a comparison until chance lets it pass has
        measured no more than who made it once.
        """
        return max(self.verdicts, key=self._weight, default=None)

    def _weight(self, verdict: Ablation) -> tuple[int, bool, int]:
        return verdict.seeds * max(verdict.documents, 1), bool(self._refusal(verdict)), verdict.number

    @property
    def why_not(self) -> str:
        """Why the verdict that decides does not pass, "" if it does, or if there is none."""
        return "" if self.strongest is None else self._refusal(self.strongest)

    def _refusal(self, verdict: Ablation) -> str:
        return why_not(verdict, margin_of(self.judged.requires.verdict))

    @property
    def passes(self) -> bool:
        """Whether there is a verdict, and it is not worse."""
        return self.strongest is not None and not self.why_not

    def facts(self) -> dict[str, float | None]:
        """Return what the gate `verdict` judges: how many verdicts count, and what the one that decides says."""
        decided = None if self.strongest is None else float(self.passes)
        number = None if self.strongest is None else float(self.strongest.number)
        return {"verdicts": float(len(self.verdicts)), NOT_WORSE.replace("-", "_"): decided, "ablation": number}

    def lines(self) -> Iterator[str]:
        """Yield what is known, and the command that would change it."""
        beside = f" beside {self.judged.requires.beside}" if self.judged.requires.beside else ""
        if self.strongest is not None:
            yield f"ablation {self.strongest.number} of {self.strongest.at[:10]}: {said(self.strongest)}"
            yield from [self.why_not] if self.why_not else []
        else:
            yield f"{self.root}/{LOG.folder} has no verdict on what recipe {self.judged.name} chooses{beside}"
            if self.other is not None:
                yield f"ablation {self.other.number} is of other choices, in {_stages(self.differing)}"
        if not self.passes:
            yield from (f"    {line}" for line in self.commands())

    def commands(self) -> Iterator[str]:
        """Yield the commands that compare the recipe with what it is to stand beside."""
        name, beside = self.judged.name, self.judged.requires.beside or "OTHER"
        held_out = "--held-out FILE --size 15m --to FOLDER"
        if self.judged.builds:
            copy = f"{name}_next"
            yield f"refinery build {self.root} --recipe COPY  # of {name}, with `name: {copy}`, no `requires`"
            yield f"refinery ablate --datasets {self.root}/{beside}@latest,{self.root}/{copy}@latest {held_out}"
        else:
            yield f"refinery ablate --recipes {beside},{name} --input LANDED {held_out} --root {self.root}"


def standing(root: str, judged: Judged) -> Standing:
    """Return what the ablations of a root say of a recipe; ContractError for a damaged log."""
    beside = [ablation for ablation in ablations(root) if _counts(ablation, judged.requires)]
    own = tuple(ablation for ablation in beside if _is_of(ablation, judged.choices))
    named = [ablation for ablation in beside if judged.name in ablation.arms[1].choices]
    if own or not named:
        return Standing(root, judged, own)
    before = named[-1].arms[1].choices[judged.name]
    stages = dict.fromkeys([*judged.choices, *before])
    differing = tuple(stage for stage in stages if before.get(stage) != judged.choices.get(stage))
    return Standing(root, judged, own, named[-1], differing)


def chosen_otherwise(ablation: Ablation) -> tuple[str, ...]:
    """Return the stages of which the recipes of both arms chose otherwise, or that one of them lacks."""
    first, second = ({stage: own[stage] for own in arm.choices.values() for stage in own} for arm in ablation.arms)
    return tuple(stage for stage in dict.fromkeys([*first, *second]) if first.get(stage) != second.get(stage))


def verdict_between(root: str, a: Version, b: Version) -> Ablation | None:
    """Return the newest ablation of two versions, whichever was the first arm; None without one, or of unlike ones.

    Training datasets are those that were compared. Snapshots stand for their recipes: what these choose was compared.
    """
    known = ablations(root)
    if not known or (COMPOSE in a.manifests) != (COMPOSE in b.manifests):
        return None
    sides = _side(root, a), _side(root, b)
    compared = (ablation for ablation in reversed(known) if ablation.kind != MIXTURE)  # both arms are of one version
    pairs = [(ablation, tuple(map(_sides, ablation.arms))) for ablation in compared]
    return next((ablation for ablation, arms in pairs if _is_between(arms, sides)), None)


def _side(root: str, version: Version) -> Mapping[str, str]:
    if COMPOSE in version.manifests:
        return dict(version.manifests)
    return choices_made(read_manifest(root, referred) for referred in version.manifests.values())


def _sides(arm: AblatedArm) -> list[Mapping[str, str]]:
    return [dict(arm.manifests), *_chosen(arm)]


def _is_between(arms: Sequence[Sequence[Mapping[str, str]]], sides: Sequence[Mapping[str, str]]) -> bool:
    (first, second), (a, b) = arms, sides
    return a != b and ((a in first and b in second) or (a in second and b in first))


def _counts(ablation: Ablation, requires: Requirement) -> bool:
    first = ablation.arms[0]
    if ablation.kind != COMPARISON:  # intervals that hold for many stages see less, so that more is not worse
        return False
    return ablation.size != UNCOUNTED and requires.beside in ("", first.recipe, *first.made_from)


def _is_of(ablation: Ablation, choices: Choices) -> bool:
    """Return whether a recipe with these choices made the second arm; what made both arms was not compared."""
    first, second = map(_chosen, ablation.arms)
    return choices in second and choices not in first


def _chosen(arm: AblatedArm) -> list[Mapping[str, str]]:
    return [dict(choices) for choices in arm.choices.values()]


def short_names(ablation: Ablation) -> tuple[str, str]:
    """Return what both arms are called, without their roots."""
    first, second = (arm.dataset.rstrip("/").rpartition("/")[2] for arm in ablation.arms)
    return (f"prior of {first}", f"found mixture of {second}") if ablation.kind == MIXTURE else (first, second)


class Interval(Protocol):
    """A difference in bits per byte: above 0 the second arm is worse."""

    @property
    def low(self) -> float:
        """Its least value."""

    @property
    def high(self) -> float:
        """Its largest value."""


class Compared(Protocol):
    """What was said of a second arm beside the first."""

    @property
    def outcome(self) -> str:
        """What it is."""

    @property
    def decisive(self) -> Interval:
        """The difference at the larger rate."""


def why_not(compared: Compared, margin: float) -> str:
    """Return why a second arm is not seen to be worse by less than a margin, "" if it is.

    What was not measured does not pass: a wide interval has the margin in it.
    """
    low, high = compared.decisive.low, compared.decisive.high
    if compared.outcome == UNDECIDED:
        return "its two learning rates contradict each other; more seeds may decide it"
    if high < margin:
        return ""
    if low > 0:
        return f"it is worse by {low:.4f} to {high:.4f} bits per byte, and {margin:g} may be lost"
    if (high - low) / 2 >= margin:
        return (
            f"this comparison cannot see a margin of {margin:g} bits per byte: its interval is {(high - low) / 2:.4f} "
            "to either side; take more seeds and more held-out documents"
        )
    return f"it may be worse by {high:.4f} bits per byte, and {margin:g} may be lost; take more seeds or documents"


def said(ablation: Ablation) -> str:
    """Return what an ablation says, in one line."""
    decisive = ablation.decisive
    first, second = short_names(ablation)
    return (
        f"{second} beside {first} is {ablation.outcome} ({decisive.value:+.4f} bits per byte, {decisive.low:+.4f} to "
        f"{decisive.high:+.4f}, size {ablation.size})"
    )


def _stages(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - MOST_STAGES} more" if len(names) > MOST_STAGES else ""
    return ", ".join(names[:MOST_STAGES]) + more
