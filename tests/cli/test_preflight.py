"""All that would end a run is said before its first stage, together, by `run`, the first task of a DAG and `doctor`."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import NoSpace, NothingLanded, RecipeError, SnapshotIncomplete
from pipeline_tasks.inspect import preflight
from pipeline_tasks.inspect.preflight import Need, PlannedRun, findings, needs, refuse, space_findings
from pipeline_tasks.landing.listing import list_snapshot
from pipeline_tasks.recipe import load_recipe
from pipeline_tasks.service.handle import handle
from pipeline_tasks.service.requests.wire import decode
from pipeline_tasks.store import storage
from pipeline_tasks.store.s3 import store as s3_store
from pipeline_tasks.store.storage import absolute
from tests.chain import How, refined
from tests.faulty_s3 import FaultyS3

TINY = """
name: tiny
run: {engines: {ingest: local}}
stages:
  ingest: {}
  extract: {min_chars: 20}
  filter_language: {keep: [en], threshold: 0.1, model: MODEL}
  filter_url: {domains: LIST}
  dedup_exact: {buckets: 2}
"""


def written(folder: Path, text: str = TINY) -> str:
    (folder / "tiny.yaml").write_text(text)
    return str(folder / "tiny.yaml")


def crawl(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps({"text": "The ferry left the harbor before the fog had lifted."}) + "\n")
    return folder


def test_everything_that_is_wrong_is_said_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = written(tmp_path, TINY.replace("MODEL", "none.bin").replace("LIST", "none.txt"))
    (tmp_path / "root").write_text("a file")
    words = ["run", "--input", str(tmp_path / "crowl"), "--output", str(tmp_path / "root"), "--recipe", recipe]
    assert main([*words, "--override", "extrct=a", "--snapshot", "a/b"]) == RecipeError.exit_code
    said = capsys.readouterr().err
    assert "6 things to mend before the first stage" in said
    for thing in ("crowl does not exist", "none.bin", "none.txt", "root is a file", "extrct", "--snapshot must be"):
        assert thing in said
    assert (tmp_path / "root").read_text() == "a file"


def test_a_single_fault_keeps_its_class(tmp_path: Path) -> None:
    landing = crawl(tmp_path / "day", "a.jsonl")
    recipe = load_recipe(written(tmp_path, TINY.replace(", model: MODEL", "").replace("{domains: LIST}", "{}")))
    planned = PlannedRun(str(tmp_path / "root"), (recipe,), input=str(landing), fields={})
    assert findings(planned) == []
    with pytest.raises(NothingLanded, match="nowhere"):
        refuse(findings(PlannedRun(planned.root, (recipe,), input=str(tmp_path / "nowhere"), fields={})))
    (landing / "snapshot.json").write_text(
        json.dumps({"snapshot": "day", "files": [{"path": "b.jsonl", "bytes": 9, "sha256": ""}]})
    )
    with pytest.raises(SnapshotIncomplete, match=r"b\.jsonl"):
        refuse(findings(planned))


def test_two_policies_of_which_one_keeps_what_the_other_supersedes_are_said_before_the_first_stage(
    tmp_path: Path,
) -> None:
    landing = crawl(tmp_path / "day", "a.jsonl")
    (tmp_path / "model").mkdir()
    stages = ("embed: {model: model}", "dedup_minhash: {policy: [longest]}", "dedup_semantic: {}")
    text = TINY.replace(", model: MODEL", "").replace("{domains: LIST}", "{}")
    recipe = load_recipe(written(tmp_path, "\n  ".join([text.rstrip(), *stages]) + "\n"))
    planned = PlannedRun(str(tmp_path / "root"), (recipe,), input=str(landing), fields={})
    said = [finding.message for finding in findings(planned)]
    assert any("dedup_semantic: keeps documents by" in message for message in said)


def test_files_that_are_not_what_they_should_be_are_all_named(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(b"no model at all")
    (tmp_path / "list.txt").write_text("exa mple.org/path and words\n")
    text = TINY.replace("MODEL", str(tmp_path / "model.bin")).replace("LIST", str(tmp_path / "list.txt"))
    planned = PlannedRun(str(tmp_path / "root"), (load_recipe(written(tmp_path, text)),))
    said = [finding.message for finding in findings(planned)]
    assert len(said) == 2
    assert "tiny: filter_language: " in said[0]
    assert "tiny: filter_url: " in said[1]


@pytest.mark.parametrize("promised", [False, True])
def test_a_folder_of_days_is_one_snapshot_only_if_somebody_says_so(tmp_path: Path, *, promised: bool) -> None:
    landing = crawl(tmp_path / "crawl", "2026-11-19/a.jsonl", "2026-11-20/a.jsonl")
    if promised:
        files = [
            {"path": name, "bytes": (landing / name).stat().st_size, "sha256": ""}
            for name in ("2026-11-19/a.jsonl", "2026-11-20/a.jsonl")
        ]
        (landing / "snapshot.json").write_text(json.dumps({"snapshot": "all", "files": files}))
    planned = PlannedRun(str(tmp_path / "root"), input=str(landing), fields={})
    found = findings(planned)
    assert bool(found) != promised
    if found:
        with pytest.raises(RecipeError, match=f"--input {landing}/2026-11-19"):
            refuse(found)
        assert findings(PlannedRun(planned.root, input=str(landing), snapshot="all", fields={})) == []
    other = crawl(tmp_path / "other", "2026-11-19/a.jsonl", "part-1/a.jsonl")
    assert findings(PlannedRun(planned.root, input=str(other), fields={})) == []


def test_doctor_looks_at_what_a_run_would_refuse(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    landing = crawl(tmp_path / "day", "a.jsonl")
    recipe = written(tmp_path, TINY.replace(", model: MODEL", "").replace("LIST", "none.txt"))
    arguments = ["setup", "doctor", str(tmp_path / "root"), "--recipe", recipe, "--engine", "local"]
    assert main([*arguments, "--input", str(landing)]) == RecipeError.exit_code
    said = capsys.readouterr().out
    assert "FAIL  recipe" in said
    assert "none.txt" in said
    for area in ("input", "engines", "store", "space"):
        assert f"ok    {area}" in said
    assert main([*arguments, "--input", str(tmp_path / "crowl")]) == RecipeError.exit_code
    assert "FAIL  input" in capsys.readouterr().out


def test_the_first_task_of_a_run_refuses_the_same(tmp_path: Path) -> None:
    landing = crawl(tmp_path / "day", "a.jsonl")
    request: dict[str, Any] = {"verb": "preflight", "root": str(tmp_path / "root"), "recipe": "tiny"}
    steps = [
        {"stage": "ingest", "params": {}, "engine": "local"},
        {"stage": "extract", "params": {"min_chars": 20}, "engine": "local"},
        {"stage": "filter_url", "params": {"domains": str(tmp_path / "none.txt")}, "engine": "ray"},
    ]
    nowhere = {"ray": "ray://127.0.0.1:1"}
    with pytest.raises(RecipeError, match=r"2 things(?s:.*)none\.txt(?s:.*)127\.0\.0\.1:1|2 things") as refused:
        handle(decode({**request, "steps": steps, "landing": str(tmp_path / "x"), "addresses": nowhere}))
    assert f"{tmp_path / 'x'} does not exist" in str(refused.value)
    assert "127.0.0.1:1" in str(refused.value)
    assert "none.txt" not in str(refused.value), "its files may be on the cluster alone"
    assert handle(decode({**request, "steps": steps[:2], "landing": str(landing)})) == {"notes": []}
    assert not (tmp_path / "root").exists()


def test_a_store_that_commits_over_what_is_committed_is_refused(s3_root: str, faults: FaultyS3) -> None:
    s3_store._CONDITIONAL.clear()
    faults.coming = [("PUT", "no_condition")] * 9
    [fault] = findings(PlannedRun(s3_root))
    assert (fault.fault, fault.where, fault.error) == (True, preflight.STORE, RecipeError)
    assert "If-None-Match" in fault.message


def test_a_store_that_heeds_conditions_keeps_nothing_of_the_look(s3_root: str) -> None:
    assert findings(PlannedRun(s3_root)) == []
    assert findings(PlannedRun(s3_root)) == []
    assert list(storage.connect(s3_root).list("")) == []


# --- Space ----------------------------------------------------------------------------------------------------------


def test_what_a_run_is_told_to_need_is_what_it_stores_within_a_factor(tmp_path: Path) -> None:
    landing = tmp_path / "day"
    landing.mkdir()
    prose = [
        f"The ferry {n} of the morning left the harbor before the fog had lifted from pier {n % 97}. "
        for n in range(4000)
    ]
    for file in range(3):
        rows = [json.dumps({"text": "".join(prose[n : n + 20])}) for n in range(file, 4000, 9)]
        (landing / f"{file}.jsonl").write_text("\n".join(rows) + "\n")
    path = written(tmp_path, TINY.replace(", model: MODEL", "").replace("{domains: LIST}", "{}"))
    root = str(tmp_path / "root")
    planned = PlannedRun(root, (load_recipe(path),), input=str(landing), fields={})
    results, temporary = needs(planned, list_snapshot(str(landing)))
    refined(root, str(landing), How(recipe=path))
    stored = sum(file.stat().st_size for file in Path(root).rglob("*.parquet"))
    assert stored / 4 < results.bytes < stored * 8
    assert 0 < temporary.bytes < results.bytes


@pytest.mark.parametrize(
    ("free", "is_new", "found"),
    [(100, True, []), (99, True, [False]), (49, True, [True]), (49, False, [False])],
)
def test_a_run_that_cannot_fit_is_refused_and_one_that_may_not_is_warned(
    free: int, found: list[bool], *, is_new: bool
) -> None:
    together = [
        Need(Path("/a"), 60, "results", "name another root"),
        Need(Path("/b"), 40, "temporary files", "set TMPDIR"),
    ]
    said = list(space_findings(together, free, is_new=is_new))
    assert [finding.fault for finding in said] == found
    for finding in said:
        assert finding.error is NoSpace
        assert "/a" in finding.message
        assert "name another root, or set TMPDIR" in finding.message


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 64 KB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = shutil.which("mount")
    made = (
        mount
        and not subprocess.run([mount, "-t", "tmpfs", "-o", "size=64k", "none", str(place)], check=False).returncode
    )
    if not made:
        pytest.skip("needs a user who may mount a disk")
    yield place
    subprocess.run([str(shutil.which("umount")), str(place)], check=True)


def test_a_disk_that_is_too_small_is_named_before_anything_is_written(
    small_disk: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    landing = crawl(tmp_path / "day", "a.jsonl")
    (landing / "a.jsonl").write_text((landing / "a.jsonl").read_text() * 9000)
    words = ["run", "--input", str(landing), "--output", str(small_disk / "root"), "--engine", "local"]
    assert main(words) == NoSpace.exit_code
    assert str(small_disk) in capsys.readouterr().err
    assert list(small_disk.iterdir()) == []


@pytest.mark.parametrize("mistyped", ["s3:/bucket/x", "gs:/bucket/x", "AZ:/container", "s3//bucket/x"])
def test_a_mistyped_bucket_makes_no_folder_of_that_name(
    mistyped: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was made a path of this machine before a store looked at it, and refined into a folder `s3:`."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RecipeError, match=mistyped):
        storage.connect(absolute(mistyped))
    assert not [*tmp_path.iterdir()]
