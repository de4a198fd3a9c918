"""Creates Airflow homes on this machine: settings, secrets, and a migrated database."""

import contextlib
import fcntl
import hashlib
import json
import os
import re
import secrets
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from importlib.metadata import distributions, version
from pathlib import Path

from pipeline_tasks.demo import FOLDER
from pipeline_tasks.engines.card import engine_cards
from pipeline_tasks.engines.early_start import variable_of
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.shipped import PACKAGE, numba_folder, python_path, shipped, state_folder

PORT = 8080

CONNECTION = "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"

PLUGIN = ("airflow.plugins", "refinery")
"""The group and the name of the plugin's entry point (`pyproject.toml`)."""


def environment(home: Path) -> dict[str, str]:
    """Return the environment in which Airflow runs embedded, with its home in `home`.

    A variable that this process already has wins, except for the paths that define the home.
    """
    port = os.environ.get("AIRFLOW__API__PORT", str(PORT))
    defaults = {
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__PARALLELISM": "4",  # every running task is a process of about 200 MB
        "AIRFLOW__CORE__MAX_ACTIVE_TASKS_PER_DAG": "4",
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "True",
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": port,
        "AIRFLOW__API__BASE_URL": f"http://127.0.0.1:{port}",  # tasks call it too: it must follow the port
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "30",
        "AIRFLOW__API_AUTH__JWT_SECRET": secret(home, "jwt-secret"),
        "AIRFLOW__API__SECRET_KEY": secret(home, "api-secret"),
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "60",
        "GX_ANALYTICS_ENABLED": "false",
        "NUMBA_CACHE_DIR": numba_folder(),
        "REFINERY_LANDING": str(state_folder() / "landing"),
        "REFINERY_ROOT": str(root_here()),
    }
    defaults |= {
        variable_of(name): json.dumps({"conn_type": card.conn_type, "host": card.here})
        for name, card in engine_cards().items()
    }
    fixed = {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(shipped("dags")),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(home / "plugins"),  # the user's: ours comes by its entry point
        CONNECTION: database_url(home),
        "PYTHONPATH": python_path(),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
    }
    return {key: os.environ.get(key, value) for key, value in defaults.items()} | fixed


def root_here() -> Path:
    """Return the root of this machine: the usual one, or that of the demo where there is no other yet."""
    usual, demo = state_folder() / "root", demo_root()
    return demo if demo.is_dir() and not usual.exists() else usual


def demo_root() -> Path:
    """Return where `refinery demo` writes to, if it is not told otherwise."""
    return Path(FOLDER).absolute() / "root"


DATABASE = "database"
"""File of a home: the URL of Airflow's metadata database, absent for the SQLite of the home."""


def database_url(home: Path) -> str:
    """Return the URL of a home's metadata database: that of its file, else of the SQLite in it."""
    file = home / DATABASE
    return file.read_text(encoding="utf-8").strip() if file.exists() else _sqlite(home / "airflow.db")


def choose_database(home: Path, url: str) -> None:
    """Keep which database a home has, readable by its owner only; "" for the SQLite in it."""
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not url:
        (home / DATABASE).unlink(missing_ok=True)
        return
    with tempfile.NamedTemporaryFile("w", dir=home, delete=False) as draft:  # created with mode 0600
        draft.write(f"{url}\n")
    Path(draft.name).replace(home / DATABASE)


def require_plugin() -> None:
    """Raise RecipeError unless one installed package has the entry point by which Airflow finds the plugin."""
    entries = [(entry, found) for found in distributions() for entry in found.entry_points]
    places = [str(found.locate_file("")) for entry, found in entries if (entry.group, entry.name) == PLUGIN]
    if len(places) != 1:
        found = f"{len(places)} times ({', '.join(places)}): uninstall the package in all of them but one"
        lacking = f"not at all: run `pip install --no-deps -e {PACKAGE.parent}` with {sys.executable}"
        message = f"Airflow would find Refinery's plugin {found if places else lacking}"
        raise RecipeError(message)


def secret(home: Path, name: str) -> str:
    """Return a secret of this home, created at first use and readable by its owner only."""
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = home / name
    if not path.exists():
        with tempfile.NamedTemporaryFile("w", dir=home) as draft:  # created with mode 0600
            draft.write(secrets.token_hex(64))
            draft.flush()
            with contextlib.suppress(FileExistsError):  # another process was first
                os.link(draft.name, path)
    return path.read_text(encoding="utf-8")


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock between processes of this machine."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def migrate(home: Path, env: Mapping[str, str]) -> None:
    """Bring the database of `home` to this Airflow's version, once per version.

    A copy of a SQLite is migrated and takes the name of the database when it is whole, so that a killed migration is no
    damage. PostgreSQL undoes what was not committed.
    """
    mark, database, draft = home / f"migrated-{version('apache-airflow')}", home / "airflow.db", home / "migrating.db"
    with locked(home / "migrate.lock"):
        if (home / DATABASE).exists():
            _migrate_server(home, env, mark)
            return
        if mark.exists() and database.exists():
            return
        for stale in home.glob(f"{draft.name}*"):
            stale.unlink()
        if database.exists():
            _copy_database(database, draft)
        _migrate(home, {**env, CONNECTION: _sqlite(draft)})
        _copy_database(draft, home / "migrated.db")  # with what is in its log of writes
        (home / "migrated.db").replace(database)
        mark.touch()
        for stale in home.glob(f"{draft.name}*"):
            stale.unlink()


def _migrate_server(home: Path, env: Mapping[str, str], mark: Path) -> None:
    """Migrate a database that is no file, once per version and database; a server may have another port each time."""
    named = re.sub(r":\d+/", "/", database_url(home))
    of_server = mark.with_name(f"{mark.name}-{hashlib.sha256(named.encode()).hexdigest()[:16]}")
    if not of_server.exists():
        _migrate(home, env)
        of_server.touch()


def _migrate(home: Path, env: Mapping[str, str]) -> None:
    command = [sys.executable, "-m", "airflow", "db", "migrate"]
    run = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, check=False)  # noqa: S603
    if run.returncode:
        way_out = (
            f"look at the database that {home / DATABASE} names" if (home / DATABASE).exists() else f"remove {home}"
        )
        message = f"{home}: Airflow could not prepare its database ({run.stderr.strip()[-500:]}); {way_out}"
        raise RecipeError(message)


def _copy_database(source: Path, target: Path) -> None:
    target.unlink(missing_ok=True)
    with contextlib.closing(sqlite3.connect(source)) as database, contextlib.closing(sqlite3.connect(target)) as copy:
        database.backup(copy)


def _sqlite(path: Path) -> str:
    """Return the URL of a database; a writer waits for another one up to a minute before "database is locked"."""
    return f"sqlite:///{path}?timeout=60"
