"""Params name files anywhere inside them, and a worker reads its own copies of all of them."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline_tasks.errors import DigestMismatch
from pipeline_tasks.manifest import load
from pipeline_tasks.run.plan import plan
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.run.tasks.task import Files, StageIO, Task, repoint, run
from pipeline_tasks.sealed import sha256
from pipeline_tasks.stage import Batches, Kernel
from pipeline_tasks.store import storage
from tests.documents import documents
from tests.refining import commit_parent
from tests.toys import table

MOVED = {"s3://lists/a": "copies/a", "s3://lists/b": "copies/b"}


@dataclass(frozen=True, slots=True)
class Lists:
    """Params inside params."""

    allowed: tuple[str, ...]
    blocked: str
    most: int = 3


def test_paths_in_scalars_tuples_mappings_and_nested_params_are_replaced() -> None:
    assert repoint("s3://lists/a", MOVED) == "copies/a"
    assert repoint(("s3://lists/a", "s3://lists/b", "web"), MOVED) == ("copies/a", "copies/b", "web")
    assert repoint({"x": ("s3://lists/b",), "y": 1.5}, MOVED) == {"x": ("copies/b",), "y": 1.5}
    assert repoint(Lists(("s3://lists/a",), "s3://lists/b"), MOVED) == Lists(("copies/a",), "copies/b")


def test_what_is_no_path_that_was_moved_stays() -> None:
    values = (None, True, 7, 0.5, "s3://lists/c", "", (), {})
    assert [repoint(value, MOVED) for value in values] == list(values)


def test_a_task_looks_at_files_that_its_kernel_names_and_at_those_that_no_param_has(tmp_path: Path) -> None:
    """Another release on a worker has another packaged model: it is found, though no param has its path."""
    named, implied, other = (tmp_path / name for name in ("named", "implied", "other"))
    for path in (named, implied):
        path.write_text(path.name)
    right = {str(path): sha256(path.name.encode()) for path in (named, implied)} | {str(other): "0" * 64}
    shard = load(storage.connect(str(tmp_path)).read(commit_parent(tmp_path, [table(0, 3)]))).shards[0]

    def ran(kernel: Kernel, **io: Files) -> int:
        stage_io = StageIO(str(tmp_path), "toy/a", files=tuple(right.items()), **io)
        return run(Task(stage_io, "key", kernel, ((shard,),))).receipt.shard.rows

    assert ran(partial(reading, path=str(named))) == 3
    with pytest.raises(FileNotFoundError):
        ran(partial(reading, path=str(other)))
    assert ran(partial(reading, path=""), implied=((str(implied), right[str(implied)]),)) == 3
    with pytest.raises(DigestMismatch):
        ran(partial(reading, path=""), implied=((str(implied), "0" * 64),))


def reading(batches: Batches, *, path: str) -> Batches:
    if path:
        assert Path(path).read_text() == Path(path).name
    yield from batches


def test_what_no_param_has_is_implied(tmp_path: Path) -> None:
    texts = documents(["a text of words"], language=pa.array(["en"]), language_score=pa.array([0.9]))
    parent = commit_parent(tmp_path, [texts])
    (tmp_path / "lid.bin").write_bytes(b"model")
    packaged = plan(RefineRequest(str(tmp_path), "filter_language", {}, parent)).io
    assert packaged.implied == packaged.files != ()
    own = plan(RefineRequest(str(tmp_path), "filter_language", {"model": str(tmp_path / "lid.bin")}, parent)).io
    assert [path for path, _ in own.files] == [str(tmp_path / "lid.bin")]
    assert own.implied == ()
