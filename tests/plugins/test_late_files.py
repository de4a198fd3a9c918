"""Files that come after their snapshot was refined are named until a rerun takes them."""

import logging
import shutil
from pathlib import Path

import pytest

from pipeline_tasks.inspect.versions.late_files import late_files
from pipeline_tasks.inspect.versions.overview import overview_of
from pipeline_tasks.publish.logs import version_log
from tests.airflow_server import archive_of
from tests.chain import reply
from tests.commands import Refinery

DAY, RECIPE = "2026-11-19", "web"


@pytest.fixture(autouse=True, scope="module")
def _imported() -> None:
    import refinery_airflow.tasks.arrivals  # noqa: F401 -- Airflow configures logging when it is first imported


def publish(root: str, landing: Path, sample: float = 1.0) -> str:
    """Publish a day of two stages as the DAG does; return what its publication says of late files."""
    about = {"root": root, "recipe": RECIPE, "snapshot": DAY}
    landed = reply("land", **about, input=str(landing), sample=sample)
    manifests, verdicts, parent = {"land": landed["manifest"]}, {}, landed["manifest"]
    for stage in ("ingest", "extract"):
        request = {"stage": stage, "params": {}, "parent": parent, "landing": landed["landing"]}
        parent = manifests[stage] = reply("refine", **about, **request)["manifest"]
        verdicts[stage] = reply("judge", **about, manifest=parent, override="a test")["verdict"]
    published = reply("publish", **about, landing=landed["landing"], manifests=manifests, verdicts=verdicts)
    late: str = published["late"]
    return late


def test_files_that_come_late_are_named_until_a_rerun_takes_them(
    tmp_path: Path, refinery: Refinery, caplog: pytest.LogCaptureFixture
) -> None:
    """They were never refined, and nothing named them."""
    from refinery_airflow.tasks.arrivals import log_late

    root, landing = str(tmp_path / "root"), tmp_path / "landing" / DAY
    landing.mkdir(parents=True)
    (landing / "a.warc.gz").write_bytes(archive_of(0))
    assert publish(root, landing) == ""
    assert late_files(root, version_log.latest_by_snapshot(root, RECIPE)) == {}
    (landing / "b.warc.gz").write_bytes(archive_of(1))
    late = late_files(root, version_log.latest_by_snapshot(root, RECIPE))
    assert late == {DAY: ["b.warc.gz"]}
    with caplog.at_level(logging.WARNING, logger="refinery"):
        log_late("refine", RECIPE, root)
    status = refinery("status", root, "--recipe", RECIPE)
    [state] = overview_of(root, RECIPE).snapshots
    for said in (caplog.text, status.stdout, state.next_step):
        assert "1 file came after it was refined (b.warc.gz): run it again" in said
    assert publish(root, landing) == ""
    [newest] = version_log.latest_by_snapshot(root, RECIPE)
    assert (newest.number, late_files(root, [newest])) == (2, {})
    shutil.rmtree(landing)
    assert late_files(root, [newest]) == {}, "a landing that was cleaned accuses nobody"


def test_what_a_trial_leaves_out_did_not_come_late(tmp_path: Path, refinery: Refinery) -> None:
    root, landing = str(tmp_path / "root"), tmp_path / "landing" / DAY
    landing.mkdir(parents=True)
    for number, name in enumerate("abcd"):
        (landing / f"{name}.warc.gz").write_bytes(archive_of(number))
    assert publish(root, landing, sample=0.3) == ""
    [trial] = version_log.latest_by_snapshot(root, RECIPE)
    assert late_files(root, [trial]) == {}
    assert "came after" not in refinery("status", root, "--recipe", RECIPE).stdout
