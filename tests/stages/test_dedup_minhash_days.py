"""Near duplicates over days: whatever the order and the cut, the dataset is what one batch of everything keeps."""

import gzip
import json
import random
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import days
from tests.documents import documents
from tests.refining import row_digests

CHAINS: dict[str, Any] = {"buckets": 2, "ngram": 2, "bands": 6, "rows": 1, "threshold": 0.5}
"""Params under which short texts over few words form bands, chains and bridges."""


@st.composite
def corpora(draw: st.DrawFn) -> pa.Table:
    """Documents over a tiny alphabet: windows of one long text, some with a word changed."""
    words = draw(st.lists(st.sampled_from("abcdef"), min_size=30, max_size=60))
    texts = set()
    for _ in range(draw(st.integers(2, 24))):
        at, size = draw(st.integers(0, len(words) - 6)), draw(st.integers(4, 10))
        window = words[at : at + size]
        if draw(st.booleans()):
            window[draw(st.integers(0, len(window) - 1))] = draw(st.sampled_from("abcdefgh"))
        texts.add(" ".join(window))
    table = documents(sorted(texts))
    stamps = draw(
        st.lists(st.sampled_from(["2026-11-20", "2026-11-21", None]), min_size=len(texts), max_size=len(texts))
    )
    return table.set_column(table.schema.get_field_index("crawled_at"), "crawled_at", pa.array(stamps, pa.string()))


@settings(max_examples=25, deadline=None)
@given(
    table=corpora(),
    cut=st.randoms(use_true_random=False),
    count=st.integers(1, 5),
    policy=st.sampled_from([("lowest_id",), ("longest",), ("newest",), ("oldest", "longest")]),
    how=st.sampled_from(
        [{}, {"similarity": "containment"}, {"pairs": 2, "rounds": 60}, {"edges_in_memory": 0}, {"buckets": 3}]
    ),
)
def test_days_in_any_cut_keep_what_one_batch_keeps(
    table: pa.Table, cut: random.Random, count: int, policy: tuple[str, ...], how: dict[str, Any]
) -> None:
    params = CHAINS | {"policy": list(policy)} | how
    parts = [cut.randrange(count) for _ in range(table.num_rows)]
    order = cut.sample(range(table.num_rows), table.num_rows)
    with TemporaryDirectory() as folder:
        split = [
            table.take(pa.array([row for row in order if parts[row] == part], pa.int64())) for part in range(count)
        ]
        run = days.refined(Path(folder), split, params)
        assert sum(map(days.unsettled, run.manifests)) == 0
        assert run.dataset == days.winners(table, params)


# --- The development corpus -----------------------------------------------------------------------------------


def texts_of(place: Path, most: int) -> Iterable[str]:
    with gzip.open(place, "rt") as lines:
        for _, line in zip(range(most), lines, strict=False):
            yield json.loads(line)["text"]


@pytest.fixture(scope="module")
def corpus(shared_data: Path) -> pa.Table:
    """Real texts with near duplicates: known pairs, versions of pages, news, and pages of a crawl."""
    names = ("truth/articles-100.docs", "truth/pep-versions.docs", "text/peps", "text/ag-news-test", "text/ccnet-head")
    texts = {text for name in names for text in texts_of(shared_data / f"{name}.jsonl.gz", 250)}
    return documents(sorted(texts))


@pytest.mark.parametrize("policy", ["lowest_id", "longest"])
def test_the_development_corpus_in_days_keeps_what_one_batch_keeps(
    corpus: pa.Table, policy: str, tmp_path: Path
) -> None:
    params = {"buckets": 2, "policy": [policy]}
    expected = days.winners(corpus, params)
    assert len(expected) < corpus.num_rows - 20, "the corpus has near duplicates"
    for count, seed in ((1, 0), (2, 1), (5, 2), (5, 3)):
        draws = random.Random(seed)
        rows = draws.sample(range(corpus.num_rows), corpus.num_rows)
        split = [corpus.take(pa.array(rows[part::count])) for part in range(count)]
        run = days.refined(tmp_path / f"{count}-{seed}", split, params)
        assert run.dataset == expected
        assert sum(map(days.unsettled, run.manifests)) == 0
        assert sum(manifest.rows + sum(manifest.rejected.values()) for manifest in run.manifests) == corpus.num_rows


# --- Engines --------------------------------------------------------------------------------------------------


def stored(run: days.Days) -> list[Any]:
    """Digests of the rows of the shards and rejects, and of the history, of every day."""
    return [
        [
            *row_digests(run.root, manifest.shards),
            *sorted(row_digests(run.root, manifest.rejects)),
            *(shard.digest for shard in manifest.history_shards),
        ]
        for manifest in run.manifests
    ]


@pytest.fixture(scope="module")
def two_days() -> list[pa.Table]:
    draws = random.Random(5)
    pages = [[f"w{draws.randrange(10**6)}" for _ in range(40)] for _ in range(40)]
    texts = {" ".join([*draws.choice(pages), *["more"] * draws.randrange(4)]) for _ in range(160)}
    table = documents(sorted(texts))
    rows = draws.sample(range(table.num_rows), table.num_rows)
    return [table.take(pa.array(rows[:50])), table.take(pa.array(rows[50:]))]


LONGEST = {"buckets": 2, "policy": ["longest", "lowest_id"]}


@pytest.fixture(scope="module")
def reference(two_days: list[pa.Table], tmp_path_factory: pytest.TempPathFactory) -> days.Days:
    run = days.refined(tmp_path_factory.mktemp("reference"), two_days, LONGEST)
    assert days.superseded(run.root, run.manifests[1]), "the second day supersedes winners of the first"
    return run


@pytest.mark.slow
@pytest.mark.parametrize(("on", "partitions"), [("spark", 1), ("spark", 2), ("spark", 8), ("ray", 2)])
def test_engines_and_partitions_keep_the_same_with_the_same_evidence(
    on: str,
    partitions: int,
    two_days: list[pa.Table],
    reference: days.Days,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    run = days.refined(tmp_path, two_days, LONGEST, (on, request.getfixturevalue(on)), partitions)
    assert stored(run) == stored(reference)
    assert run.dataset == reference.dataset
