"""Plots the share of each language in a snapshot beside the previous one and the median of the trailing ones."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipeline_tasks.plots.distributions import share_bars
from pipeline_tasks.plots.plot import Plot, Row

SERIES = {"this snapshot": "--plot-1", "previous": "--plot-2", "trailing median": "--plot-3"}
"""The color of each share."""

HEAD = ("language", "came in", "kept", "retention", *SERIES)


@dataclass(frozen=True, slots=True)
class LanguageShare:
    """A language's documents that came in and were kept, and its share of all that were kept, now and before.

    `previous` and `usual`, the trailing snapshots' median, are None without snapshots to take them from.
    """

    code: str
    rows_in: int
    rows: int
    share: float
    previous: float | None
    usual: float | None

    @property
    def retention(self) -> float | None:
        """The share of the documents that came in that were kept; None if none came in."""
        return self.rows / self.rows_in if self.rows_in else None

    @property
    def shares(self) -> tuple[float | None, ...]:
        """The shares in the order of `SERIES`."""
        return self.share, self.previous, self.usual


def languages_plot(languages: Sequence[LanguageShare], note: str = "") -> Plot | None:
    """Plot the shares of the languages, in their order; None without languages. The table has the documents, too."""
    if not languages:
        return None
    rows = [row for language in languages for row in _rows(language)]
    return Plot("Share of each language", share_bars(rows, SERIES), HEAD, [*map(_line, languages)], note)


def _rows(language: LanguageShare) -> Iterator[Row]:
    """Yield the known shares of a language, none for one that no snapshot kept."""
    for series, share in zip(SERIES, language.shares, strict=True):
        if share is not None and any(language.shares):
            yield {"series": series, "value": language.code, "share": share}


def _line(language: LanguageShare) -> tuple[str, ...]:
    shares = (_percent(share) for share in (language.retention, *language.shares))
    return language.code, f"{language.rows_in:,}", f"{language.rows:,}", *shares


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.2%}"
