"""Tables of the catalog `iceberg`, which PyIceberg reads: on a database, and behind a server that speaks REST."""

from pathlib import Path

import pyarrow as pa
import pytest

pytest.importorskip("pyiceberg")

from pyiceberg.catalog import load_catalog
from refinery_exports.tables.iceberg import opens
from refinery_exports.tables.testing import check_catalog


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A catalog that PyIceberg's configuration calls `shelf`, in a file of SQLite."""
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    monkeypatch.setenv("PYICEBERG_CATALOG__SHELF__URI", f"sqlite:///{tmp_path}/catalog.db")
    monkeypatch.setenv("PYICEBERG_CATALOG__SHELF__WAREHOUSE", f"file://{tmp_path}/warehouse")
    return "shelf"


def read(namespace: str, name: str) -> pa.Table:
    from pyiceberg.utils.config import Config

    return load_catalog("shelf", **Config().get_catalog_config("shelf")).load_table((namespace, name)).scan().to_arrow()


def test_a_catalog_on_a_database_keeps_tables_as_catalogs_do(shelf: str) -> None:
    check_catalog(lambda: opens(shelf), read)
