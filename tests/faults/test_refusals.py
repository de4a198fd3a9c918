"""Bad input, as a user meets it: one paragraph that names the object, no stack trace, and the exit code of its error.

Each is refused in this process. Three are refused in a process of their own, too, one for each exit code: what ends a
process is the same for all. `refinery run` is refused by a gate in tests/dags/test_run.py, and stopped in test_kills.py.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import (
    ContractError,
    DigestMismatch,
    NothingLanded,
    RecipeError,
    RefineryError,
    SchemaBroken,
    SnapshotIncomplete,
    StorageBusy,
)
from pipeline_tasks.service import handle
from pipeline_tasks.store.reading import read_manifest
from tests.chain import command, program, reply
from tests.faulty_s3 import FaultyS3

pytestmark = pytest.mark.slow

PAGES = [
    {"url": f"https://example.org/{number}", "text": f"Page {number} tells of the harbor and its {number} ships. " * 9}
    for number in range(12)
]

Request = dict[str, Any]


@pytest.fixture(scope="module")
def landing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("landing") / "2026-11-20"
    folder.mkdir()
    (folder / "pages.jsonl").write_text("".join(json.dumps(page) + "\n" for page in PAGES))
    return folder


@pytest.fixture(scope="module")
def extracted(landing: Path, tmp_path_factory: pytest.TempPathFactory) -> Request:
    """A request to the stage after `extract`, in a root that is refined as far as that."""
    root = str(tmp_path_factory.mktemp("root"))
    landed = reply("land", root=root, input=str(landing))
    request = {"verb": "refine", "root": root, "landing": landed["landing"], "params": {}}
    parent = reply(**request, stage="ingest", parent=landed["manifest"])["manifest"]
    return {**request, "parent": reply(**request, stage="extract", parent=parent)["manifest"]}


@pytest.fixture(scope="module")
def scored(extracted: Request) -> Request:
    """As `extracted`, refined as far as `score_quality`."""
    parent = extracted["parent"]
    for stage in ("filter_language", "filter_quality", "dedup_exact", "dedup_minhash", "score_quality"):
        params = {"profiles": []} if stage == "filter_quality" else {}
        parent = reply(**extracted | {"stage": stage, "parent": parent, "params": params})["manifest"]
    return {**extracted, "parent": parent}


class Refused:
    """Requests and commands that must be refused, in this process."""

    def __init__(self, folder: Path, printed: "pytest.CaptureFixture[str]") -> None:
        self.folder, self.printed = folder, printed

    def request(self, request: object, kind: type[RefineryError], *names: str) -> None:
        """Answer a request: its reply and stderr have the error's class, and one paragraph with each of `names`."""
        path = self.folder / "request.json"
        path.write_text(json.dumps(request))
        self.printed.readouterr()
        assert handle.main([str(path)]) == kind.exit_code
        out, err = self.printed.readouterr()
        reply = json.loads(out)
        assert (reply["error"], reply["exit"]) == (kind.__name__, kind.exit_code)
        assert err == f"{kind.__name__}: {reply['message']}\n"
        require_paragraph(err, *names)

    def command(self, kind: type[RefineryError], *names: str, of: list[str]) -> None:
        """Run a command: it raises the error's class, and prints one paragraph with each of `names`."""
        with pytest.raises(RefineryError) as raised:
            main(["--debug", *of])
        assert type(raised.value) is kind
        self.printed.readouterr()
        assert main(of) == kind.exit_code
        err = self.printed.readouterr().err
        assert err == f"refinery: {raised.value}\n"
        require_paragraph(err, *names)


@pytest.fixture
def refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Refused:
    return Refused(tmp_path, capsys)


def require_paragraph(text: str, *names: str) -> None:
    assert "Traceback" not in text, text[-2000:]
    assert len(text.strip().splitlines()) == 1, text
    assert [name for name in names if name not in text] == []


# --- The process ----------------------------------------------------------------------------------------------


def test_a_refused_recipe_ends_its_process_with_78(landing: Path) -> None:
    ended = command("-m", "pipeline_tasks.cli", "run", "--input", str(landing), "--recipe", "web_eng")
    assert ended.returncode == RecipeError.exit_code == 78
    require_paragraph(ended.stderr, "'web_eng'", "'web_en'")


def test_damaged_data_ends_its_process_with_65(tampered: Request, tmp_path: Path) -> None:
    ended = program(tmp_path, tampered)
    assert ended.returncode == ContractError.exit_code == 65
    assert json.loads(ended.stdout)["error"] == DigestMismatch.__name__
    require_paragraph(ended.stderr, json.loads(ended.stdout)["message"])


def test_a_late_snapshot_ends_its_process_with_75(incomplete: Request, tmp_path: Path) -> None:
    ended = program(tmp_path, incomplete)
    assert ended.returncode == SnapshotIncomplete.exit_code == 75
    assert json.loads(ended.stdout)["error"] == SnapshotIncomplete.__name__
    require_paragraph(ended.stderr, json.loads(ended.stdout)["message"])


# --- The snapshot ---------------------------------------------------------------------------------------------


def test_missing_input(refused: Refused, tmp_path: Path) -> None:
    nowhere = str(tmp_path / "nowhere")
    refused.request({"verb": "land", "root": str(tmp_path / "root"), "input": nowhere}, NothingLanded, nowhere)


def test_empty_snapshot(refused: Refused, tmp_path: Path) -> None:
    day = tmp_path / "day"
    day.mkdir()
    (day / "notes.bin").write_text("nothing yet")
    refused.request({"verb": "land", "root": str(tmp_path / "root"), "input": str(day)}, NothingLanded, str(day))


@pytest.fixture
def incomplete(landing: Path, tmp_path: Path) -> Request:
    """A request to land a day of which a promised file is missing."""
    day = tmp_path / "day"
    shutil.copytree(landing, day)
    promised = [{"path": "more.jsonl", "bytes": 10, "sha256": "0" * 64}]
    (day / "snapshot.json").write_text(json.dumps({"snapshot": "day", "files": promised}))
    return {"verb": "land", "root": str(tmp_path / "root"), "input": str(day)}


def test_incomplete_snapshot(refused: Refused, incomplete: Request) -> None:
    refused.request(incomplete, SnapshotIncomplete, "more.jsonl")


# --- The recipe -----------------------------------------------------------------------------------------------


def test_unknown_key_of_a_stage(refused: Refused, extracted: Request) -> None:
    request = {**extracted, "stage": "filter_language", "params": {"treshold": 0.5}}
    refused.request(request, RecipeError, "filter_language", "'treshold'", "'threshold'")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("stages:\n  ingest: {}\n  extrakt: {}\n", ["'extrakt'", "'extract'"]),
        ("stages:\n  extract: {min_char: 3}\n", ["'min_char'", "'min_chars'"]),
        ("stages:\n  ingest: {}\nrun: {partition: 3}\n", ["'partition'", "'partitions'"]),
        ("stages: [ingest\n", ["YAML"]),
    ],
)
def test_invalid_recipe(text: str, names: list[str], refused: Refused, landing: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "mine.yaml"
    recipe.write_text(text)
    places = ["--input", str(landing), "--output", str(tmp_path / "root")]
    refused.command(RecipeError, recipe.name, *names, of=["run", *places, "--recipe", str(recipe)])


def test_unknown_recipe(refused: Refused, landing: Path) -> None:
    refused.command(RecipeError, "'web_eng'", "'web_en'", of=["run", "--input", str(landing), "--recipe", "web_eng"])


def text_file(folder: Path) -> str:
    path = folder / "model.bin"
    path.write_text("this is no model\n" * 20)
    return str(path)


def binary_file(folder: Path) -> str:
    path = folder / "list.jsonl"
    path.write_bytes(bytes(range(256)) * 20)
    return str(path)


@pytest.mark.parametrize(
    ("stage", "params", "make"),
    [
        ("filter_language", lambda path: {"model": path}, text_file),
        (
            "score_quality",
            lambda path: {"classifiers": {"mine": {"model": path, "label": "good"}}, "weights": {"mine": 1}},
            text_file,
        ),
        ("decontaminate", lambda path: {"benchmarks": {"mine": path}}, binary_file),
        ("tokenize", lambda path: {"tokenizer": path}, text_file),
        ("filter_url", lambda path: {"domains": path}, binary_file),
    ],
)
def test_unreadable_model(
    stage: str,
    params: Callable[[str], object],
    make: Callable[[Path], str],
    refused: Refused,
    scored: Request,
    tmp_path: Path,
) -> None:
    path = make(tmp_path)
    refused.request({**scored, "stage": stage, "params": params(path)}, RecipeError, path)


def test_missing_model(refused: Refused, extracted: Request, tmp_path: Path) -> None:
    path = str(tmp_path / "none.ftz")
    refused.request({**extracted, "stage": "filter_language", "params": {"model": path}}, RecipeError, path)


# --- The machine ----------------------------------------------------------------------------------------------


@pytest.fixture
def on_spark(extracted: Request) -> Request:
    """A request to a Spark of this machine that no other test has started in this process."""
    where = {"engine": "spark", "address": "local[3]"}
    return {**extracted, **where, "stage": "filter_language", "params": {"threshold": 0.1}}


def test_no_java(refused: Refused, on_spark: Request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    refused.request(on_spark, RecipeError, "Java 17", "openjdk-17")


def test_java_home_without_java(
    refused: Refused, on_spark: Request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    refused.request(on_spark, RecipeError, "Java 17", f"JAVA_HOME={tmp_path}")


def test_java_that_does_not_run(
    refused: Refused, on_spark: Request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\nexit 1\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    refused.request(on_spark, RecipeError, "Java 17", str(java))


def test_wrong_credentials(refused: Refused, landing: Path, s3_root: str, faults: FaultyS3) -> None:
    faults.coming.append(("PUT", (403, "InvalidAccessKeyId")))
    request = {"verb": "land", "root": s3_root, "input": str(landing)}
    refused.request(request, RecipeError, s3_root, "AWS_ACCESS_KEY_ID")
    assert faults.coming == []


def test_unreachable_store(
    refused: Refused, landing: Path, s3_root: str, closed_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{closed_port}")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    refused.request({"verb": "land", "root": s3_root, "input": str(landing)}, StorageBusy, s3_root)


# --- The data -------------------------------------------------------------------------------------------------


@pytest.fixture
def tampered(extracted: Request, tmp_path: Path) -> Request:
    """A request to refine shards of which one was changed."""
    root = tmp_path / "root"
    shutil.copytree(extracted["root"], root)
    shard = shard_of({**extracted, "root": str(root)})
    body = bytearray(shard.read_bytes())
    body[len(body) // 2] ^= 1
    shard.chmod(0o644)
    shard.write_bytes(body)
    return {**extracted, "root": str(root), "stage": "filter_language", "params": {"threshold": 0.2}}


def shard_of(request: Request) -> Path:
    """The first shard of a request's parent."""
    return Path(request["root"], read_manifest(request["root"], request["parent"]).shards[0].path)


def test_tampered_shard(refused: Refused, tampered: Request) -> None:
    refused.request(tampered, DigestMismatch, shard_of(tampered).name)


def test_missing_parent(refused: Refused, extracted: Request) -> None:
    parent = "extract/none/manifest.json"
    refused.request({**extracted, "stage": "filter_language", "parent": parent}, RecipeError, parent)


def test_stages_in_the_wrong_order(refused: Refused, extracted: Request) -> None:
    refused.request({**extracted, "stage": "shuffle"}, SchemaBroken, "shuffle")


@pytest.mark.parametrize(
    ("request_", "name"),
    [({"verb": "refin"}, "'refin'"), ({"verb": "land", "root": "somewhere"}, "input"), (["land"], '["land"]')],
)
def test_invalid_request(request_: object, name: str, refused: Refused) -> None:
    refused.request(request_, RecipeError, name)


@pytest.mark.parametrize("body", [None, "this is no JSON"])
def test_unreadable_request(body: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.json"
    if body is not None:
        path.write_text(body)
    assert handle.main([str(path)]) == RecipeError.exit_code
    require_paragraph(capsys.readouterr().err, "RecipeError", str(path))


@pytest.mark.parametrize("option", [["--engine", "flink"], ["--partitions", "1025"], ["--partitions", "-1"]])
def test_invalid_option_of_run(
    option: list[str], landing: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["run", "--input", str(landing), "--output", str(tmp_path), *option])
    assert ended.value.code == 2
    assert f"argument {option[0]}: " in (printed := capsys.readouterr().err)
    assert option[1] in printed.rpartition("argument ")[2]


@pytest.mark.parametrize(
    "arguments", [["status"], ["look funnel"], ["verify"], ["look report"], ["look trace", "--random", "1"]]
)
def test_nothing_is_published(arguments: list[str], refused: Refused, tmp_path: Path) -> None:
    refused.command(RecipeError, str(tmp_path), of=[*arguments[0].split(), str(tmp_path), *arguments[1:]])
