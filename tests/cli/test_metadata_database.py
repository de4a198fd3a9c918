"""Airflow's metadata database: the SQLite of its home, a PostgreSQL that `refinery up` runs, or one that is named."""

import stat
from collections.abc import Iterator
from pathlib import Path

import psycopg2
import pytest
from refinery_airflow.embedded import airflow_home, postgresql
from refinery_airflow.embedded.postgresql import dsn_of
from refinery_airflow.embedded.up import POSTGRESQL, SQLITE, metadata_database

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import RecipeError, StorageBusy

pytestmark = pytest.mark.slow


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """An Airflow home whose server is removed at the end."""
    home = tmp_path / "airflow"
    try:
        server = postgresql.server_of(home)
    except RecipeError as error:
        pytest.skip(str(error))
    yield home
    server.pg_ctl("stop", "--mode", "immediate")
    server.call("rm", "-rf", str(server.data))


def asked(url: str, sql: str) -> list[tuple[object, ...]]:
    connection = psycopg2.connect(dsn_of(url))
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute(sql)
        rows: list[tuple[object, ...]] = cursor.fetchall() if cursor.description else []
    connection.close()
    return rows


def test_a_server_of_this_machine_keeps_its_rows_and_ends_with_the_command(home: Path) -> None:
    with metadata_database(home, POSTGRESQL):
        url = airflow_home.database_url(home)
        assert airflow_home.environment(home)[airflow_home.CONNECTION] == url
        asked(url, "CREATE TABLE kept (number integer)")
        asked(url, "INSERT INTO kept VALUES (7)")
        assert asked(url, "SHOW listen_addresses") == [("127.0.0.1",)]
        assert asked(url, "SHOW fsync") == [("on",)]
        with pytest.raises(psycopg2.OperationalError):
            psycopg2.connect(dsn_of(url).replace(postgresql.password_of(home), "guessed"))
    with pytest.raises(StorageBusy, match="does not answer"):
        postgresql.require_database(url)
    for path in (home / airflow_home.DATABASE, home / postgresql.SECRET):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with metadata_database(home):  # as last time
        assert asked(airflow_home.database_url(home), "SELECT number FROM kept") == [(7,)]


def test_a_server_that_was_left_running_is_used(home: Path) -> None:
    server = postgresql.server_of(home)
    password = postgresql.password_of(home)
    with postgresql.running(server, password) as url, postgresql.running(server, password) as again:
        assert again == url
    assert server.port == 0


def test_airflow_makes_its_tables_there_once(home: Path) -> None:
    """Only this shows that Airflow of this version takes the URL, and migrates on PostgreSQL: 20 s."""
    with metadata_database(home, POSTGRESQL):
        airflow_home.migrate(home, airflow_home.environment(home))
        url = airflow_home.database_url(home)
        assert asked(url, "SELECT count(*) > 20 FROM pg_tables WHERE schemaname = 'public'") == [(True,)]
        marks = sorted(home.glob("migrated-*"))
        assert not (home / "airflow.db").exists()
    with metadata_database(home):  # on another port
        asked(airflow_home.database_url(home), "ALTER TABLE alembic_version RENAME TO hidden")
        airflow_home.migrate(home, airflow_home.environment(home))  # which would fail if it looked
    assert sorted(home.glob("migrated-*")) == marks


def test_a_named_database_is_tried_kept_and_left_for_sqlite(home: Path, tmp_path: Path) -> None:
    with metadata_database(tmp_path / "other", POSTGRESQL):
        url = dsn_of(airflow_home.database_url(tmp_path / "other"))
        with metadata_database(home, url):
            assert dsn_of(airflow_home.database_url(home)) == url
        with metadata_database(home):
            assert dsn_of(airflow_home.database_url(home)) == url
        with pytest.raises(RecipeError, match="does not answer"), metadata_database(home, url + "_absent"):
            pass
    other = postgresql.server_of(tmp_path / "other")
    other.call("rm", "-rf", str(other.data))
    with metadata_database(home, SQLITE):
        assert airflow_home.database_url(home).startswith("sqlite:///")
    assert not (home / airflow_home.DATABASE).exists()


@pytest.mark.parametrize("named", ["mysql://a@b/c", "postgres", "/some/file.db", "postgresql://"])
def test_another_kind_of_database_is_refused(named: str, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="--database must be"), metadata_database(tmp_path, named):
        pass
    assert not (tmp_path / airflow_home.DATABASE).exists()


def test_airflows_command_says_who_runs_its_database(
    tmp_path: Path, closed_port: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("REFINERY_HOME", str(tmp_path))
    home = tmp_path / "airflow"
    airflow_home.choose_database(home, postgresql.url_of(closed_port, postgresql.password_of(home)))
    assert main(["setup", "airflow", "dags", "list"]) == StorageBusy.exit_code
    said = capsys.readouterr().err
    assert "`refinery up` runs it" in said
    assert postgresql.password_of(home) not in said
