"""Computes the amounts of a manifest that bounds are learned of, each with how far chance may take it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pipeline_tasks.gate import limits
from pipeline_tasks.gate.estimates import mean_of
from pipeline_tasks.gate.facts.columns import ENRICHED, numeric_columns, score_means
from pipeline_tasks.gate.facts.rows import pages_in, rows_due
from pipeline_tasks.gate.facts.signals import signal_medians
from pipeline_tasks.gate.facts.subject import EMPTY, Subject, profiles_of
from pipeline_tasks.profiles.bins import octave_end

TAIL = 0.0005
"""Probability that chance alone takes an amount farther on one side: a snapshot has about a hundred learned bounds."""

ANY = "*"
"""`language_share.*` is the amount of each language that a manifest does not have: none of its rows."""


@dataclass(frozen=True, slots=True)
class Amount:
    """A share, mean or count, and the distance that chance may take it from its population's; both in its own unit."""

    value: float
    chance: float


Amounts = Mapping[str, Amount]
"""Amount by the name of its fact."""


def amounts_of(subject: Subject) -> Amounts:
    """Return rows, kept shares, shares of reasons, languages and names, means, also of the score by language, medians.

    They follow from the manifest alone.
    """
    parts = (_rows, _reasons, _languages, _names, _means, _scores, _medians)
    return dict(amount for part in parts for amount in part(subject))


def earlier_amounts(subject: Subject) -> list[Amounts]:
    """Return the amounts of the trailing snapshots' manifests, in their order."""
    return [amounts_of(Subject(subject.root, manifest)) for manifest in subject.trailing]


def amount_of(name: str, amounts: Amounts) -> Amount | None:
    """Return an amount, that of no rows for a name that a manifest could have had, else None."""
    return amounts.get(name) or amounts.get(f"{name.partition('.')[0]}.{ANY}")


_Named = Iterator[tuple[str, Amount]]


def _rows(subject: Subject) -> _Named:
    manifest, due = subject.manifest, rows_due(subject)
    yield count_amount("rows_in", manifest.rows_in)
    if due is not None:
        yield from share_amount("retention", manifest.rows, due)
        yield from share_amount("page_retention", manifest.rows, pages_in(manifest, due))


def _reasons(subject: Subject) -> _Named:
    manifest = subject.manifest
    for reason, rows in {**manifest.rejected, **manifest.quarantined}.items():
        yield from share_amount(f"reason_share.{reason}", rows, manifest.rows_due)
    yield from share_amount(f"reason_share.{ANY}", 0, manifest.rows_due)


def _languages(subject: Subject) -> _Named:
    kept, rejected = (
        profiles_of(subject.manifest, rows).get("language", {}).get("bins", {}) for rows in ("kept", "rejects")
    )
    total = sum(kept.values())
    for code, rows in kept.items():
        yield from share_amount(f"language_share.{code}", rows, total)
    yield from share_amount(f"language_share.{ANY}", 0, total)
    for code in {**kept, **rejected}:
        rows = kept.get(code, 0)
        yield from share_amount(f"language_retention.{code}", rows, rows + rejected.get(code, 0))


def _names(subject: Subject) -> _Named:
    """Yield the share of each type, level, notice and topic, as far as the stage profiles them."""
    for column in ENRICHED:
        if column in subject.card.profiled:
            kept = profiles_of(subject.manifest).get(column, EMPTY)["bins"]
            for name, rows in kept.items():
                yield from share_amount(f"{column}_share.{name}", rows, sum(kept.values()))
            yield from share_amount(f"{column}_share.{ANY}", 0, sum(kept.values()))


def count_amount(name: str, rows: int) -> tuple[str, Amount]:
    """Return a count of rows, which chance takes as far as one of Poisson's distribution."""
    return name, Amount(rows, limits.normal_quantile(TAIL) * (rows + 1) ** 0.5)


def share_amount(name: str, part: int, whole: int) -> Iterator[tuple[str, Amount]]:
    """Yield the share of rows of a kind; nothing of no rows, or of a count that is no part of them."""
    if 0 <= part <= whole and whole:
        yield name, Amount(part / whole, limits.score_margin(part, whole, TAIL))


def _means(subject: Subject) -> _Named:
    for name, column in numeric_columns(subject):
        mean = mean_of(column)
        if mean is not None:
            yield f"{name}_mean", Amount(mean.value, _mean_chance(column, mean.value))


def _scores(subject: Subject) -> _Named:
    for code, rows, mean, variance in score_means(subject.manifest):
        yield f"score_mean.{code}", Amount(mean, limits.mean_margin(variance, rows, TAIL))


def _medians(subject: Subject) -> _Named:
    for name, value, chance in signal_medians(subject.manifest, TAIL):
        yield name, Amount(value, chance)


def _mean_chance(column: Mapping[str, Any], mean: float) -> float:
    """Return what Student's t leaves open; the variance is that of the middles of bins."""
    rows = column["count"]
    middles = {_middle(int(key), column["kind"]): count for key, count in sorted(column["bins"].items())}
    squares = sum(count * (middle - mean) ** 2 for middle, count in middles.items())
    return limits.mean_margin(squares / max(rows - 1, 1), rows, TAIL)


def _middle(low: int, kind: str) -> float:
    """Return the middle of a bin: a hundredth, or an eighth of an octave of whole numbers."""
    return (low + 0.5) / 100 if kind == "ratio" else (low + octave_end(low)) / 2
