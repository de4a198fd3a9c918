"""Lists the bounds that `whatif` can change in a snapshot, and writes changes of them as lines of a recipe."""

import math
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline_tasks.constraints import Range
from pipeline_tasks.filters import Filter, packs
from pipeline_tasks.inspect.whatif import (
    JUDGE,
    Decision,
    bound_of,
    decision_of,
    languages_of,
    own_bounds,
    plain_key,
    published,
)
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.stages.filter_quality import FILTERS

PACKS = "packs"
"""The key of the set of packs."""

NAMED_PACKS = (*packs.SETS, packs.NONE)
"""Packs that are named without a path."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound on a stored signal.

    `now` is its value in the snapshot; NaN: the rule is skipped. `reasons` are those of the rows that it rejects.
    `exceptions` are the languages of the snapshot that have a bound of their own in the packs.
    """

    key: str
    limit: str
    now: float
    range: Range
    reasons: tuple[str, ...]
    exceptions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Choices:
    """What `whatif` can change in a snapshot: the bounds of each profile, the packs, and languages of their own.

    `languages` are those of the snapshot's rows, the most frequent first.
    """

    profiles: Mapping[str, Sequence[Bound]]
    packs: str
    languages: tuple[str, ...]


def choices(root: str, version: Version, language: str = "") -> Choices:
    """Return what `whatif` can change for all languages, or for one; only the manifest is read.

    RecipeError if the version has no `filter_quality` or was refined with a file of packs, or for an unknown language.
    """
    if language:
        packs.known_language(language, "language")
    _, manifest, params = published(root, version)
    decision, languages = decision_of(params, params.packs), languages_of(manifest)
    profiles = {
        name: [_bound(FILTERS[name], limit, decision, language, languages) for limit in FILTERS[name].bounds]
        for name in dict.fromkeys(params.profiles)
    }
    return Choices(profiles, str(params.packs), languages)


def _bound(card: Filter, limit: str, decision: Decision, language: str, languages: Sequence[str]) -> Bound:
    key = f"{card.name}.{limit}"
    own = f"{language}.{key}" if language else key
    exceptions = () if language else tuple(own_bounds(decision, key, languages))
    reasons = tuple(card.reason(rule) for rule in card.rules if rule.limit == limit)
    return Bound(own, limit, bound_of(decision, own), _range(card, limit), reasons, exceptions)


def _range(card: Filter, limit: str) -> Range:
    """Return the range that a limit is annotated with."""
    hint = typing.get_type_hints(card.limits, include_extras=True)[limit]
    return next((part for part in typing.get_args(hint) if isinstance(part, Range)), Range(-math.inf, math.inf))


def differing(root: str, version: Version, written: Mapping[str, str]) -> dict[str, str]:
    """Return the changes, by key, that differ from what the snapshot has; those that cannot be read are among them.

    An empty value is no change: it is what a field without a number sends.
    """
    _, _, params = published(root, version)
    decision = decision_of(params, params.packs)
    plain = {plain_key(key): value.strip() for key, value in written.items()}
    return {key: value for key, value in plain.items() if value and not _is_now(decision, key, value)}


def _is_now(decision: Decision, key: str, value: str) -> bool:
    if key == PACKS:
        return value == decision.params.packs
    profile, _, limit = key.rpartition(".")
    card = FILTERS.get(profile.rpartition(".")[2])
    if card is None or limit not in card.bounds:
        return False
    try:
        return float(value) == bound_of(decision, key)
    except ValueError:
        return False


# --- Lines of a recipe ----------------------------------------------------------------------------------------------


def recipe_lines(changes: Mapping[str, tuple[float, float]], chosen: str = "") -> Iterator[str]:
    """Yield the lines of YAML that change the bounds of all languages, and the packs if `chosen`; none without."""
    general = {key: then for key, (_, then) in changes.items() if key.count(".") == 1}
    if general or chosen:
        yield f"{JUDGE}:"
        yield from ([f"  {PACKS}: {chosen}"] if chosen else [])
        yield from _nested(general, "  ")


def stage_recipe_lines(bounds: Mapping[str, float], changes: Mapping[str, tuple[float, float]]) -> Iterator[str]:
    """Yield the lines of YAML that change bounds of other stages, given as `stage.param`; none without.

    A mapping of a recipe takes the place of the one before: a change of an entry, `stage.param.name`, comes with all
    other entries of `bounds`, which are those of the version, but for those that reject nothing.
    """
    stages: dict[str, dict[str, str]] = {}
    for key, (_, then) in changes.items():
        stage, param = key.split(".", 1)
        group, _, name = param.partition(".")
        if name:
            prefix = f"{stage}.{group}."
            now = {key: bound for key, bound in bounds.items() if key.startswith(prefix)}
            merged = now | {key: bound for key, (_, bound) in changes.items() if key.startswith(prefix)}
            decides = {
                key: bound for key, bound in merged.items() if key in changes or (bound and math.isfinite(bound))
            }
            entries = {key.removeprefix(prefix): bound for key, bound in decides.items()}
            written = ", ".join(f"{name}: {_number(bound)}" for name, bound in entries.items())
            stages.setdefault(stage, {})[group] = f"{{{written}}}"
        else:
            stages.setdefault(stage, {})[group] = _number(then)
    for stage, params in stages.items():
        yield f"{stage}: {{{', '.join(f'{param}: {value}' for param, value in params.items())}}}"


def packs_lines(changes: Mapping[str, tuple[float, float]]) -> Iterator[str]:
    """Yield the lines of YAML of a file of packs that change the bounds of single languages; none without."""
    own: dict[str, dict[str, float]] = {}
    for key, (_, then) in changes.items():
        language, _, rest = key.partition(".")
        if "." in rest:
            own.setdefault(language, {})[rest] = then
    for language, bounds in own.items():
        yield f"{_quoted(language)}:"
        yield from _nested(bounds, "  ")


def _nested(bounds: Mapping[str, float], indent: str) -> Iterator[str]:
    profiles: dict[str, dict[str, float]] = {}
    for key, bound in bounds.items():
        profile, limit = key.split(".")
        profiles.setdefault(profile, {})[limit] = bound
    for profile, limits in profiles.items():
        yield f"{indent}{profile}:"
        yield from (f"{indent}  {limit}: {_number(bound)}" for limit, bound in limits.items())


def _quoted(language: str) -> str:
    """Return a language's code as YAML reads it; it reads Norwegian's as a boolean."""
    return f'"{language}"' if language == "no" else language


def _number(bound: float) -> str:
    """Return a number as YAML 1.1 reads it, which takes 1e-05 for a word."""
    return ".inf" if math.isinf(bound) else np.format_float_positional(bound, trim="-")
