"""A file or folder that a recipe names has one digest wherever it is, and is brought to this machine whole."""

import hashlib
import re
from pathlib import Path

import pytest

from pipeline_tasks.constraints import is_bucket
from pipeline_tasks.errors import DigestMismatch, RecipeError
from pipeline_tasks.store import files
from pipeline_tasks.store.storage import connect

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
