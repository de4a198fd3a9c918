"""Index evaluation sets by the word n-grams of their questions, answers and passages."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.text.near.overlap import FREE, Grams, Hashes, Positions, Table, grams_of, table_of
from pipeline_tasks.text.near.sketches import Prints, Sieve, prints_of, sieve_of

Kind = Literal["question", "answer", "passage"]
Weights = npt.NDArray[np.float64]


class Text(NamedTuple):
    """One text of an evaluation set: the item (its line, from 0), the text's role in it, and the field."""

    benchmark: str
    item: int
    part: Kind
    field: str
    text: str


class Part(NamedTuple):
    """A text to look for, listed once even if several items have it; `item` is the first. `whole` hashes its words."""

    benchmark: str
    item: int
    part: Kind
    field: str
    words: int
    whole: int


@dataclass(frozen=True, slots=True)
class Rules:
    """How texts are recognized: `ngram` words in a row, all of a text of at least `min_words`, and `gram` words scored.

    An n-gram in more than `max_items` texts of one benchmark is its template and no evidence; 0 counts them all.
    Matches of one text that are more than `misses` n-grams apart are different places.
    """

    ngram: int = 13
    min_words: int = 8
    gram: int = 5
    misses: int = 11
    max_items: int = 100

    @property
    def sampled(self) -> int:
        """Words of a sampled n-gram: `gram`, or fewer where texts of fewer words are looked for."""
        return min(self.gram, self.min_words)

    @property
    def every(self) -> int:
        """Words from one sampled n-gram to the next, so that any run of `min_words` words contains one."""
        return self.min_words - self.sampled + 1


@dataclass(frozen=True, slots=True)
class Postings:
    """Which parts have which n-gram: those of keys[i] are owners[starts[i]:starts[i + 1]], each with its weight.

    A weight is ln(1 + parts of the benchmark / parts of it that have the n-gram); `sizes` and `totals` are the
    n-grams of each part, counted and weighed.
    """

    keys: Hashes
    starts: Positions
    owners: Positions
    weights: Weights
    sizes: Positions
    totals: Weights
    table: Table


@dataclass(frozen=True, slots=True)
class Reference:
    """Everything to look for. `companions` maps a question to the answers and passages of its items."""

    parts: Sequence[Part]
    companions: dict[int, tuple[int, ...]]
    runs: Postings
    grams: Postings
    sieve: Sieve
    rules: Rules


def index(texts: Iterable[Text], rules: Rules) -> Reference:
    """Index the texts of evaluation sets; the matches of one benchmark do not depend on the others."""
    listed = list(texts)
    column = pa.array([text.text for text in listed], pa.large_string())
    runs = grams_of(column, rules.min_words, rules.ngram)
    first, parts = _distinct(listed, runs)
    rows = pa.array(sorted(set(first)), pa.int64())
    column = column.take(rows)
    runs = grams_of(column, rules.min_words, rules.ngram)
    grams = grams_of(column, rules.sampled, rules.sampled)
    return Reference(
        parts,
        _companions(listed, first),
        _postings(runs, parts, rules),
        _postings(grams, parts, rules),
        _sieve(grams, rules),
        rules,
    )


def _distinct(texts: Sequence[Text], grams: Grams) -> tuple[list[int], list[Part]]:
    """Return for each text the first row with the same words in the same role, and those rows as parts."""
    seen: dict[tuple[str, str, int], int] = {}
    first, parts = [], []
    for row, (text, whole, words) in enumerate(zip(texts, grams.wholes.tolist(), grams.words.tolist(), strict=True)):
        key = (text.benchmark, text.part, whole)
        if key not in seen:
            seen[key] = row
            parts.append(Part(text.benchmark, text.item, text.part, text.field, words, whole))
        first.append(seen[key])
    return first, parts


def _companions(texts: Sequence[Text], first: Sequence[int]) -> dict[int, tuple[int, ...]]:
    """Return for each question, by number of its part, the answers and passages of all items that have it."""
    rank = {row: number for number, row in enumerate(sorted(set(first)))}
    items: dict[tuple[str, int], list[int]] = {}
    for row, text in enumerate(texts):
        items.setdefault((text.benchmark, text.item), []).append(row)
    companions: dict[int, set[int]] = {}
    for rows in items.values():
        others = {rank[first[row]] for row in rows if texts[row].part != "question"}
        for row in rows:
            if texts[row].part == "question":
                companions.setdefault(rank[first[row]], set()).update(others)
    return {question: tuple(sorted(others)) for question, others in companions.items()}


def _postings(grams: Grams, parts: Sequence[Part], rules: Rules) -> Postings:
    names = sorted({part.benchmark for part in parts})
    benchmark = np.array([names.index(part.benchmark) for part in parts], np.int64)
    # One row per n-gram and part, sorted by n-gram, benchmark and part.
    each = np.diff(grams.ends)
    owners = np.repeat(np.arange(len(parts)), each)
    order = np.lexsort((owners, benchmark[owners], grams.hashes))
    hashes, owners = grams.hashes[order], owners[order]
    first = _starts(hashes, owners) & (hashes != FREE)
    hashes, owners = hashes[first], owners[first]
    # Weigh by how many parts of the benchmark have the n-gram, and drop what too many have.
    group = np.cumsum(_starts(hashes, benchmark[owners])) - 1
    holders = np.bincount(group)[group] if len(group) else group
    counted = np.bincount(benchmark[each > 0], minlength=len(names))
    weights = np.log1p(counted[benchmark[owners]] / np.maximum(holders, 1))
    kept = holders <= (rules.max_items or len(parts))
    hashes, owners, weights = hashes[kept], owners[kept], weights[kept]
    starts = np.flatnonzero(_starts(hashes))
    keys = hashes[starts]
    sizes = np.bincount(owners, minlength=len(parts))
    lengths = np.array([part.words for part in parts], np.int64) - each + 1
    return Postings(
        keys,
        np.append(starts, len(hashes)).astype(np.int64),
        owners,
        weights,
        sizes,
        np.bincount(owners, weights, minlength=len(parts)).astype(np.float64),
        table_of(keys, sorted({int(length) for length in lengths[sizes > 0]})),
    )


def _starts(*columns: npt.NDArray[np.generic]) -> npt.NDArray[np.bool_]:
    """Return where a row differs from the one before."""
    changed = np.zeros(len(columns[0]), np.bool_)
    changed[:1] = True
    for column in columns:
        changed[1:] |= column[1:] != column[:-1]
    return changed


def _sieve(grams: Grams, rules: Rules) -> Sieve:
    """Return the sieve: a matching run is at least as long as its n-gram, or as the whole short text.

    Where such a run always has two samples, a text with one sample is no candidate.
    """
    known = np.minimum(grams.words, rules.ngram)
    counted = np.repeat(grams.words >= rules.min_words, np.diff(grams.ends))
    alone = np.repeat(known < rules.sampled + 2 * rules.every - 1, np.diff(grams.ends))
    prints = prints_of(grams.hashes)
    near = max(1, (rules.misses + 1) // rules.every)
    return sieve_of(_distinct_of(prints[counted & ~alone]), _distinct_of(prints[counted & alone]), near)


def _distinct_of(prints: Prints) -> Prints:
    ordered = np.sort(prints)
    return ordered[_starts(ordered)]
