"""One pure judgement per file: signals of a text, bounds on them, and the rules that compare the two."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.text.languages import spoken

Floats = npt.NDArray[np.float64]


class Measured(NamedTuple):
    """What a filter finds: signals of shape (rows, signals), and the texts as later filters see them."""

    signals: Floats
    texts: pa.Array


@dataclass(frozen=True, slots=True)
class Rule:
    """A row fails when its signal is beyond the bound that the limits name: below a `least`, above a `most`.

    `only` names the languages that the rule is asked of (none named: all), `skips` those that it is not.
    """

    why: str
    signal: str
    side: Literal["least", "most"]
    limit: str
    only: tuple[str, ...] = ()
    skips: tuple[str, ...] = ()


Measure = Callable[[pa.Array, pa.Array, int, Any], Measured]
"""(texts, languages, word rule of `text.words`, limits) -> signals and texts, one row per text."""


@dataclass(frozen=True, slots=True)
class Filter:
    """The card that each filter module exports as `FILTER`; rules stand in the order of their source."""

    name: str
    signals: tuple[str, ...]
    limits: type
    rules: tuple[Rule, ...]
    measure: Measure

    def reason(self, rule: Rule) -> str:
        """Return the reason of a row that fails `rule`."""
        return f"{self.name}:{rule.why}"


def share(part: Floats, whole: Floats) -> Floats:
    """Return part / whole, 0 where the whole is 0: an empty text has no share of anything."""
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)


def beyond(rule: Rule, values: Floats, bound: float, languages: pa.Array) -> npt.NDArray[np.bool_]:
    """Return per row whether it fails `rule`; NaN (not measured) never does."""
    failed: npt.NDArray[np.bool_] = values < bound if rule.side == "least" else values > bound
    if rule.only:
        failed &= spoken(languages, rule.only)
    if rule.skips:
        failed &= ~spoken(languages, rule.skips)
    return failed
