"""Receipts of tasks: the first that can be believed stays, and what they counted is in the manifest."""

import pickle
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline_tasks.engines.local import LocalEngine
from pipeline_tasks.errors import DeterminismViolation
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.run.runner import refine
from pipeline_tasks.run.tasks.task import Receipt, StageIO, commit_receipt, load_receipt, stored_receipt
from pipeline_tasks.run.tracker import Tracker
from pipeline_tasks.store import storage
from pipeline_tasks.text.base.tables import unchanged
from tests.refining import commit_parent
from tests.toys import table

pytestmark = pytest.mark.usefixtures("toys")


@pytest.fixture
def receipts(tmp_path: Path) -> list[tuple[str, Receipt]]:
    """The receipts of a stage that ran over two shards, each with the stage's prefix."""
    parent = commit_parent(tmp_path, [table(0, 40), table(40, 25)])
    refine(RefineRequest(str(tmp_path), "toy_map", {}, parent), LocalEngine)
    paths = sorted(tmp_path.glob("toy_map/*/receipts/*.json"))
    prefixes = [str(path.parents[1].relative_to(tmp_path)) for path in paths]
    return [(prefix, load_receipt(path.read_bytes())) for prefix, path in zip(prefixes, paths, strict=True)]


def test_the_same_receipt_is_committed_again_and_another_is_refused(
    tmp_path: Path, receipts: list[tuple[str, Receipt]]
) -> None:
    store = storage.connect(str(tmp_path))
    assert len(receipts) == 2
    for prefix, receipt in receipts:
        commit_receipt(store, prefix, receipt)
        with pytest.raises(DeterminismViolation, match=receipt.key):
            commit_receipt(store, prefix, replace(receipt, tally={"toy_map:third": 1}))
        assert stored_receipt(store, prefix, receipt.key) == receipt


def test_a_receipt_that_cannot_be_believed_is_replaced(tmp_path: Path, receipts: list[tuple[str, Receipt]]) -> None:
    store = storage.connect(str(tmp_path))
    prefix, receipt = receipts[0]
    path = tmp_path / prefix / "receipts" / f"{receipt.key}.json"
    path.write_bytes(path.read_bytes()[:-1])
    assert stored_receipt(store, prefix, receipt.key) is None
    commit_receipt(store, prefix, receipt)
    assert stored_receipt(store, prefix, receipt.key) == receipt


@pytest.mark.parametrize("asked", ["create", "size"])
def test_a_receipt_that_another_attempt_removes_between_two_requests_is_no_fault(
    tmp_path: Path, receipts: list[tuple[str, Receipt]], monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    """Four tasks of one driver that did the same work met the end of the first, which removes its receipts."""
    store, (prefix, receipt) = storage.connect(str(tmp_path)), receipts[0]
    path = tmp_path / prefix / "receipts" / f"{receipt.key}.json"
    answers = getattr(type(store), asked)

    def answer_and_remove(*arguments: object) -> object:
        answered = answers(*arguments)
        path.unlink()
        monkeypatch.undo()
        return answered

    monkeypatch.setattr(type(store), asked, answer_and_remove)
    assert stored_receipt(store, prefix, receipt.key) == receipt
    assert commit_receipt(store, prefix, receipt) == receipt
    assert stored_receipt(store, prefix, receipt.key) == receipt


def test_the_manifest_profiles_kept_and_rejected_rows(tmp_path: Path) -> None:
    parent = commit_parent(tmp_path, [table(0, 40), table(40, 25)])
    _, manifest, _ = refine(RefineRequest(str(tmp_path), "toy_map", {}, parent), LocalEngine)
    rejected, quarantined = sum(manifest.rejected.values()), sum(manifest.quarantined.values())
    assert rejected
    assert max(column["count"] for column in manifest.metrics["kept"].values()) == manifest.rows  # the rest are null
    assert max(column["count"] for column in manifest.metrics["rejects"].values()) == rejected + quarantined


def test_receipts_that_workers_send_share_columns_and_names(receipts: list[tuple[str, Receipt]]) -> None:
    """A driver has one of each task: 10,000 of them must not have 10,000 copies of each name."""
    (_, receipt), *_ = receipts
    first, second = (pickle.loads(pickle.dumps(receipt)) for _ in range(2))
    assert first == second == receipt
    assert first.schema is second.schema
    assert [id(name) for name in first.kept_profile] == [id(name) for name in second.kept_profile]
    bins = [[*column["bins"]] for column in (first.kept_profile | second.kept_profile).values()]
    assert [name for names in bins for name in names if name is not sys.intern(name)] == []
    assert any(bins)


def test_no_rows_have_no_bucket(tmp_path: Path) -> None:
    on = LocalEngine(Tracker(StageIO(str(tmp_path), "toy_group/f")))
    assert on.group(unchanged, (), by="id", buckets=3) == ()
    assert on.tracker.ran == 0
