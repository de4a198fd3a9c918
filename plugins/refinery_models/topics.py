"""Trains topics: centers of vectors, named by the words that tell their texts from others."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.scorers.topics import Topic, TopicModel, Vectors
from pipeline_tasks.text.near.vectors import packed, unpacked

ROUNDS = 50
"""Times that vectors are given to the nearest center, at most; it ends where none moves."""

SAME = 0.7
"""Cosine from which on a topic is one of the model before: below, it gets a number that none had."""

TERMS = 8
"""Words that name a topic."""

_WORD = re.compile(r"[^\W\d_]{3,}")


def train_topics(
    vectors: Vectors, texts: Sequence[str], model: str, count: int, seed: int, base: TopicModel | None = None
) -> TopicModel:
    """Return at most `count` topics of vectors (rows, dimensions) of length 1, each of which is that of a text.

    Centers are those of spherical k-means (Dhillon and Modha 2001), first drawn by k-means++ from a seed; with `base`
    its centers come first, so that topics move and do not jump. A topic that is near one of `base` has its number; of
    others the largest has the lowest that none had. RecipeError for `base` of another embedding model.
    """
    if base and base.model != model:
        message = f"the topics are of vectors of {base.model}, and these of {model}, which cannot be compared"
        raise RecipeError(message)
    given = base.vectors if base else np.empty((0, vectors.shape[1]))
    centers = _centers(vectors, _first_centers(vectors, given[:count], count, seed))
    nearest = (vectors @ centers.T).argmax(axis=1)
    sizes = np.bincount(nearest, minlength=len(centers))
    order = [rank for rank in np.argsort(-sizes, kind="stable").tolist() if sizes[rank]]
    centers = centers[order]
    kept = _same_numbers(centers, base) if base else {}
    free = iter(range((base.highest if base else 0) + 1, len(order) + (base.highest if base else 0) + 1))
    numbers = [kept.get(row) or next(free) for row in range(len(order))]
    named = _terms([[texts[at] for at in np.flatnonzero(nearest == rank).tolist()] for rank in order])
    topics = [Topic(*fields) for fields in zip(numbers, named, sizes[order].tolist(), strict=True)]
    by_number = sorted(range(len(order)), key=lambda row: numbers[row])
    highest = max([*numbers, base.highest if base else 0])
    return TopicModel(model, tuple(topics[row] for row in by_number), unpacked(packed(centers[by_number])), highest)


def _first_centers(vectors: Vectors, given: Vectors, count: int, seed: int) -> Vectors:
    """Return `given` and vectors that are drawn with the square of their distance from what is there."""
    chance = np.random.default_rng(seed)
    centers = [*given] or [vectors[int(chance.integers(len(vectors)))]]
    away = np.maximum(1.0 - (vectors @ np.array(centers).T).max(axis=1), 0.0)
    while len(centers) < count and away.sum() > 0:
        at = int(np.searchsorted(np.cumsum(away), chance.random() * away.sum()))
        centers.append(vectors[min(at, len(vectors) - 1)])
        away = np.minimum(away, np.maximum(1.0 - vectors @ centers[-1], 0.0))
    return np.array(centers)


def _centers(vectors: Vectors, centers: Vectors) -> Vectors:
    """Return the directions of the means of the vectors that are nearest to each; one without any stays."""
    before = np.full(len(vectors), -1)
    for _ in range(ROUNDS):
        nearest = (vectors @ centers.T).argmax(axis=1)
        if (nearest == before).all():
            break
        before = nearest
        sums = np.zeros_like(centers)
        np.add.at(sums, nearest, vectors)
        lengths = np.sqrt((sums * sums).sum(axis=1, keepdims=True))
        centers = np.where(lengths > 0, sums / np.maximum(lengths, 1e-12), centers)
    return centers


def _same_numbers(centers: Vectors, base: TopicModel) -> dict[int, int]:
    """Return the numbers of `base` by the row of the center that is nearest, each number once, the nearest first."""
    cosines = centers @ base.vectors.T
    pairs = np.argwhere(cosines >= SAME)
    pairs = pairs[np.argsort(-cosines[pairs[:, 0], pairs[:, 1]], kind="stable")]
    kept: dict[int, int] = {}
    taken: set[int] = set()
    for row, old in pairs.tolist():
        number = base.topics[old].number
        if row not in kept and number not in taken:
            kept[row] = number
            taken.add(number)
    return kept


def _terms(groups: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Return the words that tell the texts of each group from all: by share of texts, and how much larger it is."""
    counts = [Counter(word for text in group for word in set(_words(text))) for group in groups]
    total, everywhere = sum(map(len, groups)), sum(counts, Counter[str]())
    named = []
    for group, found in zip(groups, counts, strict=True):
        size = max(len(group), 1)
        weights = {
            word: times / size * math.log(times / size / (everywhere[word] / total))
            for word, times in found.items()
            if times > 1 or size < TERMS
        }
        named.append(tuple(sorted(weights, key=lambda word: (-weights[word], word))[:TERMS]))
    return named


def _words(text: str) -> Iterable[str]:
    return _WORD.findall(text.casefold())


def facts_of(model: TopicModel, vectors: Vectors, base: TopicModel | None = None) -> dict[str, Any]:
    """Return how well topics describe vectors: cosines, sizes, and the share of them whose number is that of `base`."""
    rows, cosines = model.nearest(vectors)
    sizes = np.bincount(rows, minlength=len(model.topics))
    facts: dict[str, Any] = {
        "texts": len(vectors),
        "topics": len(model.topics),
        "largest_share": round(float(sizes.max() / len(vectors)), 6),
        "cosine_p05": round(float(np.quantile(cosines, 0.05)), 6),
        "cosine_p50": round(float(np.quantile(cosines, 0.5)), 6),
    }
    if base:
        numbers, old = (np.array([topic.number for topic in of.topics]) for of in (model, base))
        same = numbers[rows] == old[base.nearest(vectors)[0]]
        kept = len(set(numbers.tolist()) & set(old.tolist()))
        facts |= {"kept_topics": kept, "agreement": round(float(same.mean()), 6)}
    return facts
