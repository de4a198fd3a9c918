"""Runs a PostgreSQL of this machine for the embedded Airflow, on loopback alone, from the programs that are installed.

SQLite has one writer: a backfill beside a busy scheduler waits, and may give up. The server's data are in the Airflow
home; for root, whom PostgreSQL refuses to run for, they are the user `postgres`'s, below that user's home.
"""

import contextlib
import hashlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline_tasks.errors import RecipeError, StorageBusy
from refinery_airflow.embedded import airflow_home

USER = DATABASE = "airflow"

PROGRAMS = ("initdb", "pg_ctl", "postgres")

DEBIAN = Path("/usr/lib/postgresql")
"""Where Debian keeps the programs of each version, which are not on PATH."""

SECRET = "postgresql-password"  # noqa: S105 -- a file's name
"""File of a home with the password of its server."""

ACCOUNT = "postgres"
"""The system user of PostgreSQL's packages."""

START = 60
"""Seconds that the server may take until it answers."""


@dataclass(frozen=True, slots=True)
class Server:
    """A PostgreSQL server: the folder of its programs, that of its data, and the system user it runs as ("": ours)."""

    programs: Path
    data: Path
    account: str = ""

    @property
    def is_made(self) -> bool:
        """Whether its data are there."""
        return self.call("test", "-e", str(self.data / "PG_VERSION")).returncode == 0

    @property
    def port(self) -> int:
        """The port on which it listens, 0 while it does not run."""
        if self.pg_ctl("status").returncode:
            return 0
        return int((self.data / "postmaster.pid").read_text().splitlines()[3])

    def pg_ctl(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run `pg_ctl` on the data."""
        return self.call(str(self.programs / "pg_ctl"), "--pgdata", str(self.data), *words)

    def call(self, *command: str) -> "subprocess.CompletedProcess[str]":
        """Run a program as the server's user; its output goes to files, as a server keeps those of its parent open."""
        account = self.account or None
        groups: list[str | int] | None = [] if account else None
        with tempfile.TemporaryFile("w+") as said:
            done = subprocess.run(  # noqa: S603 -- our own commands
                command,
                stdout=said,
                stderr=said,
                stdin=subprocess.DEVNULL,
                cwd="/",
                check=False,
                user=account,
                group=account,
                extra_groups=groups,
            )
            said.seek(0)
            return subprocess.CompletedProcess(command, done.returncode, said.read())


def server_of(home: Path) -> Server:
    """Return the server of an Airflow home; RecipeError where PostgreSQL is not installed, or has no user for root."""
    programs = _programs()
    if os.geteuid():
        return Server(programs, home / "postgresql")
    try:
        place = Path(pwd.getpwnam(ACCOUNT).pw_dir)
    except KeyError as error:
        message = f"PostgreSQL does not run as root, and there is no user {ACCOUNT}: run this as another user"
        raise RecipeError(message) from error
    named = hashlib.sha256(str(home.absolute()).encode()).hexdigest()[:16]
    return Server(programs, place / f"refinery-{named}", ACCOUNT)


def _programs() -> Path:
    """Return the folder with PostgreSQL's programs, the newest."""
    found = shutil.which("pg_ctl")
    folders = [Path(found).resolve().parent] if found else []
    folders += sorted(DEBIAN.glob("*/bin"), key=lambda folder: int(folder.parent.name.split(".")[0]), reverse=True)
    for folder in folders:
        if all((folder / name).exists() for name in PROGRAMS):
            return folder
    message = (
        "PostgreSQL is not installed here: install it (on Debian: apt-get install postgresql), or name the database of "
        "a server with --database postgresql://USER:PASSWORD@HOST/DATABASE"
    )
    raise RecipeError(message)


@contextlib.contextmanager
def running(server: Server, password: str) -> Iterator[str]:
    """Start a server, made at its first start, and stop it at the end; yield the URL of Airflow's database in it.

    One that was left running is used. The port may be another at each start.
    """
    if not server.is_made:
        _make(server, password)
    url = url_of(server.port or _start(server), password)
    try:
        make_database(url)
        yield url
    finally:
        server.pg_ctl("stop", "--mode", "fast")


def url_of(port: int, password: str) -> str:
    """Return the URL of Airflow's database on a port of this machine."""
    return f"postgresql+psycopg2://{USER}:{password}@127.0.0.1:{port}/{DATABASE}"


def password_of(home: Path) -> str:
    """Return the password of a home's server, made at first use."""
    return airflow_home.secret(home, SECRET)


def is_of(home: Path, url: str) -> bool:
    """Return whether the URL of a database is of a home's own server."""
    return (home / SECRET).exists() and f":{password_of(home)}@" in url


def _make(server: Server, password: str) -> None:
    """Make the data of a server: its superuser is Airflow's role, which logs in with a password alone."""
    server.data.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=server.data.parent) as said:  # created with mode 0600
        if server.account:
            shutil.chown(said.name, server.account)
        said.write(f"{password}\n")
        said.flush()
        made = server.call(
            str(server.programs / "initdb"),
            *("--pgdata", str(server.data), "--username", USER, "--encoding", "UTF8", "--locale", "C"),
            *("--auth", "scram-sha-256", "--pwfile", said.name),
        )
    _require(made, f"{server.data}: PostgreSQL could not make a database there")


def _start(server: Server) -> int:
    """Start a server on a free port of loopback, and make Airflow's database at its first start; return the port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    options = f"-h 127.0.0.1 -p {port} -c unix_socket_directories='' -c fsync=on -c max_connections=100"
    log = str(server.data / "server.log")
    started = server.pg_ctl("start", "--wait", "--timeout", str(START), "--log", log, "--options", options)
    _require(started, f"{server.data}: PostgreSQL does not start; its log: {log}")
    return port


def make_database(url: str) -> None:
    """Make Airflow's database in a server of this machine, if it is not there."""
    import psycopg2

    connection = psycopg2.connect(f"{dsn_of(url).rpartition('/')[0]}/postgres")
    connection.autocommit = True
    with contextlib.closing(connection), connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,))
        if cursor.fetchone() is None:
            cursor.execute(f"CREATE DATABASE {DATABASE}")


def require_database(url: str, way_out: str = "start its server, or correct --database") -> None:
    """Raise RecipeError or StorageBusy unless a database answers within seconds."""
    import psycopg2

    try:
        psycopg2.connect(dsn_of(url), connect_timeout=10).close()
    except psycopg2.OperationalError as error:
        said = " ".join(str(error).split())
        refused = any(word in said for word in ("authentication failed", "does not exist", "no pg_hba.conf"))
        message = f"Airflow's database does not answer ({said[:300]}); {way_out}"
        raise (RecipeError if refused else StorageBusy)(message) from error
    except psycopg2.ProgrammingError as error:
        message = f"--database is no postgresql://USER:PASSWORD@HOST/DATABASE ({str(error).strip()[:200]})"
        raise RecipeError(message) from error


def dsn_of(url: str) -> str:
    """Return SQLAlchemy's URL of a database as libpq reads it."""
    scheme, _, rest = url.partition("://")
    return f"{scheme.partition('+')[0]}://{rest}"


def sqlalchemy_url(url: str) -> str:
    """Return a `postgresql://` URL as Airflow takes it; RecipeError for another kind."""
    scheme, _, rest = url.partition("://")
    if scheme.partition("+")[0] not in ("postgresql", "postgres") or not rest:
        message = (
            f"--database must be sqlite, postgresql or postgresql://USER:PASSWORD@HOST/DATABASE, not {scheme[:40]!r}"
        )
        raise RecipeError(message)
    return f"postgresql+psycopg2://{rest}"


def _require(done: "subprocess.CompletedProcess[str]", what: str) -> None:
    if done.returncode:
        said: Sequence[str] = done.stdout.strip().splitlines()[-3:]
        message = f"{what} ({' '.join(said)[:400]})"
        raise RecipeError(message)
