"""Computes what readers' answers say of a recipe: shares with their intervals, and rules that reject good documents."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import sqrt

from pipeline_tasks.gate.limits import normal_quantile
from pipeline_tasks.inspect.read.answers import Answer

TAIL = 0.025
"""Chance that the truth is above, and that it is below, an interval: 95 % intervals."""

FEW = 5
"""Answers on a rule below which nothing is said of it."""


@dataclass(frozen=True, slots=True)
class Share:
    """How many documents were judged, how many of them are good, and between which shares the truth is (Wilson)."""

    name: str
    judged: int
    good: int

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's interval (1927) of 95 %; 0 to 1 if nothing was judged."""
        if not self.judged:
            return 0.0, 1.0
        share, square = self.good / self.judged, normal_quantile(TAIL) ** 2
        center = (share + square / (2 * self.judged)) / (1 + square / self.judged)
        half = sqrt(square * (share * (1 - share) + square / (4 * self.judged)) / self.judged)
        half /= 1 + square / self.judged
        return max(0.0, center - half), min(1.0, center + half)


@dataclass(frozen=True, slots=True)
class Agreement:
    """Pairs of answers of two readers on one document, and those with the same verdict."""

    pairs: int
    same: int


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
    """Return the shares of good documents: of kept and rejected ones, per rule of rejection, and of kept per language.

    A document that several readers judged counts once for each.
    """
    kept = [answer for answer in answers if answer.is_kept]
    rejected = [answer for answer in answers if not answer.is_kept]
    return Reading(
        kept=_share("kept", kept),
        rejected=_share("rejected", rejected),
        rules=_shares(rejected, lambda answer: answer.reason),
        languages=_shares(kept, lambda answer: answer.language or "und"),
        readers=_shares(answers, lambda answer: answer.reader),
        agreement=_agreement(answers),
    )


def _share(name: str, answers: Sequence[Answer]) -> Share:
    return Share(name, len(answers), sum(answer.verdict == "good" for answer in answers))


def _shares(answers: Sequence[Answer], key: Callable[[Answer], str]) -> tuple[Share, ...]:
    """Return a share per key, the one with most answers first."""
    groups: dict[str, list[Answer]] = {}
    for answer in answers:
        groups.setdefault(key(answer), []).append(answer)
    return tuple(_share(name, groups[name]) for name in sorted(groups, key=lambda name: (-len(groups[name]), name)))


def _agreement(answers: Iterable[Answer]) -> Agreement:
    by_document: dict[tuple[str, str], list[str]] = {}
    for answer in answers:
        by_document.setdefault((answer.snapshot, answer.id), []).append(answer.verdict)
    pairs = [pair for verdicts in by_document.values() for pair in combinations(verdicts, 2)]
    return Agreement(len(pairs), sum(one == other for one, other in pairs))


def findings(read: Reading) -> Iterator[tuple[str, str]]:
    """Yield each rule whose rejected documents are mostly good, with what to do; none of fewer answers than FEW."""
    for share in read.rules:
        low, _ = share.interval
        if share.judged >= FEW and low > 1 / 2:
            message = (
                f"{share.good} of {share.judged} documents that it rejected are good by reading, at least {low:.0%} of "
                "all: loosen its bound, or take the rule as a signal only"
            )
            yield share.name, message
