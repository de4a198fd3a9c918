"""The ways to heal that `refinery verify` names, followed to the letter; and a log that was rewritten as a whole."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import ContractError
from pipeline_tasks.inspect.verify.verification import report_facts, verify
from pipeline_tasks.publish.datasets.tokenizer_pin import pin_path
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.sealed import SEAL, path_of, seal, sha256
from pipeline_tasks.store.log_chain import entry_path, head_body, head_path
from pipeline_tasks.store.reading import read_manifest
from tests import small_build
from tests.chain import reply
from tests.mutations import objects
from tests.small_root import DAYS, RECIPE, SmallRoot, refine

pytestmark = pytest.mark.slow

DAY = DAYS[1]


@pytest.fixture
def root(small_root: SmallRoot, tmp_path: Path) -> SmallRoot:
    return replace(small_root, root=str(shutil.copytree(small_root.root, tmp_path / "root")))


def flip(path: Path) -> None:
    body = bytearray(path.read_bytes())
    body[len(body) // 2] ^= 0x10
    path.write_bytes(bytes(body))


def the_problem(root: SmallRoot, path: Path) -> str:
    """The way to heal the one problem, which is of the object at `path`."""
    (problem,) = verify(root.root).findings.problems
    assert problem.object == str(path)
    return problem.heal


def stage_object(root: SmallRoot, stage: str, part: str) -> Path:
    """An object of a stage of the day: its manifest, or a shard of a part of it."""
    path = path_of(version_log.current(root.root, RECIPE, DAY).manifests[stage])
    if part == "manifest":
        return Path(root.root, path)
    manifest = read_manifest(root.root, path)
    shards = manifest.history_shards if part == "history" else getattr(manifest, part)
    return Path(root.root, shards[0].path)


@pytest.mark.parametrize(
    ("stage", "part"),
    [
        ("ingest", "quarantine"),
        ("ingest", "history"),
        ("extract", "rejects"),
        ("dedup_exact", "history"),
        ("dedup_minhash", "shards"),
        ("extract", "manifest"),
        ("ingest", "manifest"),
        ("dedup_minhash", "manifest"),
    ],
)
def test_the_way_to_heal_is_true(stage: str, part: str, root: SmallRoot) -> None:
    path = stage_object(root, stage, part)
    manifest = stage_object(root, stage, "manifest")
    before = path.read_bytes()
    flip(path)
    heal = the_problem(root, path)
    assert "remove it" in heal
    assert f"run snapshot {DAY} of recipe {RECIPE} again" in heal
    path.unlink()
    if part != "manifest":
        assert f"{manifest} and partitions/ beside that" in heal
        manifest.unlink()
        shutil.rmtree(manifest.parent / "partitions", ignore_errors=True)
    refine(root, DAY)
    assert path.read_bytes() == before
    assert verify(root.root).findings.problems == []


def test_a_published_file_is_written_anew(root: SmallRoot) -> None:
    path = Path(root.root, version_log.current(root.root, RECIPE, DAY).prefix, "superseded.parquet")
    before = path.read_bytes()
    flip(path)
    assert the_problem(root, path) == f"run snapshot {DAY} of recipe {RECIPE} again: publishing writes it anew"
    refine(root, DAY)
    assert path.read_bytes() == before
    assert verify(root.root).findings.problems == []


@pytest.mark.parametrize("name", ["verdict.json", "docs/index.html", "report"])
def test_a_verdict_or_report_is_made_again_and_published(name: str, root: SmallRoot) -> None:
    version = version_log.current(root.root, RECIPE, DAY)
    path = Path(root.root, version.report)
    if name != "report":
        path = Path(root.root, path_of(version.verdicts["extract"])).parent / name
    flip(path)
    heal = the_problem(root, path)
    if name != "report":
        folder = str(path).partition("/gate/")[0] + "/gate"
        assert f"remove the folder {folder} and run snapshot {DAY}" in heal
        shutil.rmtree(folder)
    refine(root, DAY)
    assert verify(root.root).findings.problems == []


@pytest.mark.parametrize("kind", ["compaction", "compacted segment", "partition", "receipt"])
def test_what_is_a_copy_is_removed(kind: str, root: SmallRoot) -> None:
    path = objects(root)[kind][0]
    flip(path)
    heal = the_problem(root, path)
    if kind.startswith("compact"):
        folder = path.parents[1] if path.parent.name == "data" else path.parent
        assert f"remove the folder {folder}:" in heal
        shutil.rmtree(folder)
    else:
        assert heal.startswith("remove ")
        path.unlink()
    assert verify(root.root).findings.problems == []


def test_a_head_is_stored_again(root: SmallRoot) -> None:
    path = objects(root)["log head"][1]
    flip(path)
    digest = the_problem(root, path).partition("there: ")[2].partition(" ")[0]
    path.write_text(f"{digest}\n")
    assert verify(root.root).findings.problems == []


def test_a_missing_pin_is_made_anew_by_a_build(root: SmallRoot, tmp_path: Path) -> None:
    """Before, the advice was to remove the file that is missing. The recipe names its tokenizer: now the published one."""
    small_build.build(root)
    path = Path(root.root, pin_path(small_build.DATASET))
    path.unlink()
    heal = the_problem(root, path)
    assert heal.startswith("restore it from a backup; without one, build corpus again")
    published = Path(heal.rpartition("let it name ")[2].removesuffix(" first"))
    own = replace(root, landing=tmp_path / "own" / "landing")
    Path(own.tokenizer).parent.mkdir()
    shutil.copy(published, own.tokenizer)
    small_build.build(own)
    assert path.exists()
    assert verify(root.root).findings.problems == []


def test_a_rewritten_log_is_found_by_its_archived_head(root: SmallRoot, capsys: pytest.CaptureFixture[str]) -> None:
    head = report_facts(verify(root.root))["heads"][RECIPE]["sha256"]
    assert main(["verify", root.root, "--fast", "--head", head]) == 0
    previous = ""
    for number in range(1, 5):
        path = Path(root.root, entry_path(RECIPE, number))
        raw = json.loads(path.read_bytes())
        del raw[SEAL]
        edited = {"reason": "none"} if number == 4 else {}
        path.write_bytes(seal({**raw, "previous": previous, **edited}))
        previous = sha256(path.read_bytes())
        Path(root.root, head_path(RECIPE, number)).write_bytes(head_body(previous))
    assert [problem.object for problem in verify(root.root).findings.problems] == [
        f"{root.root}/{entry_path(RECIPE, 4)}"
    ]
    Path(root.root, "ledger.sqlite").unlink()
    assert verify(root.root).findings.problems == [], "consistent in itself, and no ledger knows the entries of before"
    assert main(["verify", root.root, "--fast", "--head", head]) == ContractError.exit_code
    assert "no log has the archived head" in capsys.readouterr().out


def test_a_cut_log_is_found_by_its_archived_head(root: SmallRoot) -> None:
    head = report_facts(verify(root.root))["heads"][RECIPE]["sha256"]
    Path(root.root, entry_path(RECIPE, 4)).unlink()
    assert main(["verify", root.root, "--fast"]) == ContractError.exit_code, "its head is still there"
    Path(root.root, head_path(RECIPE, 4)).unlink()
    assert main(["verify", root.root, "--fast"]) == ContractError.exit_code, "the ledger knows it"
    Path(root.root, "ledger.sqlite").unlink()
    assert main(["verify", root.root, "--fast"]) == 0
    assert main(["verify", root.root, "--fast", "--head", head]) == ContractError.exit_code


def test_nothing_published_is_no_success(root: SmallRoot, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(Path(root.root, "datasets"))
    assert main(["verify", root.root]) == ContractError.exit_code, "the ledger knows that versions were published"
    Path(root.root, "ledger.sqlite").unlink()
    assert main(["verify", root.root]) == 78
    assert "nothing has been published there" in capsys.readouterr().err


def test_the_request_of_the_maintenance_dag_fails_with_the_problems(root: SmallRoot) -> None:
    assert reply("verify", root=root.root)["problems"] == []
    path = Path(root.root, version_log.current(root.root, RECIPE, DAY).prefix, "superseded.parquet")
    flip(path)
    with pytest.raises(ContractError, match=re.escape(str(path))):
        reply("verify", root=root.root)
