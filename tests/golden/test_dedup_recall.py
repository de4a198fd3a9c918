"""Near-duplicate removal against brute force: the found pairs follow the curve, and every removal is proven."""

import gzip
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from benchmarks import planted
from pipeline_tasks.text.near import minhash, shingles
from tests import refining
from tests.documents import documents

SIMILARITIES = tuple(round(0.4 + 0.05 * step, 2) for step in range(12))
"""Planted similarities: 0.4 to 0.95."""

SIZES = [
    1_000,
    pytest.param(4_000, marks=pytest.mark.slow),
    pytest.param(10_000, marks=[pytest.mark.slow, pytest.mark.nightly]),
]

Pair = frozenset[str]


def shingled(text: str) -> set[tuple[int, ...]]:
    words = [word for word, _ in shingles.words(text)]
    return {tuple(words[at : at + 5]) for at in range(len(words) - 4)}


def brute_force(texts: Mapping[str, str], least: float) -> dict[Pair, float]:
    """Exact Jaccard similarity of every pair of documents that has at least `least`: all that share a shingle."""
    sets = {id_: shingled(text) for id_, text in texts.items()}
    holders = defaultdict(list)
    for id_, grams in sets.items():
        for gram in grams:
            holders[gram].append(id_)
    sharing = {frozenset(pair) for held in holders.values() if len(held) > 1 for pair in combinations(held, 2)}
    similar = {pair: len(set.intersection(*both)) / len(set.union(*both)) for pair, both in _both(sharing, sets)}
    return {pair: similarity for pair, similarity in similar.items() if similarity >= least}


def _both(pairs: Iterable[Pair], sets: Mapping[str, set[Any]]) -> Iterable[tuple[Pair, list[set[Any]]]]:
    return ((pair, [sets[id_] for id_ in pair]) for pair in pairs)


def removed(root: Path, texts: Sequence[str], threshold: float) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Run the stage; return the texts by id, and the evidence of each removal with its `id`."""
    table = documents(texts)
    parent = refining.commit_parent(root, [table])
    exact, _ = refining.refined(root, "dedup_exact", parent, {"buckets": 2})
    _, manifest = refining.refined(root, "dedup_minhash", exact, {"buckets": 2, "threshold": threshold})
    assert manifest.metrics["kept"]["unsettled_bands"]["sum"] == 0
    rows = refining.rows(root, manifest, "rejects").select(["id", "evidence"]).to_pylist()
    by_id = dict(zip(table.column("id").to_pylist(), texts, strict=True))
    return by_id, [{"id": row["id"], **json.loads(row["evidence"])} for row in rows]


def expected(similarities: Iterable[float]) -> tuple[float, float]:
    """How many of these pairs the curve promises, and the standard deviation of that."""
    chances = [minhash.curve(similarity, 14, 8) for similarity in similarities]
    return sum(chances), math.sqrt(sum(chance * (1 - chance) for chance in chances))


@pytest.mark.parametrize("count", SIZES)
def test_recall_follows_the_curve(tmp_path: Path, count: int) -> None:
    least = 0.3
    texts = [text for pair in planted.pairs(count, SIMILARITIES) for text in pair]
    by_id, removals = removed(tmp_path, texts, least)
    true = brute_force(by_id, least)
    assert len(true) == count
    removed_pairs = {frozenset((removal["id"], removal["near"])) for removal in removals}
    assert len(removed_pairs) == len(removals)
    assert removed_pairs <= set(true)
    bins = defaultdict(list)
    for pair, similarity in true.items():
        bins[math.floor(similarity * 20)].append(pair)
    for pairs in bins.values():
        promised, deviation = expected(true[pair] for pair in pairs)
        assert abs(sum(pair in removed_pairs for pair in pairs) - promised) <= 4 * deviation + 1
    assert min(true.values()) < 0.4
    assert max(true.values()) > 0.9


@pytest.mark.parametrize("count", SIZES)
def test_nothing_below_the_threshold_is_removed(tmp_path: Path, count: int) -> None:
    texts = [text for pair in planted.pairs(count, SIMILARITIES, seed=2) for text in pair]
    by_id, removals = removed(tmp_path, texts, 0.7)
    true = brute_force(by_id, 0.7)
    for removal in removals:
        assert removal["jaccard"] == round(true[frozenset((removal["id"], removal["near"]))], 6) >= 0.7
        assert removal["near"] == removal["winner"]
    promised, deviation = expected(true.values())
    assert abs(len(removals) - promised) <= 4 * deviation + 1


def read(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt") as lines:
        return [json.loads(line) for line in lines]


def test_pairs_of_real_pages_are_found(tmp_path: Path, shared_data: Path) -> None:
    docs = read(shared_data / "truth/pep-versions.docs.jsonl.gz")
    by_id, removals = removed(tmp_path, sorted({document["text"] for document in docs}), 0.8)
    id_of = {text: id_ for id_, text in by_id.items()}
    names = {document["id"]: id_of[document["text"]] for document in docs}
    winner = {id_: id_ for id_ in by_id} | {removal["id"]: removal["winner"] for removal in removals}
    pairs = [pair for pair in read(shared_data / "truth/pep-versions.pairs.jsonl.gz") if pair["jaccard_word5"] >= 0.8]
    promised, deviation = expected(pair["jaccard_word5"] for pair in pairs)
    met = sum(winner[names[pair["a"]]] == winner[names[pair["b"]]] for pair in pairs)
    assert len(pairs) > 100
    assert met >= promised - 4 * deviation
