"""Predict which rows other bounds would keep, from the signals and measures that are stored with every row."""

import argparse
import math
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.binding import bind, written_fields
from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.filters import Filter, fails, packs
from pipeline_tasks.inspect.command import add_snapshot, print_result, version_of
from pipeline_tasks.inspect.conditions import FORM, HELP
from pipeline_tasks.inspect.expired import expired_in
from pipeline_tasks.inspect.unpublished import say
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.nearest import near
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.stage import FilePath, Shard, Shards
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

JUDGE = STAGE.name
"""The stage that judges by signals: what is predicted here; other bounds are those of cards (`whatif.stages`)."""

KEPT = "kept"
COLUMNS = ("language", "source", "chars")
GROUPS = ("language", "source")

MOST_NAMED = 4
"""Languages that a line on bounds of their own names."""

ALL = sys.maxsize
"""A number of rows that no snapshot has."""

SHORT = {
    "gopher_quality.min_words": "gopher_quality.min_doc_words",
    "gopher_quality.max_words": "gopher_quality.max_doc_words",
}
"""Common names of bounds, and their keys."""

Failures = dict[str, npt.NDArray[np.bool_]]
"""Reason -> which rows fail that rule, in the order of the rules."""


@dataclass(frozen=True, slots=True)
class Change:
    """Rows, rows kept now, and rows kept with the changed bounds."""

    rows: int
    now: int
    then: int


@dataclass(frozen=True, slots=True)
class Forecast:
    """The effect of changed bounds on one published snapshot, counted in rows.

    `bounds` is (now, then) per changed key (NaN: the rule is skipped), `packs` is (now, then). `own_bounds` has per
    changed key the languages that keep a bound of their own, with it. `reasons` counts rows by the first rule that they
    fail, as manifests do; `fails` counts every row that fails the rule. `characters` are those
    of the rows that are kept, (now, then); a row that is rejected now has those of its text as a whole. Counts are
    exact if `rows_read` has all rows, and estimates if not.
    """

    recipe: str
    snapshot: str
    manifest: str
    bounds: Mapping[str, tuple[float, float]]
    own_bounds: Mapping[str, Mapping[str, float]]
    packs: tuple[str, str]
    whole: Change
    languages: Mapping[str, Change]
    sources: Mapping[str, Change]
    reasons: Mapping[str, tuple[int, int]]
    fails: Mapping[str, tuple[int, int]]
    characters: tuple[int, int]
    rows_read: int


class Decision(NamedTuple):
    """The params of the stage, and the packs that they name, as loaded or changed."""

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
        help="a bound to change, for all languages or one, or packs=NAME, or of another stage (STAGE.PARAM=NUMBER); "
        "may be repeated",
    )
    parser.add_argument("--where", action="append", default=[], metavar=FORM, help=HELP)
    parser.add_argument(
        "--by",
        default="",
        metavar="COLUMN",
        help="column whose values --where counts by (default: language, else source)",
    )


def answer(options: argparse.Namespace) -> int:
    """Print what the changed bounds would keep, or what conditions on columns would."""
    from pipeline_tasks.inspect.whatif.stages import is_of_stage, stage_forecasts, stage_lines
    from pipeline_tasks.inspect.whatif.texts import is_dial, text_forecasts, text_lines

    version = version_of(options)
    say(expired_in(options.root, version.manifests))
    if options.where or options.by:
        return _answer_columns(options, version)
    dials = [change for change in options.set if is_dial(change, version)]
    others = [change for change in options.set if change not in dials and is_of_stage(change, version)]
    of_quality = [change for change in options.set if change not in (*others, *dials)]
    stages, texts = stage_forecasts(options.root, version, others), text_forecasts(options.root, version, dials)
    facts: dict[str, Any] = {"stages": [asdict(forecast) for forecast in stages]} if others else {}
    facts |= {"texts": [asdict(forecast) for forecast in texts]} if dials else {}
    lines = [*stage_lines(stages), *text_lines(texts)]
    if of_quality or not (others or dials):
        forecast = whatif(options.root, version, of_quality)
        facts, lines = {**forecast_facts(forecast), **facts}, [*forecast_lines(forecast), *lines]
    print_result(options, facts, lines)
    return 0


def _answer_columns(options: argparse.Namespace, version: version_log.Version) -> int:
    """Print what conditions on columns would keep; RecipeError if bounds are asked for, too, or no condition is."""
    from pipeline_tasks.inspect.whatif.columns import column_facts, column_lines, whatif_columns

    if options.set or not options.where:
        message = (
            "--where and --set are two questions: of the documents that the version has, and of the rows that a stage "
            "judges; ask one at a time"
            if options.set
            else "--by names the groups of --where; name a condition"
        )
        raise RecipeError(message)
    forecast = whatif_columns(options.root, version, options.where, options.by)
    print_result(options, column_facts(forecast), column_lines(forecast))
    return 0


def whatif(root: str, version: version_log.Version, changes: Sequence[str], most: int = ALL) -> Forecast:
    """Re-decide every row of a published snapshot for `changes`.

    A change is written `profile.bound=value` for all languages that have no bound of their own, or
    `language.profile.bound=value` for one, or `packs=NAME_OR_PATH`. Only stored signals are read, no text. RecipeError
    for a key that is unknown, or that no stored signal can decide.

    Of a snapshot with more than `most` rows, about so many are read: whole shards, in the order of their digests, of
    the kept and of the rejected rows alike. Each of their rows then counts for as many of its kind as there are.
    """
    path, manifest, params = published(root, version)
    now, then, bounds = decisions(params, changes)
    tally = _Tally()
    for batch, weight in weighted_signals(root, manifest, params, most):
        tally.add(batch, failures(batch, now), failures(batch, then), weight)
    _require_explained(f"{root}/{path}", manifest, tally)
    return Forecast(
        recipe=version.recipe,
        snapshot=version.snapshot,
        manifest=path,
        bounds=bounds,
        own_bounds=_kept_bounds(then, bounds, languages_of(manifest)),
        packs=(str(now.params.packs), str(then.params.packs)),
        whole=tally.change("whole"),
        languages=tally.changes("language"),
        sources=tally.changes("source"),
        reasons=tally.reasons(),
        fails=tally.fails(),
        characters=tally.characters(),
        rows_read=tally.rows_read,
    )


def weighted_signals(
    root: str, manifest: Manifest, params: Params, most: int = ALL
) -> Iterator[tuple[pa.RecordBatch, float]]:
    """Yield `COLUMNS` and the signals of about `most` judged rows, and for how many rows each of them counts."""
    for shards in (manifest.shards, manifest.rejects):
        sample, weight = sampled_shards(shards, most / max(manifest.rows_due, 1))
        yield from ((batch, weight) for batch in _signals_of(root, sample, params))


def sampled_shards(shards: Shards, share: float) -> tuple[Shards, float]:
    """Return shards that have about a share of all rows, and for how many rows each of theirs counts."""
    sample = _sample(shards, share)
    return sample, _rows_of(shards) / max(_rows_of(sample), 1)


def _sample(shards: Shards, share: float) -> Shards:
    """Return shards in the order of their digests that have about `share` of all rows, at least one; all if it is 1."""
    if share >= 1:
        return shards
    wanted, sample = share * _rows_of(shards), list[Shard]()
    for shard in sorted((shard for shard in shards if shard.rows), key=lambda shard: shard.digest):
        if not sample or _rows_of(sample) + shard.rows <= wanted:
            sample.append(shard)
    return tuple(sample)


def _rows_of(shards: Iterable[Shard]) -> int:
    return sum(shard.rows for shard in shards)


def decisions(params: Params, changes: Sequence[str]) -> tuple[Decision, Decision, dict[str, tuple[float, float]]]:
    """Return the decision of `params`, that with the changes, and (now, then) of every changed bound.

    RecipeError for a change that `whatif` refuses.
    """
    pairs = [(key.strip(), value.strip()) for key, _, value in (change.partition("=") for change in changes)]
    names = [FilePath(value) for key, value in pairs if key == "packs"]
    now = decision_of(params, names[-1] if names else params.packs)
    then = _with_packs(now, names[-1]) if names else now
    bounds = {}
    for change, (key, _) in zip(changes, pairs, strict=True):
        if key != "packs":
            changed, value = _parse_change(change, then.params)
            bounds[changed] = bound_of(now, changed), value
            then = _with_bound(then, changed, value)
    return now, then, bounds


def _require_explained(path: str, manifest: Manifest, tally: "_Tally") -> None:
    """Raise ContractError unless the stored signals give the reasons of the manifest; of a sample, the rows kept."""
    now = {reason: count for reason, (count, _) in tally.reasons().items() if count}
    is_whole = tally.rows_read == _rows_of(manifest.shards) + _rows_of(manifest.rejects)
    if (now != dict(manifest.rejected)) if is_whole else (tally.change("whole").now != manifest.rows):
        message = f"{path}: its signals explain {now}, it says {dict(manifest.rejected)}; refine the snapshot again"
        raise ContractError(message)


def decision_of(params: Params, name: FilePath) -> Decision:
    """Return the decision of a manifest's `params`; `name` is the file of packs whose digest they have.

    RecipeError if the file has another digest.
    """
    if params.packs.startswith(DIGEST):
        path = packs.path_of(name)
        if name == params.packs or not path or f"{DIGEST}{storage.digest_of_file(path)[1]}" != params.packs:
            message = f"this snapshot was refined with a file of packs ({params.packs}); name it: --set packs=PATH"
            raise RecipeError(message)
        params = replace(params, packs=name)
    return Decision(params, packs.load(params.packs, FILTERS))


def _with_packs(now: Decision, name: FilePath) -> Decision:
    """Return `now` with other packs; RecipeError if they need stop words that were not counted."""
    then = Decision(replace(now.params, packs=name), packs.load(name, FILTERS))
    for card, limits, _ in resolve_profiles(then.params, then.packs):
        counted, needed = (packs.stop_word_lists(card, limits, choice.packs) for choice in (now, then))
        if unknown := sorted(code for code, words in needed.items() if counted.get(code) != words):
            message = (
                f"--set packs={name}: it counts stop words of {', '.join(unknown)} for {card.name} that no stored "
                "signal has; run the recipe with these packs instead"
            )
            raise RecipeError(message)
    return then


def published(root: str, version: version_log.Version) -> tuple[str, Manifest, Params]:
    """Return path, manifest and params of a version's `filter_quality`; RecipeError if it has none."""
    path = version.manifests.get(JUDGE)
    if path is None:
        message = f"{root}: version {version.number} of recipe {version.recipe} has no {JUDGE}, so no signals"
        raise RecipeError(message)
    manifest = read_manifest(root, path)
    return path, manifest, bind(STAGE, manifest.params, f"{root}/{path}: params")


def stored_signals(root: str, manifest: Manifest, params: Params) -> Iterator[pa.RecordBatch]:
    """Yield `COLUMNS` and the signals of every row that the stage judged, kept or rejected."""
    yield from _signals_of(root, (*manifest.shards, *manifest.rejects), params)


def _signals_of(root: str, shards: Shards, params: Params) -> Iterator[pa.RecordBatch]:
    columns = (*COLUMNS, *map(signals_column, dict.fromkeys(params.profiles)))
    yield from read_shards(root, shards, columns)


def failures(batch: pa.RecordBatch, decision: Decision) -> Failures:
    """Return which rows fail which rule, from their stored signals alone."""
    failed: Failures = {}
    columns = packs.bound_columns(batch.column("language"), decision.packs)
    for card, _, bounds in resolve_profiles(*decision):
        signals = batch.column(signals_column(card.name))
        _require_signals(card, signals.type)
        for rule, row_bounds in zip(card.rules, bounds, strict=True):
            values = signals.field(rule.signal).to_numpy(zero_copy_only=False)
            reason = card.reason(rule)
            failed[reason] = failed.get(reason, False) | fails(rule, values, row_bounds[columns])
    return failed


def _require_signals(card: Filter, stored: pa.StructType) -> None:
    """Raise RecipeError if the snapshot was refined when signals of `card` had other names."""
    missing = [rule.signal for rule in card.rules if stored.get_field_index(rule.signal) < 0]
    if missing:
        message = (
            f"{signals_column(card.name)} has no {missing[0]!r}: an earlier version of filter_quality wrote it; "
            "refine the snapshot again"
        )
        raise RecipeError(message)


def first_reasons(failed: Failures, rows: int) -> npt.NDArray[np.str_]:
    """Return per row the first reason against it, or `KEPT`."""
    names = np.array([*failed, KEPT])
    reasons: npt.NDArray[np.str_] = names[_first_failures(failed, rows)]
    return reasons


def _first_failures(failed: Failures, rows: int) -> npt.NDArray[np.intp]:
    """Return per row the position in `failed` of the first reason against it, their number for a row that is kept."""
    first: npt.NDArray[np.intp] = np.vstack([*failed.values(), np.ones(rows, np.bool_)]).argmax(axis=0)
    return first


# --- Keys -----------------------------------------------------------------------------------------------------


def _parse_change(written: str, now: Params) -> tuple[str, float]:
    """Return (`profile.bound` or `language.profile.bound`, value); RecipeError with the nearest key or the cause."""
    key, equals, value = written.partition("=")
    key = plain_key(key)
    language, dot, plain = key.partition(".")
    if plain.count(".") == 1:
        packs.known_language(language, f"--set {written}")
    else:
        plain = key
    known = [f"{name}.{field.name}" for name, card in FILTERS.items() for field in fields(card.limits)]
    if key in {field.name for field in fields(Params)}:
        message = f"--set {key}: it decides how signals are computed and is not a bound; run the recipe with it instead"
        raise RecipeError(message)
    if not equals or not dot or plain not in known:
        meant = ", ".join(near(plain, known, 3))
        message = f"--set {written!r}: write PROFILE.BOUND=NUMBER; nearest to {plain!r}: {meant}"
        raise RecipeError(message)
    profile, limit = plain.split(".")
    _require_bound(key, profile, limit, now.profiles)
    number = _number(key, value)
    written_fields(FILTERS[profile].limits, {limit: number}, f"--set {key}")
    return key, number


def plain_key(key: str) -> str:
    """Return a key without the stage's name, the bound by its own name."""
    plain = key.strip().removeprefix(f"{JUDGE}.")
    language, _, rest = plain.partition(".")
    return f"{language}.{SHORT.get(rest, rest)}" if rest.count(".") == 1 else SHORT.get(plain, plain)


def _require_bound(key: str, profile: str, limit: str, profiles: Sequence[str]) -> None:
    """Raise RecipeError unless the profile was applied and the limit is a bound on a stored signal."""
    if profile not in profiles:
        message = f"--set {key}: {profile} is not one of the profiles of this recipe ({', '.join(profiles)})"
        raise RecipeError(message)
    if limit not in FILTERS[profile].bounds:
        message = (
            f"--set {key}: it decides how lines are removed or counted, so stored signals do not show its effect; run "
            f"the recipe with it instead. Bounds on signals: {', '.join(FILTERS[profile].bounds)}"
        )
        raise RecipeError(message)


def _number(key: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if math.isnan(number):
        message = f"--set {key}={value}: the bound must be a number"
        raise RecipeError(message)
    return number


def _with_bound(decision: Decision, key: str, value: float) -> Decision:
    *language, profile, limit = key.split(".")
    if not language:
        limits = {**decision.params.limits, profile: {**decision.params.limits.get(profile, {}), limit: value}}
        return decision._replace(params=replace(decision.params, limits=limits))
    (code,) = language
    pack = decision.packs.get(code, decision.packs.get(packs.ANY, packs.Pack()))
    changed = {**pack.bounds, profile: {**pack.bounds.get(profile, {}), limit: value}}
    return decision._replace(packs={**decision.packs, code: replace(pack, bounds=changed)})


def bound_of(decision: Decision, key: str) -> float:
    """Return the bound of one language, or of all others; NaN if the rule is skipped."""
    *language, profile, limit = key.split(".")
    general = getattr(decision.params.limits_of(profile), limit)
    if not language:
        return float(general)
    pack = decision.packs.get(language[0], decision.packs.get(packs.ANY, packs.Pack()))
    bound = pack.bounds.get(profile, {}).get(limit, general)
    return math.nan if bound is None else float(bound)


def own_bounds(decision: Decision, key: str, languages: Sequence[str]) -> dict[str, float]:
    """Return the bounds of the languages whose pack has one of their own for `profile.bound`; NaN: it is skipped."""
    profile, limit = key.split(".")
    return {
        code: bound_of(decision, f"{code}.{key}")
        for code in languages
        if limit in decision.packs.get(code, decision.packs.get(packs.ANY, packs.Pack())).bounds.get(profile, {})
    }


def _kept_bounds(then: Decision, changed: Collection[str], languages: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return per key that is changed for all languages those that keep a bound of their own, with it."""
    general = {key: own_bounds(then, key, languages) for key in changed if key.count(".") == 1}
    kept = {
        key: {code: bound for code, bound in own.items() if f"{code}.{key}" not in changed}
        for key, own in general.items()
    }
    return {key: own for key, own in kept.items() if own}


def languages_of(manifest: Manifest) -> tuple[str, ...]:
    """Return the languages of the rows that the stage judged, the most frequent first."""
    counts: dict[str, int] = {}
    for part in ("kept", "rejects"):
        for name, count in manifest.metrics.get(part, {}).get("language", {}).get("bins", {}).items():
            counts[name] = counts.get(name, 0) + count
    return tuple(sorted(counts, key=lambda name: (-counts[name], name)))


# --- Counts ---------------------------------------------------------------------------------------------------


class _Tally:
    """Counts rows by language, source and reason, now and with the changed bounds; a row counts with its weight."""

    def __init__(self) -> None:
        self.rows_read = 0
        self._rows: defaultdict[tuple[str, str, bool, bool], float] = defaultdict(float)
        self._characters = [0.0, 0.0]
        self._reasons: dict[str, list[float]] = {}
        self._fails: dict[str, list[float]] = {}

    def add(self, batch: pa.RecordBatch, now: Failures, then: Failures, weight: float) -> None:
        self.rows_read += batch.num_rows
        firsts = [_first_failures(failed, batch.num_rows) for failed in (now, then)]
        kept = [first == len(now) for first in firsts]
        self._add_groups(batch, kept, weight)
        for side, (first, failed) in enumerate(zip(firsts, (now, then), strict=True)):
            counts = np.bincount(first, minlength=len(now))
            for reason, count in zip(now, counts.tolist(), strict=False):
                self._reasons.setdefault(reason, [0, 0])[side] += weight * count
                self._fails.setdefault(reason, [0, 0])[side] += weight * int(failed[reason].sum())

    def _add_groups(self, batch: pa.RecordBatch, kept: Sequence[npt.NDArray[np.bool_]], weight: float) -> None:
        columns = {name: batch.column(name) for name in COLUMNS}
        judged = pa.table(columns | {"now": pa.array(kept[0]), "then": pa.array(kept[1])})
        counted = judged.group_by([*GROUPS, "now", "then"]).aggregate([([], "count_all"), ("chars", "sum")])
        for group in counted.to_pylist():
            names = [("whole", ""), *((column, group[column] or "(none)") for column in GROUPS)]
            for column, name in names:
                self._rows[column, name, group["now"], group["then"]] += weight * group["count_all"]
            for side, name in enumerate(("now", "then")):
                self._characters[side] += weight * (group["chars_sum"] or 0) * group[name]

    def change(self, column: str, name: str = "") -> Change:
        neither, then, now, both = (self._rows[column, name, a, b] for a in (False, True) for b in (False, True))
        return Change(round(neither + then + now + both), round(now + both), round(then + both))

    def changes(self, column: str) -> dict[str, Change]:
        names = sorted({name for counted, name, _, _ in self._rows if counted == column})
        changes = {name: self.change(column, name) for name in names}
        return dict(sorted(changes.items(), key=lambda pair: (-pair[1].rows, pair[0])))

    def characters(self) -> tuple[int, int]:
        now, then = self._characters
        return round(now), round(then)

    def reasons(self) -> dict[str, tuple[int, int]]:
        return _rounded(self._reasons)

    def fails(self) -> dict[str, tuple[int, int]]:
        return _rounded(self._fails)


def _rounded(counts: Mapping[str, Sequence[float]]) -> dict[str, tuple[int, int]]:
    return {reason: (round(now), round(then)) for reason, (now, then) in counts.items()}


def forecast_lines(forecast: Forecast) -> Iterator[str]:
    """Yield the forecast as lines for a person."""
    yield f"{forecast.snapshot} of {forecast.recipe}: {forecast.manifest}"
    for key, (now, then) in forecast.bounds.items():
        yield f"{key}: {_bound_text(now)} -> {then:g}"
        if own := forecast.own_bounds.get(key):
            yield f"  {_own_line(key, then, own)}"
    if len(set(forecast.packs)) > 1:
        yield f"packs: {forecast.packs[0]} -> {forecast.packs[1]}"
    yield ""
    yield f"{'':<28}{'rows':>9}{'kept now':>10}{'then':>9}{'change':>9}{'now':>9}{'then':>8}"
    yield _line("all", forecast.whole)
    yield from _lines("language", forecast.languages)
    yield from _lines("source", forecast.sources)
    moved = {reason: pair for reason, pair in forecast.reasons.items() if pair[0] != pair[1]}
    if moved:
        yield ""
        yield f"{'first reason':<38}{'now':>9}{'then':>9}{'change':>9}"
        yield from (f"{reason:<38}{now:>9,}{then:>9,}{then - now:>+9,}" for reason, (now, then) in moved.items())


def _bound_text(bound: float) -> str:
    return "skipped" if math.isnan(bound) else f"{bound:g}"


def _own_line(key: str, then: float, own: Mapping[str, float]) -> str:
    named = [f"{code} {_bound_text(bound)}" for code, bound in [*own.items()][:MOST_NAMED]]
    more = f" and {len(own) - MOST_NAMED} more" if len(own) > MOST_NAMED else ""
    return f"own bound, which stays: {', '.join(named)}{more}; to change it: --set {next(iter(own))}.{key}={then:g}"


def _lines(column: str, changes: Mapping[str, Change]) -> Iterable[str]:
    return (_line(f"{column} {name}", change) for name, change in changes.items())


def _line(name: str, change: Change) -> str:
    rows, now, then = change.rows, change.now, change.then
    shares = f"{now / max(rows, 1):>9.1%}{then / max(rows, 1):>8.1%}"
    return f"{name:<28}{rows:>9,}{now:>10,}{then:>9,}{then - now:>+9,}{shares}"


def forecast_facts(forecast: Forecast) -> dict[str, Any]:
    """Return the forecast as plain JSON values."""
    changes = {
        name: {key: _plain(change) for key, change in getattr(forecast, name).items()}
        for name in ("languages", "sources")
    }
    pairs = {name: {key: list(pair) for key, pair in getattr(forecast, name).items()} for name in ("reasons", "fails")}
    bounds: dict[str, list[float | None]] = {}
    for key, pair in forecast.bounds.items():
        bounds[key] = [None if math.isnan(bound) else bound for bound in pair]
    names = {name: getattr(forecast, name) for name in ("recipe", "snapshot", "manifest")}
    read = {"characters": list(forecast.characters), "rows_read": forecast.rows_read}
    own = {
        key: {code: None if math.isnan(bound) else bound for code, bound in kept.items()}
        for key, kept in forecast.own_bounds.items()
    }
    return {
        **names,
        "packs": list(forecast.packs),
        **_plain(forecast.whole),
        **changes,
        **pairs,
        "bounds": bounds,
        "own_bounds": own,
        **read,
    }


def _plain(change: Change) -> dict[str, int]:
    return {"rows": change.rows, "now": change.now, "then": change.then}
