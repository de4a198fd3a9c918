"""What is erased while others write: runs that hold what they read, a second erasure, and a run that is killed."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from refinery_rights import erase as erase_command
from refinery_rights.erasing import erasing
from refinery_rights.taking_down import take_down

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import ContractError, JobLost, Transient
from pipeline_tasks.inspect.verify.verification import verify
from pipeline_tasks.run.tasks import task
from pipeline_tasks.service.work import publication
from pipeline_tasks.store.erasures import erasures
from tests import erased_root
from tests.chain import reply
from tests.erased_root import DAYS, RECIPE, STEPS, ErasedRoot
from tests.root_search import search

pytestmark = pytest.mark.slow

SITE = "site1.example"


@pytest.fixture(scope="module")
def landed(tmp_path_factory: pytest.TempPathFactory) -> ErasedRoot:
    """Two days, of which the first is refined."""
    made = erased_root.land(tmp_path_factory.mktemp("meanwhile"))
    erased_root.refine(made, DAYS[0])
    return made


@pytest.fixture
def root(landed: ErasedRoot, tmp_path: Path) -> ErasedRoot:
    return ErasedRoot(Path(shutil.copytree(landed.folder, tmp_path / "copy")), landed.texts)


def erase(root: ErasedRoot, site: str = SITE) -> int:
    take_down(root.root, [("site", site)], "a letter")
    return main(["erase", root.root, "--by", "a steward"])


def left(root: ErasedRoot, site: str = SITE) -> dict[str, set[str]]:
    return search(Path(root.root), root.wanted(*(url for url in root.texts if f"//{site}/" in url)), ("tokenizers/",))


def problems(root: ErasedRoot) -> list[str]:
    return [problem.problem for problem in verify(root.root).findings.problems]


def held(patch: pytest.MonkeyPatch, stage: str, meanwhile: Callable[[], object], *, behind: bool) -> None:
    """Let something happen once between what a task of a stage has read and its commit: before or behind its write."""
    receipt, waiting = task._Split.receipt, [meanwhile]

    def held_receipt(split: Any, *words: Any) -> Any:
        happens = waiting.pop() if waiting and split._io.prefix.startswith(f"{stage}/") else None
        if happens and not behind:
            happens()
        stored = receipt(split, *words)
        if happens and behind:
            happens()
        return stored

    patch.setattr(task._Split, "receipt", held_receipt)


SHORT = (("ingest", True), ("extract", False), ("scrub_pii", True))
"""Each stage once, and each side of its write; the others are nightly."""


@pytest.mark.parametrize(
    ("stage", "behind"),
    [
        pytest.param(
            stage,
            behind,
            marks=() if (stage, behind) in SHORT else pytest.mark.nightly,
            id=f"{stage}-{'behind' if behind else 'before'} its write",
        )
        for stage in ("ingest", "extract", "scrub_pii")
        for behind in (False, True)
    ],
)
def test_a_run_that_read_a_document_before_its_erasure_does_not_commit_it(
    stage: str, root: ErasedRoot, monkeypatch: pytest.MonkeyPatch, *, behind: bool
) -> None:
    done: list[int] = []
    held(monkeypatch, stage, lambda: done.append(erase(root)), behind=behind)
    with pytest.raises(JobLost, match="erased while a task read them"):
        erased_root.refine(root, DAYS[1])
    assert done == [0], "the certificate was given"
    assert left(root) == {}
    erased_root.refine(root, DAYS[1])  # as its DAG run is started again
    assert left(root) == {}
    assert problems(root) == []


@pytest.mark.parametrize("before", [(), ("ingest",)], ids=["ingest", "extract"])
def test_a_run_that_landed_before_an_erasure_reads_no_landed_file_behind_it(
    before: tuple[str, ...], root: ErasedRoot
) -> None:
    """Its list of takedowns is that of its landing: the next try would write the document again."""
    named = {"root": root.root, "recipe": RECIPE, "snapshot": DAYS[1]}
    landing = str(root.folder / "landing" / DAYS[1])
    parent = reply("land", **named, input=landing)["manifest"]
    of = {**named, "landing": landing}
    for stage in before:
        parent = reply("refine", **of, stage=stage, params=STEPS[stage], parent=parent)["manifest"]
    assert erase(root) == 0
    stage = [*STEPS][len(before)]
    with pytest.raises(ContractError, match="Start the snapshot's run again from its landing"):
        reply("refine", **of, stage=stage, params=STEPS[stage], parent=parent)
    assert left(root) == {}


def test_what_a_killed_run_stored_behind_an_erasure_is_named_and_erased_by_the_next(
    root: ErasedRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed() -> None:
        raise KeyboardInterrupt

    held(monkeypatch, "extract", lambda: erase(root), behind=False)
    held(monkeypatch, "extract", killed, behind=True)
    with pytest.raises(KeyboardInterrupt):
        erased_root.refine(root, DAYS[1])
    assert left(root) != {}
    assert problems(root) == ["has a document that was erased"]
    assert main(["erase", root.root]) == 0
    assert left(root) == {}
    assert problems(root) == []


def test_a_report_that_is_written_while_documents_are_erased_is_not_published(
    root: ErasedRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_report, waiting = publication.write_report, [True]

    def written_before(contents: Any) -> Any:
        report = write_report(contents)
        if waiting:
            waiting.clear()
            assert erase(root) == 0
            Path(root.root, report.path).write_text("a report that a process had in memory")
        return report

    monkeypatch.setattr(publication, "write_report", written_before)
    with pytest.raises(JobLost, match="documents were erased while this report was written"):
        erased_root.refine(root, DAYS[1])
    assert erased_root.refine(root, DAYS[1])["version"] == 2
    assert "had in memory" not in str([path.read_bytes() for path in Path(root.root).rglob("report*")])


AT_ONCE = {
    "while it looks": (erase_command, "survey"),
    "before it erases": (erase_command, "erase"),
    "before it commits": (erasing, "commit"),
}


@pytest.mark.parametrize("moment", AT_ONCE)
def test_two_erasures_at_once(
    moment: str, root: ErasedRoot, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second raised FileNotFoundError, or put an object in force that the first had replaced already."""
    module, name = AT_ONCE[moment]
    waiting, original = [True], getattr(module, name)

    def behind_another(*words: Any, **named: Any) -> Any:
        if waiting and words[1:2] != ((),):  # a fence is no work
            waiting.clear()
            assert erase(root, "site2.example") == 0
        return original(*words, **named)

    monkeypatch.setattr(module, name, behind_another)
    assert erase(root) == 0
    assert capsys.readouterr().err == ""
    assert (left(root), left(root, "site2.example")) == ({}, {})
    assert problems(root) == []
    before = [each.before.path for entry in erasures(root.root) for each in entry.objects]
    assert len(before) == len(set(before))


def test_an_erasure_beside_one_that_does_not_end_is_tried_again_later(
    root: ErasedRoot, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def gone(*_: Any, **__: Any) -> Any:
        raise FileNotFoundError

    monkeypatch.setattr(erase_command, "survey", gone)
    assert erase(root) == Transient.exit_code
    assert "another erasure, expiry or vacuum works there; run this again" in capsys.readouterr().err
