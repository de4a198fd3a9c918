"""Finds, for each bound of `filter_quality`, the value at which it alone would keep a wanted number of characters."""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.filters import Floats, Rule, fails, packs
from pipeline_tasks.inspect.whatif import ALL, Decision, bound_of, decisions, failures, published, weighted_signals
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.stages.filter_quality import resolve_profiles, signals_column

pc = pyarrow.compute

DIGITS = 4
"""Digits of a bound that is proposed."""

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class LooserBound:
    """What a bound alone can give: its value now, and the value that keeps the wanted characters, None if none does.

    `characters` are those kept with that value, or with the bound's rules skipped. `share` is of those kept now.
    """

    key: str
    now: float
    then: float | None
    characters: float
    share: float


class _Judged(NamedTuple):
    """A rule, the rows of a batch that fail it, and its signal of every row."""

    profile: str
    rule: Rule
    failed: Mask
    values: Floats


@dataclass(frozen=True, slots=True)
class _Near:
    """Rows that one bound alone rejects: the value at which it would keep each, and their characters."""

    side: str
    values: list[Floats] = field(default_factory=list)
    characters: list[Floats] = field(default_factory=list)


def looser_bounds(
    root: str, version: Version, changes: Sequence[str], share: float, language: str = "", most: int = ALL
) -> list[LooserBound]:
    """Return each bound that could keep more, in the order of the recipe, for all languages or for one.

    The characters that are wanted are `share` times those that the version keeps. `changes` and `most` are those of
    `whatif`; each bound is loosened beside them. Languages with a bound of their own follow none of all languages.
    """
    _, manifest, params = published(root, version)
    now, then, _ = decisions(params, changes)
    kept_now = kept = 0.0
    near: dict[str, _Near] = {}
    for batch, weight in weighted_signals(root, manifest, params, most):
        characters = _characters(batch, weight)
        kept_now += float(characters[~np.logical_or.reduce([*failures(batch, now).values()])].sum())
        judged = list(_judged(batch, then))
        kept += float(characters[_failed_rules(judged) == 0].sum())
        for key, rules, rows in _rejected_alone(batch, then, judged, language):
            beside = near.setdefault(key, _Near(rules[0].rule.side))
            beside.values.append(_kept_from(rules)[rows])
            beside.characters.append(characters[rows])
    wanted = share * kept_now
    loosened = (_loosened(bound_of(then, key), key, rows, kept, wanted, kept_now) for key, rows in near.items())
    return [bound for bound in loosened if bound.characters > kept]


def _characters(batch: pa.RecordBatch, weight: float) -> Floats:
    counts: Floats = pc.fill_null(batch.column("chars"), 0).to_numpy(zero_copy_only=False).astype(np.float64)
    return weight * counts


def _judged(batch: pa.RecordBatch, decision: Decision) -> Iterator[_Judged]:
    """Yield every rule of a decision with the rows of a batch that fail it."""
    columns = packs.bound_columns(batch.column("language"), decision.packs)
    for card, _, bounds in resolve_profiles(*decision):
        signals = batch.column(signals_column(card.name))
        for rule, row_bounds in zip(card.rules, bounds, strict=True):
            values = signals.field(rule.signal).to_numpy(zero_copy_only=False)
            yield _Judged(card.name, rule, fails(rule, values, row_bounds[columns]), values)


def _failed_rules(judged: Sequence[_Judged]) -> npt.NDArray[np.int64]:
    """Return how many rules each row fails."""
    counts: npt.NDArray[np.int64] = np.sum([of.failed for of in judged], axis=0, dtype=np.int64)
    return counts


def _rejected_alone(
    batch: pa.RecordBatch, decision: Decision, judged: Sequence[_Judged], language: str
) -> Iterator[tuple[str, Sequence[_Judged], Mask]]:
    """Yield each bound's key, its rules, and the rows that fail no other rule and whose bound it is."""
    all_failed = _failed_rules(judged)
    by_bound: defaultdict[tuple[str, str], list[_Judged]] = defaultdict(list)
    for of in judged:
        by_bound[of.profile, of.rule.limit].append(of)
    for (profile, limit), rules in by_bound.items():
        alone = (all_failed > 0) & (all_failed == _failed_rules(rules))
        key = f"{language}.{profile}.{limit}" if language else f"{profile}.{limit}"
        yield key, rules, alone & _follows(batch, decision, profile, limit, language)


def _follows(batch: pa.RecordBatch, decision: Decision, profile: str, limit: str, language: str) -> Mask:
    """Return the rows that follow the bound: those of the language, or of all languages without one of their own."""
    column = batch.column("language")
    if language:
        own: Mask = pc.fill_null(pc.equal(column, language), fill_value=False).to_numpy(zero_copy_only=False)
        return own
    entries = [
        decision.packs.get(packs.ANY, packs.Pack()),
        *map(decision.packs.__getitem__, packs.codes(decision.packs)),
    ]
    shared = np.array([limit not in entry.bounds.get(profile, {}) for entry in entries])
    followers: Mask = shared[packs.bound_columns(column, decision.packs)]
    return followers


def _kept_from(rules: Sequence[_Judged]) -> Floats:
    """Return per row the bound at which it passes all of `rules`, which compare with the same bound."""
    is_most = rules[0].rule.side == "max"
    needed = [np.where(of.failed, of.values, -np.inf if is_most else np.inf) for of in rules]
    bounds: Floats = np.maximum.reduce(needed) if is_most else np.minimum.reduce(needed)
    return bounds


def _loosened(now: float, key: str, rows: _Near, kept: float, wanted: float, kept_now: float) -> LooserBound:
    values, characters = np.concatenate(rows.values), np.concatenate(rows.characters)
    order = np.argsort(values if rows.side == "max" else -values, kind="stable")
    at = int(np.searchsorted(kept + np.cumsum(characters[order]), wanted))
    if at == len(order):
        whole = kept + float(characters.sum())
        return LooserBound(key, now, None, whole, whole / kept_now)
    value = _rounded(float(values[order[at]]), rows.side)
    passing = values <= value if rows.side == "max" else values >= value
    whole = kept + float(characters[passing].sum())
    return LooserBound(key, now, value, whole, whole / kept_now)


def _rounded(value: float, side: str) -> float:
    """Return a bound of few digits that keeps what `value` keeps."""
    if not value or not math.isfinite(value):
        return value
    places = DIGITS - 1 - math.floor(math.log10(abs(value)))
    step = 1 if side == "max" else -1
    near = round(value, places)
    further = near if (near - value) * step >= 0 else round(near + step * 10.0**-places, places)
    return further if (further - value) * step >= 0 else value
