"""A later process does not read a large file again, unless it has changed, or changed a moment ago."""

import os
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.store import known_digests, storage
from pipeline_tasks.store.known_digests import LARGE

BODY = b"model" * (LARGE // 5 + 1)


@pytest.fixture
def opened(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that were read; digests are kept in a folder where no other process of this user keeps any."""
    seen: list[str] = []
    before = storage.open_landed

    def noted(uri: str) -> Any:
        seen.append(uri)
        return before(uri)

    monkeypatch.setattr(storage, "open_landed", noted)
    monkeypatch.setattr(known_digests, "SETTLED", 0.0)
    folder = tmp_path_factory.mktemp("user")
    monkeypatch.setattr(known_digests, "user_folder", lambda: folder)
    return seen


def digest_in_a_new_process(uri: str) -> tuple[int, str]:
    storage._digest.cache_clear()
    return storage.digest_of_file(uri)


def stored(root: str, folder: Path, body: bytes) -> str:
    (folder / "body").write_bytes(body)
    storage.put_file(root, "models/model.bin", folder / "body")
    return f"{root}/models/model.bin"


def test_a_large_file_is_read_by_the_first_process_alone(any_root: str, tmp_path: Path, opened: list[str]) -> None:
    uri = stored(any_root, tmp_path, BODY)
    results = {digest_in_a_new_process(uri) for _ in range(3)}
    assert results == {(len(BODY), sha256(BODY).hexdigest())}
    assert opened == [uri]


def test_a_small_file_is_read_by_each(any_root: str, tmp_path: Path, opened: list[str]) -> None:
    uri = stored(any_root, tmp_path, b"small")
    results = {digest_in_a_new_process(uri) for _ in range(2)}
    assert results == {(5, sha256(b"small").hexdigest())}
    assert opened == [uri, uri]


def test_a_file_that_was_changed_in_place_with_its_times_is_read_again(tmp_path: Path, opened: list[str]) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(BODY)
    before = path.stat()
    digest_in_a_new_process(str(path))
    with path.open("r+b") as stream:
        stream.write(b"M")
    while path.stat().st_ctime_ns == before.st_ctime_ns:  # until the clock of the file system has moved on
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert digest_in_a_new_process(str(path))[1] == sha256(b"M" + BODY[1:]).hexdigest()
    assert opened == [str(path)] * 2


def test_a_file_that_has_just_changed_is_not_kept(
    tmp_path: Path, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_digests, "SETTLED", 3600.0)
    path = tmp_path / "model.bin"
    path.write_bytes(BODY)
    assert digest_in_a_new_process(str(path)) == digest_in_a_new_process(str(path))
    assert len(opened) == 2


@pytest.mark.parametrize("damage", [b"", b"nonsense", b"\xff 12", b"17 abc"])
def test_what_is_kept_and_damaged_is_not_believed(damage: bytes, tmp_path: Path, opened: list[str]) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(BODY)
    digest_in_a_new_process(str(path))
    (kept,) = (known_digests.user_folder() / "digests").iterdir()
    kept.write_bytes(damage)
    assert digest_in_a_new_process(str(path)) == (len(BODY), sha256(BODY).hexdigest())
    assert len(opened) == 2
