"""What is taken down is looked up by key in segments: as its log says it, however its rows were merged."""

import importlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.inspect.verify.findings import Findings
from pipeline_tasks.inspect.verify.log import check_takedowns
from pipeline_tasks.inspect.verify.objects import check_object
from pipeline_tasks.publish import takedowns as taking
from pipeline_tasks.publish.takedowns import PINNED, current_rows, holds, pinned_list, record
from pipeline_tasks.sealed import sha256
from pipeline_tasks.store.log_chain import append, read_chain
from pipeline_tasks.store.taken_down import LOG, SEGMENTS, entries_named, freed, runs_of, takedowns, taken_down
from pipeline_tasks.store.taken_down_lists import LISTS, list_path, pinned_by, segments_named
from pipeline_tasks.text.urls.takedown import LIST, TakenDown, evidence, hosts_of, of_rows, read_list

STORED = ("pipeline_tasks.store.taken_down", "pipeline_tasks.store.taken_down_lists")
ROOT = Path(__file__).parent.parent.parent
ENTRIES = [
    ("doc", "0" * 32),
    ("doc", "AB" * 16),
    ("site", "a.example"),
    ("site", "b.a.example"),
    ("url", "https://c.example/x"),
    ("url", "http://C.example/x/?utm_source=1"),
    ("url", "https://c.example/of/jane%40corp.example/x"),
    ("url", "https://c.example/of/joe%40corp.example/x"),
    ("url", "https://c.example/?of=jane@corp.example&x=1"),
]
URLS = [
    "https://a.example/",
    "https://x.b.a.example/y",
    "https://c.example/x#top",
    "https://c.example/of/%3CEMAIL%3E/x",
    "https://c.example/?of=%3CEMAIL%3E&x=1",
    "https://c.example/?of=%3CEMAIL%3E&x=2",
    "https://d.example/",
    None,
]
IDS = ["1", "2", "3", "4", "5", "6", "0" * 32, "ab" * 16]


def proofs(taken: TakenDown) -> list[str | None]:
    return list(
        evidence(
            taken, pa.record_batch({"url": pa.array(URLS, pa.string()), "id": pa.array(IDS, pa.string())})
        ).to_pylist()
    )


def told(root: str, number: int) -> list[dict[str, Any]]:
    """What holds behind entries of the log, one after the other."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for takedown in takedowns(root)[:number]:
        for kind, value in entries_named(root, takedown):
            key = (kind, of_key(kind, value))
            if takedown.undo:
                rows.pop(key, None)
            else:
                rows.setdefault(key, {"kind": kind, "key": key[1], "value": value, "takedown": takedown.number})
    return [rows[key] for key in sorted(rows)]


def of_key(kind: str, value: str) -> str:
    return importlib.import_module("pipeline_tasks.text.urls.takedown").key_of(kind, value)  # type: ignore[no-any-return]


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs and entries of few rows are many."""
    monkeypatch.setattr(taking, "LEAST_ROWS", 1)
    monkeypatch.setattr(taking, "FEW", 2)
    monkeypatch.setattr(taking, "TOGETHER", 2)


Steps = st.lists(st.tuples(st.lists(st.sampled_from(ENTRIES), min_size=1, max_size=5), st.booleans()), max_size=8)


@pytest.mark.usefixtures("_small")
@settings(max_examples=25)
@given(steps=Steps)
def test_each_entry_of_the_log_has_the_list_that_follows_from_it(
    steps: list[tuple[list[tuple[str, str]], bool]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = str(tmp_path_factory.mktemp("root"))
    for entries, undo in steps:
        try:
            record(root, sorted(set(entries)), "a letter", undo=undo)
        except RecipeError:
            assert undo
    log = takedowns(root)
    for number in range(len(log) + 1):
        taken, expected = taken_down(root, number), told(root, number)
        assert proofs(taken) == proofs(of_rows(expected))
        assert sum(taken.held_by_kind.values()) == len(expected)
        assert hosts_of(taken) == hosts_of(of_rows(expected))
    assert current_rows(root) == told(root, len(log))
    assert [len(list(entries_named(root, each))) for each in log] == [each.count for each in log]
    sizes = [run.segment.rows for run in runs_of(log) or ()]
    assert sizes == sorted(sizes, reverse=True)


def earlier(root: str, *entries: tuple[str, str], undo: bool = False) -> None:
    """Append an entry as releases did that had lists in memory."""
    chain = read_chain(root, LOG)
    fields = {"number": len(chain) + 1, "entries": entries, "reason": "a letter", "at": "2026-01-01", "undo": undo}
    assert append(root, LOG, chain, fields)


def earlier_list(root: str, rows: list[dict[str, Any]]) -> dict[str, str]:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows, LIST), sink)
    body = sink.getvalue().to_pybytes()
    Path(root, LISTS).mkdir(parents=True, exist_ok=True)
    Path(root, LISTS, f"{sha256(body)[:32]}.parquet").write_bytes(body)
    return {PINNED: sha256(body)}


def test_a_log_of_an_earlier_release_goes_on(tmp_path: Path) -> None:
    root = str(tmp_path)
    earlier(root, *ENTRIES[:5])
    earlier(root, ENTRIES[2], undo=True)
    before = told(root, 2)
    assert current_rows(root) == before
    pinned = pinned_list(root)
    assert pinned == pinned_list(root), "it follows from the log"
    assert proofs(pinned_by(root, pinned[PINNED]).taken()) == proofs(of_rows(before))
    assert record(root, [ENTRIES[4], ENTRIES[3]], "again") is None
    recorded = record(root, [ENTRIES[2]], "again")
    assert recorded is not None
    assert current_rows(root) == told(root, 3)
    assert proofs(taken_down(root, 1)) == proofs(of_rows(told(root, 1)))
    assert [each["takedown"] for each in freed(root, 1, 2) for each in each.to_pylist()] == [1]


def test_a_list_of_an_earlier_release_is_read_and_compared(tmp_path: Path) -> None:
    root = str(tmp_path)
    earlier(root, *ENTRIES[:5])
    pinned = earlier_list(root, told(root, 1))
    path = f"{root}/{list_path(root, pinned[PINNED])}"
    assert [Path(path).suffix, Path(list_path(root, "0" * 64)).suffix] == [".parquet", ".json"]
    assert proofs(read_list(path, *segments_named(path, pinned[PINNED]))) == proofs(of_rows(told(root, 1)))
    record(root, [("site", "other.example")], "a letter")
    assert holds(root, pinned)
    record(root, [ENTRIES[0]], "a mistake", undo=True)
    assert not holds(root, pinned)


def test_a_list_holds_until_one_of_its_rows_is_allowed_again(tmp_path: Path) -> None:
    root = str(tmp_path)
    record(root, ENTRIES[:2], "a letter")
    first = pinned_list(root)
    record(root, ENTRIES[2:4], "a letter")
    assert holds(root, first)
    record(root, ENTRIES[2:3], "a mistake", undo=True)
    assert holds(root, first)
    record(root, ENTRIES[:1], "a mistake", undo=True)
    assert not holds(root, first)
    record(root, ENTRIES[:1], "again")
    assert holds(root, first)
    record(root, ENTRIES[:2] + ENTRIES[3:4], "a mistake", undo=True)
    assert pinned_list(root) == {}


def test_keys_of_another_way_are_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, text = str(tmp_path), importlib.import_module("pipeline_tasks.text.urls.takedown")
    with monkeypatch.context() as patch:
        for module in (taking, *map(importlib.import_module, STORED)):
            patch.setattr(module, "MATCHING", "of another release")
        patch.setattr(text, "keys_of", lambda entries: [f"{value}!" for _, value in entries])
        record(root, [*ENTRIES[:5], *ENTRIES[6:]], "a letter")
        pinned = pinned_list(root)
    assert current_rows(root) == told(root, 1)
    assert proofs(pinned_by(root, pinned[PINNED]).taken()) == proofs(of_rows(told(root, 1)))
    record(root, [("site", "other.example")], "a letter")
    assert current_rows(root) == told(root, 2)
    assert pinned_list(root) != pinned


@pytest.mark.usefixtures("_small")
def test_verify_names_a_segment_that_was_changed_or_removed(tmp_path: Path) -> None:
    root = str(tmp_path)
    record(root, ENTRIES, "a letter")
    record(root, [("site", "other.example")], "a letter")
    paths = sorted(Path(root, SEGMENTS).iterdir())
    assert len(paths) == 2, "of an entry of many, which is a run as well, and of one"
    for path in paths:
        body = path.read_bytes()
        path.write_bytes(body[:-20] + b"x" + body[-19:])
        findings = Findings()
        for expected in check_takedowns(root, [], findings)[1]:
            check_object(expected, findings, full=True)
        assert [problem.object for problem in findings.problems] == [str(path)]
        path.unlink()
        with pytest.raises(
            ContractError, match=f"{re.escape(str(path))}.*the file is missing; restore it from a backup"
        ):
            current_rows(root)
        path.write_bytes(body)


def test_a_takedown_of_many_is_a_segment_and_the_log_stays_small(tmp_path: Path) -> None:
    root = str(tmp_path)
    record(root, [("url", f"https://site.example/{number}") for number in range(5000)], "a letter")
    [takedown] = takedowns(root)
    assert (takedown.entries, takedown.count, takedown.facts["many"]) == ((), 5000, 5000)
    assert Path(root, LOG.entry_path(1)).stat().st_size < 4096
    assert len(list(Path(root, SEGMENTS).iterdir())) == 1
    assert json.loads(Path(root, LISTS, f"{pinned_list(root)[PINNED][:32]}.json").read_bytes())["counts"] == {
        "url": 5000
    }


# --- Growth ---------------------------------------------------------------------------------------------------

BENCHMARKS = ROOT / "benchmarks"


@pytest.fixture(scope="module")
def growth() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        yield importlib.import_module("growth")


def test_one_more_takedown_costs_the_same_behind_many(growth: Any, tmp_path: Path) -> None:
    few, many = (growth.taken_down_behind(str(tmp_path / str(count)), count) for count in (8_000, 80_000))
    for step in ("one more", "its list", "a document"):
        assert many[step]["requests"] <= few[step]["requests"] + 2, step
        assert many[step]["read_kb"] <= 64, step
    assert many["a batch"]["read_kb"] <= 80_000 * 16 / 8 / 1000 * 1.2 + 80, "the filter, and few pages"
    assert many["the next"]["requests"] <= 12, "the filter is known"


ALL = re.compile(r"\b(current_rows|rows_of|of_kind|replayed|hosts_of)\b")
LISTING = {
    "pipeline_tasks/publish/takedowns.py",  # lists of earlier releases, and what a cut log lacks
    "pipeline_tasks/store/taken_down.py",
    "pipeline_tasks/store/taken_down_lists.py",
    "pipeline_tasks/text/urls/takedown.py",
    "plugins/refinery_rights/takedown.py",  # --list
    "plugins/refinery_rights/erasing/survey.py",  # names of sites in objects that are no tables
}


def test_nobody_loads_all_that_is_taken_down_but_who_lists_it() -> None:
    imports = re.compile(
        r"from (?:pipeline_tasks\.publish\.takedowns|\S+\.taken_down(?:_lists)?|\S+urls\.takedown) import ([^()\n]+|\([^)]*\))"
    )
    users = {
        path.relative_to(ROOT).as_posix()
        for room in ("pipeline_tasks", "plugins", "dags")
        for path in (ROOT / room).rglob("*.py")
        for names in imports.findall(path.read_text())
        if ALL.search(names)
    }
    assert users <= LISTING
