"""Tables of a catalog have generated documents as rows, with the struct that says how each was generated."""

from pathlib import Path

import pytest
from refinery_exports.tables.catalogs import opened
from refinery_exports.tables.registering import register

from pipeline_tasks.engines.each import HERE
from tests.chain import Chain
from tests.offspring_root import NAME, STAGES, judged, land
from tests.table_catalogs import KINDS, catalog_at, states

pytestmark = pytest.mark.usefixtures("offspring")


@pytest.fixture(scope="module")
def chain(offspring: None, tmp_path_factory: pytest.TempPathFactory) -> Chain:
    return judged(land(tmp_path_factory.mktemp("landing")), tmp_path_factory.mktemp("root"))


@pytest.mark.parametrize("kind", KINDS)
def test_generated_documents_are_rows_of_tables(
    kind: str, chain: Chain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = catalog_at(kind, tmp_path / "catalog", monkeypatch)
    with opened(address) as catalog:
        register(chain.root, NAME, catalog, HERE)
    tables = states(address, NAME)
    assert sum(tables["kept"].files.values()) == chain.version.documents
    rejected = sum(sum(chain.manifest(stage).rejected.values()) for stage in STAGES)
    assert sum(tables["rejects"].files.values()) == rejected
