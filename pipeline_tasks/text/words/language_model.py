"""Measure how much better a trigram model expects the units of a text in their order than one by one.

The measure is the perplexity of the text, normalized by its perplexity under the unigrams of the same model (Roh et
al., arXiv 2011.13220), as bits per unit: words that the model has never seen cost nothing, so text about other things
than the training text keeps its measure, and words without order lose it. Probabilities are interpolated with absolute
discounting (Ney, Essen, Kneser 1994); rare words are counted by their class.
"""

import functools
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.text.base.cached import regular
from pipeline_tasks.text.words.units import Units, cut_units

MAGIC = b"refinery-lm-1\n"
MAX_KINDS = 1 << 16
"""Kinds of units that a model may tell apart; the first, 0, is every other unit and the place before a text."""

MAX_HEADER = 4096
LEAST_BITS, MOST_BITS = -1.0, 3.0
"""What one unit may lose and gain: a single formula or name does not decide on a text.

Text about other things than the training text loses often where a name follows a frequent word, so a loss weighs less.
"""

SCALE = 65536.0  # gains are summed as whole numbers, so that no batch and no order of additions changes a bit
_SHIFT, _LOW = np.uint64(16), np.uint64(0xFFFF)

Keys = npt.NDArray[np.uint64]
Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

ARRAYS = (
    ("spelled", "<u8"),
    ("classes", "<u8"),
    ("unigrams", "<u4"),
    ("bigrams", "<u8"),
    ("bigram_counts", "<u4"),
    ("trigrams", "<u8"),
    ("trigram_counts", "<u4"),
)
"""What a model's file has after its header, and the types."""


@dataclass(frozen=True, slots=True)
class Level:
    """The n-grams of one length, sorted: 16 bits per unit, the last unit lowest; and of each context its place."""

    keys: Keys
    counts: Counts
    contexts: Keys
    starts: Counts  # of each context, and the number of keys
    running: Counts  # sum of the counts before each key
    discount: float

    @staticmethod
    def of(keys: Keys, counts: Counts) -> "Level":
        """Return the level of sorted n-grams and their counts."""
        contexts, starts = np.unique(keys >> _SHIFT, return_index=True)
        once, twice = int((counts == 1).sum()), int((counts == 2).sum())
        discount = once / (once + 2 * twice) if once else 0.5
        running = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])
        return Level(keys, counts, contexts, np.append(starts, len(keys)).astype(np.int64), running, discount)

    def probability(self, keys: Keys, shorter: Floats) -> Floats:
        """Return the probability of the last unit of each n-gram, given that of the n-gram without its first unit."""
        places, known = _find(self.contexts, keys >> _SHIFT)
        first, last = self.starts[places], self.starts[np.minimum(places + 1, len(self.starts) - 1)]
        total = np.where(known, self.running[last] - self.running[first], 0)
        at, seen = _find(self.keys, keys)
        counts = np.where(seen, self.counts[at], 0) if len(self.keys) else np.zeros(len(keys), np.int64)
        share = np.maximum(counts - self.discount, 0) + self.discount * (last - first) * shorter
        return np.where(total > 0, share / np.maximum(total, 1), shorter)


@dataclass(frozen=True, slots=True)
class LanguageModel:
    """Unit kinds by hash, counts of n-grams, and the measures of held-out text: in disorder (0) and as written (1)."""

    language: str
    letters: bool
    disordered: float
    trusted: float
    spelled: Keys
    classes: Keys
    unigrams: Counts
    bigrams: Level
    trigrams: Level

    def kinds(self, units: Units) -> Keys:
        """Return the kind of each unit: that of its spelling, else that of its class, else 0."""
        return unit_kinds(units, self.spelled, self.classes)

    def calibrated(self, measure: Floats) -> Floats:
        """Return the place of measures between disorder (0) and trusted text (1); NaN stays."""
        place: Floats = np.clip((measure - self.disordered) / (self.trusted - self.disordered), 0.0, 1.0)
        return place


def _find(sorted_keys: Keys, wanted: Keys) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """Return a valid place for each wanted key, and whether the key is there."""
    places = np.minimum(np.searchsorted(sorted_keys, wanted), max(len(sorted_keys) - 1, 0))
    found = sorted_keys[places] == wanted if len(sorted_keys) else np.zeros(len(wanted), np.bool_)
    return places, found


def unit_kinds(units: Units, spelled: Keys, classes: Keys) -> Keys:
    """Return the kind of each unit by sorted hashes of spellings and of classes."""
    at, is_word = _find(spelled, units.spelled)
    place, is_class = _find(classes, units.classes)
    other = np.where(is_class, len(spelled) + place + 1, 0)
    return np.where(is_word, at + 1, other).astype(np.uint64)


def trigram_keys(kinds: Keys, bounds: npt.NDArray[np.int64]) -> Keys:
    """Return the trigram that ends in each unit; units before a text are 0."""
    starts = np.zeros(len(kinds) + 1, np.bool_)
    starts[bounds[:-1]] = True
    first = starts[:-1]
    one_back = np.concatenate([np.zeros(1, np.uint64), kinds])[:-1]
    one_back[first] = 0
    two_back = np.concatenate([np.zeros(1, np.uint64), one_back])[:-1]
    two_back[first] = 0
    return two_back << np.uint64(32) | one_back << _SHIFT | kinds


def gains(model: LanguageModel, kinds: Keys, bounds: npt.NDArray[np.int64]) -> Floats:
    """Return the mean gain per unit of each text in bits; NaN for a text without units."""
    keys = trigram_keys(kinds, bounds)
    alone = (model.unigrams[kinds.astype(np.int64)] + 0.5) / (model.unigrams.sum() + 0.5 * len(model.unigrams))
    pairs = model.bigrams.probability(keys & np.uint64(0xFFFFFFFF), alone)
    bits = np.log2(model.trigrams.probability(keys, pairs) / alone)
    whole = np.rint(np.clip(bits, LEAST_BITS, MOST_BITS) * SCALE).astype(np.int64)
    running = np.concatenate([np.zeros(1, np.int64), np.cumsum(whole, dtype=np.int64)])
    count = bounds[1:] - bounds[:-1]
    mean: Floats = (running[bounds[1:]] - running[bounds[:-1]]) / (np.maximum(count, 1) * SCALE)
    return np.where(count > 0, mean, np.nan)


def order_scores(model: LanguageModel, texts: pa.Array) -> Floats:
    """Return 0 (words in disorder, lists) to 1 (trusted text) for each text, NaN for one without units."""
    units = cut_units(texts, letters=model.letters)
    return model.calibrated(gains(model, model.kinds(units), units.bounds))


# --- File -----------------------------------------------------------------------------------------------------


def dump_model(model: LanguageModel) -> bytes:
    """Return the bytes of a model's file: a line of JSON, then its arrays, little-endian."""
    levels = (model.bigrams.keys, model.bigrams.counts, model.trigrams.keys, model.trigrams.counts)
    arrays: tuple[npt.NDArray[Any], ...] = (model.spelled, model.classes, model.unigrams, *levels)
    body = b"".join(_packed(array, of) for array, (_, of) in zip(arrays, ARRAYS, strict=True))
    header = {
        "language": model.language,
        "letters": model.letters,
        "disordered": model.disordered,
        "trusted": model.trusted,
        "lengths": [len(array) for array in arrays],
        "sha256": hashlib.sha256(body).hexdigest(),
    }
    return MAGIC + json.dumps(header, sort_keys=True).encode() + b"\n" + body


def _packed(array: npt.NDArray[Any], of: str) -> bytes:
    """Return the bytes of an array; a count that is larger than its type is the largest of the type."""
    packed: npt.NDArray[Any] = np.minimum(array, np.iinfo(of).max).astype(of)
    return packed.tobytes()


def read_model(path: str) -> LanguageModel:
    """Read a model; RecipeError if the file is none, was cut short or changed."""
    regular(path)
    return model_of(Path(path).read_bytes(), path)


def model_of(content: bytes, path: str) -> LanguageModel:
    """Return the model that a file contains; RecipeError if it is none, was cut short or changed."""
    line = content[len(MAGIC) : len(MAGIC) + MAX_HEADER].partition(b"\n")[0]
    try:
        _require(content.startswith(MAGIC), "it does not begin as one")
        header = json.loads(line)
        body = content[len(MAGIC) + len(line) + 1 :]
        _require(hashlib.sha256(body).hexdigest() == header["sha256"], "its content has another digest")
        return _checked(header, _arrays(body, header["lengths"]))
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        message = f"{path} is no language model ({error}); make one with `refinery model lm`"
        raise RecipeError(message) from error


def _require(condition: object, why: str) -> None:
    if not condition:
        raise ValueError(why)


def _arrays(body: bytes, lengths: list[int]) -> dict[str, Any]:
    arrays, at = {}, 0
    for (name, of), length in zip(ARRAYS, lengths, strict=True):
        _require(type(length) is int and length >= 0, f"the length of {name} is {length!r}")
        size = np.dtype(of).itemsize * length
        _require(at + size <= len(body), f"{name} is cut short")
        arrays[name] = np.frombuffer(body, of, length, at).astype(np.uint64 if of == "<u8" else np.int64)
        at += size
    _require(at == len(body), "bytes follow its end")
    return arrays


def _checked(header: dict[str, Any], arrays: dict[str, Any]) -> LanguageModel:
    """Return the model, all of whose numbers are in their range."""
    kinds = len(arrays["spelled"]) + len(arrays["classes"]) + 1
    _require(kinds <= MAX_KINDS and kinds == len(arrays["unigrams"]), f"it has {kinds} kinds of units")
    for name in ("spelled", "classes", "bigrams", "trigrams"):
        _require(bool(np.all(arrays[name][1:] > arrays[name][:-1])), f"{name} are not in order")
    for name, units in (("bigrams", 2), ("trigrams", 3)):
        keys, counts = arrays[name], arrays[f"{name[:-1]}_counts"]
        _require(len(keys) == len(counts) > 0 and counts.min() > 0, f"{name} and their counts do not fit")
        parts = [(keys >> np.uint64(16 * place)) & _LOW for place in range(units)]
        _require(int(np.max(parts)) < kinds and int(keys.max()) >> (16 * units) == 0, f"{name} name unknown units")
    trusted, disordered = float(header["trusted"]), float(header["disordered"])
    _require(LEAST_BITS <= disordered < trusted <= MOST_BITS, "its calibration is out of order")
    _require(isinstance(header["language"], str) and isinstance(header["letters"], bool), "its language is none")
    level = functools.partial(_level, arrays)
    return LanguageModel(
        header["language"],
        header["letters"],
        disordered,
        trusted,
        arrays["spelled"],
        arrays["classes"],
        arrays["unigrams"],
        level("bigrams"),
        level("trigrams"),
    )


def _level(arrays: dict[str, Any], name: str) -> Level:
    return Level.of(arrays[name], arrays[f"{name[:-1]}_counts"])
