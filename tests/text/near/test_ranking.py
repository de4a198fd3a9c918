"""Ranks as text: they sort as what they stand for, and say which preference decided."""

import math

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline_tasks.text.near.ranking import Policy, decided, nodes, part
from tests.documents import documents


def order(policy: Policy, **columns: pa.Array) -> list[int]:
    """The rows of one document per value, the better first."""
    rows = len(next(iter(columns.values())))
    table = documents([str(row) for row in range(rows)])
    for name, values in columns.items():
        at = table.schema.get_field_index(name)
        table = table.set_column(at, name, values) if at >= 0 else table.append_column(name, values)
    found = nodes(table.combine_chunks().to_batches()[0], policy).to_pylist()
    return sorted(range(rows), key=lambda row: (found[row].split("\t")[0], row))


@settings(deadline=None)
@given(st.lists(st.none() | st.floats(), min_size=1, max_size=20))
def test_the_highest_score_ranks_first_and_none_last(scores: list[float | None]) -> None:
    worst = [one is None or math.isnan(one) for one in scores]
    expected = sorted(range(len(scores)), key=lambda row: (worst[row], 0 if worst[row] else -(scores[row] or 0.0), row))
    assert order(Policy(("quality",)), score=pa.array(scores, pa.float64(), from_pandas=False)) == expected


@settings(deadline=None)
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


def test_a_node_tells_its_parts_and_why_it_won() -> None:
    table = documents(["some text", "a longer text"])
    found = nodes(table.to_batches()[0], Policy(("oldest", "longest", "lowest_id")))
    assert part(found, 1).to_pylist() == table.column("id").to_pylist()
    assert part(found, 2).to_pylist() == ["2026-11-20"] * 2
    better, worse = sorted(found.to_pylist())
    assert decided(better, worse, ("oldest", "longest", "lowest_id")) == "longest"
    assert decided(better, better, ("oldest", "longest")) == "lowest_id"
