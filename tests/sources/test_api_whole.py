"""Whatever happens on the way, and whenever a pull is killed: each record once, or a refusal and nothing landed."""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from refinery_sources.recipe import parse_source, pull_recipe

from pipeline_tasks.errors import ContractError, SourceBusy
from pipeline_tasks.landing.listing import list_snapshot
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.store.reading import read_manifest, read_shards
from pipeline_tasks.store.storage import connect
from tests.commands import Refinery
from tests.examples import few_examples
from tests.sources.api_pulls import NOW, deleted_of, ids_of, landed_in, pulled, query_of, rows_of
from tests.sources.api_server import STYLES, Api, Asked, Reply, item, items, page_of, serving
from tests.sources.pulling import on_loopback

# --- Any faults ---------------------------------------------------------------------------------------------------

FAULTS = (
    "none",
    "none",
    "none",
    "500",
    "429",
    "cut",
    "dropped",
    "page before",
    "first page",
    "empty",
    "no next",
    "short",
)


def damaged(api: Api, asked: Asked, records: list[dict[str, Any]], size: int, fault: str) -> Reply:
    """The answer of a server of which something is wrong."""
    whole = page_of(api.address, asked, records, size)
    if fault in ("500", "429"):
        return Reply(status=int(fault))
    if fault == "cut":
        return Reply(json.dumps(whole.body).encode()[:-9])
    if fault == "dropped":
        return Reply(whole.body, whole.headers, drop_after=20)
    if fault in ("page before", "first page"):
        before = api.asked[-2].params if fault == "page before" and len(api.asked) > 1 else {}
        return page_of(api.address, Asked(0, asked.path, before, {}, 0), records, size)
    if fault in ("empty", "short"):
        whole.body["data"]["items"] = whole.body["data"]["items"][: 1 if fault == "short" else 0]
    if fault in ("empty", "no next"):
        whole.body["meta"] |= {"next": None, "url": None, "more": False}
        return Reply(whole.body)
    return whole


@pytest.mark.slow
def test_any_pages_and_faults_give_each_record_once_or_a_refusal() -> None:
    with serving() as api:
        any_pages(api)


@given(
    style=st.sampled_from(sorted(STYLES)),
    count=st.integers(0, 40),
    size=st.integers(1, 9),
    faults=st.lists(st.sampled_from(FAULTS), max_size=20),
)
def any_pages(api: Api, style: str, count: int, size: int, faults: list[str]) -> None:
    records, named = items(count), iter(faults)
    api.asked.clear()
    api.reply = lambda asked: damaged(api, asked, records, size, next(named, "none"))
    pages = STYLES[style] | ({"size": size} if "size" in STYLES[style] else {})
    with tempfile.TemporaryDirectory() as folder:
        try:
            place, landed = pulled(api, Path(folder), pages=pages, total="meta.total")
        except (ContractError, SourceBusy) as error:
            event(f"refused: {type(error).__name__}")
            assert landed_in(Path(folder)) == []
            return
        event(f"landed, {'faults' if set(faults[: len(api.asked)]) - {'none'} else 'no fault'} on the way")
        assert landed.files == (1 if count else 0)
        assert (ids_of(place) if count else []) == list(range(1, count + 1))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.datetimes().map(str),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.slow
def test_whatever_an_api_answers_lands_or_is_refused_by_name() -> None:
    with serving() as api:
        any_answers(api)


@given(
    at=st.lists(st.sampled_from(["data", "items", "record", "id", "body", "published", "next", "total"]), max_size=2),
    value=JSON,
    times=st.sampled_from(["", "epoch", "%Y-%m-%d"]),
)
def any_answers(api: Api, at: list[str], value: Any, times: str) -> None:
    """A value of another type in a place, twice at most; the second pull asks since what the first has landed."""

    def reply(asked: Asked) -> Reply:
        body = page_of(api.address, Asked(0, asked.path, {}, {}, 0), items(3), 7).body
        records = body["data"]["items"]
        places = {"items": body["data"], "next": body["meta"], "total": body["meta"], "data": body}
        for name in at:
            if name == "record":
                records[1] = value
            else:
                places.get(name, records[0])[name] = value
        return Reply(body)

    api.reply = reply
    since = {"param": "since", "field": "published", "overlap": 1, "format": times}
    with tempfile.TemporaryDirectory() as folder:
        for hours in (0, 1):
            refusal = ""
            try:
                place, landed = pulled(api, Path(folder), hours=hours, total="meta.total", since=since)
            except ContractError as error:
                refusal = str(error)
            assert refusal.isprintable()
            if not refusal:
                assert len(ids_of(place)) == 3 if hours == 0 else landed.files < 2


@pytest.mark.slow
def test_increments_on_top_of_each_other_are_what_the_api_has() -> None:
    with serving() as api:
        any_changes(api)


CHANGE = st.tuples(st.integers(1, 12), st.sampled_from(["text", "gone"]), st.integers(0, 2))
"""An id, what happens to it, and the hours that pass before."""


@few_examples
@given(
    style=st.sampled_from(["cursor", "page", "link", "total"]),
    rounds=st.lists(st.lists(CHANGE, max_size=12), min_size=2, max_size=5),
)
def any_changes(api: Api, style: str, rounds: list[list[tuple[int, str, int]]]) -> None:
    held: dict[int, dict[str, Any]] = {}
    landed: dict[str, str] = {}
    clock = NOW - timedelta(days=30)

    def reply(asked: Asked) -> Reply:
        new = [record for record in held.values() if record["published"] >= asked.params.get("since", "")]
        return page_of(api.address, asked, sorted(new, key=lambda record: record["published"]), 3)

    api.reply = reply
    with tempfile.TemporaryDirectory() as folder:
        for number, changes in enumerate([[(99, "text", 0)], *rounds]):
            for at, (identifier, what, hours) in enumerate(changes):
                clock += timedelta(hours=hours)
                gone = what == "gone" and identifier in held
                text = {"text": f"Text {number} {at}", "lang": "en"}
                held.pop(identifier, None)
                held[identifier] = item(identifier, published=clock.isoformat(), body=text, gone=gone)
            since = {"param": "since", "field": "published"}
            place, _ = pulled(
                api, Path(folder), style, hours=number, since=since, deleted={"field": "gone"}, total="meta.total"
            )
            if place.exists():
                landed |= {row["id"]: row["text"] for row in rows_of(place)}
                for line in deleted_of(place):
                    landed.pop(line["id"], None)
            there = {str(one["id"]): one["body"]["text"] for one in held.values() if not one["gone"]}
            assert landed == there


# --- Killed at any moment -----------------------------------------------------------------------------------------

KILLED = """
import json, os, signal, sys
from datetime import UTC, datetime
from pathlib import Path
from refinery_sources import budget
from refinery_sources.budget import Rate
from refinery_sources.recipe import parse_source, pull_recipe
from refinery_sources.source import Flow
from refinery_sources.web import web

query, to, place, phase, number = sys.argv[1:]
budget.PLACE = Path(place)
left = int(number)

def count(happened):
    global left
    if happened == phase:
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(lambda event, _arguments: event == "os.rename" and count("renamed"))
recipe = parse_source({"source": {"api": json.loads(query)}, "workers": 2}, "news.yaml", {})
with web(Rate(1000.0), 2, backoff=0.001) as on:
    flow = Flow(on_bytes=lambda _name, _size: count("kept"))
    pull_recipe(recipe, to, Path(to, "spool"), on, datetime.now(UTC), flow)
"""

SPLIT = {"params": ["part"], "values": [1, 2, 3]}
PAGES = 27


def in_three_parts(api: Api) -> None:
    def reply(asked: Asked) -> Reply:
        start = 100 * int(asked.params["part"])
        records = [item(number, gone=number % 7 == 0) for number in range(start, start + 42)]
        return page_of(api.address, asked, records, 5)

    api.reply = reply


def killed(api: Api, to: Path, place: Path, phase: str, number: int) -> bool:
    """Pull in another process that is killed in a phase; return whether it was."""
    query = query_of(api, split=SPLIT, deleted={"field": "gone"}, total="meta.total")
    arguments = [sys.executable, "-c", KILLED, json.dumps(query), str(to), str(place), phase, str(number)]
    before = len(api.asked)
    with subprocess.Popen(arguments) as child:

        def fault(asked: Asked) -> Reply | None:
            if asked.number == before + number and phase in ("asked", "half sent"):
                os.kill(child.pid, signal.SIGKILL)
            return None

        api.fault = fault
        code = child.wait()
    assert code in (0, -signal.SIGKILL)
    return code != 0


def assert_exactly_once(api: Api, to: Path, deaths: int) -> None:
    [name] = landed_in(to)
    expected = [number for part in (1, 2, 3) for number in range(100 * part, 100 * part + 42)]
    assert ids_of(to / name) == [number for number in expected if number % 7]
    gone = [row["id"] for row in deleted_of(to / name)]
    assert sorted(gone) == [str(number) for number in expected if not number % 7]
    assert PAGES <= len(api.asked) <= PAGES + 2 * deaths  # of each of two workers a page may be under way
    assert len(list((to / name).iterdir())) == 5  # three parts, what is deleted, and snapshot.json


@pytest.mark.slow
@pytest.mark.parametrize(
    ("phase", "number"),
    [
        ("asked", 9),
        ("kept", 8),
        ("renamed", 1),
        *(
            pytest.param(*at, marks=pytest.mark.nightly)
            for at in (("asked", 0), ("kept", 1), ("kept", 15), ("renamed", 3))
        ),
    ],
)
def test_a_killed_pull_asks_for_no_page_again_that_it_has(
    api: Api, tmp_path: Path, budgets: Path, phase: str, number: int
) -> None:
    in_three_parts(api)
    assert killed(api, tmp_path, budgets, phase, number)
    assert not killed(api, tmp_path, budgets, "", 0)
    assert_exactly_once(api, tmp_path, 1)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(3))
def test_a_pull_that_is_killed_again_and_again_ends_with_each_record_once(
    api: Api, tmp_path: Path, budgets: Path, seed: int
) -> None:
    in_three_parts(api)
    chance, deaths = random.Random(seed), 0
    while not landed_in(tmp_path):
        deaths += killed(api, tmp_path, budgets, chance.choice(["asked", "kept", "renamed"]), chance.randrange(1, 4))
    assert deaths > 5
    assert_exactly_once(api, tmp_path, deaths)


def test_a_bucket_keeps_the_parts_that_are_complete_for_another_machine(api: Api, tmp_path: Path, s3_root: str) -> None:
    in_three_parts(api)
    query = query_of(api, split=SPLIT, deleted={"field": "gone"}, since={"param": "since", "field": "published"})
    recipe = parse_source({"source": {"api": query}, "workers": 1}, "news.yaml", {})
    api.fault = lambda asked: Reply(status=500) if asked.params.get("after") == "319" else None
    with on_loopback() as on, pytest.raises(SourceBusy, match="2 of 4 files are complete"):
        pull_recipe(recipe, s3_root, tmp_path / "one", on, NOW)
    asked, api.fault = len(api.asked), lambda _asked: None
    with on_loopback() as on:
        place, landed = pull_recipe(recipe, s3_root, tmp_path / "another", on, NOW + timedelta(hours=1))
    parts = [asked.params["part"] for asked in api.asked[asked:]]
    assert set(parts[:9]) == {"3"}  # and then the parts whose deletions only the other machine knew
    assert (landed.files, landed.found) == (3, 2)
    assert len(list_snapshot(place).files) == 3
    gone = connect(place).read("_deleted.jsonl").splitlines()
    assert len(gone) == 18
    api.reply = lambda asked: page_of(api.address, asked, [], 5)
    with on_loopback() as on:
        later, landed = pull_recipe(recipe, s3_root, tmp_path / "another", on, NOW + timedelta(hours=2))
    assert (landed.files, list(connect(later).list(""))) == (0, [])


# --- From an API to documents -------------------------------------------------------------------------------------

RECIPE = """
name: small
stages:
  ingest: {}
  extract: {min_chars: 20}
run: {partitions: 1}
gates: {}
"""

TEXTS = {
    "text": "The ferry number {0} crosses the river, & comes back, early in the morning and late in the evening, but for Sundays.",
    "html": "<p>The ferry number {0} crosses the <b>river</b> &amp; comes back</p><p>early in the morning and late in the "
    "evening, on all days but Sundays, when it stays here.",
}


@pytest.mark.slow
@pytest.mark.parametrize("target", TEXTS)
def test_what_an_api_gave_becomes_documents_with_its_fields(
    api: Api, tmp_path: Path, refinery: Refinery, target: str
) -> None:
    """A text of a field that has HTML goes through extraction, however short and open it is."""
    records = [item(number, body={target: TEXTS[target].format(number), "lang": "en"}) for number in range(1, 21)]
    api.reply = lambda asked: page_of(api.address, asked, records, 6)
    fields = {target: f"body.{target}", "url": "link", "date": "published"}
    place, _ = pulled(api, tmp_path / "landing", fields=fields, total="meta.total")
    root, recipe = str(tmp_path / "root"), tmp_path / "small.yaml"
    recipe.write_text(RECIPE)
    done = refinery("run", "--input", place, "--output", root, "--recipe", recipe, "--engine", "local")
    assert done.returncode == 0, done.stderr
    version = version_log.current(root, "small", place.name)
    shards = {stage: read_manifest(root, version.manifests[stage]).shards for stage in ("ingest", "extract")}
    kept = [
        text for batch in read_shards(root, shards["ingest"], ["metadata"]) for text in batch["metadata"].to_pylist()
    ]
    assert [json.loads(text)["body"] for text in kept] == [{"lang": "en"}] * 20
    rows = [row for batch in read_shards(root, shards["extract"]) for row in batch.to_pylist()]
    assert {row["record_id"] for row in rows} == {str(number) for number in range(1, 21)}
    for row in rows:
        number = int(row["record_id"])
        assert (row["url"], row["crawled_at"]) == (f"https://site.example/{number}", records[number - 1]["published"])
        assert f"The ferry number {number} crosses the river" in row["text"]
        assert "& comes back" in row["text"]
        assert "<" not in row["text"]
