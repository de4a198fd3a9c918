"""A file or folder that a recipe names has one digest wherever it is, and is brought to this machine whole."""

import ast
import hashlib
import re
from pathlib import Path

import pytest

from pipeline_tasks.constraints import is_bucket
from pipeline_tasks.errors import DigestMismatch, MachineFailed, RecipeError
from pipeline_tasks.store import files
from pipeline_tasks.store.storage import connect
from tests.embedded import PROJECT

MODEL = {"config.json": b"{}", "weights/part-1.bin": b"one", "weights/part-2.bin": b"two"}


@pytest.fixture(autouse=True)
def _with_a_cache_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def put(root: str, bodies: dict[str, bytes]) -> str:
    """Put the files of a folder `model` into a root; return the URI of the folder."""
    for name, body in bodies.items():
        connect(root).create(f"model/{name}", body)
    return f"{root}/model"


def read(folder: str) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()
    }


def test_a_folder_has_the_digest_of_its_names_and_bytes(any_root: str, tmp_path: Path) -> None:
    uri = put(any_root, MODEL)
    expected = hashlib.sha256(
        "".join(f"{name} {hashlib.sha256(MODEL[name]).hexdigest()}\n" for name in sorted(MODEL)).encode()
    ).hexdigest()
    assert files.digest_of_named(uri) == expected
    others = [{**MODEL, "config.json": b"[]"}, {**MODEL, "more": b""}, dict(list(MODEL.items())[1:])]
    digests = {files.digest_of_named(put(str(tmp_path / str(number)), one)) for number, one in enumerate(others)}
    assert len(digests - {expected}) == 3


def test_hidden_files_are_no_part_of_a_folder(any_root: str, tmp_path: Path) -> None:
    uri = put(any_root, {**MODEL, ".cache/lock": b"x", "weights/.part": b"y"})
    assert files.digest_of_named(uri) == files.digest_of_named(put(str(tmp_path / "plain"), MODEL))


def test_a_file_has_the_digest_of_its_bytes(any_root: str) -> None:
    uri = put(any_root, {"one.bin": b"one"})
    assert files.digest_of_named(f"{uri}/one.bin") == hashlib.sha256(b"one").hexdigest()
    local = files.localize(f"{uri}/one.bin", hashlib.sha256(b"one").hexdigest())
    assert Path(local).read_bytes() == b"one"


def test_a_folder_is_brought_to_this_machine_and_again_from_its_copy(any_root: str) -> None:
    uri = put(any_root, MODEL)
    digest = files.digest_of_named(uri)
    copies = {files.localize(uri, digest) for _ in range(2)}
    (copy,) = copies
    assert read(copy) == MODEL
    assert (copy == uri) == (not is_bucket(uri))
    assert files.localize(f"file://{copy}", digest) == copy


PARTS = {"model.bin": b"weights", "model.json": b"{}", "model": b"no suffix", "deep/model.bin": b"other"}


@pytest.mark.parametrize("damage", ["changed", "cut", "removed", "added"])
def test_a_copy_is_believed_by_its_digest_and_mended(any_root: str, damage: str) -> None:
    uri = put(any_root, PARTS)
    digest = files.digest_of_named(uri)
    copy = Path(files.localize(uri, digest))
    if not is_bucket(uri):
        return
    if damage == "added":
        (copy / "more.bin").write_bytes(b"more")
    elif damage == "removed":
        (copy / "model.bin").unlink()
    else:
        (copy / "model.bin").write_bytes(b"WEIGHTS" if damage == "changed" else b"")
    assert read(files.localize(uri, digest)) == PARTS


def hub_cache(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the hub, without a network: a model of one small and one large file; returns the folder of blobs."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(place))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    model = place / "models--owner--name"
    blobs, snapshot = model / "blobs", model / "snapshots" / ("a" * 40)
    for folder in (blobs, snapshot):
        folder.mkdir(parents=True)
    small = hashlib.sha1(b"blob 2\0{}", usedforsecurity=False).hexdigest()
    large = hashlib.sha256(b"weights").hexdigest()
    for name, blob, body in (("config.json", small, b"{}"), ("model.bin", large, b"weights")):
        (blobs / blob).write_bytes(body)
        (snapshot / name).symlink_to(blobs / blob)
    return blobs


def test_a_file_in_the_cache_of_the_hub_is_what_the_hub_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blobs, uri = hub_cache(tmp_path / "hub", monkeypatch), f"hf://owner/name@{'a' * 40}"
    assert read(files.localize(uri, files.digest_of_named(uri))) == {"config.json": b"{}", "model.bin": b"weights"}
    for blob in blobs.iterdir():
        body = blob.read_bytes()
        blob.write_bytes(body[:-1])
        with pytest.raises(MachineFailed, match=re.escape(str(blob))):
            files.digest_of_named(uri)
        blob.write_bytes(body)


def test_no_cached_file_is_believed_because_it_exists() -> None:
    """Whoever has a place for what is kept on this machine does not ask there whether something exists."""
    cached, askers = set(), set()
    for module in (path for folder in ("pipeline_tasks", "plugins") for path in (PROJECT / folder).rglob("*.py")):
        for function in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(function, ast.FunctionDef) and module.name not in ("temporary.py", "session.py"):
                called = {ast.unparse(call.func) for call in ast.walk(function) if isinstance(call, ast.Call)}
                if any(name.endswith("user_folder") for name in called):
                    cached.add(function.name)
                    names = {name.rpartition(".")[2] for name in called}
                    askers |= {f"{module.stem}.{function.name}"} if names & {"exists", "lexists"} else set()
    assert {"localize", "_kept"} <= cached
    assert not askers


def test_a_folder_that_changed_since_it_was_planned_is_not_used(any_root: str) -> None:
    uri = put(any_root, MODEL)
    digest = files.digest_of_named(uri)
    connect(any_root).create("model/more.bin", b"more")
    with pytest.raises(DigestMismatch, match=re.escape(f"{uri}: ")):
        files.localize(uri, digest)


def test_what_is_not_there_is_a_file_that_is_missing(any_root: str) -> None:
    put(any_root, MODEL)
    with pytest.raises(FileNotFoundError):
        files.digest_of_named(f"{any_root}/other")


@pytest.mark.parametrize("commit", ["", "@main", f"@{'a' * 39}", f"@{'a' * 41}", f"@{'A' * 40}"])
def test_a_model_of_the_hub_without_a_commit_is_refused(commit: str) -> None:
    for call in (files.digest_of_named, lambda uri: files.localize(uri, "ab" * 32)):
        with pytest.raises(RecipeError, match=re.escape(f"hf://owner/name{commit} ")):
            call(f"hf://owner/name{commit}")
