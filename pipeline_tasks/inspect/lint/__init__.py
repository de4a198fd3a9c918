"""Check a recipe: errors, stages out of order, rules that never decide; and what of a snapshot will not fit."""

import argparse
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline_tasks.binding import bind
from pipeline_tasks.counted import counted
from pipeline_tasks.deployment import DEPLOYMENT, deployed, require_one_root, resolved_lines
from pipeline_tasks.errors import RecipeError, RefineryError
from pipeline_tasks.filters import Filter, Rule, packs
from pipeline_tasks.gate.batch_expectations import FOLDER, suites_notes
from pipeline_tasks.gate.checks import check_suites
from pipeline_tasks.inspect.absent_parts import absent_parts
from pipeline_tasks.inspect.command import DEFAULT_RECIPE, NEWEST, add_json, number, print_result
from pipeline_tasks.inspect.lint.canceled_params import absent_bounds, canceled_params
from pipeline_tasks.inspect.lint.idle_stages import idle_stages
from pipeline_tasks.inspect.lint.required_verdict import required_verdict
from pipeline_tasks.inspect.lint.size_findings import Workers, history_findings, size_findings
from pipeline_tasks.inspect.lint.unjudged_texts import unjudged_texts
from pipeline_tasks.inspect.lint.written_faults import written_faults
from pipeline_tasks.inspect.whatif import (
    Decision,
    decision_of,
    failures,
    first_reasons,
    published,
    stored_signals,
)
from pipeline_tasks.landing.listing import Listing, folder_of, list_snapshot, require_readable
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.nearest import near
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.recipe import LAND, Recipe, Step, load_recipe, recipe_path
from pipeline_tasks.run.bill import Prices, bill_lines, bill_of
from pipeline_tasks.run.recipe_faults import Finding, recipe_faults
from pipeline_tasks.run.sizes import size_facts, size_lines, sizes_of
from pipeline_tasks.run.tasks.task import repoint
from pipeline_tasks.seams import all_parts
from pipeline_tasks.stages import filter_quality
from pipeline_tasks.store import storage
from pipeline_tasks.yaml_file import key_lines

FINDINGS = "refinery.findings"
"""The seam of findings about a recipe by what a root has: functions of the root and the recipe's name."""

PRICES = Prices()

GIGABYTE = 1_000_000_000


class BoundRule(NamedTuple):
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
    parser.add_argument(
        "recipe",
        nargs="?",
        default=DEFAULT_RECIPE,
        help=f"its name, or its YAML file (default: {DEFAULT_RECIPE})",
    )
    parser.add_argument("--recipe", dest="named", default="", help=argparse.SUPPRESS)
    parser.add_argument("--input", default="", help="a snapshot: foretell its tasks, bytes and memory")
    parser.add_argument("--workers", type=number(int, 1), default=1, metavar="N", help="cores that run tasks (1)")
    parser.add_argument("--memory", type=number(float, 0), default=2, metavar="G", help="gigabytes for each (2)")
    price, cost = PRICES.core_hour, "dollars that a core costs for an hour"
    parser.add_argument(
        "--core-hour-price",
        "--core-hour",
        dest="core_hour",
        type=number(float, 0),
        default=price,
        metavar="USD",
        help=f"{cost} ({price})",
    )
    parser.add_argument(
        "--root", default="", metavar="ROOT", help="root whose published signals the rules are tried on"
    )
    parser.add_argument("--snapshot", default="", help=f"snapshot to try them on (default: {NEWEST})")
    parser.add_argument("--allow", action="append", default=[], metavar="REASON", help="a rule that is off on purpose")
    parser.add_argument("--strict", action="store_true", help="let notes (rules that nothing fails) fail too")
    add_json(parser)


def answer(options: argparse.Namespace) -> int:
    """Print the findings; return RecipeError's exit code if there is a fault (with `--strict`: or a note)."""
    options.recipe = options.named or options.recipe
    facts, lines, others = _sized(options) if options.input else ({}, [], [])
    findings = lint(options.recipe, options.root, options.snapshot, options.allow, others)
    lines = [*_deployed_lines(options.recipe), *lines, *finding_lines(options.recipe, findings)]
    print_result(options, finding_facts(findings) | facts, lines)
    return RecipeError.exit_code if any(finding.fault or options.strict for finding in findings) else 0


def _sized(options: argparse.Namespace) -> tuple[dict[str, Any], list[str], list[Finding]]:
    """Return what a snapshot asks of the recipe as facts and lines, and what of it does not fit."""
    try:
        recipe = load_recipe(options.recipe)
    except RefineryError:  # `lint` reports it
        return {}, [], []
    workers = Workers(int(options.workers), int(options.memory * GIGABYTE))
    listing = list_snapshot(options.input)
    sizes = sizes_of(recipe, listing, folder_of(options.input, listing))
    findings = [*_unread(options.input, listing, recipe), *size_findings(sizes, workers)]
    if options.root:
        findings += history_findings(options.root, recipe.name)
    prices = replace(PRICES, core_hour=float(options.core_hour))
    bill = bill_of(sizes, prices)
    lines = [*size_lines(sizes, workers.cores), *bill_lines(bill, prices)]
    return {"sizes": size_facts(sizes), "bill": asdict(bill)}, lines, findings


def _deployed_lines(recipe: str) -> list[str]:
    """Return in lines where the deployment's file sends a recipe, none without one; `lint` reports what is wrong."""
    try:
        return resolved_lines(load_recipe(recipe).name)
    except RefineryError:
        return []


def _undeployed(recipe: Recipe) -> Iterator[Finding]:
    """Find that the deployment's file refuses a recipe, or what it builds from is in another root."""
    try:
        deployed(recipe.name)
        if recipe.versions:
            require_one_root(recipe.name, recipe.versions.recipe)
    except RecipeError as error:
        yield Finding(fault=True, where=DEPLOYMENT, message=str(error))


def _unread(uri: str, listing: Listing, recipe: Recipe) -> Iterator[Finding]:
    """Find that the first records of a snapshot have no text under the names of the recipe."""
    try:
        require_readable(uri, listing, recipe.fields)
    except RecipeError as error:
        yield Finding(fault=True, where=LAND, message=str(error))


def lint(
    recipe: str, root: str = "", snapshot: str = "", allow: Sequence[str] = (), others: Sequence[Finding] = ()
) -> list[Finding]:
    """Return all findings of a recipe, in the order of its stages; nothing is written.

    With `root`, the rules of `filter_quality` are also applied to the stored signals of the recipe's newest published
    snapshot (or of `snapshot`), and rules are found that rejected good documents by `refinery read`. `allow` lists
    reasons of rules that are off on purpose; `others` are findings about the same recipe. RecipeError if there is no
    such snapshot or reason.
    """
    written, loaded = written_faults(recipe)
    written = [fault._replace(message=fault.message + absent_parts(root, fault.message)) for fault in written]
    if loaded is None:
        return written
    if written:  # of what is left only faults are said: it is less than was meant
        return [*written, *_lined(recipe, recipe_faults(loaded))]
    findings = [*_lined(recipe, recipe_faults(loaded)), *_undeployed(loaded), *_misspelt_suites(loaded)]
    findings += [*idle_stages(loaded), *canceled_params(loaded), *absent_bounds(loaded)]
    findings += unjudged_texts(loaded)
    findings += required_verdict(loaded, root)
    for step in loaded.steps:
        if step.stage == filter_quality.STAGE.name:
            findings += _quality(step, root, loaded.name, snapshot)
    if root:
        findings += _found_by_others(root, loaded.name)
    findings += others
    _require_known(allow, [finding.where for finding in findings])
    return [finding for finding in findings if finding.where not in allow]


def _misspelt_suites(recipe: Recipe) -> Iterator[Finding]:
    """Find that a suite which a team brings names what there is not, and files beside suites that nobody reads."""
    try:
        check_suites(recipe)
        yield from (Finding(fault=False, where=FOLDER, message=note) for note in suites_notes())
    except RecipeError as error:
        yield Finding(fault=True, where=FOLDER, message=str(error))


def _lined(recipe: str, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield findings of stages with the lines on which these are written."""
    lines = key_lines(recipe_path(recipe))
    yield from (finding._replace(line=lines.get(("stages", finding.where), 0)) for finding in findings)


def _found_by_others(root: str, recipe: str) -> Iterator[Finding]:
    for part in all_parts(FINDINGS).values():
        find: Callable[[str, str], Iterator[Finding]] = part.load()
        yield from find(root, recipe)


def _quality(step: Step, root: str, recipe: str, snapshot: str) -> Iterator[Finding]:
    """Find rules of `filter_quality` that cannot fire, never decide, pass nothing, or are overridden."""
    params = bind(filter_quality.STAGE, step.params)
    try:
        decision = Decision(params, packs.load(params.packs, filter_quality.FILTERS))
    except (OSError, RefineryError):  # a fault of the recipe, reported already
        return
    rules = list(bound_rules(decision))
    dead = list(_dead(rules))
    yield from (*dead, *_shadowed(rules), *_impossible(rules), *_overridden(decision))
    if root:
        reasons = {finding.where for finding in dead}
        yield from (finding for finding in _tried(root, recipe, snapshot, decision) if finding.where not in reasons)


def _require_known(allow: Sequence[str], reasons: Iterable[str]) -> None:
    """Raise RecipeError for an allowed reason that no rule and no finding has."""
    rules = [card.reason(rule) for card in filter_quality.FILTERS.values() for rule in card.rules]
    for name in allow:
        if name not in reasons and name not in rules:
            message = (
                f"--allow {name}: no rule of filter_quality has this reason; nearest: {', '.join(near(name, rules, 3))}"
            )
            raise RecipeError(message)


# --- Rules ----------------------------------------------------------------------------------------------------


def bound_rules(decision: Decision) -> Iterator[BoundRule]:
    """Yield every rule in order, with its bounds."""
    codes = (packs.ANY, *packs.codes(decision.packs))
    for card, _, bounds in filter_quality.resolve_profiles(*decision):
        for rule, rule_bounds in zip(card.rules, bounds, strict=True):
            yield BoundRule(card, rule, codes, rule_bounds)


def _dead(rules: Iterable[BoundRule]) -> Iterator[Finding]:
    """Find rules whose bound no signal can pass, in any language."""
    for bounded in rules:
        cause = _why_dead(bounded)
        if cause:
            yield Finding(fault=True, where=bounded.reason, message=f"cannot fire: {cause}")


def _why_dead(bounded: BoundRule) -> str:
    """Return why a rule cannot fire, empty if it can."""
    limit, signal = bounded.rule.limit, bounded.rule.signal
    bounds = bounded.bounds[~np.isnan(bounded.bounds)]
    if not len(bounds):
        return "packs let every language skip it"
    if bounded.rule.side == "min":
        return f"{limit} is {bounds.max():g}, and {signal} is never below 0" if bounds.max() <= 0 else ""
    unreachable = bounds.min() == np.inf or (bounded.is_share and bounds.min() >= 1)
    return f"{limit} is {bounds.min():g}, and {signal} is never above it" if unreachable else ""


def _shadowed(rules: Sequence[BoundRule]) -> Iterator[Finding]:
    """Find rules that only fail rows which an earlier rule fails: the same signal, and a bound as strict."""
    for rank, bounded in enumerate(rules):
        for earlier in rules[:rank]:
            if _same(bounded, earlier) and _as_strict(earlier, bounded):
                bound = earlier.bounds[~np.isnan(earlier.bounds)][0]
                message = f"never decides: {earlier.reason} before it bounds {bounded.rule.signal} by {bound:g}"
                yield Finding(fault=True, where=bounded.reason, message=message)
                break


def _same(rule: BoundRule, other: BoundRule) -> bool:
    """Return whether both bound the same signal on the same side."""
    return (rule.signal, rule.rule.side) == (other.signal, other.rule.side)


def _as_strict(rule: BoundRule, other: BoundRule) -> bool:
    """Return whether `rule` is as strict as `other` in every language that has `other`; at least one must have it."""
    applies = ~np.isnan(other.bounds)
    stricter = rule.bounds >= other.bounds if rule.rule.side == "min" else rule.bounds <= other.bounds
    return bool(applies.any() and stricter[applies].all())


def _impossible(rules: Sequence[BoundRule]) -> Iterator[Finding]:
    """Find bounds that no value can meet, such as a minimum above the maximum."""
    minima = [bounded for bounded in rules if bounded.rule.side == "min"]
    for lower in (bounded for bounded in minima if bounded.is_share):
        cause = f"{lower.rule.limit} is {{bound:g}}, and {lower.rule.signal} is never above 1"
        yield from _nothing_passes(lower, lower.bounds > 1, cause)
    for upper in (bounded for bounded in rules if bounded.rule.side == "max"):
        cause = f"{upper.rule.limit} is {{bound:g}}, and {upper.rule.signal} is never below 0"
        yield from _nothing_passes(upper, upper.bounds < 0, cause)
        for lower in minima:
            yield from _crossed(lower, upper)


def _crossed(lower: BoundRule, upper: BoundRule) -> Iterator[Finding]:
    """Find a minimum and a maximum of the same signal that no value meets."""
    if lower.signal == upper.signal:
        crossed = lower.bounds > upper.bounds
        minimum = lower.bounds[crossed][0] if crossed.any() else 0
        cause = f"{{bound:g}} at most, but {lower.reason} wants {minimum:g} at least"
        yield from _nothing_passes(upper, crossed, cause)


def _nothing_passes(bounded: BoundRule, where: npt.NDArray[np.bool_], cause: str) -> Iterator[Finding]:
    """Find `cause` for the first language of which `where` is true."""
    for column in np.flatnonzero(where)[:1]:
        language = f" of language {bounded.codes[column]}" if bounded.codes[column] != packs.ANY else ""
        message = f"nothing{language} can pass: {cause.format(bound=bounded.bounds[column])}"
        yield Finding(fault=True, where=bounded.reason, message=message)


def _overridden(decision: Decision) -> Iterator[Finding]:
    """Find bounds of the recipe that packs override for some languages."""
    for profile in decision.params.profiles:
        for limit, bound in decision.params.limits.get(profile, {}).items():
            by_language = {code: pack.bounds.get(profile, {}).get(limit) for code, pack in decision.packs.items()}
            languages = sorted(code for code, packed in by_language.items() if packed is not None and packed != bound)
            if languages:
                message = f"{limit}={bound:g} does not apply to {', '.join(languages)}: packs have other bounds there"
                yield Finding(fault=False, where=profile, message=message)


# --- On data --------------------------------------------------------------------------------------------------


def _tried(root: str, recipe: str, snapshot: str, decision: Decision) -> Iterator[Finding]:
    """Find rules that no stored row fails, and rules that never come first."""
    stage = filter_quality.STAGE.name
    if not snapshot and not version_log.latest_by_snapshot(root, recipe):
        yield Finding(fault=False, where=stage, message=f"rules not tried on data: {root} has no published {recipe}")
        return
    path, manifest, params = published(root, version_log.current(root, recipe, snapshot))
    try:
        same = _computation(decision_of(params, decision.params.packs)) == _computation(decision)
    except RefineryError:  # the snapshot was refined with other packs
        same = False
    if not same:
        message = f"rules not tried on data: {path} was refined with other settings of its signals"
        yield Finding(fault=False, where=stage, message=message)
        return
    yield from _idle(*_counts(root, manifest, decision))


def _computation(decision: Decision) -> object:
    """Return all that decides the signals, with the digests of lists in the place of their paths."""
    files: dict[str, str] = {}
    for card, limits, _ in filter_quality.resolve_profiles(*decision):
        files |= {str(path): _content(path) for path in (card.resources(limits) if card.resources else ())}
    return repoint(replace(filter_quality.measures_of(*decision), edit=False), files)


def _content(path: str) -> str:
    """Return the digest of a list, as manifests have it in the place of its path."""
    prefix = filter_quality.DIGEST
    return path if path.startswith(prefix) else f"{prefix}{storage.digest_of_file(path)[1]}"


def _counts(root: str, manifest: Manifest, decision: Decision) -> tuple[int, dict[str, list[int]], Mapping[str, str]]:
    """Return rows, per reason (rows that fail, rows that fail it first), and the earlier reason of most such rows."""
    rows, counts = 0, {bounded.reason: [0, 0] for bounded in bound_rules(decision)}
    earlier: dict[str, Counter[str]] = {reason: Counter() for reason in counts}
    for batch in stored_signals(root, manifest, decision.params):
        failed = failures(batch, decision)
        firsts = first_reasons(failed, batch.num_rows)
        rows += batch.num_rows
        for reason, mask in failed.items():
            counts[reason][0] += int(mask.sum())
            counts[reason][1] += int((firsts == reason).sum())
            earlier[reason].update(firsts[mask].tolist())
    hides = {reason: min(by, key=lambda name: (-by[name], name)) for reason, by in earlier.items() if by}
    return rows, counts, hides


def _idle(rows: int, counts: Mapping[str, Sequence[int]], hides: Mapping[str, str]) -> Iterator[Finding]:
    """Find rules that no row fails, and rules that every failing row fails after another one."""
    for reason, (fails, decides) in counts.items():
        if not fails:
            yield Finding(fault=False, where=reason, message=f"never fired: none of {rows:,} stored rows fails it")
        elif not decides:
            message = f"never decides: all {fails:,} of {rows:,} rows fail a rule before, mostly {hides[reason]}"
            yield Finding(fault=False, where=reason, message=message)


def finding_lines(recipe: str, findings: Sequence[Finding]) -> Iterator[str]:
    """Yield the findings as lines for a person, faults first."""
    for finding in sorted(findings, key=lambda finding: not finding.fault):
        is_named = finding.message.startswith(finding.where)
        text = finding.message if is_named else f"{finding.where}: {finding.message}"
        text = f"line {finding.line}: {text}" if finding.line else text
        yield f"{'FAULT' if finding.fault else 'note '}  {text}"
    faults = sum(finding.fault for finding in findings)
    yield (
        f"{recipe}: {counted(faults, 'fault')}, {counted(len(findings) - faults, 'note')}"
        if findings
        else f"{recipe}: nothing found"
    )


def finding_facts(findings: Sequence[Finding]) -> dict[str, Any]:
    """Return the findings as plain JSON values."""
    facts = [
        (finding.fault, {"where": finding.where, "message": finding.message, "line": finding.line})
        for finding in findings
    ]
    return {"faults": [each for fault, each in facts if fault], "notes": [each for fault, each in facts if not fault]}
