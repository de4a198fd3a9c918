"""Find the parts of evaluation items in texts: by n-grams, and by clusters of n-grams that may have edits.

Clusters follow allenai/decon's description of its method: from a hit the match grows to both sides until too many
n-grams in a row miss; what it has of an item is weighed by how rare each n-gram is among the items; a question is
supported by its answer and its passage when they are near it.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.text.near.evaluation_index import Part, Postings, Reference, Weights
from pipeline_tasks.text.near.overlap import Hits, Positions, probe, table_of

Method = Literal["ngram", "sampled"]
Span = tuple[int, int]
Cuts = npt.NDArray[np.bool_]

CONFIDENT = 20
"""A part of at least this many n-grams needs no support; decon lowers the score of shorter questions."""

NEAR = 50
"""Most words between a question and the answer or passage that supports it: decon's window for short answers."""

SHARES = {
    frozenset(("question",)): {"question": 1.0},
    frozenset(("question", "answer")): {"question": 0.75, "answer": 0.25},
    frozenset(("question", "passage")): {"question": 0.85, "passage": 0.15},
    frozenset(("question", "answer", "passage")): {"question": 0.7, "answer": 0.2, "passage": 0.1},
}
"""Weight of each part of an item by the parts that match together, as decon documents them."""


class Match(NamedTuple):
    """A part that matches a text: the method, the score (0-1), and the matching byte ranges, ordered and disjoint."""

    part: Part
    method: Method
    score: float
    spans: Sequence[Span]


@dataclass(frozen=True, slots=True)
class Bounds:
    """What counts as a match: at least one n-gram and the share `overlap` of a part's, or a cluster of `score`."""

    methods: tuple[Method, ...] = ("ngram", "sampled")
    overlap: float = 0.0
    score: float = 0.4


class Cluster(NamedTuple):
    """N-grams of one part close to each other: words and bytes from first to past-last, and their weighted share."""

    words: Span
    span: Span
    share: float


Clusters = Mapping[int, Sequence[Cluster]]
"""Part -> its clusters in one text."""


def find(texts: pa.Array, reference: Reference, bounds: Bounds) -> dict[int, list[Match]]:
    """Return the matches in each text that has any, by row; in order of part, then method."""
    by_row: dict[int, list[Match]] = defaultdict(list)
    if "ngram" in bounds.methods:
        for row, match in _by_runs(texts, reference, bounds.overlap):
            by_row[row].append(match)
    if "sampled" in bounds.methods:
        for row, match in _by_clusters(texts, reference, bounds.score):
            by_row[row].append(match)
    return {
        row: sorted(matches, key=lambda match: (match.part, match.method)) for row, matches in sorted(by_row.items())
    }


def merged(spans: Iterable[Span]) -> list[Span]:
    """Return spans in order, with those that touch or overlap merged."""
    apart: list[Span] = []
    for start, end in sorted(spans):
        if apart and start <= apart[-1][1]:
            apart[-1] = (apart[-1][0], max(end, apart[-1][1]))
        else:
            apart.append((start, end))
    return apart


class _OwnedHits(NamedTuple):
    """Hits with each part that has their n-gram, sorted by text, part and word."""

    docs: Positions
    owners: Positions
    keys: Positions
    words: Positions
    spans: Positions
    weights: Weights


def _owned(hits: Hits, postings: Postings) -> _OwnedHits:
    at = np.searchsorted(postings.keys, hits.hashes)
    each = postings.starts[at + 1] - postings.starts[at]
    rows = np.repeat(np.arange(len(at)), each)
    skipped = np.repeat(np.cumsum(each) - each, each)
    place = postings.starts[at][rows] + np.arange(len(rows)) - skipped
    owners = postings.owners[place]
    order = np.lexsort((hits.words[rows], owners, hits.docs[rows]))
    rows, place = rows[order], place[order]
    spans = np.stack([hits.starts, hits.ends], axis=1)[rows]
    return _OwnedHits(hits.docs[rows], owners[order], at[rows], hits.words[rows], spans, postings.weights[place])


def _edges(*columns: Positions, apart: Cuts | None = None) -> list[Span]:
    """Return the runs of equal rows as (start, stop); `apart` cuts further."""
    changed = np.ones(len(columns[0]) + 1, np.bool_)
    changed[1:-1] = False
    for column in columns:
        changed[1:-1] |= column[1:] != column[:-1]
    if apart is not None:
        changed[1:-1] |= apart
    return list(pairwise(np.flatnonzero(changed).tolist())) if len(columns[0]) else []


def _by_runs(texts: pa.Array, reference: Reference, overlap: float) -> Iterable[tuple[int, Match]]:
    owned = _owned(probe(texts, reference.runs.table), reference.runs)
    by_text: dict[int, dict[int, Match]] = defaultdict(dict)
    for start, stop in _edges(owned.docs, owned.owners):
        owner = int(owned.owners[start])
        share = len(np.unique(owned.keys[start:stop])) / int(reference.runs.sizes[owner])
        if share >= overlap:
            spans = merged((begin, end) for begin, end in owned.spans[start:stop].tolist())
            by_text[int(owned.docs[start])][owner] = Match(reference.parts[owner], "ngram", share, spans)
    for doc, found in by_text.items():
        asked = {other for owner in found for other in reference.companions.get(owner, ())}
        for owner, match in found.items():
            if match.part.part != "passage" or owner in asked:  # the source of a passage may be on the web
                yield doc, match


def _by_clusters(texts: pa.Array, reference: Reference, score: float) -> Iterable[tuple[int, Match]]:
    grams, gram = reference.grams, reference.rules.sampled
    owned = _owned(probe(texts, grams.table), grams)
    apart = np.diff(owned.words) - 1 > reference.rules.misses
    by_text: dict[int, dict[int, list[Cluster]]] = defaultdict(lambda: defaultdict(list))
    for start, stop in _edges(owned.docs, owned.owners, apart=apart):
        owner = int(owned.owners[start])
        once = np.unique(owned.keys[start:stop], return_index=True)[1]
        share = float(owned.weights[start:stop][np.sort(once)].sum()) / float(grams.totals[owner])
        span = (int(owned.spans[start, 0]), int(owned.spans[start:stop, 1].max()))
        words = (int(owned.words[start]), int(owned.words[stop - 1]) + gram)
        by_text[int(owned.docs[start])][owner].append(Cluster(words, span, share))
    for doc, clusters in by_text.items():
        with_short = {**clusters, **_short(texts, doc, clusters, reference, score)}
        for owner in sorted(clusters):
            match = _scored(owner, with_short, reference, score)
            if match:
                yield doc, match


def _short(texts: pa.Array, doc: int, clusters: Clusters, reference: Reference, score: float) -> Clusters:
    """Return the places of all words of the parts too short for an n-gram, if their question matches."""
    parts, least = reference.parts, reference.rules.sampled
    questions = [owner for owner, places in clusters.items() if max(place.share for place in places) >= score]
    wanted = {other for owner in questions for other in reference.companions.get(owner, ())}
    short: dict[int, list[int]] = defaultdict(list)
    for other in sorted(wanted):
        if 0 < parts[other].words < least:
            short[parts[other].whole].append(other)
    if not short:
        return {}
    lengths = [parts[others[0]].words for others in short.values()]
    hits = probe(texts.slice(doc, 1), table_of(np.array(list(short), np.uint64), lengths))
    places: dict[int, list[Cluster]] = defaultdict(list)
    columns = (hits.hashes, hits.words, hits.starts, hits.ends)
    for whole, word, start, end in zip(*(column.tolist() for column in columns), strict=True):
        for other in short[whole]:
            places[other].append(Cluster((word, word + parts[other].words), (start, end), 1.0))
    return places


def _scored(owner: int, clusters: Clusters, reference: Reference, score: float) -> Match | None:
    """Return the match of one part in one text: the best score of its clusters, and all places that reach `score`."""
    part = reference.parts[owner]
    best = 0.0
    spans: list[Span] = []
    for cluster in clusters[owner]:
        value, places = cluster.share * min(1.0, int(reference.grams.sizes[owner]) / CONFIDENT), [cluster.span]
        if part.part == "passage":  # a passage's source may be on the web, so alone it proves nothing
            value = 0.0
        if part.part == "question" and value < 1 and cluster.share >= score:
            together, support = _together(owner, cluster, clusters, reference)
            if together > value:
                value, places = together, [cluster.span, *support]
        if value >= score and value > 0:
            best, spans = max(best, value), [*spans, *places]
    return Match(part, "sampled", best, merged(spans)) if spans else None


def _together(owner: int, question: Cluster, clusters: Clusters, reference: Reference) -> tuple[float, list[Span]]:
    """Return the score of a question with its best answer and passage near it, and where those are."""
    others = reference.companions.get(owner, ())
    if not others:
        return 0.0, []
    parts = reference.parts
    shares = SHARES[frozenset(("question", *(parts[other].part for other in others)))]
    value = shares["question"] * question.share
    known, spans = int(reference.grams.sizes[owner]), []
    for kind in ("answer", "passage"):
        near = [
            (cluster.share, other, cluster.span)
            for other in others
            if parts[other].part == kind
            for cluster in _near(clusters.get(other, ()), question)
        ]
        if near:
            share, other, span = max(near)
            value += shares[kind] * share
            known += int(reference.grams.sizes[other]) or parts[other].words
            spans.append(span)
    return value * (0.5 + 0.5 * min(1.0, known / CONFIDENT)), spans


def _near(ordered: Sequence[Cluster], question: Cluster) -> Iterator[Cluster]:
    """Yield those clusters of one part, in order of place, that are near a question."""
    first, last = question.words
    for at in range(bisect_left(ordered, first - NEAR, key=lambda cluster: cluster.words[1]), len(ordered)):
        if ordered[at].words[0] > last + NEAR:
            return
        yield ordered[at]
