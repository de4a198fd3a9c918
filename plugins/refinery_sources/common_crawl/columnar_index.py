"""Asks Common Crawl's columnar index which records meet a condition: their places, in the order of these.

The index of a crawl is about 300 Parquet files with one row per record, sorted by host. Only the columns that the
condition names are read, and only the row groups that can meet it, by ranges and within the budget of the source. The
condition is SQL, which DuckDB evaluates here. Layout: https://commoncrawl.org/columnar-index.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from pipeline_tasks.counted import counted
from pipeline_tasks.errors import ContractError, RecipeError
from refinery_sources.common_crawl.files import listed_paths
from refinery_sources.ranged import RangedFile
from refinery_sources.web import Web

SUBSETS = ("warc", "robotstxt", "crawldiagnostics")
"""What the index is divided into: pages, `robots.txt` files, and answers that are no pages."""

PLACES = ("warc_filename", "warc_record_offset", "warc_record_length")
"""Where a record is: its file, and its first byte and bytes there."""

KEPT = (
    "url",
    "url_host_registered_domain",
    "fetch_time",
    "fetch_status",
    "content_digest",
    "content_mime_detected",
    "content_languages",
    "content_truncated",
    *PLACES,
)
"""Columns of a selection; those that the index of an older crawl does not have are left out."""

REQUIRED = ("url", *PLACES)

MOST_RECORDS = 5_000_000
"""Records of one selection: their places have about 1 GB in memory."""

MOST_BYTES = 1 << 30
"""Bytes of a record, compressed; Common Crawl cuts them at 1 MiB, or 5 MiB since 2025."""

_FILE = re.compile(r"cc-index/table/cc-main/warc/crawl=([\w-]+)/subset=(\w+)/[A-Za-z0-9][\w.-]*\.parquet")
_COLUMNS = pa.schema(
    [
        *(
            (name, pa.string())
            for name in (
                "url_surtkey",
                "url",
                "url_host_name",
                "url_host_tld",
                "url_host_2nd_last_part",
                "url_host_3rd_last_part",
                "url_host_4th_last_part",
                "url_host_5th_last_part",
                "url_host_registry_suffix",
                "url_host_registered_domain",
                "url_host_private_suffix",
                "url_host_private_domain",
                "url_host_name_reversed",
                "url_protocol",
                "url_path",
                "url_query",
                "fetch_redirect",
                "content_digest",
                "content_mime_type",
                "content_mime_detected",
                "content_charset",
                "content_languages",
                "content_truncated",
                "warc_filename",
                "warc_segment",
            )
        ),
        *(
            (name, pa.int32())
            for name in (
                "url_port",
                "warc_record_offset",
                "warc_record_length",
            )
        ),
        ("fetch_time", pa.timestamp("ms")),
        ("fetch_status", pa.int16()),
    ]
)
"""Columns of the index since 2022."""


_ENTRY = {
    "url_surtkey": "org,example)/a/b?c=d",
    "url": "https://www.example.org/a/b?c=d",
    "url_host_name": "www.example.org",
    "url_host_tld": "org",
    "url_host_2nd_last_part": "example",
    "url_host_3rd_last_part": "www",
    "url_host_registry_suffix": "org",
    "url_host_registered_domain": "example.org",
    "url_host_private_suffix": "org",
    "url_host_private_domain": "example.org",
    "url_host_name_reversed": "org.example.www",
    "url_protocol": "https",
    "url_path": "/a/b",
    "url_query": "c=d",
    "url_port": 8080,
    "fetch_time": 1_762_000_000_000,
    "fetch_status": 200,
    "content_digest": "A" * 32,
    "content_mime_type": "text/html",
    "content_mime_detected": "text/html",
    "content_charset": "UTF-8",
    "content_languages": "eng,deu",
    "content_truncated": "length",
    "warc_filename": "crawl-data/CC-MAIN-2026-45/segments/1762000000000.0/warc/a.warc.gz",
    "warc_record_offset": 1_000,
    "warc_record_length": 1_000,
    "warc_segment": "1762000000000.0",
}
"""A record as an index has it, over which a condition is tried before any request; other columns are null."""

_LITERAL = re.compile("'(?:[^']|'')*'")

_CHANGING = frozenset(
    [
        "age",
        "current_connection_id",
        "current_date",
        "current_localtime",
        "current_localtimestamp",
        "current_query_id",
        "current_time",
        "current_timestamp",
        "current_transaction_id",
        "gen_random_uuid",
        "get_current_time",
        "get_current_timestamp",
        "localtime",
        "localtimestamp",
        "nextval",
        "now",
        "random",
        "setseed",
        "today",
        "transaction_timestamp",
        "txid_current",
        "uuid",
        "uuidv4",
        "uuidv7",
    ]
)
"""Functions of DuckDB that follow from chance or the clock."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which records: those that meet `where`, of these a share by hashes of their places, then at most `records`."""

    where: str = ""
    sample: float = 1.0
    records: int = 0
    seed: int = 0

    @property
    def condition(self) -> str:
        """The condition as SQL."""
        return f"(\n{self.where}\n)" if self.where.strip() else "true"  # a comment at its end is not ours

    @property
    def order(self) -> str:
        """The hash of a record's place as SQL: digits that are alike for each crawl, machine and version."""
        return f"md5('{self.seed}:' || warc_filename || ':' || warc_record_offset)"

    @property
    def bound(self) -> str:
        """The first digits above those of the share."""
        return f"{int(self.sample * 16**8):08x}"

    def sql(self, columns: Sequence[str]) -> str:
        """Return the query of one file of the index."""
        share = f" AND {self.order} < '{self.bound}'" if self.sample < 1 else ""
        fewest = f" ORDER BY {self.order} LIMIT {self.records}" if self.records else ""
        return f"SELECT {', '.join(columns)} FROM entries WHERE {self.condition}{share}{fewest}"  # noqa: S608 -- checked by `require_condition`


def require_condition(selection: Selection) -> None:
    """Raise RecipeError for a condition that is no expression over the columns of the index."""
    where = f"where {selection.where[:200]!a}"
    if selection.where.strip():
        _require_expression(selection.where, where)
    _queried(pa.Table.from_pylist([_ENTRY], _COLUMNS), selection, REQUIRED, where)  # conversions fail at a value only
    words = re.findall(r"\w+", _LITERAL.sub("''", selection.where).lower())
    changing = next((word for word in words if word in _CHANGING), "")
    if changing:
        message = f"{where}: {changing} gives something else each time; a query has to give the same records again"
        raise RecipeError(message)


def _require_expression(condition: str, where: str) -> None:
    """Raise RecipeError for what is not one expression, and for a query in it: it would see one file of the index."""
    import duckdb

    with duckdb.connect() as connection:
        for query in (f"SELECT (\n{condition}\n)", f"SELECT [\n{condition}\n]"):  # no bracket of it closes ours
            (text,) = connection.execute("SELECT json_serialize_sql(?::VARCHAR)::VARCHAR", [query]).fetchone() or ("",)
            parsed = orjson.loads(text)
            if parsed["error"]:
                message = f"{where}: {parsed['error_message'][:300]}; it has to be one SQL expression"
                raise RecipeError(message)
    if _has_query(parsed):
        message = (
            f"{where} has a query in it, which would see one file of the index at a time; write an expression over the "
            "columns of a record"
        )
        raise RecipeError(message)


def _has_query(parsed: object) -> bool:
    """Tell whether an expression has a query in it, as DuckDB parsed both."""
    if isinstance(parsed, dict):
        return parsed.get("class") == "SUBQUERY" or any(map(_has_query, parsed.values()))
    return isinstance(parsed, list) and any(map(_has_query, parsed))


def index_files(on: Web, address: str, crawl: str, subset: str) -> list[str]:
    """Return the paths of a subset's files; ContractError for a list that is cut, or has a path of another place."""
    url = f"{address}/crawl-data/{crawl}/cc-index-table.paths.gz"
    lines = listed_paths(on, url)
    matches = [_FILE.fullmatch(line) for line in lines]
    if None in matches or any(match and match[1] != crawl for match in matches):
        line = next(line for line, match in zip(lines, matches, strict=True) if not match or match[1] != crawl)
        message = f"{url} has {line[:200]!a}, which is no file of the index of {crawl}; tell who made it"
        raise ContractError(message)
    chosen = [match[0] for match in matches if match and match[2] == subset]
    if not chosen or len(set(chosen)) != len(chosen):
        message = (
            f"{url} has {counted(len(chosen), 'file')} of the subset {subset}, each once at least; tell who made it"
        )
        raise ContractError(message)
    return chosen


def selected(on: Web, address: str, files: Sequence[str], selection: Selection) -> pa.Table:
    """Return the chosen records of some files of an index, in the order of their places.

    ContractError for files that are damaged, or whose places cannot be; RecipeError for more than `MOST_RECORDS`.
    """
    tables: list[pa.Table] = []
    for path in files:
        tables.append(_of_file(on, f"{address}/{path}", selection))
        records = sum(table.num_rows for table in tables)
        if not selection.records and records > MOST_RECORDS:
            message = f"more than {MOST_RECORDS:,} records are chosen; choose fewer by where, sample, records or index"
            raise RecipeError(message)
    table = pa.concat_tables(tables, promote_options="default")
    if selection.records and table.num_rows > selection.records:
        table = _queried(table, Selection(records=selection.records, seed=selection.seed), table.column_names, "index")
    table = table.sort_by([("warc_filename", "ascending"), ("warc_record_offset", "ascending")])
    _require_places(table, address)
    return table


def _of_file(on: Web, url: str, selection: Selection) -> pa.Table:
    file = RangedFile(on, url)
    buffered = ds.ParquetFragmentScanOptions(pre_buffer=True)
    kind = ds.ParquetFileFormat(default_fragment_scan_options=buffered)
    try:
        fragment = kind.make_fragment(pa.PythonFile(file, mode="r"))
        schema = fragment.physical_schema
        _require_columns(schema, url)
        rows = ds.FileSystemDataset([fragment], schema, kind)
        columns = [name for name in KEPT if name in schema.names]
        return _queried(rows, selection, columns, url).cast(_kept_schema(columns))
    except (OSError, pa.ArrowException) as error:
        if file.error:
            raise file.error from error
        message = f"{url} cannot be read as Parquet ({str(error)[:200]!a}); run the same command again, later"
        raise ContractError(message) from error
    except (RecipeError, ContractError):
        if file.error:
            raise file.error from None
        raise


def _kept_schema(columns: Sequence[str]) -> pa.Schema:
    wide = {"warc_record_offset": pa.int64(), "warc_record_length": pa.int64(), "fetch_time": pa.timestamp("ms")}
    return pa.schema([(name, wide.get(name, _COLUMNS.field(name).type)) for name in columns])


def _require_columns(schema: pa.Schema, url: str) -> None:
    missing = [name for name in REQUIRED if name not in schema.names]
    if missing:
        message = f"{url} has no column {missing[0]}; it has {', '.join(schema.names)[:500]}: it is no index of a crawl"
        raise ContractError(message)


def _queried(rows: pa.Table | ds.Dataset, selection: Selection, columns: Sequence[str], where: str) -> pa.Table:
    """Return what DuckDB selects; it can open no file, and no other table is there. RecipeError for a wrong query."""
    import duckdb

    settings: dict[str, str | bool | int | float | list[str]] = {
        "enable_external_access": "false",
        "lock_configuration": "true",
        "threads": 1,
    }
    with duckdb.connect(config=settings) as connection:
        connection.register("entries", rows)
        try:
            (statement,) = connection.extract_statements(selection.sql(columns))
            return connection.sql(statement).to_arrow_table()
        except (duckdb.Error, ValueError) as error:
            message = f"{where}: {' '.join(str(error).split())[:300]}"
            raise RecipeError(message) from error


def _require_places(table: pa.Table, address: str) -> None:
    """Raise ContractError for places that cannot be, and for one that is there twice."""
    offsets, lengths = table["warc_record_offset"], table["warc_record_length"]
    names = table["warc_filename"]
    well = pc.and_(pc.greater_equal(offsets, 0), pc.and_(pc.greater(lengths, 0), pc.less_equal(lengths, MOST_BYTES)))
    well = pc.and_(well, pc.match_substring_regex(names, r"^crawl-data/[\w./-]+\.warc\.gz$"))
    well = pc.and_(well, pc.invert(pc.match_substring(names, "..")))
    wrong = pc.fill_null(pc.invert(well), fill_value=True)
    if pc.any(wrong).as_py():
        row = table.filter(wrong).slice(0, 1).to_pylist()[0]
        message = f"the index below {address} has a record at no possible place: {str(row)[:300]}; tell who made it"
        raise ContractError(message)
    places = table.select(["warc_filename", "warc_record_offset"])
    if places.group_by(places.column_names).aggregate([]).num_rows != table.num_rows:
        message = f"the index below {address} has two records at one place; tell who made it"
        raise ContractError(message)
