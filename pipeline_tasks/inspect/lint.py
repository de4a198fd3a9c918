"""Finds what in a recipe is unreadable, out of order, or a rule that cannot fire or never decides."""

import argparse
import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline_tasks.errors import RecipeError, RefineryError
from pipeline_tasks.filters import Filter, Rule, packs
from pipeline_tasks.inspect.command import NEWEST, add_json, print_result
from pipeline_tasks.inspect.whatif import Decision, decision, decisive, failures, first, published, stored_signals
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish import version_log
from pipeline_tasks.recipe import STAGES, Recipe, Step, bind, load_recipe, stage_card
from pipeline_tasks.run.task import repoint
from pipeline_tasks.schema import RECORD
from pipeline_tasks.stages import filter_quality
from pipeline_tasks.store import storage


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong where. A `fault` is certain; a note is what the data of one snapshot says."""

    fault: bool
    where: str
    what: str


class Asked(NamedTuple):
    """A rule of a profile of a recipe, with its bound per language of `codes`; NaN: the language skips the rule."""

    profile: Filter
    rule: Rule
    codes: tuple[str, ...]
    bounds: npt.NDArray[np.float64]

    @property
    def reason(self) -> str:
        """The reason of a row that fails the rule."""
        return self.profile.reason(self.rule)

    @property
    def signal(self) -> tuple[str, str]:
        """Profile and name of the signal that the rule bounds."""
        return self.profile.name, self.rule.signal

    @property
    def is_share(self) -> bool:
        """Whether the rule's signal is a part of a whole, so never above 1."""
        return self.rule.signal in self.profile.shares


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the recipe, and the published signals to try its rules on."""
    parser.add_argument("recipe", help="a recipe's name, or the path of its YAML file")
    parser.add_argument("--root", default="", help="root whose published signals the rules are tried on")
    parser.add_argument("--snapshot", default="", help=f"snapshot to try them on (default: {NEWEST})")
    parser.add_argument("--allow", action="append", default=[], metavar="REASON", help="a rule that is off on purpose")
    parser.add_argument("--strict", action="store_true", help="let notes (rules that nothing fails) fail too")
    add_json(parser)


def answer(options: argparse.Namespace) -> int:
    """Print the findings; return RecipeError's exit code if there is a fault (with `--strict`: or a note)."""
    findings = lint(options.recipe, options.root, options.snapshot, options.allow)
    print_result(options, facts(findings), told(options.recipe, findings))
    return RecipeError.exit_code if any(finding.fault or options.strict for finding in findings) else 0


def lint(recipe: str, root: str = "", snapshot: str = "", allow: Sequence[str] = ()) -> list[Finding]:
    """Return everything found in a recipe, in the order of its stages; nothing is written.

    With `root`, the rules of `filter_quality` are also tried on the stored signals of the recipe's newest published
    snapshot (or of `snapshot`). `allow` lists reasons of rules that are off on purpose. RecipeError if there is no such
    snapshot or reason.
    """
    try:
        read = load_recipe(recipe)
    except RefineryError as error:  # unknown keys, wrong types, no YAML: nothing more can be told of it
        return [Finding(fault=True, where=recipe, what=str(error))]
    found = [*_order(read), *_files(read)]
    quality = [step for step in read.steps if step.stage == filter_quality.STAGE.name]
    for step in quality:
        params = bind(filter_quality.STAGE, step.params)
        try:
            decides = Decision(params, packs.load(params.packs, filter_quality.FILTERS))
        except (OSError, RefineryError):  # `_files` has told
            continue
        rules = list(asked(decides))
        dead = list(_dead(rules))
        found += [*dead, *_shadowed(rules), *_impossible(rules), *_overruled(decides)]
        if root:
            found += [
                one for one in _tried(root, read.name, snapshot, decides) if one.where not in {d.where for d in dead}
            ]
    _require_known(allow, [one.where for one in found])
    return [one for one in found if one.where not in allow]


def _require_known(allow: Sequence[str], found: Iterable[str]) -> None:
    """Raise RecipeError for an allowed reason that no rule has: it would hide nothing, now or ever."""
    rules = [card.reason(rule) for card in filter_quality.FILTERS.values() for rule in card.rules]
    for name in allow:
        if name not in found and name not in rules:
            near = ", ".join(difflib.get_close_matches(name, rules, 3, cutoff=0))
            message = f"--allow {name}: no rule of filter_quality has this reason; nearest: {near}"
            raise RecipeError(message)


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
        try:
            paths = tuple(_resources(step))
        except RefineryError as error:
            yield Finding(fault=True, where=step.stage, what=str(error))
            continue
        for path in paths:
            try:
                storage.digest_of_file(path)
            except (OSError, RefineryError) as error:
                yield Finding(fault=True, where=step.stage, what=f"cannot read {path}: {error}")


def _resources(step: Step) -> Iterable[str]:
    card = stage_card(step.stage)
    return card.resources(bind(card, step.params)) if card.resources else ()


# --- Rules ----------------------------------------------------------------------------------------------------


def asked(decides: Decision) -> Iterator[Asked]:
    """Yield every rule in the order in which it is asked."""
    codes = (packs.ANY, *packs.codes(decides.packs))
    for card, _, bounds in filter_quality.resolve_profiles(*decides):
        for rule, of_all in zip(card.rules, bounds, strict=True):
            yield Asked(card, rule, codes, of_all)


def _dead(rules: Iterable[Asked]) -> Iterator[Finding]:
    """Find rules whose bound no signal can pass, in any language."""
    for one in rules:
        side, signal = one.rule.side, one.rule.signal
        bounds = one.bounds[~np.isnan(one.bounds)]
        if not len(bounds):
            what = "cannot fire: packs let every language skip it"
        elif side == "min" and bounds.max() <= 0:
            what = f"cannot fire: {one.rule.limit} is {bounds.max():g}, and {signal} is never below 0"
        elif side == "max" and (bounds.min() == np.inf or (one.is_share and bounds.min() >= 1)):
            what = f"cannot fire: {one.rule.limit} is {bounds.min():g}, and {signal} is never above it"
        else:
            continue
        yield Finding(fault=True, where=one.reason, what=what)


def _shadowed(rules: Sequence[Asked]) -> Iterator[Finding]:
    """Find rules whose every failure is one of an earlier rule: the same question with a bound as strict."""
    for at, one in enumerate(rules):
        for earlier in rules[:at]:
            if _same(one, earlier) and _as_strict(earlier, one):
                bound = earlier.bounds[~np.isnan(earlier.bounds)][0]
                what = f"never decides: {earlier.reason} before it asks {one.rule.signal} with {bound:g}"
                yield Finding(fault=True, where=one.reason, what=what)
                break


def _same(one: Asked, other: Asked) -> bool:
    """Return whether both bound the same signal on the same side."""
    return (one.signal, one.rule.side) == (other.signal, other.rule.side)


def _as_strict(one: Asked, other: Asked) -> bool:
    """Return whether `one` is as strict as `other` in every language that is asked `other`; some must be."""
    matter = ~np.isnan(other.bounds)
    stricter = one.bounds >= other.bounds if one.rule.side == "min" else one.bounds <= other.bounds
    return bool(matter.any() and stricter[matter].all())


def _impossible(rules: Sequence[Asked]) -> Iterator[Finding]:
    """Find bounds that no value can meet, such as a minimum above the maximum."""
    minima = [bounded for bounded in rules if bounded.rule.side == "min"]
    for lower in (bounded for bounded in minima if bounded.is_share):
        what = f"{lower.rule.limit} is {{bound:g}}, and {lower.rule.signal} is never above 1"
        yield from _nothing_passes(lower, lower.bounds > 1, what)
    for upper in (bounded for bounded in rules if bounded.rule.side == "max"):
        what = f"{upper.rule.limit} is {{bound:g}}, and {upper.rule.signal} is never below 0"
        yield from _nothing_passes(upper, upper.bounds < 0, what)
        for lower in minima:
            if lower.signal == upper.signal:
                wants = lower.bounds > upper.bounds
                bound = lower.bounds[wants][0] if wants.any() else 0
                what = f"{{bound:g}} at most, but {lower.reason} wants {bound:g} at least"
                yield from _nothing_passes(upper, wants, what)


def _nothing_passes(one: Asked, where: npt.NDArray[np.bool_], what: str) -> Iterator[Finding]:
    """Find `what` for the first language of which `where` is true."""
    for column in np.flatnonzero(where)[:1]:
        whom = f" of language {one.codes[column]}" if one.codes[column] != packs.ANY else ""
        told = f"nothing{whom} can pass: {what.format(bound=one.bounds[column])}"
        yield Finding(fault=True, where=one.reason, what=told)


def _overruled(decides: Decision) -> Iterator[Finding]:
    """Find bounds of the recipe that packs overrule for some languages, where a bound of their own is asked."""
    for name in decides.params.profiles:
        for limit, bound in decides.params.limits.get(name, {}).items():
            own = {code: pack.bounds.get(name, {}).get(limit) for code, pack in decides.packs.items()}
            languages = sorted(code for code, packed in own.items() if packed is not None and packed != bound)
            if languages:
                what = f"{limit}={bound:g} is not asked of {', '.join(languages)}: packs have bounds of their own there"
                yield Finding(fault=False, where=name, what=what)


# --- On data --------------------------------------------------------------------------------------------------


def _tried(root: str, recipe: str, snapshot: str, decides: Decision) -> Iterator[Finding]:
    """Find rules that no stored row fails, and rules that never come first."""
    stage = filter_quality.STAGE.name
    if not snapshot and not version_log.latest_by_snapshot(root, recipe):
        yield Finding(fault=False, where=stage, what=f"rules not tried on data: {root} has no published {recipe}")
        return
    path, made, then = published(root, version_log.current(root, recipe, snapshot))
    try:
        same = _shape(decision(then, decides.params.packs)) == _shape(decides)
    except RefineryError:  # it was refined with other packs
        same = False
    if not same:
        what = f"rules not tried on data: what is measured was set otherwise when {path} was refined"
        yield Finding(fault=False, where=stage, what=what)
        return
    yield from _told(*_counts(root, made, decides))


def _shape(decides: Decision) -> object:
    """Return everything that decides the signals: all params but bounds on them, and stop words that are counted."""
    shapes, params = {}, decides.params
    for card, limits, _ in filter_quality.resolve_profiles(*decides):
        shape = {key: value for key, value in asdict(limits).items() if key not in decisive(card)}
        files = {str(path): _content(path) for path in (card.resources(limits) if card.resources else ())}
        shapes[card.name] = repoint(shape, files), packs.stop_word_lists(card, limits, decides.packs)
    return params.profiles, params.words, shapes


def _content(path: str) -> str:
    """Return a list by its digest, as a manifest names it."""
    prefix = filter_quality.DIGEST
    return path if path.startswith(prefix) else f"{prefix}{storage.digest_of_file(path)[1]}"


def _counts(root: str, made: Manifest, decides: Decision) -> tuple[int, dict[str, list[int]], Mapping[str, str]]:
    """Return rows, per reason (rows that fail, rows that fail it first), and which earlier reason hides it most."""
    rows, counts, before = 0, {one.reason: [0, 0] for one in asked(decides)}, dict[str, dict[str, int]]()
    for batch in stored_signals(root, made, decides.params):
        failed = failures(batch, decides)
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
