"""A template of most pages: bands and edges in parts give what they give as a whole, and memory is bounded by parts."""

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.engines.local import LocalEngine
from pipeline_tasks.near_duplicates import candidates, graph, windows
from pipeline_tasks.near_duplicates.candidates import candidate_pairs, match_bands, unsettled_bands
from pipeline_tasks.near_duplicates.history import save_bands
from pipeline_tasks.near_duplicates.tables import BANDS, KNOWN_BANDS, LOST_BANDS, MEMBERS, RESULTS
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.run.runner import refine
from pipeline_tasks.stage import Batches
from pipeline_tasks.stages.dedup_minhash.params import Params, likeness_of
from pipeline_tasks.text.near.candidates import Bands, Results, choose
from tests import refining
from tests.documents import documents

ROOT = Path(__file__).parents[2]
LIKENESS = likeness_of(Params(pairs=4))

Member = tuple[int, int, str | None]
"""Band, number of the document, label of a known one."""

bands = st.dictionaries(
    st.tuples(st.integers(-2, 2), st.integers(0, 30)), st.none() | st.sampled_from(["a", "b"]), max_size=40
).map(lambda drawn: [(key, number, label) for (key, number), label in sorted(drawn.items())])


def name(number: int) -> str:
    return f"document {number:03}"


def node(number: int, *, known: bool) -> dict[str, Any]:
    return {"rank": f"{number:06}", "id": name(number), "snapshot": "crawl", "known": known}


def batches(rows: list[dict[str, Any]], schema: pa.Schema, size: int) -> Batches:
    schema = schema.remove_metadata()
    yield pa.RecordBatch.from_pylist([], schema)
    yield from pa.Table.from_pylist(rows, schema).to_batches(max_chunksize=size)


def members(drawn: list[Member], size: int) -> Batches:
    rows = [{"key": key, "node": node(at, known=label is not None), "label": label} for key, at, label in drawn]
    return batches(rows, MEMBERS, size)


def rows_of(kernel: Batches) -> list[dict[str, Any]]:
    return pa.Table.from_batches(list(kernel)).to_pylist()


def all_at_once(drawn: list[Member], results: list[list[dict[str, Any]]]) -> tuple[Bands, Results]:
    """Bands and results as the compiled loop takes them, of all members together."""
    keys = sorted({key for key, _, _ in drawn})
    starts = [next(row for row, member in enumerate(drawn) if member[0] == key) for key in keys]
    first: dict[tuple[int, str], int] = {}
    classes = [
        row if label is None else first.setdefault((key, label), row) for row, (key, _, label) in enumerate(drawn)
    ]
    known = np.array([label is not None for _, _, label in drawn], np.bool_)
    made = sorted((row for rows in results for row in rows), key=lambda row: row["key"])
    whole = np.array([*starts, len(drawn)], np.int64)
    begins = dict(zip(keys, starts, strict=True))
    member, center = (
        np.array([begins[row["key"]] + row[at] for row in made], np.int64) for at in ("member_at", "center_at")
    )
    bounds = np.searchsorted([row["key"] for row in made], [*keys, 9]).astype(np.int64)
    away = np.array([1 - row["similarity"] for row in made], np.float64)
    passed = np.array([row["passed"] for row in made], np.bool_)
    return Bands(whole, np.array(classes, np.int64), known), Results(bounds, member, center, away, passed)


def similarity(member: int, center: int) -> float:
    return (member * 7 + center * 7) % 10 / 10


@given(drawn=bands, part=st.sampled_from([2, 3, 100]), size=st.integers(1, 9), turns=st.integers(1, 4))
def test_pairs_of_bands_in_parts_are_those_of_bands_as_a_whole(
    drawn: list[Member], part: int, size: int, turns: int
) -> None:
    results: list[list[dict[str, Any]]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windows, "PART_ROWS", part)
        for turn in range(turns):
            given_ = [batches(rows, RESULTS, size) for rows in results]
            found = rows_of(candidate_pairs(members(drawn, size), *given_, turn=turn, likeness=LIKENESS))
            expected: set[tuple[int, str, str]] = set()
            if drawn:
                whole = all_at_once(drawn, results)
                chosen, centers, _ = choose(*whole, pairs=LIKENESS.pairs, reach=LIKENESS.reach, star=turn == 0)
                expected = {
                    (drawn[row][0], name(drawn[row][1]), name(drawn[center][1]))
                    for row, center in zip(chosen.tolist(), centers.tolist(), strict=True)
                }
            assert {(row["key"], row["member"], row["center"]) for row in found} == expected
            assert len(found) == len(expected)
            facts = [
                {
                    **{at: row[at] for at in ("key", "member_at", "center_at")},
                    "similarity": alike,
                    "passed": alike >= 0.8,
                }
                for row in found
                for alike in [similarity(int(row["member"][-3:]), int(row["center"][-3:]))]
            ]
            results.append(sorted(facts, key=lambda row: (row["key"], row["member_at"], row["center_at"])))
        given_ = [batches(rows, RESULTS, size) for rows in results]
        left = rows_of(unsettled_bands(members(drawn, size), *given_, likeness=LIKENESS))
        if drawn:
            *_, open_ = choose(*all_at_once(drawn, results), pairs=4, reach=LIKENESS.reach, star=False)
            assert [(row["key"], row["id"]) for row in left] == [
                (drawn[row][0], name(drawn[row][1])) for row in np.flatnonzero(open_)
            ]


class Saved:
    """A history of bands in memory."""

    def __init__(self, drawn: list[Member]) -> None:
        version = LIKENESS.history_version
        rows = [
            {**node(at, known=True), "key": key, "label": label, "history_version": version}
            for key, at, label in drawn
            if label
        ]
        fields = KNOWN_BANDS.names
        self._rows = pa.Table.from_pylist([{field: row[field] for field in fields} for row in rows], KNOWN_BANDS)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        yield from self._rows.to_batches()

    def rows(self, wanted: pa.Array) -> pa.Table:
        return self._rows.filter(pc.is_in(self._rows.column("key"), value_set=wanted))

    def first(self, column: str) -> object:
        return self._rows.column(column)[0].as_py() if self._rows.num_rows else None


@given(drawn=bands, part=st.sampled_from([2, 3, 100]), size=st.integers(1, 9), several=st.booleans())
def test_members_of_a_band_in_parts_are_in_order_with_those_of_history(
    drawn: list[Member], part: int, size: int, several: bool
) -> None:
    new = [(key, at) for key, at, label in drawn if label is None]
    keys = [key for key, _ in new]
    known_keys = {key for key, _, label in drawn if label}
    expected = [
        (key, name(at), label) for key, at, label in drawn if (keys.count(key) > 1 or key in known_keys) and key in keys
    ]
    rows = [{"key": key, "node": node(at, known=False)} for key, at in new]
    with_label = [[member for member in drawn if member[2] == label] for label in ("a", "b")]
    history = [Saved(some) for some in with_label] if several else [Saved(drawn)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windows, "PART_ROWS", part)
        patch.setattr(candidates, "RUN_ROWS", part)
        clean = [member for member in drawn if member[2] is None or member[1] not in {at for _, at in new}]
        if clean != drawn:  # a known document that is new, too
            return
        found = rows_of(match_bands(batches(rows, BANDS, size), *history, likeness=LIKENESS))
    assert [(row["key"], row["node"]["id"], row["label"]) for row in found] == expected


@given(drawn=bands, lost=st.sets(st.integers(0, 30)), size=st.integers(1, 9), other=st.integers(1, 9))
def test_each_band_of_a_loser_is_labeled_however_they_are_cut(
    drawn: list[Member], lost: set[int], size: int, other: int
) -> None:
    rows = [{"key": key, "node": node(at, known=False)} for key, at, _ in drawn]
    losing = [{**row, "label": "winner"} for row, (_, at, _) in zip(rows, drawn, strict=True) if at in lost]
    saved = save_bands(batches(rows, BANDS, size), batches(losing, LOST_BANDS, other), likeness=LIKENESS)
    found = [(row["key"], row["id"], row["label"]) for row in rows_of(saved)]
    assert found == [(key, name(at), "winner" if at in lost else name(at)) for key, at, _ in drawn]


def test_more_edges_than_one_task_may_have_are_connected_by_stars(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One task had all edges of a template: 0.6 KB for each of its pages."""
    draws = random.Random(1)
    base = [f"w{n}" for n in range(60)]
    texts = [" ".join([*base[:-1], f"x{draws.random()}"]) for _ in range(30)]
    exact, _ = refining.refined(tmp_path, "dedup_exact", refining.commit_parent(tmp_path, [documents(texts)]), {})
    digests, connected = [], []
    for most, seed in ((1000, 1), (10, 2)):
        monkeypatch.setattr(graph, "CONNECTED", most)
        connected.append(0)

        class Watched(LocalEngine):
            def map(self, kernel: Any, *inputs: Any, **how: Any) -> Any:
                if kernel is graph.connect_components:
                    connected[-1] += sum(shard.rows for shard in how["broadcast"])
                return super().map(kernel, *inputs, **how)

        work = RefineRequest(str(tmp_path), "dedup_minhash", {"edges_in_memory": 10**6 + seed}, exact)
        manifest = refine(work, Watched).manifest
        assert manifest.rejected == {"dedup_minhash:near_duplicate": 29}
        digests.append([shard.digest for shard in (*manifest.shards, *manifest.rejects, *manifest.history_shards)])
    assert connected[0] >= 58, "from both ends"
    assert connected[1] == 0
    assert digests[0] == digests[1]


PROGRAM = """
import sys
import numpy as np
import pyarrow as pa
from pipeline_tasks.near_duplicates.candidates import candidate_pairs, match_bands, unsettled_bands
from pipeline_tasks.near_duplicates.history import save_bands
from pipeline_tasks.near_duplicates.tables import BANDS, LOST_BANDS, MEMBERS, RESULTS
from pipeline_tasks.stages.dedup_minhash.params import Params, likeness_of
from pipeline_tasks.text.base.tables import batch_of
from pipeline_tasks.text.near.ranking import NODE
from tests.peak import peak_kb

STEP, likeness = 4096, likeness_of(Params())


def rows(schema, count):
    for start in range(0, count, STEP):
        numbers = range(start, min(start + STEP, count))
        known = pa.repeat(False, len(numbers))
        texts = [pa.array([f"{number:032x}" for number in numbers], pa.large_string())] * 2
        node = pa.StructArray.from_arrays([*texts, pa.repeat(pa.scalar("crawl", pa.large_string()), len(numbers)), known],
                                          fields=list(NODE))
        columns = {"key": pa.repeat(pa.scalar(5, pa.int64()), len(numbers)), "node": node}
        label = texts[0].cast(pa.string()) if schema is LOST_BANDS else pa.nulls(len(numbers), pa.string())
        yield batch_of(schema, **columns, **({"label": label} if "label" in schema.names else {}))


def results(count):
    for start in range(1, count, STEP):
        at = np.arange(start, min(start + STEP, count))
        columns = {"member_at": pa.array(at, pa.int32()), "center_at": pa.array(0 * at, pa.int32())}
        passed = pa.repeat(True, len(at))
        yield batch_of(RESULTS, key=pa.array(0 * at + 5), similarity=pa.array(0.0 * at + 1), passed=passed, **columns)


def all_of(count):
    taken = [
        match_bands(rows(BANDS, count), likeness=likeness),
        candidate_pairs(rows(MEMBERS, count), turn=0, likeness=likeness),
        candidate_pairs(rows(MEMBERS, count), results(count), turn=1, likeness=likeness),
        unsettled_bands(rows(MEMBERS, count), results(count), likeness=likeness),
        save_bands(rows(BANDS, count), rows(LOST_BANDS, count), likeness=likeness),
    ]
    return [sum(batch.num_rows for batch in kernel) for kernel in taken]


all_of(40_000)
before, count = peak_kb(), int(sys.argv[1])
assert all_of(count) == [count, count - 1, 0, 0, count]
print((peak_kb() - before) * 1024 / count)
"""
"""Prints how many bytes each page of a band takes of the kernels that have bands, beside those of 40,000 pages."""


def test_a_page_of_a_long_band_takes_a_few_bytes() -> None:
    """A band was in memory as a table, three times: 1.4 KB for each of its pages."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "300000"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 150
