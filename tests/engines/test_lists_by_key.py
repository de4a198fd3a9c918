"""A kernel looks keys up in the segments of a list, on every engine, and rejects what a list in memory rejects."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline_tasks.engines.choose import engine
from pipeline_tasks.publish import takedowns as taking
from pipeline_tasks.publish.takedowns import PINNED, current_rows, list_of, pinned_list, record
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.run.runner import refine
from pipeline_tasks.schema import LOCATOR
from pipeline_tasks.store.reading import read_shards
from pipeline_tasks.text.urls.takedown import LIST
from tests.refining import commit_parent

pytestmark = pytest.mark.slow

DOCUMENTS = pa.schema([*LOCATOR, pa.field("id", pa.string()), pa.field("n_tokens", pa.int64())])
TABLES = [
    pa.Table.from_pylist(
        [
            {"url": f"https://site{row % 7}.example/{row}", "id": f"{row:032x}", "n_tokens": 1, "snapshot": "a"}
            for row in range(start, start + 50)
        ],
        DOCUMENTS,
    )
    for start in (0, 50, 100)
]


@pytest.fixture(params=["local", "spark", "ray"])
def any_engine(request: pytest.FixtureRequest) -> tuple[str, str]:
    """Every engine, and its address."""
    return request.param, "" if request.param == "local" else request.getfixturevalue(request.param)


def rejected(root: Path, on: tuple[str, str], listed: str) -> list[tuple[str, str]]:
    request = RefineRequest(str(root), "takedown", {PINNED: listed}, commit_parent(root, TABLES))
    manifest = refine(request, engine(*on)).manifest
    assert manifest.rows + sum(manifest.rejected.values()) == 150
    batches = read_shards(str(root), manifest.rejects, ["id", "evidence"])
    return sorted((row["id"], row["evidence"]) for batch in batches for row in batch.to_pylist())


def test_a_list_of_several_runs_rejects_on_every_engine_what_one_in_memory_does(
    any_engine: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = str(tmp_path / "root")
    Path(root).mkdir()
    monkeypatch.setattr(taking, "LEAST_ROWS", 1)
    record(root, [("url", f"http://site{row % 7}.example/{row}/") for row in range(0, 150, 30)], "a letter")
    record(root, [("site", "site3.example"), ("doc", f"{44:032x}")], "a letter")
    record(root, [("url", "https://site0.example/0")], "a mistake", undo=True)
    keyed = rejected(tmp_path / "root", any_engine, list_of(root, pinned_list(root)))
    pq.write_table(pa.Table.from_pylist(current_rows(root), LIST), tmp_path / "list.parquet")
    assert keyed == rejected(tmp_path / "root", ("local", ""), str(tmp_path / "list.parquet"))
    assert len(keyed) == 4 + 21 + 1 - sum(row % 7 == 3 for row in (30, 60, 90, 120))
