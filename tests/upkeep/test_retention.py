"""A policy takes away what is old, of each kind, and nothing that a live version or a reader needs."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from refinery_exports.described import Target
from refinery_exports.place import FILES
from refinery_exports.versions import export_in_root

from pipeline_tasks.cli.main import main
from pipeline_tasks.engines.each import HERE
from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.inspect.verify.verification import Scope, verify
from pipeline_tasks.publish.datasets.published_shards import named_files
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.published import read_published_file
from pipeline_tasks.sealed import path_of, seal
from pipeline_tasks.stage import Shard
from pipeline_tasks.store import storage
from pipeline_tasks.store.erasures import erasures
from pipeline_tasks.store.reading import read_manifest, read_shards
from pipeline_tasks.store.s3.store import S3Store
from pipeline_tasks.store.shards.rows import Facts, facts_of
from pipeline_tasks.upkeep.retention import plan as planning
from pipeline_tasks.upkeep.vacuum import DAY
from tests.chain import PROJECT
from tests.small_build import DATASET, build, copied, recipe
from tests.small_root import DAYS, RECIPE, STAGES, SmallRoot
from tests.upkeep.test_retention_policy import PRICES

pytestmark = pytest.mark.slow

KINDS: Mapping[str, Any] = {
    "rejects": {"expire_days": 90},
    "quarantine": {"expire_days": 60},
    "reports": {"expire_days": 365},
    "exports": {"expire_days": 90},
    "receipts": {"expire_days": 30},
    "cache": {"expire_days": 60},
}
YEARS = 800
CACHED = ("cache/score_quality/edu-1/one.json", "cache/score_quality/edu-1/44136fa355b3678a1146ad16f7e8649e.segment")


@pytest.fixture(scope="module")
def whole(small_root: SmallRoot, tmp_path_factory: pytest.TempPathFactory) -> SmallRoot:
    """A root with two versions of a dataset, each exported, and a cache: all of it two years old."""
    small = copied(small_root, tmp_path_factory.mktemp("retention"))
    for built in (recipe(), recipe(shuffle={"seed": 4, "buckets": 2})):
        build(small, built, judged=True)
        export_in_root(small.root, version_log.current(small.root, DATASET), Target("numpy"), HERE)
    segment = Shard(CACHED[1], 0, 2, hashlib.sha256(b"{}").hexdigest())
    for path, body in zip(CACHED, (seal(asdict(segment)), b"{}"), strict=True):
        storage.connect(small.root).create(path, body)
    age(small.root)
    return small


@pytest.fixture
def root(whole: SmallRoot, tmp_path: Path) -> str:
    return str(shutil.copytree(whole.root, tmp_path / "root"))


@pytest.fixture
def policy(tmp_path: Path) -> str:
    return write_policy(tmp_path, KINDS)


def write_policy(folder: Path, kinds: Mapping[str, Any], prices: Mapping[str, Any] = PRICES) -> str:
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump({"kinds": kinds, "prices": prices}))
    return str(path)


def age(root: str, days: float = YEARS) -> None:
    long_ago = time.time() - days * DAY
    for path in Path(root).rglob("*"):
        os.utime(path, (long_ago, long_ago))


def retention(root: str, policy: str, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["keep", "retention", root, "--policy", policy, "--json", "--by", "a test", *words]) == 0
    facts: dict[str, Any] = json.loads(capsys.readouterr().out)
    return facts


def digests(root: str) -> dict[str, str]:
    """SHA-256 of each object below a root, without the log of erasures and the ledger."""
    paths = [path for path in Path(root).rglob("*") if path.is_file() and path.suffix != ".sqlite"]
    named = {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
    return {path: digest for path, digest in named.items() if not path.startswith("erasures/")}


def problems(root: str) -> list[str]:
    return [str(problem) for problem in verify(root, Scope(full=True)).findings.problems]


def rejected(root: str, part: str, stage: str = "dedup_exact") -> list[dict[str, Any]]:
    manifest = read_manifest(root, version_log.current(root, RECIPE, DAYS[0]).manifests[stage])
    return [row for batch in read_shards(root, getattr(manifest, part)) for row in batch.to_pylist()]


def documents(root: str) -> list[dict[str, Any]]:
    versions = version_log.latest_by_snapshot(root, RECIPE)
    manifests = [read_manifest(root, version.refined) for version in versions]
    return [row for each in manifests for batch in read_shards(root, each.shards) for row in batch.to_pylist()]


def kinds_of(facts: Mapping[str, Any]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for step in facts["steps"]:
        found.setdefault(step["kind"], set()).add(step["path"])
    return found


def test_every_kind_expires_and_all_else_is_as_it_was(
    root: str, policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before, kept = digests(root), documents(root)
    facts = retention(root, policy, capsys, "--apply")
    found = kinds_of(facts)
    assert found.keys() == KINDS.keys()
    assert found["cache"] == set(CACHED)
    newest = tuple(version_log.current(root, name).prefix for name in (RECIPE, DATASET))
    assert any(path.startswith("publish/") for path in found["reports"])
    assert not [path for path in found["exports"] | found["reports"] if path.startswith(newest)]
    pages = {str(Path(path_of(each)).parent) for each in version_log.current(root, DATASET).verdicts.values()}
    assert len(pages) >= len(STAGES)
    assert not [path for path in found["reports"] if path.rpartition("/docs/")[0] in pages]
    logged = [each for entry in erasures(root) for each in entry.objects]
    came = {each.after.path: each.after.digest for each in logged if each.after}
    gone = {path for paths in found.values() for path in paths}
    assert digests(root) == {path: digest for path, digest in (before | came).items() if path not in gone}
    assert documents(root) == kept
    assert problems(root) == []
    assert retention(root, policy, capsys)["steps"] == []
    assert sum(each["freed"] for each in facts["kinds"]) > 0


def test_expired_rows_keep_their_place_and_reason(root: str, policy: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = [*rejected(root, "rejects"), *rejected(root, "rejects", "extract")]
    retention(root, policy, capsys, "--apply")
    after = [*rejected(root, "rejects"), *rejected(root, "rejects", "extract")]
    assert any(row["text"] for row in before)
    assert {(row["text"], row["url"]) for row in after} == {("", None)}
    place = ("snapshot", "file", "offset", "id", "reason", "chars")
    assert [[row[name] for name in place] for row in after] == [[row[name] for name in place] for row in before]
    assert main(["rejects", root, "--recipe", RECIPE, "--snapshot", DAYS[0], "--stage", "extract"]) == 0
    assert "have expired" in capsys.readouterr().err
    assert main(["rejects", root, "--recipe", RECIPE, "--snapshot", DAYS[0], "--stage", "dedup_minhash"]) == 0
    assert "have expired" not in capsys.readouterr().err, "its rows rest on those that it judged"


def test_a_dry_run_lists_the_same_and_changes_nothing(
    root: str, policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = digests(root)
    listed = retention(root, policy, capsys)
    assert digests(root) == before
    assert not Path(root, "erasures").exists()
    assert retention(root, policy, capsys, "--apply")["steps"] == listed["steps"]


def test_what_is_younger_than_its_days_stays(
    whole: SmallRoot, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = str(shutil.copytree(whole.root, tmp_path / "root"))
    policy = write_policy(tmp_path, KINDS)
    age(root, 59)
    assert kinds_of(retention(root, policy, capsys)).keys() == {"receipts"}
    age(root, 61)
    assert kinds_of(retention(root, policy, capsys)).keys() == {"receipts", "quarantine", "cache"}


def test_an_object_that_expired_is_named_where_it_is_read(
    root: str, policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    older = version_log.versions(root, RECIPE)[0]
    retention(root, policy, capsys, "--apply")
    report = older.file(older.report.rpartition("/")[2])
    with pytest.raises(ContractError, match="retention policy mine"):
        read_published_file(root, report)
    assert any("expired by the retention policy mine" in note for note in verify(root, Scope()).findings.notes)


def test_work_goes_on_after_an_expiry(
    whole: SmallRoot, policy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = copied(whole, tmp_path)
    age(small.root)
    retention(small.root, policy, capsys, "--apply")
    built = version_log.current(small.root, DATASET)
    assert build(small, recipe(shuffle={"seed": 4, "buckets": 2}), judged=True)["version"] == built.number
    build(small, recipe(shuffle={"seed": 5, "buckets": 2}))
    assert main(["keep", "vacuum", small.root, "--grace", "0", "--delete", "--limit", "1"]) == 0
    assert problems(small.root) == []


def test_a_takedown_is_erased_after_an_expiry(root: str, policy: str, capsys: pytest.CaptureFixture[str]) -> None:
    retention(root, policy, capsys, "--apply")
    url = documents(root)[0]["url"]
    why = ("--reason", "a letter", "--override", "takedown=a test", "--override", "pack=a test")
    assert main(["takedown", root, "--url", url, *why]) == 0
    assert main(["erase", root, "--override", "takedown=a test", "--override", "pack=a test"]) == 0
    assert problems(root) == []
    assert retention(root, policy, capsys, "--apply")["applied"]
    assert problems(root) == []


def test_an_export_that_a_kill_left_half_removed_goes(
    root: str, policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    older = version_log.versions(root, DATASET)[0]
    [listed] = Path(root, older.prefix, "exports").rglob(FILES)
    listed.unlink()
    retention(root, policy, capsys, "--apply")
    assert not [path for path in Path(root, older.prefix, "exports").rglob("*") if path.is_file()]


def test_receipts_of_work_in_progress_and_shared_ones_stay(
    root: str, policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    [manifest, *_] = sorted(Path(root).glob("extract/*/manifest.json"))
    manifest.unlink()
    going = {str(path.relative_to(root)) for path in (manifest.parent / "receipts").iterdir()}
    found = kinds_of(retention(root, policy, capsys))["receipts"]
    assert going
    assert not going & found
    assert not [path for path in found if "/shared-" in path]


def test_a_log_that_was_removed_stops_it(root: str, policy: str) -> None:
    shutil.rmtree(Path(root, "datasets", RECIPE))
    before = digests(root)
    assert main(["keep", "retention", root, "--policy", policy, "--apply"]) == ContractError.exit_code
    assert digests(root) == before


def test_a_disk_has_no_classes_and_says_so(root: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cold = {"cold_days": 30, "storage_class": "GLACIER_IR"}
    facts = retention(root, write_policy(tmp_path, {"intermediate": cold, "versions": cold}), capsys, "--apply")
    assert facts["steps"] == []
    assert {kind: "no storage classes" in reason for kind, reason in facts["idle"].items()} == {
        "intermediate": True,
        "versions": True,
    }


def test_a_change_of_class_makes_nothing_younger(root: str, policy: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A bucket gives what changed its class the time of the change."""
    older = version_log.versions(root, DATASET)[0]
    exported = [path for path in Path(root, older.prefix, "exports").rglob("*") if path.is_file()]
    rows = [path for part in ("rejects", "quarantine") for path in Path(root).glob(f"*/*/{part}/*.parquet")]
    listed = retention(root, policy, capsys)["steps"]
    for path in (*exported, *rows):
        if path.name != FILES:
            path.touch()
    assert retention(root, policy, capsys)["steps"] == listed


# --- Buckets ------------------------------------------------------------------------------------------------------


CHEAP: Mapping[str, Any] = {
    **PRICES,
    "classes": {"STANDARD": {"gb_month": 0.02}, "GLACIER_IR": {"gb_month": 0.004, "per_1000": 0.02}},
}


@pytest.fixture
def bucket(whole: SmallRoot, s3_root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The root in a bucket, whose clock is two years ahead."""
    monkeypatch.setenv("REFINERY_LEDGER", str(tmp_path / "ledger.sqlite"))
    for path in Path(whole.root).rglob("*"):
        if path.is_file() and path.suffix != ".sqlite":
            storage.put_file(s3_root, str(path.relative_to(whole.root)), path)
    monkeypatch.setattr(planning, "clock", lambda _: time.time() + YEARS * DAY)
    return s3_root


def classes(root: str) -> dict[str, str]:
    return {entry.path: entry.storage_class for entry in storage.connect(root).list("")}


def test_objects_go_to_a_colder_class_with_the_same_bytes(
    bucket: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Copies a root into a bucket: only there are classes."""
    cold = {"cold_days": 30, "storage_class": "GLACIER_IR"}
    policy = write_policy(tmp_path, {"intermediate": cold, "versions": cold, "exports": cold, "rejects": cold}, CHEAP)
    store = storage.connect(bucket)
    before = {path: store.read(path) for path in classes(bucket)}
    facts = retention(bucket, policy, capsys, "--apply")
    found = kinds_of(facts)
    assert found.keys() == {"intermediate", "versions", "exports", "rejects"}
    after = classes(bucket)
    going = {path for paths in found.values() for path in paths}
    assert {path for path, name in after.items() if name == "GLACIER_IR"} == going
    assert {path: store.read(path) for path in after} == before
    hot = {
        shard.path
        for version in version_log.latest_by_snapshot(bucket, RECIPE)
        for shard in read_manifest(bucket, version.refined).stored
    }
    history = {
        shard.path
        for stage in STAGES
        for shard in read_manifest(bucket, version_log.current(bucket, RECIPE).manifests[stage]).history_shards
    }
    published = {file.path for file in named_files(bucket, version_log.current(bucket, DATASET))}
    rejects = {path for path in found["rejects"] if "/rejects/" in path}
    assert not going - rejects & (hot - rejects | history | published)
    assert verify(bucket, Scope(full=True)).findings.problems == []
    assert retention(bucket, policy, capsys)["steps"] == []
    assert facts["kinds"][0]["fee"] > 0


def test_documents_and_what_they_rest_on_are_no_intermediate_shards(
    bucket: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cold = {"cold_days": 30, "storage_class": "GLACIER_IR"}
    found = kinds_of(retention(bucket, write_policy(tmp_path, {"intermediate": cold}, CHEAP), capsys))["intermediate"]
    refined = [read_manifest(bucket, version.refined) for version in version_log.versions(bucket, RECIPE)]
    below = {facts.below.path for each in refined for shard in each.shards if (facts := facts_in(bucket, shard.path))}
    assert below
    assert not found & (below | {shard.path for each in refined for shard in each.stored})


def facts_in(root: str, path: str) -> Facts | None:
    with storage.connect(root).open(path) as stream:
        return facts_of(pq.read_schema(stream))


def test_objects_that_would_cost_more_stay(bucket: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cold = {"cold_days": 30, "storage_class": "GLACIER_IR"}
    facts = retention(bucket, write_policy(tmp_path, {"intermediate": cold}), capsys)
    assert all(step["bytes"] >= 131072 and step["saving"] > 0 for step in facts["steps"])
    assert len(facts["steps"]) < len(classes(bucket))


def test_a_store_that_does_not_have_the_class_is_named(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(S3Store, "transition", lambda *_: "STANDARD")
    cold = {"cold_days": 30, "storage_class": "GLACIER_IR"}
    policy = write_policy(tmp_path, {"exports": cold}, CHEAP)
    assert main(["keep", "retention", bucket, "--policy", policy, "--apply"]) == RecipeError.exit_code


# --- Kills --------------------------------------------------------------------------------------------------------


def victim(root: str, *words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "tests.upkeep.retention_victim", root, *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=PROJECT, env=os.environ, check=False)


@pytest.fixture(scope="module")
def undisturbed(whole: SmallRoot, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, str], int, int]:
    """A policy, the objects after its application, and how many writes and removals that takes."""
    folder = tmp_path_factory.mktemp("undisturbed")
    policy = write_policy(folder, KINDS)
    done = replace(whole, root=str(shutil.copytree(whole.root, folder / "root")))
    printed = victim(done.root, policy)
    assert printed.returncode == 0, printed.stderr
    writes, removals = map(int, printed.stdout.split()[-2:])
    return policy, digests(done.root), writes, removals


MOMENTS = [
    ("write", "before", 0.2),
    ("write", "inside", 0.4),
    ("write", "after", 0.6),
    ("write", "before", 0.99),
    ("write", "inside", 0.99),
    ("removal", "before", 0.1),
    ("removal", "after", 0.2),
    ("removal", "before", 0.5),
    ("removal", "after", 0.9),
    ("removal", "before", 0.99),
]
SHORT = 3, 6


@pytest.mark.parametrize(
    "moment",
    [pytest.param(at, marks=() if rank in SHORT else pytest.mark.nightly) for rank, at in enumerate(MOMENTS)],
    ids=lambda moment: f"{moment[1]}-{moment[0]}-{moment[2]}",
)
def test_an_application_that_is_killed_is_finished_by_the_next(
    undisturbed: tuple[str, dict[str, str], int, int],
    moment: tuple[str, str, float],
    root: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    policy, expected, writes, removals = undisturbed
    what, when, share = moment
    at = int((writes if what == "write" else removals) * share)
    assert victim(root, policy, what, when, str(at)).returncode == -signal.SIGKILL
    assert problems(root) == [], "no reader misses anything"
    retention(root, policy, capsys, "--apply")
    left = digests(root)
    assert {
        path: digest for path, digest in left.items() if ".tmp-" not in path and not path.startswith("requests/")
    } == {path: digest for path, digest in expected.items() if not path.startswith("requests/")}
    assert problems(root) == []
    assert path_of(version_log.current(root, RECIPE).refined) in left
