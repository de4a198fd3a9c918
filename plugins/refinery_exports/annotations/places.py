"""Finds where landed records are in Common Crawl's files, by a list of their paths, or by what landed beside them."""

import gzip
import io
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.schema import Array
from pipeline_tasks.sealed import require_digest
from pipeline_tasks.store import storage

pc: Any = pyarrow.compute

RECORDS = pa.schema(
    [
        pa.field("file", pa.string()),  # the landed file, and the first byte of the record there
        pa.field("offset", pa.int64()),
        pa.field("warc_filename", pa.string()),  # the same of the crawl
        pa.field("warc_record_offset", pa.int64()),
    ]
)
"""Columns of a table of places, which lands beside records that were pulled one by one."""

SUBSET = "warc"
"""The subset of a record whose file's path does not say another."""

_PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)*")
_CRAWL = r"^crawl-data/(?P<crawl>[\w-]+)/"
_SUBSET = r"/(?P<subset>warc|robotstxt|crawldiagnostics)/[^/]+$"


@dataclass(frozen=True, slots=True)
class Listed:
    """A file of places, and the SHA-256 of its bytes."""

    uri: str
    digest: str

    @classmethod
    def at(cls, uri: str) -> "Listed":
        """Return a file of places; RecipeError if there is none."""
        address = storage.absolute(uri)
        try:
            return cls(address, storage.digest_of_file(address)[1])
        except FileNotFoundError as error:
            message = f"--places {uri} is not there; name a crawl's warc.paths.gz, or _records.parquet of a landing"
            raise RecipeError(message) from error


@dataclass(frozen=True, slots=True)
class Places:
    """Paths of whole files by their names, and `RECORDS` that were pulled one by one.

    Without both, records are where they landed: the index has the path of the file before its name.
    """

    paths: pa.Table
    records: pa.Table

    def of(self, files: pa.Array, offsets: pa.Array) -> tuple[pa.Array, pa.Array]:
        """Return in which file of the crawl records are that landed in `files`, and at which byte; null if unknown."""
        if not self.paths.num_rows and not self.records.num_rows:
            return files, offsets
        records = self.records.filter(pc.is_in(self.records["file"], value_set=files))
        one = pc.index_in(_places(files, offsets), value_set=_places(records["file"], records["offset"]))
        whole = pc.index_in(files, value_set=self.paths["file"])
        names = pc.coalesce(_taken(records["warc_filename"], one), _taken(self.paths["warc_filename"], whole))
        known = pc.if_else(pc.is_valid(whole), offsets, pa.scalar(None, pa.int64()))
        return names, pc.coalesce(_taken(records["warc_record_offset"], one), known)


def crawls(files: Array, snapshots: Array) -> Array:
    """Return the crawl that each path is of, the name of the snapshot for one that says none."""
    return pc.coalesce(pc.struct_field(pc.extract_regex(files, _CRAWL), ["crawl"]), snapshots)


def subsets(files: Array) -> Array:
    """Return the subset of the index that each path is of."""
    return pc.coalesce(pc.struct_field(pc.extract_regex(files, _SUBSET), ["subset"]), SUBSET)


def _places(files: Array, offsets: Array) -> Array:
    return pc.binary_join_element_wise(files, offsets.cast(pa.string()), ":")


def _taken(column: pa.ChunkedArray, at: pa.Array) -> pa.Array:
    return column.combine_chunks().take(at)


@lru_cache(maxsize=1)
def read_places(listed: tuple[Listed, ...]) -> Places:
    """Return what files of places say together; RecipeError for one that is none, or says other than another."""
    paths: dict[str, str] = {}
    tables = [RECORDS.empty_table()]
    for each in listed:
        folder, _, name = each.uri.rpartition("/")
        body = storage.connect(folder).read(name)
        require_digest(body, each.digest, each.uri, "export again, to another place")
        if body.startswith(b"PAR1"):
            tables.append(_records(body, each.uri))
        else:
            _add_paths(paths, _lines(body, each.uri), each.uri)
    records = pa.concat_tables(tables).combine_chunks()
    keys = pa.table({"key": _places(records["file"], records["offset"])})
    if keys.group_by("key").aggregate([]).num_rows != records.num_rows:
        message = f"--places {' '.join(each.uri for each in listed)} have a record twice; name those of one landing"
        raise RecipeError(message)
    return Places(pa.table({"file": [*paths], "warc_filename": [*paths.values()]}, _PATHS), records)


_PATHS = pa.schema([pa.field("file", pa.string()), pa.field("warc_filename", pa.string())])


def _records(body: bytes, uri: str) -> pa.Table:
    try:
        return pq.read_table(io.BytesIO(body), columns=RECORDS.names).select(RECORDS.names).cast(RECORDS)
    except (pa.ArrowException, KeyError) as error:
        message = (
            f"--places {uri} is no table with {', '.join(RECORDS.names)}; name _records.parquet of a landing that this "
            "release pulled"
        )
        raise RecipeError(message) from error


def _lines(body: bytes, uri: str) -> Sequence[str]:
    try:
        text = gzip.decompress(body) if body.startswith(b"\x1f\x8b") else body
        lines = text.decode("ascii").split()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        message = f"--places {uri} is cut, or no list of paths ({error}); download it again"
        raise RecipeError(message) from error
    wrong = next((line for line in lines if not _PATH.fullmatch(line)), None)
    if wrong is not None or not lines:
        message = f"--places {uri} is no list of paths ({(wrong or '')[:100]!a}); name a crawl's warc.paths.gz"
        raise RecipeError(message)
    return lines


def _add_paths(paths: dict[str, str], lines: Sequence[str], uri: str) -> None:
    for line in lines:
        name = line.rpartition("/")[2]
        if paths.setdefault(name, line) != line:
            message = f"--places {uri} has {line}, and {paths[name]} has the same name; name lists of other crawls"
            raise RecipeError(message)


def require_known(names: pa.Array, files: pa.Array) -> None:
    """Raise ContractError for a record whose place is not known."""
    if names.null_count:
        file = files[pc.index(pc.is_null(names), True).as_py()].as_py()
        message = f"{file} has a record that no file of --places has; name the list of the crawl that it is of, too"
        raise ContractError(message)
