"""The overview has the state of every snapshot, and reads one summary of each instead of its manifests."""

import shutil
from pathlib import Path

import pytest

from pipeline_tasks.inspect.versions.overview import Overview, overviews
from pipeline_tasks.inspect.versions.staleness import stale_versions
from pipeline_tasks.ledger import Ledger, ledger_of
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.report import summary
from pipeline_tasks.store.local_store import LocalStore
from tests.small_root import DAYS, RECIPE, SmallRoot


@pytest.fixture
def root(small_root: SmallRoot, tmp_path: Path) -> str:
    summary.forget()
    return str(shutil.copytree(small_root.root, tmp_path / "root"))


def only(root: str) -> Overview:
    [overview] = overviews(root)
    return overview


def states(root: str) -> dict[str, str]:
    return {snapshot.snapshot: snapshot.state for snapshot in only(root).snapshots}


def test_states_follow_from_the_log_and_the_verdicts(root: str) -> None:
    known = states(root)
    assert list(known) == list(DAYS)
    overridden = summary.read_summary(root, version_log.current(root, RECIPE, DAYS[0])).overrides
    assert known[DAYS[0]] == ("approved" if overridden else "published")
    assert known[DAYS[2]] == "retracted"
    [retracted] = [snapshot for snapshot in only(root).snapshots if snapshot.state == "retracted"]
    assert f"refinery retract --undo {DAYS[2]}" in retracted.next_step
    assert only(root).stages[-1] == "dedup_minhash"


def test_a_snapshot_is_stale_after_an_earlier_one_is_retracted(root: str) -> None:
    version_log.retract(root, RECIPE, DAYS[0], "a test")
    [stale] = stale_versions(root, version_log.latest_by_snapshot(root, RECIPE))
    [shown] = [snapshot for snapshot in only(root).snapshots if snapshot.state == "stale"]
    assert (shown.snapshot, stale.version.snapshot) == (DAYS[1], DAYS[1])
    assert stale.stage in shown.next_step


def test_a_refused_snapshot_that_was_never_published_is_shown(root: str) -> None:
    """The ledger has its verdict; the log of versions knows nothing of it."""
    from dataclasses import replace

    from pipeline_tasks.gate.verdicts import read_verdict
    from pipeline_tasks.sealed import path_of
    from pipeline_tasks.store.reading import read_manifest

    version = version_log.current(root, RECIPE, DAYS[0])
    path = version.manifests["extract"]
    refused = replace(read_verdict(root, version.verdicts["extract"]), outcome="refuse", path="extract/x/verdict.json")
    with Ledger.open(ledger_of(root)) as ledger:
        ledger.record_stage(path_of(path), read_manifest(root, path), snapshot="2026-11-25", recipe=RECIPE)
        ledger.record_verdict(refused, snapshot="2026-11-25", recipe=RECIPE)
    assert states(root)["2026-11-25"] == "refused"


def test_an_overview_reads_one_object_of_each_version_and_none_twice(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the old code it read every manifest and verdict of every version, each time."""
    read: list[str] = []
    original = LocalStore.read

    def counted(store: LocalStore, path: str) -> bytes:
        read.append(path)
        return original(store, path)

    monkeypatch.setattr(LocalStore, "read", counted)
    first = only(root)
    live = len(version_log.latest_by_snapshot(root, RECIPE))
    manifests = [path for path in read if path.endswith(("manifest.json", "verdict.json"))]
    assert len(manifests) <= live, "what landed late is looked for, with one manifest of a snapshot"
    assert all(path.startswith("land/") for path in manifests)
    assert sum("/summaries/" in path for path in read) == live
    read.clear()
    assert only(root) == first
    assert not [path for path in read if "/summaries/" in path or path.endswith("manifest.json")]


def test_an_empty_root_has_no_overview(tmp_path: Path) -> None:
    assert overviews(str(tmp_path)) == []
