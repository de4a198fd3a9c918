"""Finds what in a recipe is unreadable, out of order, or a rule that cannot fire or never decides."""

import importlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from pipeline_tasks import dataset, storage
from pipeline_tasks.errors import RefineryError
from pipeline_tasks.filters import Rule
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.recipe import STAGES, Recipe, Step, bind, load_recipe, stage_card
from pipeline_tasks.schema import RECORD
from pipeline_tasks.stages import filter_quality
from pipeline_tasks.whatif import decisive, failures, first, measured, published

SHARES = frozenset(
    (
        "dup_para_frac",
        "dup_para_char_frac",
        "dup_line_frac",
        "dup_line_char_frac",
        "bullet_line_ratio",
        "ellipsis_line_ratio",
        "alpha_word_ratio",
        "line_punct_ratio",
        "short_line_ratio",
        "char_dup_ratio",
        "dclm_non_alpha_ratio",
        "dclm_line_frac",
        "dclm_para_frac",
        "dclm_line_char_frac",
        "dclm_para_char_frac",
        "dclm_removed_ratio",
        "dolma_alpha_ratio",
        "nemo_non_alpha_numeric",
        "nemo_number_ratio",
        "nemo_white_space_ratio",
        "nemo_unique_lines",
        "nemo_unique_paragraphs",
        "nemo_lines_without_end_mark",
        "nemo_alpha_ratio",
        "seeds_punctuation",
        "seeds_distinct_words",
        "seeds_code_symbols",
        "seeds_signal_density",
    )
)
"""Signals that are parts of a whole: never above 1. No signal is ever below 0. Top n-grams may overlap themselves, and
a text may have more hashes or line ends than words, so those shares have no such bound."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong where. A `fault` is certain; a note is what the data of one snapshot says."""

    fault: bool
    where: str
    what: str


class Asked(NamedTuple):
    """A rule as a recipe asks it: its reason, itself and its bound."""

    reason: str
    rule: Rule
    bound: float


def lint(recipe: str, root: str = "", snapshot: str = "", allow: Sequence[str] = ()) -> list[Finding]:
    """Return everything found in a recipe, in the order of its stages; nothing is written.

    With `root`, the rules of `filter_quality` are also tried on the stored signals of the recipe's newest published
    snapshot (or of `snapshot`). `allow` lists reasons of rules that are off on purpose.
    """
    try:
        read = load_recipe(recipe)
    except RefineryError as error:  # unknown keys, wrong types, no YAML: nothing more can be told of it
        return [Finding(fault=True, where=recipe, what=str(error))]
    found = [*_order(read), *_files(read)]
    quality = [step for step in read.steps if step.stage == filter_quality.STAGE.name]
    for step in quality:
        params = bind(filter_quality.STAGE, step.params)
        rules = list(asked(params))
        dead = list(_dead(rules))
        found += [*dead, *_shadowed(rules), *_impossible(rules)]
        if root:
            found += [
                one for one in _tried(root, read.name, snapshot, params) if one.where not in {d.where for d in dead}
            ]
    return [one for one in found if one.where not in allow]


# --- Stages ---------------------------------------------------------------------------------------------------


def _order(recipe: Recipe) -> Iterator[Finding]:
    """Find stages that need columns which no stage before them writes."""
    there = set(RECORD.names)
    for step in recipe.steps:
        card = stage_card(step.stage)
        needed = [*card.reads.names, *(name for name in card.writes.names if _writer(name) != step.stage)]
        missing = [name for name in dict.fromkeys(needed) if name not in there]
        if missing:
            writers = " and ".join(dict.fromkeys(_writer(name) for name in missing))
            what = f"needs {', '.join(missing)}, which no stage before it writes; put it after {writers}"
            yield Finding(fault=True, where=step.stage, what=what)
        passes = set(card.reads.names) <= set(card.writes.names)
        there = {*card.writes.names, *(there if passes else ())}


def _writer(column: str) -> str:
    """Return the stage that a column comes from: the first of all stages that writes it."""
    return next((name for name in STAGES if column in stage_card(name).writes.names), "ingest")


def _files(recipe: Recipe) -> Iterator[Finding]:
    """Find files named by params that cannot be read."""
    for step in recipe.steps:
        for path in _resources(step):
            try:
                storage.digest_of_file(path)
            except (OSError, RefineryError) as error:
                yield Finding(fault=True, where=step.stage, what=f"cannot read {path}: {error}")


def _resources(step: Step) -> Iterable[str]:
    module = importlib.import_module(f"pipeline_tasks.stages.{step.stage}")
    if not hasattr(module, "resources"):
        return ()
    return (str(path) for path in module.resources(bind(stage_card(step.stage), step.params)))


# --- Rules ----------------------------------------------------------------------------------------------------


def asked(params: filter_quality.Params) -> Iterator[Asked]:
    """Yield every rule in the order in which it is asked."""
    for name in params.profiles:
        card = filter_quality.FILTERS[name]
        limits = card.limits(**getattr(params, name))
        for rule in card.rules:
            yield Asked(card.reason(rule), rule, float(getattr(limits, rule.limit)))


def _dead(rules: Iterable[Asked]) -> Iterator[Finding]:
    """Find rules whose bound no signal can pass."""
    for one in rules:
        side, signal = one.rule.side, one.rule.signal
        if side == "least" and one.bound <= 0:
            what = f"cannot fire: {one.rule.limit} is {one.bound:g}, and {signal} is never below 0"
        elif side == "most" and (one.bound == np.inf or (signal in SHARES and one.bound >= 1)):
            what = f"cannot fire: {one.rule.limit} is {one.bound:g}, and {signal} is never above it"
        else:
            continue
        yield Finding(fault=True, where=one.reason, what=what)


def _shadowed(rules: Sequence[Asked]) -> Iterator[Finding]:
    """Find rules whose every failure is one of an earlier rule: the same question with a bound as strict."""
    for at, one in enumerate(rules):
        for earlier in rules[:at]:
            if _same(one.rule, earlier.rule) and _as_strict(earlier, one):
                what = f"never decides: {earlier.reason} before it asks {one.rule.signal} with {earlier.bound:g}"
                yield Finding(fault=True, where=one.reason, what=what)
                break


def _same(one: Rule, other: Rule) -> bool:
    return (one.signal, one.side) == (other.signal, other.side)


def _as_strict(one: Asked, other: Asked) -> bool:
    return one.bound >= other.bound if one.rule.side == "least" else one.bound <= other.bound


def _impossible(rules: Sequence[Asked]) -> Iterator[Finding]:
    """Find bounds that no value can meet, such as a least that is above the most."""
    for least in (one for one in rules if one.rule.side == "least"):
        if least.rule.signal in SHARES and least.bound > 1:
            what = f"nothing can pass: {least.rule.limit} is {least.bound:g}, and {least.rule.signal} is never above 1"
            yield Finding(fault=True, where=least.reason, what=what)
    for most in (one for one in rules if one.rule.side == "most"):
        if most.bound < 0:
            what = f"nothing can pass: {most.rule.limit} is {most.bound:g}, and {most.rule.signal} is never below 0"
            yield Finding(fault=True, where=most.reason, what=what)
        for least in (one for one in rules if one.rule.side == "least" and one.rule.signal == most.rule.signal):
            if least.bound > most.bound:
                what = f"nothing can pass: {most.bound:g} at most, but {least.reason} wants {least.bound:g} at least"
                yield Finding(fault=True, where=most.reason, what=what)


# --- On data --------------------------------------------------------------------------------------------------


def _tried(root: str, recipe: str, snapshot: str, params: filter_quality.Params) -> Iterator[Finding]:
    """Find rules that no stored row fails, and rules that never come first."""
    stage = filter_quality.STAGE.name
    if not any(snapshot in ("", one.snapshot) for one in dataset.versions(root, recipe)):
        yield Finding(fault=False, where=stage, what=f"rules not tried on data: {root} has no published {recipe}")
        return
    path, made, then = published(root, dataset.current(root, recipe, snapshot))
    if _shape(then) != _shape(params):
        what = f"rules not tried on data: what is measured was set otherwise when {path} was refined"
        yield Finding(fault=False, where=stage, what=what)
        return
    yield from _told(*_counts(root, made, params))


def _shape(params: filter_quality.Params) -> object:
    """Return everything that decides the signals: all params but bounds on them."""
    shapes = {}
    for name in params.profiles:
        card = filter_quality.FILTERS[name]
        limits = asdict(card.limits(**getattr(params, name)))
        shapes[name] = {key: value for key, value in limits.items() if key not in decisive(card)}
    return params.profiles, params.words, params.toxic_words, shapes


def _counts(
    root: str, made: Manifest, params: filter_quality.Params
) -> tuple[int, dict[str, list[int]], Mapping[str, str]]:
    """Return rows, per reason (rows that fail, rows that fail it first), and which earlier reason hides it most."""
    rows, counts, before = 0, {one.reason: [0, 0] for one in asked(params)}, dict[str, dict[str, int]]()
    for batch in measured(root, made):
        failed = failures(batch, params)
        firsts = first(failed, batch.num_rows)
        rows += batch.num_rows
        for reason, mask in failed.items():
            counts[reason][0] += int(mask.sum())
            counts[reason][1] += int((firsts == reason).sum())
            for name, count in zip(*np.unique(firsts[mask], return_counts=True), strict=True):
                of = before.setdefault(reason, {})
                of[str(name)] = of.get(str(name), 0) + int(count)
    hides = {reason: min(of, key=lambda name: (-of[name], name)) for reason, of in before.items()}
    return rows, counts, hides


def _told(rows: int, counts: Mapping[str, Sequence[int]], hides: Mapping[str, str]) -> Iterator[Finding]:
    for reason, (fails, decides) in counts.items():
        if not fails:
            yield Finding(fault=False, where=reason, what=f"never fired: none of {rows:,} stored rows fails it")
        elif not decides:
            what = f"never decides: all {fails:,} of {rows:,} rows that fail it fail one before, mostly {hides[reason]}"
            yield Finding(fault=False, where=reason, what=what)


def told(recipe: str, found: Sequence[Finding]) -> Iterator[str]:
    """Yield the findings as lines for a person, faults first."""
    for one in sorted(found, key=lambda one: not one.fault):
        yield f"{'FAULT' if one.fault else 'note '}  {one.where}: {one.what}"
    faults = sum(one.fault for one in found)
    yield f"{recipe}: {faults} faults, {len(found) - faults} notes" if found else f"{recipe}: nothing found"


def facts(found: Sequence[Finding]) -> dict[str, Any]:
    """Return the findings as plain JSON values."""
    return {
        "faults": [{"where": one.where, "what": one.what} for one in found if one.fault],
        "notes": [{"where": one.where, "what": one.what} for one in found if not one.fault],
    }
