"""Packs: bounds and stop words of single languages, as data.

A file of packs is YAML: language code of ISO 639 -> profile -> bound. `any` is the entry of every language without one
of its own. A bound of null switches the rule off. `stop_words` is on the level of the profiles, and `source` names the
file that an entry's numbers come from. `base` names a set whose entries the file starts from; `loosen` has bounds that
no language may be stricter than.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.binding import written_fields
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.filters import Computed, Filter, Floats, Rule, StopWords
from pipeline_tasks.nearest import near
from pipeline_tasks.text.base.cached import cached
from pipeline_tasks.text.words.language_codes import SHORT
from pipeline_tasks.text.words.languages import word_rules
from pipeline_tasks.yaml_file import read_yaml

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

ANY = "any"
NONE = "none"
SETS = ("builtin", "fineweb2", "web")
"""Files of this folder by name: rules that languages skip (`builtin`), FineWeb-2's bounds and stop words, and these
with the looser bounds of the recipes `web` and `web_en`."""

BASE, LOOSEN = "base", "loosen"

OUTSIDE = frozenset(("sh", "eml"))
"""Labels of lid.176 that are not codes of ISO 639."""


@dataclass(frozen=True, slots=True)
class Pack:
    """Bounds of one language by profile and limit (None: skip the rule), and its stop words (empty: English)."""

    bounds: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    stop_words: tuple[str, ...] = ()


Packs = Mapping[str, Pack]
"""By language."""


def path_of(packs: str) -> str:
    """Return the file of a recipe's `packs`: that of a named set, the path itself, empty for `none`."""
    if packs in SETS:
        return str(Path(__file__).with_name(f"{packs}.yaml"))
    return "" if packs == NONE else packs


def paths_of(packs: str) -> tuple[str, ...]:
    """Return the files whose content decides the packs of a recipe: its own, and the `base` that it names."""
    path = path_of(packs)
    if not os.path.lexists(path):  # the caller reads the digest and names the missing file
        return (path,) if path else ()
    base = _mapping(read_yaml(Path(path)), path).get(BASE)
    return (path,) if base is None else (path, _base_path(base, path))


def _base_path(base: object, where: str) -> str:
    _known(base, SETS, f"{where}: {BASE}: no set of packs")
    return path_of(str(base))


def load(packs: str, cards: Mapping[str, Filter]) -> Packs:
    """Read the packs that a recipe names: a set, `none`, or a path.

    RecipeError for a file that is missing or has an error.
    """
    path = path_of(packs)
    return cached(_read, path, tuple(cards.values())) if path else {}


def _read(path: str, cards: tuple[Filter, ...]) -> Packs:
    entries = dict(_mapping(read_yaml(Path(path)), path))
    named = {card.name: card for card in cards}
    base, loosen = entries.pop(BASE, None), entries.pop(LOOSEN, {})
    read = dict(_read(_base_path(base, path), cards)) if base is not None else {}
    read |= {known_language(code, path): _pack(entry, named, f"{path}: {code}") for code, entry in entries.items()}
    if not loosen:
        return read
    loosest = _pack(loosen, named, f"{path}: {LOOSEN}").bounds
    return {code: _loosened(pack, loosest, named) for code, pack in ({ANY: Pack()} | read).items()}


def _loosened(pack: Pack, loosest: Mapping[str, Mapping[str, float | None]], cards: Mapping[str, Filter]) -> Pack:
    """Return a pack none of whose bounds is stricter than `loosest`: the looser of both, null if either is."""
    bounds = dict(pack.bounds)
    for profile, limits in loosest.items():
        stored = pack.bounds.get(profile, {})
        own = {**asdict(cards[profile].limits()), **stored}
        rules = [rule for rule in cards[profile].rules if rule.limit in limits]
        bounds[profile] = {
            **stored,
            **{rule.limit: _looser(rule, own[rule.limit], limits[rule.limit]) for rule in rules},
        }
    return replace(pack, bounds=bounds)


def _looser(rule: Rule, one: float | None, other: float | None) -> float | None:
    if one is None or other is None:
        return None
    return max(one, other) if rule.side == "max" else min(one, other)


def known_language(code: object, where: str) -> str:
    """Return a code that `filter_language` may write; RecipeError for one that it never writes."""
    name = str(code) if code is not False else "no"  # YAML 1.1 reads Norwegian's code as a boolean
    if name in SHORT:
        message = f"{where}: write {SHORT[name]!r} for {name!r}: the shortest code of ISO 639 is the language's name"
        raise RecipeError(message)
    known = {ANY, *SHORT.values(), *OUTSIDE}
    if name in known or (len(name) == len("deu") and name.isascii() and name.isalpha() and name.islower()):
        return name
    [meant] = near(name, sorted(known))
    message = f"{where}: no language has the code {name!r}; the nearest is {meant!r} (ISO 639, or {ANY!r})"
    raise RecipeError(message)


def _pack(entry: object, cards: Mapping[str, Filter], where: str) -> Pack:
    profiles = dict(_mapping(entry, where))
    profiles.pop("source", None)
    words = profiles.pop("stop_words", ())
    if not isinstance(words, (list, tuple)) or not all(isinstance(word, str) and word for word in words):
        message = f"{where}: stop_words must be a list of words (quote `no`, `on` and numbers), not {words!r}"
        raise RecipeError(message)
    for name in profiles:
        _known(name, cards, f"{where}: no profile")
    return Pack(
        {name: _bounds(cards[name], bounds, f"{where}: {name}") for name, bounds in profiles.items()}, tuple(words)
    )


def _bounds(card: Filter, written: object, where: str) -> dict[str, float | None]:
    for limit in _mapping(written, where):
        _known(limit, [rule.limit for rule in card.rules], f"{where}: no bound of a rule")
    skipped = {limit: None for limit, bound in _mapping(written, where).items() if bound is None}
    bounds = {limit: bound for limit, bound in _mapping(written, where).items() if bound is not None}
    return {**written_fields(card.limits, bounds, where), **skipped}


def _mapping(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        message = f"{where} must be a mapping, not {value!r}"
        raise RecipeError(message)
    return value


def _known(name: object, names: Iterable[str], kind: str) -> None:
    listed = list(dict.fromkeys(names))
    if name not in listed:
        [meant] = near(str(name), listed)
        message = f"{kind} is called {name!r}; the nearest is {meant!r} of {', '.join(listed)}"
        raise RecipeError(message)


# --- Bounds ---------------------------------------------------------------------------------------------------


def codes(packs: Packs) -> tuple[str, ...]:
    """Return the languages that have an entry, in the order of columns 1, 2, ... of `bounds_table`."""
    return tuple(code for code in packs if code != ANY)


def bounds_table(card: Filter, limits: "DataclassInstance", packs: Packs) -> Floats:
    """Return the bound of each rule (rows) for each language (columns of `bound_columns`); NaN where it is skipped.

    Shape (rules, languages + 1). The bound of a language's entry wins over that of `limits`.
    """
    entries = [packs.get(ANY, Pack()), *(packs[code] for code in codes(packs))]
    by_entry = [{**asdict(limits), **entry.bounds.get(card.name, {})} for entry in entries]
    rows = [[_number(bounds[rule.limit]) for bounds in by_entry] for rule in card.rules]
    return np.array(rows, np.float64).reshape(len(card.rules), len(entries))


def _number(bound: float | None) -> float:
    return np.nan if bound is None else float(bound)


def bound_columns(languages: pa.Array, packs: Packs) -> npt.NDArray[np.intp]:
    """Return per row the column of its language in `bounds_table`: 0 for a language without an entry, and for null."""
    entries = pc.index_in(languages, value_set=pa.array(codes(packs), languages.type))
    columns: npt.NDArray[np.intp] = pc.fill_null(entries, -1).to_numpy(zero_copy_only=False).astype(np.intp) + 1
    return columns


# --- Stop words -----------------------------------------------------------------------------------------------


def stop_word_lists(card: Filter, limits: "DataclassInstance", packs: Packs) -> Mapping[str, tuple[str, ...]]:
    """Return the stop words that `card` counts, by language: of languages with a list that do not skip the rule."""
    if card.stop_words is None:
        return {}
    rules = [number for number, rule in enumerate(card.rules) if rule.signal == card.stop_words.signal]
    applies = np.any(~np.isnan(bounds_table(card, limits, packs)[rules]), axis=0)
    languages = zip(codes(packs), applies[1:].tolist(), strict=True)
    return {code: packs[code].stop_words for code, counts in languages if counts and packs[code].stop_words}


def with_stop_words(card: Filter, lists: Mapping[str, tuple[str, ...]]) -> Filter:
    """Return `card` counting stop words in texts of the languages that have one of `lists` (`stop_word_lists`)."""
    return replace(card, compute_signals=partial(_with_stop_words, card=card, lists=lists)) if lists else card


def _with_stop_words(
    texts: pa.Array,
    languages: pa.Array,
    words: int,
    limits: "DataclassInstance",
    *,
    card: Filter,
    lists: Mapping[str, tuple[str, ...]],
) -> Computed:
    """Compute the signals of `card`, then count the stop words of those languages that have a list."""
    computed = card.compute_signals(texts, languages, words, limits)
    list_numbers = pc.index_in(languages, value_set=pa.array(tuple(lists), languages.type))
    rows = np.flatnonzero(list_numbers.is_valid().to_numpy(zero_copy_only=False))
    if len(rows) and card.stop_words is not None:
        selected = texts.take(pa.array(rows)), languages.take(pa.array(rows)), list_numbers.drop_null()
        counts = _count_stop_words(*selected, words, card.stop_words, tuple(lists.values()))
        computed.signals[rows, card.signals.index(card.stop_words.signal)] = counts
    return computed


def _count_stop_words(
    texts: pa.Array,
    languages: pa.Array,
    list_numbers: pa.Array,
    words: int,
    counting: StopWords,
    lists: tuple[tuple[str, ...], ...],
) -> Floats:
    """Return per text how many words of its list it has, counted as `counting` says."""
    from pipeline_tasks.text.base.replacing import replace_invalid_utf8
    from pipeline_tasks.text.signals import stop_words
    from pipeline_tasks.text.words.cutting import SPLIT

    if counting.any_case:
        texts = pc.utf8_lower(replace_invalid_utf8(texts))
        lists = tuple(tuple(word.lower() for word in words_of_list) for words_of_list in lists)
    rules = word_rules(languages, words if counting.distinct else SPLIT)
    counts: Floats = stop_words.count_stop_words(texts, rules, list_numbers.to_numpy().astype(np.int64), list(lists))
    return counts[:, stop_words.DISTINCT if counting.distinct else stop_words.OCCURRENCES]
