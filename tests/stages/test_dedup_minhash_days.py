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
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.manifest import Manifest
from tests import days
from tests.documents import documents
from tests.examples import fewest_examples
from tests.refining import row_digests

pytestmark = pytest.mark.slow

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


@fewest_examples
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


def test_the_newest_state_of_a_page_supersedes_the_one_before_and_a_longer_address_loses(tmp_path: Path) -> None:
    words = [f"w{number}" for number in range(60)]
    texts = [" ".join([*words, *([f"v{state}"] if state else [])]) for state in range(4)]
    urls = ["https://a.org/page", "https://a.org/page/print", "http://a.org/page/?utm_source=x", "https://a.org/page/2"]
    table = documents(texts, urls)
    dates = pa.array([f"2026-11-2{state}" for state in range(4)], pa.string())
    table = table.set_column(table.schema.get_field_index("crawled_at"), "crawled_at", dates)
    ids = table.column("id").to_pylist()
    run = days.Days(tmp_path, {"buckets": 2})
    for name, first, count in (("d1", 0, 2), ("d2", 2, 1), ("d3", 3, 1)):
        run.add(name, table.slice(first, count))
    assert [[row["id"] for row in days.superseded(tmp_path, of)] for of in run.manifests] == [[], [ids[0]], []]
    assert run.dataset == {ids[2]}
    assert [row["proof"]["by"] for row in days.removed(tmp_path, run.manifests[0])] == ["url"]


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


@pytest.mark.parametrize(
    "cuts",
    [
        [(1, 0), (5, 2)],
        pytest.param([(1, 0), (2, 1), (5, 2), (5, 3)], marks=pytest.mark.nightly),
    ],
    ids=["a day and five", "all cuts"],
)
@pytest.mark.parametrize("policy", ["lowest_id", pytest.param("longest", marks=pytest.mark.nightly)])
def test_the_development_corpus_in_days_keeps_what_one_batch_keeps(
    corpus: pa.Table, policy: str, cuts: list[tuple[int, int]], tmp_path: Path
) -> None:
    params = {"buckets": 2, "policy": [policy]}
    expected = days.winners(corpus, params)
    assert len(expected) < corpus.num_rows - 20, "the corpus has near duplicates"
    for count, seed in cuts:
        draws = random.Random(seed)
        rows = draws.sample(range(corpus.num_rows), corpus.num_rows)
        split = [corpus.take(pa.array(rows[part::count])) for part in range(count)]
        run = days.refined(tmp_path / f"{count}-{seed}", split, params)
        assert run.dataset == expected
        assert sum(map(days.unsettled, run.manifests)) == 0
        assert sum(manifest.rows + sum(manifest.rejected.values()) for manifest in run.manifests) == corpus.num_rows


# --- Buckets --------------------------------------------------------------------------------------------------


def four_days(folder: Path, buckets: tuple[int, ...]) -> days.Days:
    """Refine four days, each with a number of buckets of its own."""
    draws = random.Random(7)
    pages = [[f"w{draws.randrange(10**6)}" for _ in range(40)] for _ in range(30)]
    texts = {" ".join([*draws.choice(pages), *["more"] * draws.randrange(4)]) for _ in range(160)}
    table = documents(sorted(texts))
    rows = draws.sample(range(table.num_rows), table.num_rows)
    run = days.Days(folder, {})
    for number, count in enumerate(buckets):
        run.params = {"buckets": count, "policy": ["longest", "lowest_id"]}
        run.add(f"d{number + 1}", table.take(pa.array(rows[number :: len(buckets)])))
    return run


@pytest.fixture(scope="module")
def days_of_eight(tmp_path_factory: pytest.TempPathFactory) -> days.Days:
    return four_days(tmp_path_factory.mktemp("eight"), (8, 8, 8, 8))


@pytest.mark.parametrize("buckets", [(2, 2, 2, 8), (2, 2, 2, 2), (2, 3, 8, 1)], ids=str)
def test_a_history_of_other_bucket_counts_gives_the_same_days(
    buckets: tuple[int, ...], days_of_eight: days.Days, tmp_path: Path
) -> None:
    """`buckets` was part of what made history comparable: a day with another number was refused."""
    run = four_days(tmp_path, buckets)
    assert any(days.superseded(run.root, manifest) for manifest in run.manifests)
    for mixed, same in zip(run.manifests, days_of_eight.manifests, strict=True):
        for part in (days.kept, _proofs, _superseded, lambda _, manifest: days.unsettled(manifest)):
            assert part(run.root, mixed) == part(days_of_eight.root, same)
    assert run.dataset == days_of_eight.dataset


def _proofs(root: Path, manifest: Manifest) -> list[str]:
    return sorted(str((row["id"], row["reason"], row["proof"])) for row in days.removed(root, manifest))


def _superseded(root: Path, manifest: Manifest) -> list[str]:
    return sorted(map(str, days.superseded(root, manifest)))


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


def hold_to_reference(run: days.Days, reference: days.Days) -> None:
    assert stored(run) == stored(reference)
    assert run.dataset == reference.dataset


def test_partitions_keep_the_same_with_the_same_evidence(
    two_days: list[pa.Table], reference: days.Days, tmp_path: Path
) -> None:
    hold_to_reference(days.refined(tmp_path, two_days, LONGEST, partitions=8), reference)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("on", "partitions"),
    [
        ("ray", 2),
        *(pytest.param("spark", partitions, marks=pytest.mark.nightly) for partitions in (1, 2, 8)),
    ],
)
def test_engines_keep_the_same_with_the_same_evidence(
    on: str,
    partitions: int,
    two_days: list[pa.Table],
    reference: days.Days,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    run = days.refined(tmp_path, two_days, LONGEST, (on, request.getfixturevalue(on)), partitions)
    hold_to_reference(run, reference)
