"""One published set of rules per file: signals of a text, bounds on them, and the rules that compare the two.

A module of this folder that exports `FILTER` is a profile of `filter_quality` under the module's name, and so is the
card that another distribution brings under the entry point of that name (`SEAM`). Imports the vocabulary and `text`.
"""

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.seams import Part, parts
from pipeline_tasks.stage import FilePath

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

SEAM = "refinery.filters"

Floats = npt.NDArray[np.float64]


class Computed(NamedTuple):
    """What a filter computes: signals of shape (rows, signals), and the texts as later filters see them.

    `removed` has for each line of a text which rule of the filter's `Cuts` removed it, from 1, or 0 where it is kept.
    Filters that trace their cuts by the text alone have none.
    """

    signals: Floats
    texts: pa.Array
    removed: pa.ListArray | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """A row fails when its signal is below a `min` bound or above a `max` bound; `limit` names the bound."""

    why: str
    signal: str
    side: Literal["min", "max"]
    limit: str


ComputeSignals = Callable[[pa.Array, pa.Array, int, Any], Computed]
"""(texts, languages, word rule of `text.words`, limits) -> signals and texts, one row per text."""


@dataclass(frozen=True, slots=True)
class StopWords:
    """Which signal of a filter counts stop words: different words or occurrences, in any case or as spelled."""

    signal: str
    distinct: bool = False
    any_case: bool = False


@dataclass(frozen=True, slots=True)
class Cuts:
    """Which parts of a text a filter removes: `trace` marks each byte with 0, or an index of `rules` + 1.

    `trace` takes texts, what `Computed.removed` has of them, and limits, and returns one mark per byte of the texts.
    """

    rules: tuple[str, ...]
    trace: Callable[[pa.Array, pa.ListArray | None, Any], npt.NDArray[np.uint8]]


@dataclass(frozen=True, slots=True)
class Filter:
    """The card that each filter module exports as `FILTER`; rules are in the order of their source.

    `shares` names the signals that are parts of a whole and so never above 1 (no signal is ever below 0).
    `resources` lists the files that the limits name; it raises RecipeError if one that the filter needs is missing.
    """

    name: str
    signals: tuple[str, ...]
    limits: type["DataclassInstance"]
    rules: tuple[Rule, ...]
    compute_signals: ComputeSignals
    shares: tuple[str, ...] = ()
    stop_words: StopWords | None = None
    cuts: Cuts | None = None
    resources: Callable[[Any], tuple[FilePath, ...]] | None = None

    @property
    def bounds(self) -> tuple[str, ...]:
        """The limits that are bounds on signals; the others decide how signals and texts are computed."""
        return tuple(dict.fromkeys(rule.limit for rule in self.rules))

    def reason(self, rule: Rule) -> str:
        """Return the reason of a row that fails `rule`."""
        return f"{self.name}:{rule.why}"


def load_filters() -> dict[str, Filter]:
    """Return all filters by name: ours, then those that other distributions bring and that can be loaded."""
    own = own_filters()
    brought: dict[str, Filter] = {}
    for name, part in brought_parts().items():
        with suppress(RecipeError):  # `require_loaded` says it of a filter that is asked for
            brought[name] = _brought(part)
    return own | brought


def require_loaded(name: str) -> None:
    """Raise RecipeError, which names the package, for a filter that another distribution brings and is broken."""
    if part := parts(SEAM).get(name):
        _brought(part)


def brought_parts() -> Mapping[str, Part]:
    """Return the filters of other distributions; none of the name of ours, and none where two have one name."""
    own = own_filters()
    with suppress(RecipeError):
        return {name: part for name, part in parts(SEAM).items() if name not in own}
    return {}


def _brought(part: Part) -> Filter:
    card = part.load(Filter)
    if card.name != part.name:
        message = f"{SEAM}: {part}, whose card has the name {card.name!r}; give both the same name"
        raise RecipeError(message)
    return card


def own_filters() -> dict[str, Filter]:
    """Return the filter of every module of this folder that exports `FILTER`, by name, in alphabetical order."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.ispkg)
    modules = [importlib.import_module(f"{__name__}.{name}") for name in names]
    return {module.FILTER.name: module.FILTER for module in modules if hasattr(module, "FILTER")}


def share(part: Floats, whole: Floats, of_nothing: float = 0) -> Floats:
    """Return part / whole, `of_nothing` where the whole is 0: an empty text has no share, or the worst."""
    return np.divide(part, whole, out=np.full_like(part, of_nothing), where=whole > 0)


def fails(rule: Rule, values: Floats, bounds: Floats) -> npt.NDArray[np.bool_]:
    """Return per row whether it fails `rule`; NaN (no signal, or a language that skips the rule) never does."""
    failed: npt.NDArray[np.bool_] = values < bounds if rule.side == "min" else values > bounds
    return failed
