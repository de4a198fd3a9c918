"""Computes facts of the signals that `filter_quality` stores: quantiles over kept documents, medians by language."""

from collections.abc import Iterator, Sequence
from math import inf

from pipeline_tasks.filters import load_filters
from pipeline_tasks.gate import limits
from pipeline_tasks.gate.estimates import ALONE, Estimate, Facts
from pipeline_tasks.gate.facts.subject import Family, Subject
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.profiles.signals import ALL, PREFIX, bin_end, quantiles_of, value_at

BOUNDED = (0.05, 0.5, 0.95)
"""Shares whose quantiles are facts."""

MEDIAN, LANGUAGE_MEDIAN = "signal_p50", "language_signal_p50"


def summarize_signals(subject: Subject) -> Facts:
    """Return the quantiles of each signal of the profiles that judge, and medians of the largest languages.

    A signal that no kept row has is None, as in a manifest from before signals were profiled.
    """
    if not any(name.startswith(PREFIX) for name in subject.card.profiled):
        return {}
    facts: Facts = {f"signal_p{round(at * 100):02d}.{name}": None for name in _names(subject) for at in BOUNDED}
    for signal, languages in quantiles_of(subject.manifest.metrics).items():
        for at in BOUNDED:
            facts[f"signal_p{round(at * 100):02d}.{signal}"] = stored_quantile(languages[ALL], at)
        for code, stored in languages.items():
            if code != ALL:
                facts[f"{LANGUAGE_MEDIAN}.{signal}.{code}"] = stored_quantile(stored, 0.5)
    return facts


def _names(subject: Subject) -> Iterator[str]:
    """Yield the signals of the profiles that judge: of all that there are, where no params say which.

    A profile may have left with the distribution that brought it.
    """
    cards = load_filters()
    for profile in filter(cards.__contains__, subject.manifest.params.get("profiles", cards)):
        yield from (f"{profile}.{signal}" for signal in cards[profile].signals)


def stored_quantile(stored: Sequence[float], at: float) -> Estimate:
    """Return a quantile of a signal; its interval is read from the quantiles beside it, between them by their line."""
    rows, value = int(stored[0]), value_at(stored, at)
    bounds = value, bin_end(value)
    if rows >= ALONE.large:
        return Estimate(value, value, value, rows, bounds)
    low, high = _interval(stored, at, ALONE.tail)
    return Estimate(value, min(low, value), max(high, value), rows, bounds)


def _interval(stored: Sequence[float], at: float, tail: float) -> tuple[float, float]:
    """Return what rows leave open of a quantile; infinite on a side of which they say nothing."""
    rows = int(stored[0])
    low, high = limits.rank_limits(rows, at, tail)
    least = value_at(stored, (low - 0.5) / rows) if low else -inf
    return least, bin_end(value_at(stored, (high - 0.5) / rows)) if high <= rows else inf


def signal_medians(manifest: Manifest, tail: float) -> Iterator[tuple[str, float, float]]:
    """Yield the name, the value and what chance may change of each median, where the rows say something of it."""
    for signal, languages in quantiles_of(manifest.metrics).items():
        for code, stored in languages.items():
            low, high = _interval(stored, 0.5, tail)
            value = value_at(stored, 0.5)
            name = f"{MEDIAN}.{signal}" if code == ALL else f"{LANGUAGE_MEDIAN}.{signal}.{code}"
            if -inf < low and high < inf:
                yield name, value, max(value - low, high - value)


SIGNALS = Family(
    summarize_signals,
    {
        "signal_p05.<signal>, signal_p50.<signal>, signal_p95.<signal>": (
            "quantiles of a signal of `filter_quality` over all kept documents, such as "
            "`signal_p50.gopher_quality.words`: the least value of their bin, a hundredth wide up to 1, then an eighth "
            "of an octave"
        ),
        "language_signal_p50.<signal>.<code>": "median of a signal over the kept documents in one of the 8 largest "
        "languages",
    },
)
