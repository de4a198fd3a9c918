"""Counts documents, bytes of text and tokens by domain, language and snapshot, in one pass over the documents.

Bytes are those of the text in UTF-8: what `tokenize` has stored of each document, else they are computed from the
texts. DuckDB adds them up in a database of its own on disk, so that a crawl with millions of domains needs no more
memory than a small one.
"""

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.manifest import Manifest
from pipeline_tasks.store.reading import read_shards
from pipeline_tasks.text.urls.sites import sites

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

pc: Any = pyarrow.compute

MEMORY = "1GB"
"""Memory of the database; beyond it, it writes to disk."""

GENERATED_AS = "generation"
"""The column that says how a document was generated (`schema.GENERATION`), null of a source."""

TOP, SMALL_TOP, SMALL_MOST = 0.10, 0.05, 1000
"""The share of domains that the EU's template asks for; of a small enterprise 5 % or 1,000, whichever is less."""

UNKNOWN = ""
"""The language, domain or day of a document that has none."""

_DAY = r"^\d{4}-\d{2}-\d{2}"

_COLUMNS = ("url", "snapshot", "language", "crawled_at", "n_bytes", "n_tokens", "copy", GENERATED_AS)


@dataclass(frozen=True, slots=True)
class Amount:
    """Documents, the bytes of their texts in UTF-8, and their tokens (0 where they are not counted)."""

    documents: int
    bytes: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Period:
    """What a snapshot gave, and the first and the last day of its collection ("" if no record has a date)."""

    snapshot: str
    amount: Amount
    first: str
    last: str


@dataclass(frozen=True, slots=True)
class Domains:
    """The registered domains with most bytes: `listed` of `total`, and what all of them have.

    `unnamed` is what documents without an address have.
    """

    total: int
    listed: int
    rows: tuple[tuple[str, Amount], ...]
    bytes: int
    unnamed: Amount


class ModelAmount(NamedTuple):
    """What a model wrote of a version's documents, by a prompt; `license` is "" where its card says none."""

    model: str
    license: str
    prompt: str
    amount: Amount


class Counts:
    """The sums of one pass; each question is a query of them."""

    def __init__(self, connection: "DuckDBPyConnection") -> None:
        """Take a connection to a database with the table `counts`."""
        self._connection = connection

    def total(self) -> Amount:
        """Return what all documents have, each counted once."""
        return self._amounts("''", "true", ())[0][1]

    def uses(self) -> Amount:
        """Return what all documents have, each counted as often as it is used."""
        [row] = self._rows("SELECT sum(uses), sum(used_bytes), sum(used_tokens) FROM counts", ())
        return _amount(row)

    def languages(self) -> list[tuple[str, Amount]]:
        """Return what the documents of each language have, most bytes first."""
        return self._amounts("language", "true", ())

    def generated(self) -> list[ModelAmount]:
        """Return what each model wrote of the documents by each prompt, each once, most bytes first."""
        query = (
            "SELECT model, license, prompt, sum(documents), sum(bytes) AS bytes, sum(tokens) FROM counts "
            "WHERE model <> '' GROUP BY ALL ORDER BY bytes DESC, model, prompt, license"
        )
        return [ModelAmount(row[0], row[1], row[2], _amount(row[3:])) for row in self._rows(query, ())]

    def periods(self) -> list[Period]:
        """Return what each snapshot gave, and when it was collected, by its name."""
        query = (
            "SELECT snapshot, sum(documents), sum(bytes), sum(tokens), coalesce(min(nullif(first, '')), ''), "
            "coalesce(max(last), '') FROM counts GROUP BY ALL ORDER BY snapshot"
        )
        return [Period(row[0], _amount(row[1:4]), row[4], row[5]) for row in self._rows(query, ())]

    def domains(self, snapshots: Sequence[str], shown: int, *, small: bool) -> Domains:
        """Return the domains with most bytes of snapshots, the first `shown` of them in rows."""
        where, values = "list_contains(?, snapshot) AND domain <> ''", [list(snapshots)]
        sums = f"SELECT count(DISTINCT domain), coalesce(sum(bytes), 0) FROM counts WHERE {where}"  # noqa: S608 -- ours
        [[total, in_all]] = self._rows(sums, values)
        listed = top_of(total, small=small)
        rows = self._amounts("domain", where, values, min(listed, shown))
        unnamed = self._amounts("''", "list_contains(?, snapshot) AND domain = ''", values)
        return Domains(total, listed, tuple(rows), int(in_all), unnamed[0][1] if unnamed else Amount(0, 0, 0))

    def write_domains(self, snapshots: Sequence[str], listed: int, path: Path) -> None:
        """Write the domains with most bytes of snapshots to a CSV file, with documents and bytes."""
        query = self._query("domain", "list_contains(?, snapshot) AND domain <> ''", listed)
        target = str(path).replace("'", "''")
        self._connection.execute(f"COPY ({query}) TO '{target}' (HEADER, DELIMITER ',')", [list(snapshots)])

    def _amounts(
        self, by: str, where: str, values: Sequence[object], most: int | None = None
    ) -> list[tuple[str, Amount]]:
        return [(row[0], _amount(row[1:])) for row in self._rows(self._query(by, where, most), values)]

    @staticmethod
    def _query(by: str, where: str, most: int | None) -> str:
        limit = "" if most is None else f" LIMIT {most}"
        return (
            f"SELECT {by} AS domain, sum(documents) AS documents, sum(bytes) AS bytes, sum(tokens) AS tokens "  # noqa: S608 -- no text of anybody's
            f"FROM counts WHERE {where} GROUP BY 1 ORDER BY bytes DESC, 1{limit}"
        )

    def _rows(self, query: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        return self._connection.execute(query, list(values)).fetchall()


def _amount(row: Sequence[Any]) -> Amount:
    return Amount(*(int(value or 0) for value in row))


def top_of(domains: int, *, small: bool) -> int:
    """Return how many of so many domains the template asks for: a tenth, rounded up, or of a small enterprise less."""
    return min(ceil(domains * SMALL_TOP), SMALL_MOST) if small else ceil(domains * TOP)


@contextmanager
def counted_documents(root: str, documents: Iterable[Manifest]) -> Iterator[Counts]:
    """Count the documents of manifests; the counts are gone when the context ends."""
    import duckdb

    with tempfile.TemporaryDirectory(prefix="refinery-disclose-") as place:
        settings: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": MEMORY,
            "temp_directory": f"{place}/spilled",
            "preserve_insertion_order": False,
        }
        with duckdb.connect(f"{place}/counts.duckdb", config=settings) as connection:
            connection.execute(
                "CREATE TABLE counts (domain TEXT, language TEXT, snapshot TEXT, "
                "model TEXT, license TEXT, prompt TEXT, first TEXT, last TEXT, "
                "documents BIGINT, bytes BIGINT, tokens BIGINT, uses BIGINT, used_bytes BIGINT, used_tokens BIGINT)"
            )
            for manifest in documents:
                for batch in _batches(root, manifest):
                    _add(connection, batch)
            yield Counts(connection)


def _batches(root: str, manifest: Manifest) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a manifest's documents: texts only where their bytes are not stored."""
    has_bytes = "n_bytes" in dict(manifest.schema)
    yield from read_shards(root, manifest.shards, [*_COLUMNS, *([] if has_bytes else ["text"])])


def _add(connection: "DuckDBPyConnection", batch: pa.RecordBatch) -> None:
    connection.register("batch", _measured(batch))
    connection.execute(
        "INSERT INTO counts SELECT domain, language, snapshot, model, license, prompt, "
        "coalesce(min(nullif(day, '')), ''), max(day), "
        "sum(first_use), sum(first_use * bytes), sum(first_use * tokens), count(*), sum(bytes), sum(tokens) "
        "FROM batch GROUP BY domain, language, snapshot, model, license, prompt"
    )
    connection.unregister("batch")


def _measured(batch: pa.RecordBatch) -> pa.Table:
    """Return domain, language, snapshot, day, bytes and tokens of each document, and whether it is its first use."""
    rows, names = batch.num_rows, set(batch.schema.names)

    def text(name: str) -> pa.Array:
        column = batch.column(name).cast(pa.string()) if name in names else pa.nulls(rows, pa.string())
        return pc.fill_null(column, UNKNOWN)

    def number(name: str) -> pa.Array:
        column = batch.column(name).cast(pa.int64()) if name in names else pa.nulls(rows, pa.int64())
        return pc.fill_null(column, 0)

    def made(name: str) -> pa.Array:
        column = pc.struct_field(batch.column(GENERATED_AS), name) if GENERATED_AS in names else text(GENERATED_AS)
        return pc.fill_null(column, UNKNOWN)

    size = number("n_bytes") if "n_bytes" in names else pc.fill_null(pc.binary_length(batch.column("text")), 0)
    day = text("crawled_at")
    day = pc.if_else(pc.match_substring_regex(day, _DAY), pc.utf8_slice_codeunits(day, 0, 10), UNKNOWN)
    return pa.table(
        {
            "domain": pc.fill_null(sites(batch.column("url")), UNKNOWN),
            "language": text("language"),
            "snapshot": text("snapshot"),
            "model": made("model"),
            "license": made("model_license"),
            "prompt": made("prompt"),
            "day": day,
            "bytes": size.cast(pa.int64()),
            "tokens": number("n_tokens"),
            "first_use": pc.equal(number("copy"), 0).cast(pa.int64()),
        }
    )
