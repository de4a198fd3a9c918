"""Packs: what single languages are asked otherwise than all others, as data: bounds per profile, and stop words.

A file of packs is YAML: a language code of ISO 639 (or `any`: every language without an entry) over profiles over
bounds, where null means that the rule is not asked, with `stop_words` beside the profiles. `source` says where the
numbers of an entry come from.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.filters import Computed, Filter, Floats
from pipeline_tasks.text.base.cached import cached
from pipeline_tasks.text.words.language_codes import SHORT
from pipeline_tasks.text.words.languages import word_rules

ANY = "any"
NONE = "none"
SETS = ("builtin", "fineweb2")
"""Files of this folder, by name: languages that a rule does not fit skip it; FineWeb-2's bounds and stop words."""

OUTSIDE = frozenset(("sh", "eml"))
"""Two- and three-letter labels of lid.176 that are no code of ISO 639."""


@dataclass(frozen=True, slots=True)
class Pack:
    """Bounds of one language by profile and limit (None: the rule is not asked), and its stop words (none: English)."""

    bounds: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    stop_words: tuple[str, ...] = ()


Packs = Mapping[str, Pack]
"""By language."""


def path_of(packs: str) -> str:
    """Return the file that a recipe's `packs` means: a set's, a path as it is, nothing for `none`."""
    if packs in SETS:
        return str(Path(__file__).with_name(f"{packs}.yaml"))
    return "" if packs == NONE else packs


def load(packs: str, cards: Mapping[str, Filter]) -> Packs:
    """Read the packs that a recipe names: a set, `none`, or a path.

    RecipeError says what in the file is wrong, FileNotFoundError that there is none.
    """
    path = path_of(packs)
    return cached(_read, path, tuple(cards.values())) if path else {}


def _read(path: str, cards: tuple[Filter, ...]) -> Packs:
    import yaml

    with pa.input_stream(path) as stream:
        content = stream.read()
    try:
        raw = yaml.safe_load(content)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        message = f"packs {path} are not YAML: {error}"
        raise RecipeError(message) from error
    named = {card.name: card for card in cards}
    found = _mapping(raw, path)
    return {known_language(code, path): _pack(entry, named, f"{path}: {code}") for code, entry in found.items()}


def known_language(code: object, where: str) -> str:
    """Return a code that `filter_language` may give; RecipeError for one that it never does."""
    told = str(code) if code is not False else "no"  # YAML 1.1 reads Norwegian's code as a boolean
    if told in SHORT:
        message = f"{where}: write {SHORT[told]!r} for {told!r}: the shortest code of ISO 639 is the language's name"
        raise RecipeError(message)
    known = {ANY, *SHORT.values(), *OUTSIDE}
    if told in known or (len(told) == len("deu") and told.isascii() and told.islower()):
        return told
    near = get_close_matches(told, sorted(known), 1, cutoff=0)[0]
    message = f"{where}: no language has the code {told!r}; the nearest is {near!r} (ISO 639, or {ANY!r})"
    raise RecipeError(message)


def _pack(entry: object, cards: Mapping[str, Filter], where: str) -> Pack:
    asked = dict(_mapping(entry, where))
    asked.pop("source", None)
    words = asked.pop("stop_words", ())
    if not isinstance(words, (list, tuple)) or not all(isinstance(word, str) and word for word in words):
        message = f"{where}: stop_words must be a list of words (quote `no`, `on` and numbers), not {words!r}"
        raise RecipeError(message)
    for name in asked:
        _known(name, cards, f"{where}: no profile")
    return Pack(
        {name: _bounds(cards[name], bounds, f"{where}: {name}") for name, bounds in asked.items()}, tuple(words)
    )


def _bounds(card: Filter, asked: object, where: str) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for limit, bound in _mapping(asked, where).items():
        _known(limit, [rule.limit for rule in card.rules], f"{where}: no bound of a rule")
        if isinstance(bound, bool) or not isinstance(bound, (int, float, type(None))) or bound != bound:  # noqa: PLR0124  (NaN)
            message = f"{where}: {limit} must be a number, or null for a rule that is not asked, not {bound!r}"
            raise RecipeError(message)
        found[limit] = bound
    return found


def _mapping(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        message = f"{where} must be a mapping, not {value!r}"
        raise RecipeError(message)
    return value


def _known(name: object, names: Iterable[str], what: str) -> None:
    listed = list(dict.fromkeys(names))
    if name not in listed:
        near = get_close_matches(str(name), listed, 1, cutoff=0)[0]
        message = f"{what} is called {name!r}; the nearest is {near!r} of {', '.join(listed)}"
        raise RecipeError(message)


# --- Bounds ---------------------------------------------------------------------------------------------------


def codes(packs: Packs) -> tuple[str, ...]:
    """Return the languages that have an entry, in the order of columns 1, 2, ... of `table`."""
    return tuple(code for code in packs if code != ANY)


def bounds_table(card: Filter, limits: Any, packs: Packs) -> Floats:  # noqa: ANN401 -- a filter's Limits
    """Return the bound of each rule per column of `columns`, NaN where it is not asked; shape (rules, languages + 1).

    An entry's bound stands before that of `limits`: what is said of one language is nearer to it than what is said
    of all.
    """
    entries = [packs.get(ANY, Pack()), *(packs[code] for code in codes(packs))]
    asked = [{**asdict(limits), **entry.bounds.get(card.name, {})} for entry in entries]
    rows = [[_number(bounds[rule.limit]) for bounds in asked] for rule in card.rules]
    return np.array(rows, np.float64).reshape(len(card.rules), len(entries))


def _number(bound: float | None) -> float:
    return np.nan if bound is None else float(bound)


def bound_columns(languages: pa.Array, packs: Packs) -> npt.NDArray[np.intp]:
    """Return per row the column of its language in `table`: 0 for one without an entry, and for null."""
    places = pc.index_in(languages, value_set=pa.array(codes(packs), languages.type))
    found: npt.NDArray[np.intp] = pc.fill_null(places, -1).to_numpy(zero_copy_only=False).astype(np.intp) + 1
    return found


# --- Stop words -----------------------------------------------------------------------------------------------


def stop_word_lists(card: Filter, limits: Any, packs: Packs) -> Mapping[str, tuple[str, ...]]:  # noqa: ANN401 -- a filter's Limits
    """Return the lists of stop words that `card` counts, by language: those with a list that are asked the rule."""
    if card.stop_words is None:
        return {}
    rules = [at for at, rule in enumerate(card.rules) if rule.signal == card.stop_words.signal]
    asked = np.any(~np.isnan(bounds_table(card, limits, packs)[rules]), axis=0)
    found = enumerate(codes(packs), start=1)
    return {code: packs[code].stop_words for at, code in found if np.take(asked, at) and packs[code].stop_words}


def with_stop_words(card: Filter, limits: Any, packs: Packs) -> Filter:  # noqa: ANN401 -- a filter's Limits
    """Return `card` counting each language's own stop words, where it has a list and the rule is asked of it."""
    lists = stop_word_lists(card, limits, packs)
    return replace(card, compute_signals=partial(_with_stop_words, card=card, lists=lists)) if lists else card


def _with_stop_words(
    texts: pa.Array,
    languages: pa.Array,
    words: int,
    limits: Any,  # noqa: ANN401 -- a filter's Limits
    *,
    card: Filter,
    lists: Mapping[str, tuple[str, ...]],
) -> Computed:
    """Compute the signals of `card`, then count the stop words of those languages that have a list."""
    signals, left = card.compute_signals(texts, languages, words, limits)
    places = pc.index_in(languages, value_set=pa.array(tuple(lists), languages.type))
    rows = np.flatnonzero(places.is_valid().to_numpy(zero_copy_only=False))
    if len(rows) and card.stop_words is not None:
        from pipeline_tasks.text.base.buffers import replace_invalid_utf8
        from pipeline_tasks.text.signals import stop_words
        from pipeline_tasks.text.words.cutting import SPLIT

        how = card.stop_words
        chosen, told = texts.take(pa.array(rows)), languages.take(pa.array(rows))
        spelled = [tuple(word.lower() for word in one) if how.any_case else one for one in lists.values()]
        counts = stop_words.count_stop_words(
            pc.utf8_lower(replace_invalid_utf8(chosen)) if how.any_case else chosen,
            word_rules(told, words if how.distinct else SPLIT),
            places.drop_null().to_numpy().astype(np.int64),
            spelled,
        )
        column = stop_words.DIFFERENT if how.distinct else stop_words.EVERY
        signals[rows, card.signals.index(how.signal)] = counts[:, column]
    return Computed(signals, left)
