"""A dataset is loaded by its name and version, from a folder or from S3, or by the folder of a version as before."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.store import storage
from pipeline_tasks.store.log_chain import append, dataset_log, entry_path, read_chain
from pipeline_tasks.testing.training_dataset import write_dataset
from pipeline_tasks.training.dataset import TokenDataset
from pipeline_tasks.training.named import folder_of

ENTRIES: tuple[Mapping[str, Any], ...] = (
    *({"prefix": f"publish/{name}", "manifests": {"compose": "c"}} for name in ("first", "second", "third")),
    {"retracts": [3], "reason": "spam"},
)


def logged(root: str, entries: Iterable[Mapping[str, Any]] = ENTRIES) -> str:
    """Return the root, with the entries in the log of `corpus`."""
    log = dataset_log("corpus")
    for number, fields in enumerate(entries, 1):
        assert append(root, log, read_chain(root, log), {"number": number, "recipe": "corpus", **fields})
    return root


@pytest.fixture(params=["a folder", "S3"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return logged(str(tmp_path) if request.param == "a folder" else request.getfixturevalue("s3_root"))


@pytest.mark.parametrize(
    ("version", "folder"),
    [("1", "first"), ("2", "second"), ("0002", "second"), ("3", "third"), ("latest", "second")],
)
def test_a_version_is_found_by_its_number_and_the_newest_that_is_not_retracted(
    version: str, folder: str, root: str
) -> None:
    assert folder_of(f"{root}/corpus@{version}") == f"{root}/publish/{folder}"
    assert folder_of(f"{root}/corpus@{version}/") == f"{root}/publish/{folder}"


@pytest.mark.parametrize(
    "name", ["corpus@4", "corpus@5", "corpus@0", "corpus@newest", "corpus@\N{SUPERSCRIPT TWO}", "other@1"]
)
def test_a_version_that_is_not_there_is_refused_by_name(name: str, root: str) -> None:
    with pytest.raises(RecipeError) as refused:
        folder_of(f"{root}/{name}")
    assert f"{root}/{name}" in str(refused.value)


def test_documents_of_snapshots_are_no_training_dataset(tmp_path: Path) -> None:
    root = logged(str(tmp_path), [{"prefix": "publish/first", "manifests": {"ingest": "i"}}])
    with pytest.raises(RecipeError) as refused:
        folder_of(f"{root}/corpus@latest")
    assert "documents of snapshots" in str(refused.value)


def test_a_folder_is_what_it_was(tmp_path: Path) -> None:
    (tmp_path / "mine@2").mkdir()
    for uri in (str(tmp_path / "mine@2"), str(tmp_path), f"{tmp_path}/", "s3://bucket/root/publish/abc"):
        assert folder_of(uri) == uri


def test_a_log_that_was_changed_names_no_folder(tmp_path: Path) -> None:
    root = logged(str(tmp_path))
    entry = tmp_path / entry_path("corpus", 2)
    entry.chmod(0o644)
    entry.write_bytes(storage.connect(root).read(entry_path("corpus", 2)).replace(b"second", b"stolen"))
    with pytest.raises(ContractError):
        folder_of(f"{root}/corpus@1")


def test_the_loader_reads_what_is_named(tmp_path: Path) -> None:
    packed = write_dataset(tmp_path, [10, 3])
    logged(str(tmp_path), [{"prefix": str(packed.folder.relative_to(tmp_path)), "manifests": {"compose": "c"}}])
    named, own = TokenDataset(f"{tmp_path}/corpus@latest"), TokenDataset(str(packed.folder))
    assert named.uri == own.uri
    assert [item["index"] for item in named] == [item["index"] for item in own] != []
