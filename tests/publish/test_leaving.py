"""What leaves a selection: lines of winners are followed as a plain reference follows them, in bounded memory."""

import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline_tasks.engines.local import LocalEngine
from pipeline_tasks.publish.datasets import leaving
from pipeline_tasks.publish.datasets.composing import compose, with_superseded
from pipeline_tasks.publish.datasets.leaving import LEAVING, Node, left_by, ranked
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.superseded import SUPERSEDED, publish_superseded
from pipeline_tasks.recipe import Versions
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.run.runner import refine
from pipeline_tasks.sealed import digest_of
from pipeline_tasks.store.reading import read_committed, read_shards
from pipeline_tasks.text.base.key_pages import KeyedFile
from tests import refining
from tests.documents import documents

Named = Sequence[tuple[Node, Node]]
"""The documents that a version names as superseded, with a winner of each, in its order."""


def reference(versions: Sequence[Named], chosen: set[str]) -> dict[Node, Node]:
    """What leaves, by dicts of everything; the newest version is the last."""
    wins: dict[Node, list[Node]] = {}
    for named in versions:
        own: dict[Node, list[Node]] = {}
        for loser, winner in named:
            own.setdefault(loser, []).append(winner)
        wins |= own
    found = {loser: first_selected(loser, wins, chosen) for loser in sorted(wins) if loser[1] in chosen}
    return {loser: winner for loser, winner in found.items() if winner}


def first_selected(loser: Node, wins: Mapping[Node, Sequence[Node]], chosen: set[str]) -> Node | None:
    seen, lines = {loser}, deque(wins.get(loser, ()))
    while lines:
        node = lines.popleft()
        if node[1] in chosen and node not in seen:
            return node
        lines.extend(wins.get(node, ()) if node not in seen else ())
        seen.add(node)
    return None


def left(versions: Sequence[Named], chosen: set[str]) -> dict[Node, Node]:
    named = [ranked(batch, rank) for rank, rows in enumerate(reversed(versions)) for batch in batches(rows)]
    rows = [row for batch in left_by(named, sorted(chosen)) for row in batch.to_pylist()]
    keys = [(row["id"], row["snapshot"]) for row in rows]
    assert keys == sorted(set(keys))
    return {key: (row["winner"], row["winner_snapshot"]) for key, row in zip(keys, rows, strict=True)}


def batches(rows: Named, size: int = 3) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(rows), size):
        columns = zip(*((*loser, *winner) for loser, winner in rows[start : start + size]), strict=True)
        yield pa.RecordBatch.from_arrays([pa.array(column, pa.string()) for column in columns], schema=LEAVING)


nodes = st.tuples(st.sampled_from("abc"), st.sampled_from("123"))


@example(versions=[[(("a", "1"), ("b", "2"))], [(("a", "1"), ("c", "3"))]], chosen={"1", "2"}, size=1, run_bytes=1)
@example(versions=[[(("a", "1"), ("b", "2")), (("b", "2"), ("a", "1"))]], chosen={"1"}, size=1, run_bytes=1)
@given(
    versions=st.lists(st.lists(st.tuples(nodes, nodes), max_size=6), max_size=3),
    chosen=st.sets(st.sampled_from("123"), min_size=1),
    size=st.integers(1, 5),
    run_bytes=st.sampled_from([1, 300, 1 << 20]),
)
def test_lines_lead_where_a_reference_leads(versions: list[Named], chosen: set[str], size: int, run_bytes: int) -> None:
    """Through several winners, circles, and documents that two versions name: in batches of any size, in many runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leaving, "BATCH_ROWS", size)
        patch.setattr(leaving, "RUN_BYTES", run_bytes)
        assert left(versions, chosen) == reference(versions, chosen)


def test_superseded_documents_leave_if_their_winner_is_selected() -> None:
    """Two stages may supersede a document, as `f`: any of its winners will do, and of several the first."""
    wins: Named = [
        (("a", "1"), ("b", "2")),
        (("b", "2"), ("c", "3")),
        (("d", "1"), ("e", "2")),
        (("f", "1"), ("g", "3")),
        (("f", "1"), ("h", "2")),
    ]
    for chosen, leave in {
        "1": [],
        "12": [("a", "b"), ("d", "e"), ("f", "h")],
        "13": [("a", "c"), ("f", "g")],
        "23": [("b", "c")],
        "123": [("a", "b"), ("b", "c"), ("d", "e"), ("f", "g")],
    }.items():
        assert [(loser[0], winner[0]) for loser, winner in left([wins], set(chosen)).items()] == leave, chosen


DAYS = ("d1", "d2", "d3")


def published(root: Path, rows_of: Mapping[str, Sequence[str]]) -> None:
    """Publish three days of six documents each; by day, the numbers of those of the day before that it supersedes."""
    for rank, day in enumerate(DAYS):
        table = documents([f"{day} {at}" for at in range(6)], n_tokens=pa.array([2] * 6, pa.int64()))
        named = table.set_column(1, "snapshot", pa.array([day] * 6, pa.string()))
        path = refining.commit_parent(root, [named.slice(0, 4), named.slice(4)], "dedup_exact")
        before = DAYS[max(rank - 1, 0)]
        lost = [
            dict.fromkeys(SUPERSEDED.names)
            | {"id": id_of(before, at), "snapshot": before, "winner": id_of(day, at), "winner_snapshot": day}
            for at in rows_of.get(day, ())
        ]
        rows = pa.Table.from_pylist(lost, SUPERSEDED).sort_by("id").to_batches()
        listed = publish_superseded(str(root), f"publish/{day}", day, iter(rows), {})
        assert (listed.documents, listed.superseding) == (len(lost), len(lost))
        version_log.append(
            str(root),
            {
                "recipe": "web",
                "snapshot": day,
                "landing": "",
                "verdicts": {},
                "prefix": f"publish/{day}",
                "manifests": {"dedup_exact": f"{path}@sha256:{read_committed(str(root), path)[1]}"},
                "documents": 6,
                "tokens": 0,
                "sequences": 0,
                "files": listed.files,
                **listed.facts,
            },
        )


def id_of(day: str, at: str) -> str:
    found: str = documents([f"{day} {at}"])["id"][0].as_py()
    return found


def test_select_looks_up_what_a_composition_lists(tmp_path: Path) -> None:
    """Line 1 leads from the first day to the last, which is selected, over the second, which is not."""
    published(tmp_path, {"d2": "12", "d3": "13"})
    root = str(tmp_path)
    for snapshots, lost in (
        (("d1", "d3"), [("1", "d1", "d3")]),
        ((), [("1", "d1", "d2"), ("1", "d2", "d3"), ("2", "d1", "d2"), ("3", "d2", "d3")]),
    ):
        composed = compose(root, f"corpus{len(lost)}", Versions("web", snapshots))
        expected = sorted((id_of(day, at), day, id_of(winner, at), winner) for at, day, winner in lost)
        rows = [dict(zip(LEAVING.names, row, strict=True)) for row in expected]
        assert composed.manifest.resources["superseded"] == digest_of(rows)
        [listed] = composed.manifest.history["superseded"]
        assert listed.index_digest
        request = with_superseded(RefineRequest(root, "select", {}, composed.path))
        select = refine(request, LocalEngine)[1]
        found = [row for batch in read_shards(root, select.rejects) for row in batch.to_pylist()]
        assert sorted((row["id"], json.loads(row["evidence"])["winner"]) for row in found) == [
            (row["id"], row["winner"]) for row in rows
        ]
        assert select.rows == composed.manifest.rows - len(lost)


def test_of_many_documents_a_batch_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the number of days: documents whose winner is selected are not looked up, and others by their batch."""
    asked: list[int] = []
    looked_up = KeyedFile.rows

    def counted(file: KeyedFile, wanted: pa.Array) -> pa.Table:
        rows = looked_up(file, wanted)
        asked.append(rows.num_rows)
        return rows

    monkeypatch.setattr(KeyedFile, "rows", counted)
    monkeypatch.setattr(leaving, "BATCH_ROWS", 100)
    days = [[((f"{at:05}", str(day)), (f"{at:05}", str(day + 1))) for at in range(2000)] for day in range(4)]
    assert len(left(days, {"0", "1", "2", "3", "4"})) == 8000
    assert not any(asked)
    assert len(left(days, {"0", "4"})) == 2000
    assert max(asked) <= 4 * 101
