"""Ranks sort documents by policy, and show which preference decided."""

import math

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.near.ranking import (
    NODE,
    Policy,
    as_known,
    deciding_preference,
    is_known,
    node_ids,
    nodes,
    precedes,
)
from tests.documents import documents


def order(policy: Policy, **columns: pa.Array) -> list[int]:
    """The rows of one document per value, the better first."""
    rows = len(next(iter(columns.values())))
    table = documents([str(row) for row in range(rows)])
    for name, values in columns.items():
        at = table.schema.get_field_index(name)
        table = table.set_column(at, name, values) if at >= 0 else table.append_column(name, values)
    ranks = [node["rank"] for node in nodes(table.combine_chunks().to_batches()[0], policy).to_pylist()]
    return sorted(range(rows), key=lambda row: (ranks[row], row))


@given(st.lists(st.none() | st.floats(), min_size=1, max_size=20))
def test_the_highest_score_ranks_first_and_none_last(scores: list[float | None]) -> None:
    worst = [score is None or math.isnan(score) for score in scores]
    expected = sorted(range(len(scores)), key=lambda row: (worst[row], 0 if worst[row] else -(scores[row] or 0.0), row))
    assert order(Policy(("quality",)), score=pa.array(scores, pa.float64(), from_pandas=False)) == expected


@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=20))
def test_the_longest_ranks_first(chars: list[int]) -> None:
    expected = sorted(range(len(chars)), key=lambda row: (-chars[row], row))
    assert order(Policy(("longest",)), chars=pa.array(chars, pa.int64())) == expected


def test_dates_rank_by_time_and_undated_documents_last() -> None:
    dates = pa.array(["2026-11-21", None, "2026-11-20T23:59:59Z", "2026-11-21T00:00:01Z", ""], pa.string())
    assert order(Policy(("oldest",)), crawled_at=dates) == [2, 0, 3, 1, 4]
    assert order(Policy(("newest",)), crawled_at=dates) == [3, 0, 2, 1, 4]


def test_sources_rank_by_their_place_in_the_list() -> None:
    urls = pa.array(
        ["https://b.org/", "ftp://u@www.A.org:21/x", "https://nota.org", None, "https://x.b.org?a.org"], pa.string()
    )
    sources = pa.array(["crawl", "crawl", "crawl", "books", "crawl"], pa.string())
    assert order(Policy(("source",), ("books", "a.org", "b.org")), url=urls, source=sources) == [3, 1, 0, 4, 2]


def test_preferred_values_come_first_in_their_order_and_a_tie_is_left_to_the_policy() -> None:
    types = pa.array(["pdf", "html", None, "epub", "html", "pdf"], pa.string())
    dates = pa.array([f"2026-11-2{day}" for day in (0, 1, 5, 6, 2, 3)], pa.string())
    by = Policy(("newest",), prefer=(("type", ("html", "pdf")),))
    assert order(by, type=types, crawled_at=dates) == [4, 1, 5, 0, 3, 2]
    table = documents(["a", "b"], type=pa.array(["pdf", "html"]))
    worse, better = (node["rank"] for node in nodes(table.to_batches()[0], by).to_pylist())
    assert deciding_preference(better, worse, ("type", "newest")) == "type"


def test_the_shortest_address_ranks_first_and_states_of_a_page_are_equal() -> None:
    page = ["https://a.org/page?utm_source=x", "http://A.org/page/", "https://a.org/page"]
    urls = pa.array([None, "https://a.org/page/print", *page, "https://a.org"], pa.string())
    assert order(Policy(("url",)), url=urls) == [5, 2, 3, 4, 1, 0]
    dates = pa.array(["2026-11-25", "2026-11-24", "2026-11-20", "2026-11-22", "2026-11-21", "2026-11-19"], pa.string())
    assert order(Policy(("url", "newest")), url=urls, crawled_at=dates) == [5, 3, 4, 2, 1, 0]


@given(st.lists(st.text("ab/", max_size=3), max_size=8))
def test_addresses_of_one_length_have_an_order_of_their_own(paths: list[str]) -> None:
    urls = [f"https://x.org/{path}" for path in paths]
    ranked = order(Policy(("url",)), url=pa.array(urls, pa.string())) if urls else []
    again = order(Policy(("url",)), url=pa.array([urls[row] for row in ranked], pa.string())) if urls else []
    assert again == list(range(len(urls)))


def test_a_node_has_the_document_and_the_preference_that_decides() -> None:
    table = documents(["some text", "a longer text"])
    both = nodes(table.to_batches()[0], Policy(("oldest", "longest", "lowest_id")))
    assert both.type == NODE
    assert node_ids(both).to_pylist() == table.column("id").to_pylist()
    assert both.field("snapshot").to_pylist() == ["2026-11-20"] * 2
    better, worse = sorted(node["rank"] for node in both.to_pylist())
    assert deciding_preference(better, worse, ("oldest", "longest", "lowest_id")) == "longest"
    assert deciding_preference(better, better, ("oldest", "longest")) == "lowest_id"


def test_nodes_read_from_history_are_known() -> None:
    both = nodes(documents(["some text", "a longer text"]).to_batches()[0], Policy(("longest",)))
    assert is_known(both).to_pylist() == [False, False]
    assert is_known(as_known(both)).to_pylist() == [True, True]
    assert node_ids(as_known(both)).equals(node_ids(both))


KEYS = st.tuples(st.sampled_from(["", "0a", "0b"]), st.text("abc", max_size=2))


@given(st.lists(st.tuples(KEYS, KEYS), max_size=20))
def test_arrow_sorts_nodes_as_they_precede_each_other(pairs: list[tuple[tuple[str, str], tuple[str, str]]]) -> None:
    sides = [
        [{"rank": rank, "id": id_, "snapshot": "", "known": False} for rank, id_ in side]
        for side in zip(*pairs, strict=True)
    ]
    left, right = (pa.array(side, NODE) for side in sides or [[], []])
    assert precedes(left, right).to_pylist() == [left_key < right_key for left_key, right_key in pairs]
    table = pa.table({"node": left})
    order = pc.sort_indices(table, sort_keys=[("node", "ascending")])
    ordered = [(node["rank"], node["id"]) for node in left.take(order).to_pylist()]
    assert ordered == sorted(key for key, _ in pairs)
