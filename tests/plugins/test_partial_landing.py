"""A snapshot may be refined without a few promised files, if its recipe says so; each of them is named until it is in."""

import gzip
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.errors import RecipeError, SnapshotIncomplete
from pipeline_tasks.inspect.versions.overview import overview_of
from pipeline_tasks.landing.arrival import COMPLETE, INCOMPLETE, arrival_of
from pipeline_tasks.landing.landed import missing_of
from pipeline_tasks.landing.listing import list_snapshot
from pipeline_tasks.ledger import Ledger, ledger_of
from pipeline_tasks.ledger.rebuilding import rebuild
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.recipe import parse_recipe
from pipeline_tasks.store.reading import read_manifest
from tests.airflow_server import archive_of
from tests.chain import reply
from tests.commands import Refinery

DAY, RECIPE = "2026-11-19", "web"
LACKED = "segments/2/warc/d.warc.gz"


@pytest.fixture(autouse=True, scope="module")
def _imported() -> None:
    import refinery_airflow.tasks.arrivals  # noqa: F401 -- Airflow configures logging when it is first imported


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    """A day of which a list promises four files, and three are there."""
    folder = tmp_path / "landing" / DAY
    folder.mkdir(parents=True)
    names = [*(f"segments/1/warc/{name}.warc.gz" for name in "abc"), LACKED]
    (folder / "warc.paths.gz").write_bytes(gzip.compress("\n".join(names).encode()))
    for number, name in enumerate("abc"):
        (folder / f"{name}.warc.gz").write_bytes(archive_of(number))
    return folder


def publish(root: str, landing: Path, accept: float = 1.0) -> dict[str, Any]:
    """Publish a day of two stages as the DAG does; return what its landing says."""
    about = {"root": root, "recipe": RECIPE, "snapshot": DAY}
    landed = reply("land", **about, input=str(landing), accept=accept)
    manifests, verdicts, parent = {"land": landed["manifest"]}, {}, landed["manifest"]
    for stage in ("ingest", "extract"):
        request = {"stage": stage, "params": {}, "parent": parent, "landing": landed["landing"]}
        parent = manifests[stage] = reply("refine", **about, **request)["manifest"]
        verdicts[stage] = reply("judge", **about, manifest=parent, override="a test")["verdict"]
    reply("publish", **about, landing=landed["landing"], manifests=manifests, verdicts=verdicts)
    return dict(landed)


def test_by_default_and_below_the_share_nothing_is_refined(landing: Path, tmp_path: Path) -> None:
    for accept in (1.0, 0.76):
        with pytest.raises(SnapshotIncomplete, match=LACKED):
            list_snapshot(str(landing), accept=accept)
        with pytest.raises(SnapshotIncomplete):
            publish(str(tmp_path / "root"), landing, accept)
    for name in "abc":
        (landing / f"{name}.warc.gz").unlink()
    with pytest.raises(SnapshotIncomplete):
        list_snapshot(str(landing), accept=0.01)


def test_what_was_lacked_is_named_everywhere_until_a_rerun_takes_it(
    landing: Path, tmp_path: Path, refinery: Refinery
) -> None:
    root = str(tmp_path / "root")
    landed = publish(root, landing, 0.75)
    assert (landed["missing"], landed["files"]) == ([LACKED], 3)
    [version] = version_log.latest_by_snapshot(root, RECIPE)
    assert missing_of(read_manifest(root, version.manifests["land"])) == (LACKED,)
    status = refinery("status", root, "--recipe", RECIPE)
    [state] = overview_of(root, RECIPE).snapshots
    for said in (status.stdout, state.next_step):
        assert f"1 promised file had not landed whole: {LACKED}" in said
    assert rows_of_ledger(root) == [LACKED]
    rebuild(root, ledger_of(root))
    assert rows_of_ledger(root) == [LACKED]
    (landing / "d.warc.gz").write_bytes(archive_of(3))
    [state] = overview_of(root, RECIPE).snapshots
    assert "1 file came after it was refined (d.warc.gz)" in state.next_step
    assert publish(root, landing, 0.75)["missing"] == []
    [state] = overview_of(root, RECIPE).snapshots
    assert (state.versions, state.next_step) == (2, "")
    whole = tmp_path / "whole"
    publish(str(whole), landing)
    newest, other = (version_log.current(str(place), RECIPE, DAY) for place in (root, whole))
    assert newest.manifests == other.manifests, "what is accepted is no part of what a whole snapshot is"


def rows_of_ledger(root: str) -> list[str]:
    with Ledger.open(ledger_of(root)) as ledger:
        return [str(row["file"]) for row in ledger._database.run("SELECT file FROM missing_files", {})]


def test_a_file_of_another_size_than_promised_is_lacked(tmp_path: Path) -> None:
    files = [{"path": f"{name}.jsonl", "bytes": 3, "sha256": ""} for name in "ab"]
    (tmp_path / "snapshot.json").write_text(json.dumps({"snapshot": DAY, "files": files}))
    (tmp_path / "a.jsonl").write_text("{}\n")
    (tmp_path / "b.jsonl").write_text("{")
    listing = list_snapshot(str(tmp_path), accept=0.5)
    assert ([name for name, _, _ in listing.files], listing.missing) == (["a.jsonl"], ("b.jsonl",))


def test_an_unfinished_pull_is_never_a_part(tmp_path: Path) -> None:
    (tmp_path / ".pull").mkdir()
    (tmp_path / ".pull" / "query.json").write_text("{}")
    (tmp_path / "a.jsonl").write_text('{"text": "x"}\n')
    with pytest.raises(SnapshotIncomplete, match="pull"):
        list_snapshot(str(tmp_path), accept=0.01)


def test_a_part_is_waited_for_until_nothing_changes(landing: Path) -> None:
    from refinery_airflow.tasks.sensor import is_whole

    assert arrival_of(str(landing)).state == INCOMPLETE
    arrival = arrival_of(str(landing), 0.75)
    assert (arrival.state, LACKED in arrival.detail) == (COMPLETE, True)
    assert not is_whole(arrival, 600)
    assert is_whole(arrival, 0)
    (landing / "d.warc.gz").write_bytes(archive_of(3))
    whole = arrival_of(str(landing), 0.75)
    assert (whole.settling, is_whole(whole, 600)) == ("", True)


def test_arrivals_starts_a_part_only_for_a_recipe_that_accepts_it(
    landing: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from refinery_airflow.tasks.arrivals import Look

    from tests.plugins.test_refinery_arrivals import context, started

    caplog.set_level(logging.INFO, logger="refinery")
    for accept, expected in ((1.0, []), (0.75, [f"arrival__{DAY}"])):
        look = Look(task_id="look", dags={"refine": RECIPE}, backlog={RECIPE: 0}, accept={RECIPE: accept})
        assert started(look.execute(context(tmp_path))) == expected
    assert [line for line in caplog.messages if LACKED in line and "complete" in line]


def test_a_recipe_says_which_share_is_enough() -> None:
    stages = {"ingest": {}, "extract": {}}
    assert parse_recipe({"stages": stages}, "own.yaml").accept_partial == 1.0
    assert parse_recipe({"stages": stages, "accept_partial": 0.98}, "own.yaml").accept_partial == 0.98
    for wrong in (0, 1.5, "most"):
        with pytest.raises(RecipeError, match="accept_partial"):
            parse_recipe({"stages": stages, "accept_partial": wrong}, "own.yaml")
