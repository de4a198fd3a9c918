"""Near duplicates over days: whatever the order and the cut, the dataset is what one batch of everything keeps."""

import random
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import days
from tests.documents import documents

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


@settings(max_examples=60, deadline=None)
@given(
    table=corpora(),
    cut=st.randoms(use_true_random=False),
    count=st.integers(1, 5),
    policy=st.sampled_from([("lowest_id",), ("longest",), ("newest",), ("oldest", "longest")]),
    how=st.sampled_from(
        [{}, {"measure": "containment"}, {"pairs": 2, "rounds": 60}, {"edges_in_memory": 0}, {"buckets": 3}]
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
        assert sum(map(days.unsettled, run.made)) == 0
        assert run.dataset == days.winners(table, params)
