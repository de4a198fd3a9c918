"""One pure judgement per file: signals of a text, bounds on them, and the rules that compare the two."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Floats = npt.NDArray[np.float64]


class Measured(NamedTuple):
    """What a filter finds: signals of shape (rows, signals), and the texts as later filters see them."""

    signals: Floats
    texts: pa.Array


@dataclass(frozen=True, slots=True)
class Rule:
    """A row fails when its signal is beyond the bound that the limits name: below a `least`, above a `most`."""

    why: str
    signal: str
    side: Literal["least", "most"]
    limit: str


Measure = Callable[[pa.Array, pa.Array, int, Any], Measured]
"""(texts, languages, word rule of `text.words`, limits) -> signals and texts, one row per text."""


@dataclass(frozen=True, slots=True)
class StopWords:
    """Which signal of a filter counts stop words: how many different ones, or how often, in any case or as spelled."""

    signal: str
    distinct: bool = False
    any_case: bool = False


@dataclass(frozen=True, slots=True)
class Cuts:
    """How a filter that shortens texts tells what it took: `trace` marks each byte with 0, or a place in `rules` + 1.

    `trace` takes texts, languages and limits, and gives one mark per byte of the texts.
    """

    rules: tuple[str, ...]
    trace: Callable[[pa.Array, pa.Array, Any], npt.NDArray[np.uint8]]


@dataclass(frozen=True, slots=True)
class Filter:
    """The card that each filter module exports as `FILTER`; rules stand in the order of their source."""

    name: str
    signals: tuple[str, ...]
    limits: type
    rules: tuple[Rule, ...]
    measure: Measure
    stop_words: StopWords | None = None
    cuts: Cuts | None = None

    def reason(self, rule: Rule) -> str:
        """Return the reason of a row that fails `rule`."""
        return f"{self.name}:{rule.why}"


def share(part: Floats, whole: Floats, of_nothing: float = 0) -> Floats:
    """Return part / whole, `of_nothing` where the whole is 0: an empty text has no share, or the worst."""
    return np.divide(part, whole, out=np.full_like(part, of_nothing), where=whole > 0)


def beyond(rule: Rule, values: Floats, bounds: Floats) -> npt.NDArray[np.bool_]:
    """Return per row whether it fails `rule`; NaN (a signal not measured, a rule not asked) never does."""
    failed: npt.NDArray[np.bool_] = values < bounds if rule.side == "least" else values > bounds
    return failed
