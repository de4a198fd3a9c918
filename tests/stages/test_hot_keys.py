"""Kernels behind `group` give the same rows for any batches, and do not wait for the end of a key that has most rows."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.near_duplicates import windows
from pipeline_tasks.near_duplicates.candidates import distinct_pairs
from pipeline_tasks.near_duplicates.components import connect_components, large_star, small_star, strongest_edges
from pipeline_tasks.near_duplicates.evidence import count_unsettled
from pipeline_tasks.near_duplicates.history import distinct_winners
from pipeline_tasks.near_duplicates.tables import EDGES, LINKS, PAIRS, UNSETTLED
from pipeline_tasks.stage import Batches
from pipeline_tasks.stages.cut_templates import SHARD_LINES, Params, count_pages
from pipeline_tasks.stages.dedup_exact import keep_first
from pipeline_tasks.stages.dedup_paragraphs import PARTS, elect_winners
from pipeline_tasks.text.base import tables
from tests.documents import documents

Kernel = Callable[[Batches], Batches]


def node(number: int) -> dict[str, Any]:
    return {"known": False, "rank": f"{number:06}", "id": name(number), "snapshot": "crawl"}


def name(number: int) -> str:
    return f"document {number:06}"


def edge(number: int, other: int) -> dict[str, Any]:
    """An edge whose similarity follows from its ends."""
    link = {"id": name(number), "node": node(number), "other": node(other)}
    facts = {"similarity": (number * 31 + other * 7) % 10 / 10, "shared_bands": (number + other) % 5}
    return {**link, "near": node(other), "via": name(number), **facts}


def part(number: int, owner: int) -> dict[str, Any]:
    return {"hash": number, "check": number, "id": name(owner), "snapshot": "crawl"}


def line(number: int, owner: int) -> dict[str, Any]:
    return {"hash": number, "check": number, "page": owner % 4, "id": name(owner)}


def unsettled(number: int, band: int) -> dict[str, Any]:
    return {"id": name(number), "key": band}


def pair(number: int, other: int) -> dict[str, Any]:
    named = {"member": name(number), "member_node": node(number), "center": name(other), "center_node": node(other)}
    return {**named, "key": number % 3, "member_at": number, "center_at": other}


def document(number: int, place: int) -> dict[str, Any]:
    row = documents(["text"]).to_pylist()[0]
    return {**row, "id": name(number), "snapshot": "crawl", "file": "a.warc", "offset": place}


Row = Callable[[int, int], dict[str, Any]]

KERNELS: dict[str, tuple[Kernel, Row, pa.Schema]] = {
    "large_star": (large_star, edge, LINKS),
    "small_star": (small_star, edge, LINKS),
    "strongest_edges": (strongest_edges, edge, EDGES),
    "distinct_winners": (distinct_winners, edge, LINKS),
    "keep_first": (keep_first, document, documents(["text"]).schema),
}
"""Those that have more to do with a key the more rows it has, with a row of a key and another number."""

SMALL_RUNS: dict[str, tuple[Kernel, Row, pa.Schema]] = {
    "elect_winners": (elect_winners, part, PARTS),
    "count_pages": (partial(count_pages, params=Params()), line, SHARD_LINES),
    "distinct_pairs": (distinct_pairs, pair, PAIRS),
    "count_unsettled": (count_unsettled, unsettled, UNSETTLED),
}
"""Those whose keys have a row of each shard or band at most: they may have all rows of a key in memory."""


def table_of(make: Row, schema: pa.Schema, pairs: list[tuple[int, int]]) -> pa.Table:
    fields = schema.names
    return pa.Table.from_pylist([{field: make(*pair_)[field] for field in fields} for pair_ in sorted(pairs)], schema)


def batches(rows: pa.Table, size: int) -> Iterator[pa.RecordBatch]:
    yield from rows.to_batches(max_chunksize=size) or [pa.RecordBatch.from_pylist([], rows.schema)]
    yield pa.RecordBatch.from_pylist([], rows.schema)


def results(kernel: Kernel, rows: pa.Table, size: int) -> list[dict[str, Any]]:
    return pa.Table.from_batches(list(kernel(batches(rows, size)))).to_pylist()


@pytest.mark.parametrize("kernel", [*KERNELS, *SMALL_RUNS])
@given(
    pairs=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), max_size=40),
    size=st.integers(1, 9),
    run_rows=st.integers(1, 9),
)
def test_batches_change_no_row(kernel: str, pairs: list[tuple[int, int]], size: int, run_rows: int) -> None:
    function, make, schema = (KERNELS | SMALL_RUNS)[kernel]
    rows = table_of(make, schema, pairs)
    whole = results(function, rows, 1000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "RUN_ROWS", run_rows)
        assert results(function, rows, size) == whole


@given(pairs=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), max_size=40), size=st.integers(1, 9))
def test_the_strongest_edge_is_the_first_of_the_most_similar(pairs: list[tuple[int, int]], size: int) -> None:
    rows = table_of(edge, EDGES, pairs)
    best: dict[str, dict[str, Any]] = {}
    for row in rows.to_pylist():
        if row["id"] not in best or row["similarity"] > best[row["id"]]["similarity"]:
            best[row["id"]] = row
    found = results(strongest_edges, rows, size)
    assert [(row["id"], row["near"]) for row in found] == [(id_, row["near"]["id"]) for id_, row in best.items()]


@given(pairs=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=30), size=st.integers(1, 9))
def test_small_star_ties_a_node_and_its_neighbors_to_the_first(pairs: list[tuple[int, int]], size: int) -> None:
    smaller = [(number, other) for number, other in pairs if other < number]  # as large-star gives them
    found = {
        (row["node"]["id"], row["other"]["id"]) for row in results(small_star, table_of(edge, LINKS, smaller), size)
    }
    first = {number: min(other for one, other in smaller if one == number) for number, _ in smaller}
    ends = {(name(number), name(first[number])) for number in first}
    ends |= {(name(other), name(first[number])) for number, other in smaller if other != first[number]}
    assert found == ends | {(other, one) for one, other in ends}


@given(pairs=st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=20))
def test_clusters_in_memory_are_those_of_edges_from_one_end(pairs: list[tuple[int, int]]) -> None:
    parents = list(range(13))

    def root(number: int) -> int:
        return number if parents[number] == number else root(parents[number])

    for one, other in pairs:
        low, high = sorted((root(one), root(other)))
        parents[high] = low
    rows = table_of(edge, EDGES, [*pairs, *((other, one) for one, other in pairs)])
    found = {
        row["id"]: row["other"]["id"]
        for batch in connect_components(iter(()), batches(rows, 3))
        for row in batch.to_pylist()
    }
    assert found == {name(number): name(root(number)) for number in range(13) if root(number) != number}


def read_until_first(function: Kernel, rows: pa.Table) -> int:
    """Return how many rows a kernel was given, a hundred at a time, until its first batch."""
    given_: list[int] = []

    def counted() -> Batches:
        for batch in batches(rows, 100):
            given_.append(batch.num_rows)
            yield batch

    next(iter(function(counted())))
    return sum(given_)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_key_of_most_rows_is_not_waited_for(kernel: str) -> None:
    """Every edge of a template's page, every page of one text: the whole bucket was one table."""
    function, make, schema = KERNELS[kernel]
    rows = table_of(make, schema, [(5, 10 + number) for number in range(1000)])
    assert read_until_first(function, rows) == 100


@pytest.mark.parametrize("kernel", SMALL_RUNS)
def test_a_bucket_is_not_waited_for(kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "RUN_ROWS", 200)
    monkeypatch.setattr(windows, "PART_ROWS", 200)
    function, make, schema = SMALL_RUNS[kernel]
    rows = table_of(make, schema, [(number // 3, number % 3) for number in range(1000)])
    assert read_until_first(function, rows) == 200
