"""Every reader has the rows of a registered table that the root has: as many, with the same ids and texts."""

import subprocess
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from pipeline_tasks.inspect.views.named import KEPT, VersionViews
from pipeline_tasks.inspect.views.rows import Hidden, Rows
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.store.taken_down import taken_down
from tests.commands import Refinery
from tests.lakes import READERS
from tests.small_build import copied
from tests.small_root import RECIPE, SmallRoot
from tests.table_catalogs import catalog_at, states

SCRIPT = Path(__file__).parent / "readers" / "read_table.py"

PYICEBERG, ARROW, SPARK = "pyiceberg", "arrow", "spark"


@pytest.fixture
def small(small_root: SmallRoot, tmp_path: Path) -> SmallRoot:
    return copied(small_root, tmp_path)


def said(rows: Iterable[tuple[str, str]]) -> str:
    """How many rows there are, and a digest of them in order."""
    read = sorted("\t".join(row) for row in rows)
    whole = "\n".join(read).encode()
    return f"{len(read)} {sha256(whole).hexdigest()}"


def pairs(table: pa.Table) -> Iterable[tuple[str, str]]:
    return zip(table["id"].to_pylist(), table["text"].to_pylist(), strict=True)


def of_root(root: str) -> str:
    """What the root has, as `refinery sql` reads it."""
    found: list[tuple[str, str]] = []
    for version in version_log.latest_by_snapshot(root, RECIPE):
        rows = VersionViews(root, version, Hidden(taken_down(root))).of(KEPT)
        assert isinstance(rows, Rows)
        found += [pair for batch in rows.batches(("id", "text")) for pair in pairs(pa.Table.from_batches([batch]))]
    return said(found)


def files_of(address: str) -> list[str]:
    return [file.removeprefix("file://") for file in states(address, RECIPE)["kept"].files]


@pytest.mark.slow
@pytest.mark.parametrize("reader", [PYICEBERG, ARROW, SPARK])
def test_a_reader_has_what_the_root_has(
    small: SmallRoot,
    reader: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    refinery: Refinery,
    request: pytest.FixtureRequest,
) -> None:
    """Ray reads in `test_iceberg_catalog`. Spark reads the files alone, as the index of packages has no jar of Iceberg."""
    address = catalog_at("iceberg", tmp_path / "catalog", monkeypatch)
    assert refinery("register", small.root, "--recipe", RECIPE).returncode == 0
    if reader == PYICEBERG:
        from refinery_exports.tables.iceberg import opens

        read = said(
            pairs(opens("lake").inner.load_table(f"{RECIPE}.kept").scan(selected_fields=("id", "text")).to_arrow())
        )
    elif reader == ARROW:
        read = said(pairs(ds.dataset(files_of(address)).to_table(columns=["id", "text"])))
    else:
        from refinery_spark.spark import session

        frame = session(request.getfixturevalue("spark")).read.parquet(*files_of(address))
        read = said((row.id, row.text) for row in frame.select("id", "text").collect())
    assert read == of_root(small.root)


@pytest.mark.skipif(not READERS, reason="needs other readers: make readers-test")
@pytest.mark.parametrize("reader", ["ducklake", "iceberg", "datasets"])
def test_a_reader_of_others_has_what_the_root_has(
    small: SmallRoot, reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refinery: Refinery
) -> None:
    kind = "ducklake" if reader == "ducklake" else "iceberg"
    address = catalog_at(kind, tmp_path / "catalog", monkeypatch)
    assert refinery("register", small.root, "--recipe", RECIPE).returncode == 0
    where = [address.removeprefix("ducklake:")] if kind == "ducklake" else files_of(address)
    if reader == "iceberg":
        from refinery_exports.tables.iceberg import opens

        where = [opens("lake").inner.load_table(f"{RECIPE}.kept").metadata_location]
    done = subprocess.run(
        [READERS, str(SCRIPT), reader, RECIPE, *where], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.stdout.strip() == of_root(small.root), done.stderr[-2000:]
