"""Bad input, as a user meets it: one paragraph with the way out, no stack trace, and the exit code that it deserves."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.errors import ContractError, RecipeError, Transient
from pipeline_tasks.store.reading import read_manifest
from tests.chain import command, program, reply
from tests.faulty_s3 import FaultyS3, faulty_s3
from tests.s3_server import S3Server, free_port

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


def refused(folder: Path, request: Request, code: int, *words: str, **environment: str) -> None:
    """Answer a request in its own process; it must be refused in one paragraph that contains all of `words`."""
    process = program(folder, request, **environment)
    assert process.returncode == code, process.stderr[-2000:]
    reply = json.loads(process.stdout)
    assert reply["exit"] == code
    one_paragraph(process.stderr, reply["message"], *words)


def one_paragraph(text: str, *phrases: str) -> None:
    assert "Traceback" not in text, text[-2000:]
    assert len(text.strip().splitlines()) == 1, text
    for phrase in phrases:
        assert phrase in text


# --- The snapshot ---------------------------------------------------------------------------------------------


def test_missing_input(tmp_path: Path) -> None:
    nowhere = str(tmp_path / "nowhere")
    refused(
        tmp_path,
        {"verb": "land", "root": str(tmp_path / "root"), "input": nowhere},
        RecipeError.exit_code,
        nowhere,
        "does not exist; name a folder",
    )


def test_empty_snapshot(tmp_path: Path) -> None:
    (tmp_path / "day").mkdir()
    (tmp_path / "day" / "notes.txt").write_text("nothing yet")
    request = {"verb": "land", "root": str(tmp_path / "root"), "input": str(tmp_path / "day")}
    refused(tmp_path, request, RecipeError.exit_code, "an empty snapshot")


def test_incomplete_snapshot(landing: Path, tmp_path: Path) -> None:
    day = tmp_path / "day"
    shutil.copytree(landing, day)
    promised = [{"path": "more.jsonl", "bytes": 10, "sha256": "0" * 64}]
    (day / "snapshot.json").write_text(json.dumps({"snapshot": "day", "files": promised}))
    request = {"verb": "land", "root": str(tmp_path / "root"), "input": str(day)}
    refused(tmp_path, request, Transient.exit_code, "more.jsonl", "wait until the snapshot has landed")


# --- The recipe -----------------------------------------------------------------------------------------------


def test_unknown_key_of_a_stage(extracted: Request, tmp_path: Path) -> None:
    request = {**extracted, "stage": "filter_language", "params": {"treshold": 0.5}}
    refused(tmp_path, request, RecipeError.exit_code, "unknown key 'treshold'", "did you mean 'threshold'?")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("stages:\n  ingest: {}\n  extrakt: {}\n", "did you mean 'extract'?"),
        ("stages:\n  extract: {min_char: 3}\n", "did you mean 'min_chars'?"),
        ("stages:\n  ingest: {}\nrun: {partition: 3}\n", "did you mean 'partitions'?"),
        ("stages: [ingest\n", "is not YAML"),
    ],
)
def test_invalid_recipe(text: str, message: str, landing: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(text)
    process = command(
        "-m", "pipeline_tasks.cli", "run", "--input", str(landing), "--output", str(tmp_path / "root"),
        "--recipe", str(tmp_path / "mine.yaml"),
    )  # fmt: skip
    assert process.returncode == RecipeError.exit_code, process.stderr[-2000:]
    assert "Traceback" not in process.stderr
    assert message in process.stderr
    assert "mine.yaml" in process.stderr


def test_unknown_recipe(landing: Path, tmp_path: Path) -> None:
    process = command("-m", "pipeline_tasks.cli", "run", "--input", str(landing), "--recipe", "web_eng")
    assert process.returncode == RecipeError.exit_code
    one_paragraph(process.stderr, "no recipe 'web_eng'", "did you mean 'web_en'?")


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
            lambda path: {"classifiers": {"mine": path}, "labels": {"mine": "good"}, "weights": {"mine": 1}},
            text_file,
        ),
        ("decontaminate", lambda path: {"benchmarks": {"mine": path}}, binary_file),
        ("tokenize", lambda path: {"tokenizer": path}, text_file),
        ("filter_url", lambda path: {"domains": path}, binary_file),
    ],
)
def test_unreadable_model(
    stage: str, params: Callable[[str], object], make: Callable[[Path], str], scored: Request, tmp_path: Path
) -> None:
    path = make(tmp_path)
    refused(tmp_path, {**scored, "stage": stage, "params": params(path)}, RecipeError.exit_code, path)


def test_missing_model(extracted: Request, tmp_path: Path) -> None:
    path = str(tmp_path / "none.ftz")
    request = {**extracted, "stage": "filter_language", "params": {"model": path}}
    refused(tmp_path, request, RecipeError.exit_code, path, "correct the path")


# --- The machine ----------------------------------------------------------------------------------------------


def test_no_java(extracted: Request, tmp_path: Path) -> None:
    request = {**extracted, "stage": "filter_language", "params": {"threshold": 0.1}, "engine": "spark"}
    code = RecipeError.exit_code
    refused(tmp_path, request, code, "Spark needs Java 17", "openjdk-17", PATH=str(tmp_path), JAVA_HOME="")


def test_java_home_without_java(extracted: Request, tmp_path: Path) -> None:
    request = {**extracted, "stage": "filter_language", "params": {"threshold": 0.1}, "engine": "spark"}
    home = str(tmp_path)
    refused(tmp_path, request, RecipeError.exit_code, f"JAVA_HOME={home} has no", JAVA_HOME=home)


def test_java_that_does_not_run(extracted: Request, tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\nexit 1\n")
    java.chmod(0o755)
    process = program(
        tmp_path,
        {**extracted, "stage": "filter_language", "params": {"threshold": 0.1}, "engine": "spark"},
        JAVA_HOME=str(tmp_path),
    )
    assert process.returncode == RecipeError.exit_code, process.stderr[-2000:]
    assert "Traceback" not in process.stderr
    assert "does not run. Spark needs Java 17" in process.stderr


@pytest.fixture
def faults(s3_root: str, s3_server: S3Server) -> Iterator[FaultyS3]:
    """A proxy in front of the S3 server that refuses the requests that a test names."""
    with faulty_s3(s3_server.endpoint) as proxy:
        yield proxy


def test_wrong_credentials(landing: Path, s3_root: str, faults: FaultyS3, tmp_path: Path) -> None:
    faults.coming.append(("PUT", (403, "InvalidAccessKeyId")))
    request = {"verb": "land", "root": s3_root, "input": str(landing)}
    refused(
        tmp_path,
        request,
        RecipeError.exit_code,
        "refused the credentials",
        "AWS_ACCESS_KEY_ID",
        AWS_ENDPOINT_URL=faults.endpoint,
    )


def test_unreachable_store(landing: Path, s3_root: str, tmp_path: Path) -> None:
    endpoint = f"http://127.0.0.1:{free_port()}"
    request = {"verb": "land", "root": s3_root, "input": str(landing)}
    code = Transient.exit_code
    refused(tmp_path, request, code, "did not answer", AWS_ENDPOINT_URL=endpoint, AWS_MAX_ATTEMPTS="1")


# --- The data -------------------------------------------------------------------------------------------------


def test_tampered_shard(extracted: Request, tmp_path: Path) -> None:
    root = tmp_path / "root"
    shutil.copytree(extracted["root"], root)
    shard = root / read_manifest(str(root), extracted["parent"]).shards[0].path
    body = bytearray(shard.read_bytes())
    body[len(body) // 2] ^= 1
    shard.chmod(0o644)
    shard.write_bytes(body)
    request = {**extracted, "root": str(root), "stage": "filter_language", "params": {"threshold": 0.2}}
    refused(tmp_path, request, ContractError.exit_code, shard.name)


def test_missing_parent(extracted: Request, tmp_path: Path) -> None:
    request = {**extracted, "stage": "filter_language", "parent": "extract/none/manifest.json"}
    refused(tmp_path, request, RecipeError.exit_code, "extract/none/manifest.json", "no such manifest")


def test_stages_in_the_wrong_order(extracted: Request, tmp_path: Path) -> None:
    request = {**extracted, "stage": "shuffle"}
    refused(tmp_path, request, ContractError.exit_code, "shuffle reads columns", "put the stage that writes them")


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"verb": "refin"}, "unknown verb 'refin'"),
        ({"verb": "land", "root": "somewhere"}, "the request to land: input is required"),
        (["land"], "is not a JSON object"),
    ],
)
def test_invalid_request(request_: object, message: str, tmp_path: Path) -> None:
    process = program(tmp_path, request_)
    assert process.returncode == RecipeError.exit_code
    one_paragraph(process.stderr, message)


def test_unreadable_request(tmp_path: Path) -> None:
    for path, message in ((tmp_path / "none.json", "no such request"), (Path(text_file(tmp_path)), "is not JSON")):
        process = command("-m", "pipeline_tasks", str(path))
        assert process.returncode == RecipeError.exit_code
        one_paragraph(process.stderr, str(path), message)


@pytest.mark.parametrize("option", [["--engine", "flink"], ["--partitions", "1025"], ["--partitions", "-1"]])
def test_invalid_option_of_run(option: list[str], landing: Path, tmp_path: Path) -> None:
    process = command("-m", "pipeline_tasks.cli", "run", "--input", str(landing), "--output", str(tmp_path), *option)
    assert process.returncode == 2
    assert "Traceback" not in process.stderr
    assert f"argument {option[0]}: " in process.stderr
    assert option[1] in process.stderr


@pytest.mark.parametrize("arguments", [["status"], ["funnel"], ["verify"], ["report"], ["trace", "--random", "1"]])
def test_nothing_is_published(arguments: list[str], tmp_path: Path) -> None:
    process = command("-m", "pipeline_tasks.cli", arguments[0], str(tmp_path), *arguments[1:])
    assert process.returncode == RecipeError.exit_code
    one_paragraph(process.stderr, str(tmp_path), "been published", "refinery run")
