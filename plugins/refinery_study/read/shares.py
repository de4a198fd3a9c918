"""Computes what readers' answers say of a recipe: shares with their intervals, and rules that reject good documents.

A document counts once, by the share of its readers who say so: five readers who agree on it know no more of the recipe
than one. How far they agree is a fact of its own.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import ceil, floor

from pipeline_tasks.gate.limits import share_limits
from pipeline_tasks.run.recipe_faults import Finding
from refinery_study.read.answers import Answer, answers

TAIL = 0.025
"""Chance that the truth is above, and that it is below, an interval: 95 % intervals."""

ROUNDING = 1e-9
"""What a sum of shares may be off."""


@dataclass(frozen=True, slots=True)
class Share:
    """How many documents were judged, and how many are good: of each the share of its readers who say so."""

    name: str
    judged: int
    good: float

    @property
    def interval(self) -> tuple[float, float]:
        """The limits of Clopper and Pearson (1934) of 95 %; 0 to 1 if nothing was judged.

        Documents on which readers differ vary less than those that are good or bad, so that the limits hold for them.
        """
        if not self.judged:
            return 0.0, 1.0
        fewest, most = floor(self.good + ROUNDING), ceil(self.good - ROUNDING)
        return share_limits(fewest, self.judged, TAIL)[0], share_limits(most, self.judged, TAIL)[1]


@dataclass(frozen=True, slots=True)
class Agreement:
    """Documents that several readers judged, and on how many they agree: of each the share of pairs who do."""

    documents: int
    same: float


Judged = Iterable[tuple[Hashable, bool]]
"""Answers: what was judged, and whether the answer is good."""


def share_of(name: str, judged: Judged) -> Share:
    """Return the share of what was judged, each once, however many judged it."""
    by_unit = _by_unit(judged).values()
    return Share(name, len(by_unit), sum(sum(answers) / len(answers) for answers in by_unit))


def agreement_of(judged: Judged) -> Agreement:
    """Return how far those agree who judged the same."""
    several = [list(combinations(answers, 2)) for answers in _by_unit(judged).values() if len(answers) > 1]
    return Agreement(len(several), sum(sum(one == other for one, other in pairs) / len(pairs) for pairs in several))


def _by_unit(judged: Judged) -> dict[Hashable, list[bool]]:
    units: defaultdict[Hashable, list[bool]] = defaultdict(list)
    for unit, is_good in judged:
        units[unit].append(is_good)
    return units


@dataclass(frozen=True, slots=True)
class Reading:
    """What readers say of a recipe."""

    kept: Share
    rejected: Share
    rules: tuple[Share, ...]
    languages: tuple[Share, ...]
    readers: tuple[Share, ...]
    agreement: Agreement


def reading(answers: Sequence[Answer]) -> Reading:
    """Return the shares of good documents: of kept and rejected ones, per rule of rejection, and per language."""
    kept = [answer for answer in answers if answer.is_kept]
    rejected = [answer for answer in answers if not answer.is_kept]
    return Reading(
        kept=share_of("kept", _judged(kept)),
        rejected=share_of("rejected", _judged(rejected)),
        rules=_shares(rejected, lambda answer: answer.reason),
        languages=_shares(kept, lambda answer: answer.language or "und"),
        readers=_shares(answers, lambda answer: answer.reader),
        agreement=agreement_of(_judged(answers)),
    )


def _judged(answers: Iterable[Answer]) -> Judged:
    return (((answer.snapshot, answer.id), answer.verdict == "good") for answer in answers)


def _shares(answers: Sequence[Answer], key: Callable[[Answer], str]) -> tuple[Share, ...]:
    """Return a share per key, the one with most documents first."""
    groups: defaultdict[str, list[Answer]] = defaultdict(list)
    for answer in answers:
        groups[key(answer)].append(answer)
    shares = (share_of(name, _judged(own)) for name, own in groups.items())
    return tuple(sorted(shares, key=lambda share: (-share.judged, share.name)))


def in_short(documents: float) -> str:
    """Return a number of documents, of which readers may have judged parts."""
    return f"{documents:,.0f}" if documents == round(documents) else f"{documents:,.1f}"


def lint_findings(root: str, recipe: str) -> Iterator[Finding]:
    """Yield the `findings` of what readers said of a recipe below a root, for `refinery lint`: none is a fault."""
    for rule, message in findings(reading(answers(root, recipe))):
        yield Finding(fault=False, where=rule, message=message)


def findings(read: Reading) -> Iterator[tuple[str, str]]:
    """Yield each rule whose rejected documents are mostly good, beyond chance, with what to do."""
    for share in read.rules:
        low, _ = share.interval
        if low > 1 / 2:
            count = f"{in_short(share.good)} of {share.judged}"
            message = (
                f"{count} documents that it rejected are good by reading, at least {low:.0%} of all: "
                "loosen its bound, or take the rule as a signal only"
            )
            yield share.name, message
