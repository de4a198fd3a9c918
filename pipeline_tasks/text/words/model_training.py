"""Train a language model on trusted text, in bounded memory: the same files and settings give the same bytes.

Three passes read the text in excerpts: one counts spellings and classes, one counts n-grams of nine excerpts in ten,
and the third measures every tenth, as written and in disorder; the model is calibrated by those measures.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.text.words.language_model import Counts, Keys, LanguageModel, Level, gains, trigram_keys, unit_kinds
from pipeline_tasks.text.words.languages import UNSPACED
from pipeline_tasks.text.words.units import Units, cut_units

EXCERPT = 1000
"""Characters of an excerpt, about 170 English words: shorter text has no steady measure."""

HELD_OUT = 10
"""One excerpt in so many is not trained on, and calibrates."""

MIN_EXCERPTS = 80
BATCH = 512  # excerpts that are cut at once
PENDING = 1 << 22  # keys that wait to be counted
TRUSTED_SHARE = 0.1  # held-out excerpts that measure below 1: trusted text has its notices and lists, too
MIN_COUNT = 3  # a spelling or class that is rarer has no kind of its own

Texts = Callable[[], Iterable[str]]
"""Opens the trusted text anew, for each pass."""


@dataclass(frozen=True, slots=True)
class Size:
    """Bounds of a model: spellings and classes that are told apart, and n-grams of each length."""

    spellings: int = 1000
    classes: int = 8000
    ngrams: int = 1_000_000


class SortedCounts:
    """Counts of keys, at most `most` of them: when there are more, the rarest are forgotten (lossy counting)."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: list[Keys] = []
        self._pending = 0
        self.keys: Keys = np.zeros(0, np.uint64)
        self.counts: Counts = np.zeros(0, np.int64)

    def add(self, keys: Keys) -> None:
        """Count keys."""
        self._waiting.append(keys)
        self._pending += len(keys)
        if self._pending >= PENDING:
            self.merge()

    def merge(self) -> None:
        """Bring `keys`, sorted, and `counts` up to date."""
        keys, counts = np.unique(np.concatenate(self._waiting or [self.keys[:0]]), return_counts=True)
        self._waiting, self._pending = [], 0
        every, places = np.unique(np.concatenate([self.keys, keys]), return_inverse=True)
        sums = np.zeros(len(every), np.int64)
        np.add.at(sums, places, np.concatenate([self.counts, counts]))
        below = 1
        while int((sums >= below).sum()) > self._most:
            below += 1
        self.keys, self.counts = every[sums >= below], sums[sums >= below]

    def most_frequent(self, count: int) -> Keys:
        """Return the sorted keys of the `count` highest counts, of equals the lowest keys."""
        self.merge()
        order = np.lexsort((self.keys, -self.counts))[:count]
        frequent: Keys = np.sort(self.keys[order[self.counts[order] >= MIN_COUNT]])
        return frequent


class _Kinds(NamedTuple):
    """The hashes that have a kind of their own."""

    spelled: Keys
    classes: Keys


def train(texts: Texts, language: str, size: Size | None = None) -> LanguageModel:
    """Return the model of a language.

    RecipeError if there is too little text, or if it does not differ from its own words in disorder.
    """
    size = size or Size()
    letters = language in UNSPACED
    kinds = _kinds(texts, size, letters=letters)
    model = _counted(texts, language, kinds, size, letters=letters)
    written, disordered = _measures(texts, model)
    low, high = float(np.median(disordered)), float(np.quantile(written, TRUSTED_SHARE))
    if not low < high:
        message = (
            f"the text in {language} gains {high:.3f} bits a unit, and its words in disorder {low:.3f}: "
            "the model cannot tell them apart; name more text, or text of sentences"
        )
        raise RecipeError(message)
    return replace(model, disordered=round(low, 6), trusted=round(high, 6))


def excerpts(texts: Iterable[str]) -> Iterator[str]:
    """Yield texts in pieces of about EXCERPT characters that end where a word ends; shorter texts are joined."""
    rest = ""
    for text in texts:
        rest = f"{rest}\n{text}" if rest else text
        start = 0
        while len(rest) - start >= 2 * EXCERPT:
            cut = next((at for at in range(start + EXCERPT, start + 2 * EXCERPT) if rest[at].isspace()), None)
            end = cut if cut is not None else start + EXCERPT
            yield rest[start:end]
            start = end
        rest = rest[start:]
    if rest:
        yield rest


def _batches(texts: Texts, *, held_out: bool | None) -> Iterator[pa.Array]:
    """Yield excerpts in batches: all, the held-out ones, or the others."""
    batch: list[str] = []
    for number, excerpt in enumerate(excerpts(texts())):
        if held_out is None or (number % HELD_OUT == HELD_OUT - 1) == held_out:
            batch.append(excerpt)
        if len(batch) == BATCH:
            yield pa.array(batch, pa.large_string())
            batch = []
    if batch:
        yield pa.array(batch, pa.large_string())


def _kinds(texts: Texts, size: Size, *, letters: bool) -> _Kinds:
    """Return the spellings and classes that are frequent."""
    spelled, classes, count = SortedCounts(size.ngrams), SortedCounts(size.ngrams), 0
    for batch in _batches(texts, held_out=None):
        units = cut_units(batch, letters=letters)
        spelled.add(units.spelled)
        classes.add(units.classes)
        count += len(batch)
    if count < MIN_EXCERPTS:
        message = (
            f"the text has {count} excerpts of {EXCERPT} characters, and a model needs {MIN_EXCERPTS}; name more text"
        )
        raise RecipeError(message)
    return _Kinds(spelled.most_frequent(size.spellings), classes.most_frequent(size.classes))


def _counted(texts: Texts, language: str, kinds: _Kinds, size: Size, *, letters: bool) -> LanguageModel:
    """Return the model of the excerpts that are not held out, without calibration."""
    unigrams = np.zeros(len(kinds.spelled) + len(kinds.classes) + 1, np.int64)
    bigrams, trigrams = SortedCounts(size.ngrams), SortedCounts(size.ngrams)
    for batch in _batches(texts, held_out=False):
        units = cut_units(batch, letters=letters)
        numbers = unit_kinds(units, *kinds)
        unigrams += np.bincount(numbers.astype(np.int64), minlength=len(unigrams))
        keys = trigram_keys(numbers, units.bounds)
        trigrams.add(keys)
        bigrams.add(keys & np.uint64(0xFFFFFFFF))
    bigrams.merge()
    trigrams.merge()
    levels = [Level.of(counted.keys, counted.counts) for counted in (bigrams, trigrams)]
    return LanguageModel(language, letters, 0.0, 0.0, *kinds, unigrams, *levels)


def _measures(texts: Texts, model: LanguageModel) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the measures of held-out excerpts, as written and in disorder."""
    written, disordered = [], []
    for batch in _batches(texts, held_out=True):
        units = cut_units(batch, letters=model.letters)
        kinds = model.kinds(units)
        written.append(gains(model, kinds, units.bounds))
        disordered.append(gains(model, kinds[_disorder(units)], units.bounds))
    both = np.concatenate(written), np.concatenate(disordered)
    return both[0][~np.isnan(both[0])], both[1][~np.isnan(both[1])]


def _disorder(units: Units) -> npt.NDArray[np.intp]:
    """Return the units of each text in the order of a hash of their places."""
    places = np.arange(len(units.spelled), dtype=np.uint64)
    hashes = places * np.uint64(0x9E3779B97F4A7C15)  # splitmix64, as in text.base.hashing
    hashes = (hashes ^ hashes >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    hashes = (hashes ^ hashes >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    rows = np.repeat(np.arange(len(units.bounds) - 1), np.diff(units.bounds))
    return np.lexsort((hashes, rows))
