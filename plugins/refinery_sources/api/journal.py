"""Keeps the pages of a pull on the disk: the records of a page and what is asked next are one transaction.

What is committed is flushed before the next request is sent, so that a killed pull asks for no page again of which it
has the records, and has no record twice.
"""

import contextlib
import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pipeline_tasks.errors import MachineFailed, NoSpace
from pipeline_tasks.sealed import canonical

PAGES = "pages.sqlite"
"""The file of a pull's pages, beside its partial files."""

DATA, KNOWN, GONE = 0, 1, 2
"""What a record is: data; data that an earlier snapshot has as it is; one that its source has deleted."""

_AT_ONCE = 500
"""Ids of one look."""

_BUSY = 600.0
"""Seconds that a thread waits until another has committed its page."""

_TABLES = """
CREATE TABLE IF NOT EXISTS states (part TEXT PRIMARY KEY, state TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS asked (part TEXT, url TEXT, PRIMARY KEY (part, url)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS records (
    part TEXT NOT NULL, id TEXT NOT NULL, kind INTEGER NOT NULL, digest TEXT NOT NULL, moment REAL, row BLOB,
    PRIMARY KEY (part, id)
);
CREATE UNIQUE INDEX IF NOT EXISTS ids ON records (id);
"""


_MAKING = threading.Lock()
"""Held while tables are made: SQLite lets two threads that turn to a write-ahead log fail at once."""

_STORE = """
INSERT INTO records VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (part, id)
DO UPDATE SET kind = excluded.kind, digest = excluded.digest, moment = excluded.moment, row = excluded.row
"""


class Record(NamedTuple):
    """A record: its id, what it is, a digest of its content, its moment if it has one, and its row as JSON.

    `masked` are secrets that were in it.
    """

    id: str
    kind: int
    digest: str
    moment: float | None
    row: bytes
    masked: int = 0


@dataclass(frozen=True, slots=True)
class State:
    """How far the pages of a part have come; `url` is what is asked next, "" at the end, which `end` proves.

    `behind` says that the next page is the one behind the last, `followed` that a page has named the next one.
    `records` are different ones, and `repeated` and `superseded` those that came again, as they were or newer. `texts`
    and `textless` are those with and without a text. `least` and `most` are the totals that pages have declared, -1 if
    none has. `empties` are pages without records in a row, `masked` secrets that
    records had, and `begun` says how often the part was begun. `newest` is
    the newest value of the field of `since`.
    """

    url: str
    end: str = ""
    behind: bool = False
    followed: bool = False
    pages: int = 0
    received: int = 0
    records: int = 0
    repeated: int = 0
    superseded: int = 0
    texts: int = 0
    textless: int = 0
    least: int = -1
    most: int = -1
    empties: int = 0
    begun: int = 1
    newest: Any = None
    masked: int = 0
    schema: Mapping[str, Any] = field(default_factory=dict)


class Journal:
    """The pages of all parts of a pull; a connection of one thread."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        with _MAKING:
            connection.executescript(f"PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; {_TABLES}")

    def state(self, part: str) -> State | None:
        """Return how far a part has come, None if nothing is known of it."""
        row = self._connection.execute("SELECT state FROM states WHERE part = ?", (part,)).fetchone()
        return None if row is None else State(**json.loads(row[0]))

    def begin(self, part: str, state: State) -> None:
        """Forget what is known of a part, and begin it anew."""
        with self._transaction():
            for table in ("asked", "records", "states"):
                self._connection.execute(f"DELETE FROM {table} WHERE part = ?", (part,))  # noqa: S608 -- our names
            self._put(part, state)

    def commit(self, part: str, url: str, state: State, records: Iterable[Record]) -> None:
        """Store a page: the URL that was asked for it, the records that it brought, and the state behind it.

        sqlite3.IntegrityError if another part has one of the records.
        """
        with self._transaction():
            self._connection.execute("INSERT INTO asked VALUES (?, ?)", (part, url))
            rows = ((part, record.id, record.kind, record.digest, record.moment, record.row) for record in records)
            self._connection.executemany(_STORE, rows)
            self._put(part, state)

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        with self._connection:
            yield

    def _put(self, part: str, state: State) -> None:
        self._connection.execute(
            "INSERT OR REPLACE INTO states VALUES (?, ?)", (part, canonical(asdict(state)).decode())
        )

    def was_asked(self, part: str, url: str) -> bool:
        """Return whether a page of a part was asked for by this URL."""
        query = "SELECT 1 FROM asked WHERE part = ? AND url = ?"
        return self._connection.execute(query, (part, url)).fetchone() is not None

    def known(self, ids: Sequence[str]) -> dict[str, tuple[str, Record]]:
        """Return those of the ids that are known, with the part and the record; its row is left out."""
        records = {}
        for start in range(0, len(ids), _AT_ONCE):
            some = ids[start : start + _AT_ONCE]
            marks = ",".join("?" * len(some))
            query = f"SELECT part, id, kind, digest, moment FROM records WHERE id IN ({marks})"  # noqa: S608
            for part, identifier, kind, digest, moment in self._connection.execute(query, some):
                records[identifier] = (part, Record(identifier, kind, digest, moment, b""))
        return records

    def rows(self, parts: Sequence[str], kind: int) -> Iterator[bytes]:
        """Yield the rows of a kind of some parts, by id."""
        marks = ",".join("?" * len(parts))
        query = f"SELECT row FROM records WHERE part IN ({marks}) AND kind = ? ORDER BY part, id"  # noqa: S608
        for (row,) in self._connection.execute(query, (*parts, kind)):
            yield bytes(row)

    def count(self, part: str, kind: int) -> int:
        """Return the number of records of a kind."""
        query = "SELECT count(*) FROM records WHERE part = ? AND kind = ?"
        return int(self._connection.execute(query, (part, kind)).fetchone()[0])

    def border(self, part: str, least: float, most: int) -> dict[str, str]:
        """Return id and digest of the records from a moment on; none if they are more than `most`."""
        query = "SELECT id, digest FROM records WHERE part = ? AND moment >= ? ORDER BY id LIMIT ?"
        digests = dict(self._connection.execute(query, (part, least, most + 1)))
        return digests if len(digests) <= most else {}


@contextlib.contextmanager
def journal_in(folder: Path) -> Iterator[Journal]:
    """Open the pages of a pull; each thread opens them for itself.

    NoSpace and MachineFailed, for a disk that does not take or give them.
    """
    try:
        with contextlib.closing(sqlite3.connect(folder / PAGES, timeout=_BUSY, isolation_level=None)) as connection:
            yield Journal(connection)
    except sqlite3.Error as error:
        is_full = "full" in str(error)
        way = (
            "free some space" if is_full else f"remove {folder / PAGES} if that stays, and all pages are asked for anew"
        )
        message = f"{folder / PAGES}: {error}; {way}, and pull again"
        raise (NoSpace if is_full else MachineFailed)(message) from error
