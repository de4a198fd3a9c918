"""Predicts what other bounds of `filter_quality` would keep, from the signals that are stored with every row."""

import argparse
import difflib
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.filters import Filter, fails, packs
from pipeline_tasks.inspect.command import add_snapshot, print_result, version_of
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish import version_log
from pipeline_tasks.recipe import bind
from pipeline_tasks.stage import FilePath
from pipeline_tasks.stages.filter_quality import (
    DIGEST,
    FILTERS,
    STAGE,
    Params,
    resolve_profiles,
    signals_column,
)
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import read_manifest, read_shards

KEPT = "kept"
COLUMNS = ("language", "source")

SHORT = {
    "gopher_quality.min_words": "gopher_quality.min_doc_words",
    "gopher_quality.max_words": "gopher_quality.max_doc_words",
}
"""What people call a bound, and its key: a document's words are what first comes to mind."""

Failures = dict[str, npt.NDArray[np.bool_]]
"""Reason -> which rows fail that rule, in the order in which rules are asked."""


@dataclass(frozen=True, slots=True)
class Change:
    """How many rows there are, how many are kept now, and how many would be."""

    rows: int
    now: int
    then: int


@dataclass(frozen=True, slots=True)
class Forecast:
    """What changed bounds would do to one published snapshot, counted in rows.

    `bounds` holds (now, then) per changed key (NaN: a rule is not asked), `packs` what they are now and then. `reasons`
    counts rows by the first rule that they fail, as manifests do; `fails` every row that fails the rule, whatever else
    it fails.
    """

    recipe: str
    snapshot: str
    manifest: str
    bounds: Mapping[str, tuple[float, float]]
    packs: tuple[str, str]
    whole: Change
    languages: Mapping[str, Change]
    sources: Mapping[str, Change]
    reasons: Mapping[str, tuple[int, int]]
    fails: Mapping[str, tuple[int, int]]


class Decision(NamedTuple):
    """What decides: a stage's params, and the packs that they name as they are read (or changed)."""

    params: Params
    packs: packs.Packs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the root, the snapshot, and the bounds to change."""
    add_snapshot(parser)
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="[LANGUAGE.]PROFILE.BOUND=NUMBER",
        help="a bound to change, for all languages or one, or packs=NAME; may be repeated",
    )


def answer(options: argparse.Namespace) -> int:
    """Print what the changed bounds would keep."""
    forecast = whatif(options.root, version_of(options), options.set)
    print_result(options, facts(forecast), told(forecast))
    return 0


def whatif(root: str, version: version_log.Version, changes: Sequence[str]) -> Forecast:
    """Re-decide every row of a published snapshot for `changes`.

    A change is written `profile.bound=value` for all languages that have no bound of their own, or
    `language.profile.bound=value` for one, or `packs=NAME_OR_PATH`. Only stored signals are read, no text. RecipeError
    for a key that is unknown, or that no stored signal can answer.
    """
    path, made, params = published(root, version)
    named = [one.partition("=")[2].strip() for one in changes if one.partition("=")[0].strip() == "packs"]
    now = decision(params, FilePath(named[-1]) if named else params.packs)
    then = _repacked(now, FilePath(named[-1])) if named else now
    wanted = dict(_change(one, then.params) for one in changes if not one.strip().startswith("packs="))
    bounds = {key: (_bound(now, key), value) for key, value in wanted.items()}
    for key, value in wanted.items():
        then = _changed(then, key, value)
    tally = _Tally()
    for batch in stored_signals(root, made, params):
        tally.add(batch, failures(batch, now), failures(batch, then))
    told = {why: count for why, (count, _) in tally.reasons().items() if count}
    if told != dict(made.rejected):
        message = f"{root}/{path}: its signals explain {told}, it says {dict(made.rejected)}; refine the snapshot again"
        raise ContractError(message)
    return Forecast(
        recipe=version.recipe,
        snapshot=version.snapshot,
        manifest=path,
        bounds=bounds,
        packs=(str(now.params.packs), str(then.params.packs)),
        whole=tally.change("whole"),
        languages=tally.changes("language"),
        sources=tally.changes("source"),
        reasons=tally.reasons(),
        fails=tally.fails(),
    )


def decision(params: Params, named: FilePath) -> Decision:
    """Return what decided with `params` of a manifest, which names a file of packs by its digest; `named` is the file.

    RecipeError if it is not.
    """
    if params.packs.startswith(DIGEST):
        path = packs.path_of(named)
        if named == params.packs or not path or f"{DIGEST}{storage.digest_of_file(path)[1]}" != params.packs:
            message = f"this snapshot was refined with a file of packs ({params.packs}); name it: --set packs=PATH"
            raise RecipeError(message)
        params = replace(params, packs=named)
    return Decision(params, packs.load(params.packs, FILTERS))


def _repacked(now: Decision, named: FilePath) -> Decision:
    """Return `now` with other packs; RecipeError if they ask for stop words that were not counted."""
    then = Decision(replace(now.params, packs=named), packs.load(named, FILTERS))
    for card, limits, _ in resolve_profiles(then.params, then.packs):
        had, wants = packs.stop_word_lists(card, limits, now.packs), packs.stop_word_lists(card, limits, then.packs)
        if unknown := sorted(code for code, words in wants.items() if had.get(code) != words):
            message = (
                f"--set packs={named}: it counts stop words of {', '.join(unknown)} for {card.name} that no stored "
                "signal tells; only a run with it in the recipe does"
            )
            raise RecipeError(message)
    return then


def published(root: str, version: version_log.Version) -> tuple[str, Manifest, Params]:
    """Return path, manifest and params of a version's `filter_quality`; RecipeError if it has none."""
    path = version.manifests.get(STAGE.name)
    if path is None:
        message = f"{root}: version {version.number} of recipe {version.recipe} has no {STAGE.name}, so no signals"
        raise RecipeError(message)
    made = read_manifest(root, path)
    return path, made, bind(STAGE, made.params, f"{root}/{path}: params")


def stored_signals(root: str, manifest: Manifest, params: Params) -> Iterator[pa.RecordBatch]:
    """Yield `COLUMNS` and the signals of every row that the stage judged, kept or rejected."""
    columns = (*COLUMNS, *map(signals_column, dict.fromkeys(params.profiles)))
    yield from read_shards(root, (*manifest.shards, *manifest.rejects), columns)


def failures(batch: pa.RecordBatch, decides: Decision) -> Failures:
    """Return which rows fail which rule, from their stored signals alone."""
    failed: Failures = {}
    columns = packs.bound_columns(batch.column("language"), decides.packs)
    for card, _, bounds in resolve_profiles(*decides):
        signals = batch.column(signals_column(card.name))
        for rule, row_bounds in zip(card.rules, bounds, strict=True):
            values = signals.field(rule.signal).to_numpy(zero_copy_only=False)
            reason = card.reason(rule)
            failed[reason] = failed.get(reason, False) | fails(rule, values, row_bounds[columns])
    return failed


def first(failed: Failures, rows: int) -> npt.NDArray[np.str_]:
    """Return per row the first reason against it, or `KEPT`."""
    names = np.array([*failed, KEPT])
    stacked = np.vstack([*failed.values(), np.ones(rows, np.bool_)])
    found: npt.NDArray[np.str_] = names[stacked.argmax(axis=0)]
    return found


# --- Keys -----------------------------------------------------------------------------------------------------


def decisive(card: Filter) -> tuple[str, ...]:
    """Return the limits of a profile that are bounds on stored signals; all others shape what is measured."""
    return tuple(dict.fromkeys(rule.limit for rule in card.rules))


def _change(written: str, now: Params) -> tuple[str, float]:
    """Return (`profile.bound` or `language.profile.bound`, value) of what was written.

    RecipeError names the nearest key or says why not.
    """
    key, equals, value = written.partition("=")
    key = key.strip().removeprefix(f"{STAGE.name}.")
    language, dot, rest = key.partition(".")
    if rest.count(".") == 1:
        packs.known_language(language, f"--set {written}")
        plain = SHORT.get(rest, rest)
        key = f"{language}.{plain}"
    else:
        key = plain = SHORT.get(key, key)
    known = [f"{name}.{one.name}" for name, card in FILTERS.items() for one in fields(card.limits)]
    if key in {one.name for one in fields(Params)}:
        message = f"--set {key}: it decides what is measured, not a bound; a snapshot refined with it tells"
        raise RecipeError(message)
    if not equals or not dot or plain not in known:
        near = difflib.get_close_matches(plain, known, 3, cutoff=0)
        message = f"--set {written!r}: write PROFILE.BOUND=NUMBER; nearest to {plain!r}: {', '.join(near)}"
        raise RecipeError(message)
    profile, limit = plain.split(".")
    if profile not in now.profiles:
        message = f"--set {key}: {profile} is not one of the profiles of this recipe ({', '.join(now.profiles)})"
        raise RecipeError(message)
    if limit not in decisive(FILTERS[profile]):
        message = (
            f"--set {key}: it decides which lines are removed or how they are counted, so no stored signal tells; only "
            f"a run with it in the recipe does. From signals: {', '.join(decisive(FILTERS[profile]))}"
        )
        raise RecipeError(message)
    return key, _number(key, value)


def _number(key: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if math.isnan(number):
        message = f"--set {key}={value}: the bound must be a number"
        raise RecipeError(message)
    return number


def _changed(decides: Decision, key: str, value: float) -> Decision:
    *language, profile, limit = key.split(".")
    if not language:
        limits = {**decides.params.limits, profile: {**decides.params.limits.get(profile, {}), limit: value}}
        return decides._replace(params=replace(decides.params, limits=limits))
    (code,) = language
    pack = decides.packs.get(code, decides.packs.get(packs.ANY, packs.Pack()))
    changed = {**pack.bounds, profile: {**pack.bounds.get(profile, {}), limit: value}}
    return decides._replace(packs={**decides.packs, code: replace(pack, bounds=changed)})


def _bound(decides: Decision, key: str) -> float:
    """Return a bound as it is asked: of one language, or in general; NaN if it is not."""
    *language, profile, limit = key.split(".")
    general = getattr(decides.params.limits_of(profile), limit)
    if not language:
        return float(general)
    pack = decides.packs.get(language[0], decides.packs.get(packs.ANY, packs.Pack()))
    bound = pack.bounds.get(profile, {}).get(limit, general)
    return math.nan if bound is None else float(bound)


# --- Counts ---------------------------------------------------------------------------------------------------


class _Tally:
    """Adds up batches: rows by what they are and what becomes of them now and then."""

    def __init__(self) -> None:
        self._rows: Counter[tuple[str, str, str]] = Counter()
        self._reasons: dict[str, list[int]] = {}
        self._fails: dict[str, list[int]] = {}

    def add(self, batch: pa.RecordBatch, now: Failures, then: Failures) -> None:
        rows = batch.num_rows
        firsts = first(now, rows), first(then, rows)
        states = ["rows" + "n" * bool(a) + "t" * bool(b) for a, b in zip(*(one == KEPT for one in firsts), strict=True)]
        self._rows.update(("whole", "", state) for state in states)
        for column in ("language", "source"):
            names = [name or "(none)" for name in batch.column(column).to_pylist()]
            self._rows.update((column, name, state) for name, state in zip(names, states, strict=True))
        for reason in now:
            pair = self._reasons.setdefault(reason, [0, 0]), self._fails.setdefault(reason, [0, 0])
            for side, (one, failed) in enumerate(zip(firsts, (now, then), strict=True)):
                pair[0][side] += int((one == reason).sum())
                pair[1][side] += int(failed[reason].sum())

    def change(self, column: str, name: str = "") -> Change:
        count = {state: self._rows[column, name, state] for state in ("rows", "rowsn", "rowst", "rowsnt")}
        both = count["rowsnt"]
        return Change(sum(count.values()), count["rowsn"] + both, count["rowst"] + both)

    def changes(self, column: str) -> dict[str, Change]:
        names = sorted({name for one, name, _ in self._rows if one == column})
        found = {name: self.change(column, name) for name in names}
        return dict(sorted(found.items(), key=lambda pair: (-pair[1].rows, pair[0])))

    def reasons(self) -> dict[str, tuple[int, int]]:
        return {why: (now, then) for why, (now, then) in self._reasons.items()}

    def fails(self) -> dict[str, tuple[int, int]]:
        return {why: (now, then) for why, (now, then) in self._fails.items()}


def told(forecast: Forecast) -> Iterator[str]:
    """Yield the forecast as lines for a person."""
    yield f"{forecast.snapshot} of {forecast.recipe}: {forecast.manifest}"
    for key, (now, then) in forecast.bounds.items():
        yield f"{key}: {'not asked' if math.isnan(now) else f'{now:g}'} -> {then:g}"
    if len(set(forecast.packs)) > 1:
        yield f"packs: {forecast.packs[0]} -> {forecast.packs[1]}"
    yield ""
    yield f"{'':<28}{'rows':>9}{'kept now':>10}{'then':>9}{'change':>9}{'now':>9}{'then':>8}"
    yield _line("all", forecast.whole)
    yield from _lines("language", forecast.languages)
    yield from _lines("source", forecast.sources)
    moved = {why: pair for why, pair in forecast.reasons.items() if pair[0] != pair[1]}
    if moved:
        yield ""
        yield f"{'first reason':<38}{'now':>9}{'then':>9}{'change':>9}"
        yield from (f"{why:<38}{now:>9,}{then:>9,}{then - now:>+9,}" for why, (now, then) in moved.items())


def _lines(what: str, changes: Mapping[str, Change]) -> Iterable[str]:
    return (_line(f"{what} {name}", one) for name, one in changes.items())


def _line(name: str, one: Change) -> str:
    now, then = one.now / max(one.rows, 1), one.then / max(one.rows, 1)
    return f"{name:<28}{one.rows:>9,}{one.now:>10,}{one.then:>9,}{one.then - one.now:>+9,}{now:>9.1%}{then:>8.1%}"


def facts(forecast: Forecast) -> dict[str, Any]:
    """Return the forecast as plain JSON values."""
    changes = {
        name: {key: _plain(one) for key, one in getattr(forecast, name).items()} for name in ("languages", "sources")
    }
    pairs = {name: {key: list(pair) for key, pair in getattr(forecast, name).items()} for name in ("reasons", "fails")}
    pairs["bounds"] = {key: [None if math.isnan(one) else one for one in pair] for key, pair in forecast.bounds.items()}
    names = {name: getattr(forecast, name) for name in ("recipe", "snapshot", "manifest")}
    return {**names, "packs": list(forecast.packs), **_plain(forecast.whole), **changes, **pairs}


def _plain(change: Change) -> dict[str, int]:
    return {"rows": change.rows, "now": change.now, "then": change.then}
