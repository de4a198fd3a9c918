"""Records of Common Crawl by a query on its columnar index: each is fetched by its place, and proved to be that record.

The chosen records of a crawl become archives of `RECORDS` records each, in the order of their places, so that equal
queries give equal archives. What was chosen lands beside them (`_records.parquet`), with where each record has landed.
"""

import os
import re
import threading
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline_tasks.constraints import Anywhere
from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.sealed import digest_of
from pipeline_tasks.store.local_store import flush, os_errors, sha256_of
from pipeline_tasks.store.temporary import user_folder
from refinery_sources import budget
from refinery_sources.budget import Stopped
from refinery_sources.common_crawl.columnar_index import (
    PLACES,
    SUBSETS,
    Selection,
    index_files,
    require_condition,
    selected,
)
from refinery_sources.common_crawl.files import (
    ADDRESS,
    LATEST,
    TERMS,
    CommonCrawl,
    chosen_numbers,
    of_crawl,
    require_query,
)
from refinery_sources.parquet_part import write_part
from refinery_sources.ranged import read_range
from refinery_sources.source import Flow, Occasion, Part, Received, Terms
from refinery_sources.web import Web

RECORDS = 1000
"""Records of an archive: about 30 MB, and as many requests at most."""

BESIDE = "_records.parquet"
"""The file that says which records were chosen."""

GAP = 16 * 1024
"""Bytes between two records that are fetched with them: one request costs the time of many more."""

AT_ONCE = 8 << 20
"""Bytes of one request, unless a record alone has more."""

INFLATED = 256 << 20
"""Bytes of an inflated record; Common Crawl cuts payloads at 5 MiB."""

_TARGET = re.compile(rb"(?im)^WARC-Target-URI:[ \t]*<?([^\r\n>]*)>?[ \t]*\r?$")
_DIGEST = re.compile(rb"(?im)^WARC-Payload-Digest:[ \t]*sha1:([A-Z2-7]{32})[ \t]*\r?$")

_tables: dict[str, pa.Table] = {}
_lock = threading.Lock()


class Place(NamedTuple):
    """Where a record is, and what proves that it is there: its URL, and the digest of its payload or ""."""

    path: str
    start: int
    size: int
    url: str
    digest: str


@dataclass(frozen=True, slots=True)
class CrawlRecords:
    """A query of the index of one crawl: `where` is SQL over its columns, such as `content_languages = 'deu'`.

    Of the records that meet it, `sample` takes a share and `records` a number (0: all), both by hashes with `seed`.
    `index` are numbers of index files, such as `0-9`, empty for all; each has a part of all hosts. `subset` is one of
    `SUBSETS`. The snapshot is called `name`, else after the recipe and the crawl.
    """

    crawl: str
    where: str = ""
    sample: float = 1.0
    records: int = 0
    seed: int = 0
    subset: str = SUBSETS[0]
    index: str = ""
    name: str = ""
    address: Anywhere = ADDRESS

    @property
    def snapshot(self) -> str:
        return self.name

    @property
    def cursor(self) -> str:
        return self.crawl

    @property
    def terms(self) -> Terms:
        return TERMS

    @property
    def typical_bytes(self) -> int:
        return 30_000 * RECORDS

    @property
    def asks(self) -> tuple[str, ...]:
        return CommonCrawl(self.crawl, address=self.address).asks

    @property
    def selection(self) -> Selection:
        """Which records of the index."""
        return Selection(self.where, self.sample, self.records, self.seed)

    def query(self) -> Mapping[str, Any]:
        return {
            "source": "common_crawl_records",
            "address": self.address,
            "crawl": self.crawl,
            "where": self.where,
            "sample": self.sample,
            "records": self.records,
            "seed": self.seed,
            "subset": self.subset,
            "index": self.index,
        }

    def resolved(self, occasion: Occasion) -> "CrawlRecords":
        """Return a query that names its crawl and snapshot; RecipeError for a condition that is none."""
        crawl = CommonCrawl(
            self.crawl, segments=self.index, sample=self.sample, files=self.records, address=self.address
        )
        require_query(crawl)
        if self.subset not in SUBSETS:
            message = f"subset {self.subset[:100]!a}: name one of {', '.join(SUBSETS)}"
            raise RecipeError(message)
        require_condition(self.selection)
        named = replace(self, crawl=crawl.resolved(occasion).crawl if self.crawl == LATEST else self.crawl)
        digest = digest_of(dict(named.query()))[:8]
        return replace(named, name=self.name or f"{occasion.name or digest}-{named.crawl}")

    def parts(self, web: Web) -> Sequence[Part]:
        table = self._selected(web)
        if not table.num_rows:
            message = f"no record of {self.crawl} meets the query; choose others by where, sample or index"
            raise RecipeError(message)
        files = [_part(self.crawl, at, _places(table.slice(at, RECORDS)), self.address) for at in _starts(table)]
        return [*files, Part(BESIDE, f"{self.address}/cc-index", rows=table.num_rows, requests=0)]

    def receive(self, web: Web, part: Part, partial: Path, flow: Flow) -> Received:
        table = self._selected(web)
        if part.name == BESIDE:
            landed = _with_landed(table, self.crawl)
            return write_part(landed.to_batches(), landed.schema, part, partial, web, flow)
        with os_errors(str(partial)):
            at = int(part.name.rpartition("-")[2].partition(".")[0]) * RECORDS
            return _received(web, self.address, _places(table.slice(at, RECORDS)), partial, flow, part.name)

    def _selected(self, web: Web) -> pa.Table:
        """Return what the query chooses: the index of a crawl never changes, so it is asked once per user."""
        digest = digest_of(dict(self.query()))
        with _lock:
            if digest not in _tables:
                kept = _kept(digest) or _keep(self._query_index(web), digest)
                _tables.clear()
                _tables[digest] = pq.read_table(kept)
            return _tables[digest]

    def _query_index(self, web: Web) -> pa.Table:
        crawl = CommonCrawl(self.crawl, address=self.address)
        files = of_crawl(crawl, web, lambda: index_files(web, self.address, self.crawl, self.subset))
        if self.index:
            numbers = chosen_numbers(self.index, len(files), f"index {self.index}: the index of {self.crawl} has files")
            files = [file for number, file in enumerate(sorted(files)) if number in numbers]
        return selected(web, self.address, files, self.selection)


def _kept(digest: str) -> Path | None:
    """Return the file of a query that was kept, if it is what was written: its name has the SHA-256 of its bytes."""
    files = user_folder(budget.PLACE).glob(f"records-{digest}-*.parquet")
    return next((path for path in files if path.stem.endswith(f"-{sha256_of(path)}")), None)


def _keep(table: pa.Table, digest: str) -> Path:
    folder = user_folder(budget.PLACE)
    temporary = folder / f"records-{digest}.{os.getpid()}"
    with os_errors(str(temporary)):
        pq.write_table(table, temporary)
        return temporary.replace(folder / f"records-{digest}-{sha256_of(temporary)}.parquet")


def _starts(table: pa.Table) -> range:
    return range(0, table.num_rows, RECORDS)


def _archive_name(crawl: str, at: int) -> str:
    return f"{crawl}-records-{at // RECORDS:05}.warc.gz"


def _with_landed(table: pa.Table, crawl: str) -> pa.Table:
    """Return the chosen records with where each lands: the name of its archive, and its first byte there."""
    lengths = table["warc_record_length"].to_numpy()
    ends = [lengths[at : at + RECORDS].cumsum() for at in _starts(table)]
    offsets = np.concatenate(ends or [lengths]) - lengths
    files = pa.array([_archive_name(crawl, at) for at in _starts(table)], pa.string())
    own = files.take(pa.array(np.arange(table.num_rows) // RECORDS))
    return table.append_column("file", own).append_column("offset", pa.array(offsets, pa.int64()))


def _part(crawl: str, at: int, places: Sequence[Place], address: str) -> Part:
    return Part(
        _archive_name(crawl, at),
        f"{address}/{places[0].path}",
        bytes=sum(place.size for place in places),
        rows=len(places),
        requests=sum(1 for _ in _spans(places)),
    )


def _places(table: pa.Table) -> list[Place]:
    digests = table["content_digest"].to_pylist() if "content_digest" in table.column_names else [""] * table.num_rows
    columns = [table[name].to_pylist() for name in (*PLACES, "url")]
    return [
        Place(path, start, size, url, digest or "")
        for path, start, size, url, digest in zip(*columns, digests, strict=True)
    ]


def _spans(places: Sequence[Place]) -> Iterator[Sequence[Place]]:
    """Yield the places that one request fetches: neighbors in one file."""
    begin = 0
    for at, (one, other) in enumerate(pairwise(places), 1):
        near = one.path == other.path and 0 <= other.start - one.start - one.size <= GAP
        if not near or other.start + other.size - places[begin].start > AT_ONCE:
            yield places[begin:at]
            begin = at
    yield places[begin:]


# --- Archives -----------------------------------------------------------------------------------------------------


def _received(on: Web, address: str, places: Sequence[Place], path: Path, flow: Flow, name: str) -> Received:
    """Append the records that are missing: those that a killed pull has left are checked as if they came now."""
    with path.open("r+b" if path.exists() else "w+b") as file:
        there = _checked(file, places, address)
        file.seek(sum(place.size for place in places[:there]))
        file.truncate()
        for span in _spans(places[there:]) if there < len(places) else ():
            if on.stop.is_set():
                raise Stopped
            for place, body in zip(span, _fetched(on, address, span), strict=True):
                _require_record(body, place, address)
                file.write(body)
                flow.on_bytes(name, len(body))
        flush(file)
    return Received(sum(place.size for place in places), sha256_of(path), rows=len(places))


def _checked(file: BinaryIO, places: Sequence[Place], address: str) -> int:
    """Return how many of the first records a file has whole."""
    for number, place in enumerate(places):
        body = file.read(place.size)
        try:
            _require_record(body, place, address)
        except ContractError:
            return number
    return len(places)


def _fetched(on: Web, address: str, span: Sequence[Place]) -> list[bytes]:
    start, stop = span[0].start, span[-1].start + span[-1].size
    body = read_range(on, f"{address}/{span[0].path}", start, stop)
    return [body[place.start - start : place.start - start + place.size] for place in span]


def _require_record(body: bytes, place: Place, address: str) -> None:
    """Raise ContractError unless bytes are one gzip member with the record that the index names."""
    inflater = zlib.decompressobj(16 + zlib.MAX_WBITS)
    try:
        record = inflater.decompress(body, INFLATED)
    except zlib.error as error:
        raise _damaged(place, address, str(error)) from error
    if not inflater.eof or inflater.unused_data or len(body) != place.size:
        raise _damaged(place, address, "they are not one whole gzip member")
    head = record[: record.find(b"\r\n\r\n")]
    target, digest = _TARGET.search(head), _DIGEST.search(head)
    same = [
        *([digest[1].decode() == place.digest] if digest and place.digest else []),
        *([target[1].decode(errors="replace") == place.url] if target else []),
    ]
    if (
        not head.startswith(b"WARC/1.") or not same or not same[0]
    ):  # a digest proves more than a URL, whose spelling varies
        raise _damaged(place, address, f"they are not the record of {place.url[:200]}")


def _damaged(place: Place, address: str, why: str) -> ContractError:
    return ContractError(
        f"{address}/{place.path} has no record of the index in its {place.size:,} bytes from {place.start:,} ({why}); "
        "run the same command again, or leave the record out by --where"
    )


SOURCE = CrawlRecords
