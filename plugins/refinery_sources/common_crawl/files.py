"""Common Crawl: the files of a crawl by its own lists of paths, all of them or chosen by segment, share or number."""

import gzip
import hashlib
import io
import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from pipeline_tasks.constraints import Anywhere, Uri
from pipeline_tasks.errors import ContractError, RecipeError, RefineryError, SnapshotIncomplete
from pipeline_tasks.landing.listing import LISTING_BYTES, LISTING_LINES
from pipeline_tasks.nearest import nearest
from pipeline_tasks.store.named_store import StoreName
from refinery_sources.download import download
from refinery_sources.in_place import locate, query_of, require_bucket
from refinery_sources.source import Flow, Occasion, Part, Received, Terms
from refinery_sources.web import Web, fetched, require_address

T = TypeVar("T")

SHOWN = 5
"""Crawls that a refusal names."""

ADDRESS = "https://data.commoncrawl.org"

BUCKET = "s3://commoncrawl"
"""Where Common Crawl keeps what its address gives; its requests need the keys of an account of AWS."""

CRAWLS = "https://index.commoncrawl.org/collinfo.json"
"""List of all crawls; a mirror has it as `collinfo.json`."""

LATEST = "latest"

KINDS: Mapping[str, tuple[str, int]] = {
    "warc": (".warc.gz", 1_000_000_000),
    "wet": (".warc.wet.gz", 75_000_000),
    "robotstxt": (".warc.gz", 1_700_000),
}
"""Kinds of files: how their names end, and the bytes that one has in crawls since 2023, about."""

TERMS = Terms(
    "https://commoncrawl.org/terms-of-use",
    "Data of Common Crawl is used under Common Crawl's Terms of Use (https://commoncrawl.org/terms-of-use). The pages "
    "in it were crawled from the web; their copyright is with their publishers, and the terms give no right to them.",
)

_CRAWL = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*")
_SEGMENTS = re.compile(r"\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*")


@dataclass(frozen=True, slots=True)
class CommonCrawl:
    """A query of one crawl: `segments` are numbers of segments in the order of their names, such as `0-3,7`.

    Of these, `sample` takes a share of the files and `files` a number, 0 all; both follow from hashes of the paths with
    `seed`, so a larger sample has all files of a smaller one. `without` are names of files that are left out.

    With `in_place` the files stay in `bucket`, of the `store` that is named, and are read there.
    """

    crawl: str
    kind: str = "warc"
    segments: str = ""
    sample: float = 1.0
    files: int = 0
    seed: int = 0
    without: tuple[str, ...] = ()
    address: Anywhere = ADDRESS
    in_place: bool = False
    bucket: Uri = BUCKET
    store: StoreName = ""

    @property
    def snapshot(self) -> str:
        return self.crawl

    @property
    def cursor(self) -> str:
        return self.crawl

    @property
    def terms(self) -> Terms:
        return TERMS

    @property
    def typical_bytes(self) -> int:
        return KINDS[self.kind][1]

    @property
    def listing(self) -> str:
        """URL of the list of paths."""
        return f"{self.address}/crawl-data/{self.crawl}/{self.kind}.paths.gz"

    @property
    def asks(self) -> tuple[str, ...]:
        return (self.crawls,)

    @property
    def crawls(self) -> str:
        """URL of the list of crawls."""
        return CRAWLS if self.address == ADDRESS else f"{self.address}/collinfo.json"

    def query(self) -> Mapping[str, Any]:
        return {
            "source": "common_crawl",
            "address": self.address,
            "crawl": self.crawl,
            "kind": self.kind,
            "segments": self.segments,
            "sample": self.sample,
            "files": self.files,
            "seed": self.seed,
            "without": sorted(self.without),
            **({"bucket": self.bucket} if self.in_place else {}),
            **query_of(in_place=self.in_place, store=self.store),
        }

    def resolved(self, occasion: Occasion) -> "CommonCrawl":
        """Return a query that names its crawl; ContractError for a list of crawls that is none."""
        require_query(self)
        if self.crawl != LATEST:
            return self
        return replace(self, crawl=newest_crawl(occasion.web, self.crawls))

    def receive(self, web: Web, part: Part, partial: Path, flow: Flow) -> Received:
        return locate(web, part, self.store) if self.in_place else download(web, part, partial, flow)

    def parts(self, web: Web) -> Sequence[Part]:
        body = of_crawl(self, web, lambda: fetched(web, self.listing, LISTING_BYTES))
        paths = read_paths(body, self.listing, self.crawl, self.kind)
        chosen = self._chosen(paths)
        if not chosen:
            message = f"{self.listing} has {len(paths):,} files, and none of them is chosen; choose more"
            raise RecipeError(message)
        place = self.bucket.rstrip("/") if self.in_place else self.address
        return [Part(path_name(path), f"{place}/{path}") for path in chosen]

    def _chosen(self, paths: Sequence[str]) -> list[str]:
        """Return the paths that the query takes, in the order of the list."""
        unknown = set(self.without) - set(map(path_name, paths))
        if unknown:
            message = f"{self.listing} has no file {min(unknown)!a}; correct --without"
            raise RecipeError(message)
        taken = [
            path for path in _of_segments(paths, self.segments, self.listing) if path_name(path) not in self.without
        ]
        if self.sample < 1:
            taken = [path for path in taken if _share(path, self.seed) < self.sample]
        if self.files:
            fewest = set(sorted(taken, key=lambda path: (_share(path, self.seed), path))[: self.files])
            taken = [path for path in taken if path in fewest]
        return taken


def require_query(query: CommonCrawl) -> None:
    """Raise RecipeError for a query that makes no sense."""
    require_address(query.address)
    if query.in_place:
        require_bucket(query.bucket, in_place=True, store=query.store)
    wrong = {
        f"--crawl {query.crawl!a}: name a crawl, as CC-MAIN-2026-45, or latest": not _CRAWL.fullmatch(query.crawl),
        f"--segments {query.segments!a}: name numbers, as 0-3 or 0,5,7": (
            query.segments and not _SEGMENTS.fullmatch(query.segments)
        ),
        f"--sample {query.sample}: name a share above 0, up to 1": not 0 < query.sample <= 1,
        f"--files {query.files}: name a number of files above 0": query.files < 0,
        "store is of files that stay in place; write in_place: true, or remove it": query.store and not query.in_place,
    }
    for message, is_wrong in wrong.items():
        if is_wrong:
            raise RecipeError(message)


def of_crawl(query: CommonCrawl, web: Web, request: Callable[[], T]) -> T:
    """Return what a request of a crawl gives; RecipeError, which names crawls that there are, for an unknown crawl."""
    try:
        return request()
    except SnapshotIncomplete as error:
        try:
            known = listed_crawls(web, query.crawls)
        except RefineryError:
            raise error from None
        if query.crawl in known:
            raise
        newest = ", ".join(sorted(known, reverse=True)[:SHOWN])
        message = (
            f"--crawl {query.crawl}: {query.crawls} has no such crawl{nearest(query.crawl, known)}; the newest of "
            f"{len(known)} are {newest}"
        )
        raise RecipeError(message) from error


def newest_crawl(web: Web, url: str) -> str:
    """Return the newest crawl of a list of crawls; ContractError if it is none."""
    return max(listed_crawls(web, url))


def listed_crawls(web: Web, url: str) -> list[str]:
    """Return the crawls of a list, one or more; ContractError if it is no list of crawls."""
    body = fetched(web, url, LISTING_BYTES)
    try:
        crawls = [str(crawl["id"]) for crawl in json.loads(body)]
    except (ValueError, KeyError, TypeError) as error:
        message = f"{url} is no list of crawls ({str(error)[:100]!a}); name the crawl by --crawl"
        raise ContractError(message) from error
    named = [crawl for crawl in crawls if re.fullmatch(r"CC-MAIN-\d{4}-\d{2}", crawl)]
    if not named:
        message = f"{url} has no crawl CC-MAIN-YYYY-WW; name the crawl by --crawl"
        raise ContractError(message)
    return named


def read_paths(body: bytes, url: str, crawl: str, kind: str) -> list[str]:
    """Return the paths of a crawl's list; ContractError as `read_lines`, and for a path of another place or twice."""
    lines = read_lines(body, url)
    _require_paths(lines, url, crawl, kind)
    return lines


def listed_paths(web: Web, url: str) -> list[str]:
    """Return the paths of a list at its source; SnapshotIncomplete if there is none, ContractError as `read_lines`."""
    return read_lines(fetched(web, url, LISTING_BYTES), url)


def read_lines(body: bytes, url: str) -> list[str]:
    """Return the lines of a gzipped list; ContractError for one that is cut or empty."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(body)) as stream:
            lines = stream.read(LISTING_BYTES + 1).decode("ascii").splitlines()
            is_whole = not stream.read(1)
    except (EOFError, OSError, zlib.error, UnicodeDecodeError) as error:
        message = f"{url} is cut or damaged ({error}); run the same command again, later"
        raise ContractError(message) from error
    if not is_whole or len(lines) > LISTING_LINES:
        message = f"{url} has more than {LISTING_BYTES:,} bytes or {LISTING_LINES:,} lines; it is no list of a crawl"
        raise ContractError(message)
    if not lines:
        message = f"{url} is empty: it lists no files; run the same command again, later"
        raise ContractError(message)
    return lines


def _require_paths(lines: Sequence[str], url: str, crawl: str, kind: str) -> None:
    ending = re.escape(KINDS[kind][0])
    path = re.compile(rf"crawl-data/{re.escape(crawl)}/segments/[0-9][0-9.]*/{kind}/[A-Za-z0-9][A-Za-z0-9._-]*{ending}")
    for number, line in enumerate(lines, 1):
        if not path.fullmatch(line):
            message = (
                f"{url} has in line {number:,} {line[:200]!a}, which is no {kind} file of {crawl}; nothing of the list "
                "is downloaded: tell who made it"
            )
            raise ContractError(message)
    name, times = Counter(map(path_name, lines)).most_common(1)[0]
    if times > 1:
        message = f"{url} has {times} files that are named {name}; a landing has one of each name"
        raise ContractError(message)


def _of_segments(paths: Sequence[str], segments: str, url: str) -> Sequence[str]:
    if not segments:
        return paths
    names = sorted({_segment(path) for path in paths})
    wanted = {
        names[number] for number in chosen_numbers(segments, len(names), f"--segments {segments}: {url} has segments")
    }
    return [path for path in paths if _segment(path) in wanted]


def chosen_numbers(spans: str, count: int, where: str) -> set[int]:
    """Return the numbers that `0-3,7` names; RecipeError for those that are not below `count`."""
    chosen: set[int] = set()
    for span in spans.split(","):
        first, _, last = span.partition("-")
        start, stop = int(first), int(last or first) + 1
        if not start < stop <= count:
            message = f"{where} 0 to {count - 1}, and no {span}"
            raise RecipeError(message)
        chosen.update(range(start, stop))
    return chosen


def _segment(path: str) -> str:
    return path.split("/")[3]


def path_name(path: str) -> str:
    """Return the last component of a path: the name of its file in a landing."""
    return path.rpartition("/")[2]


def _share(path: str, seed: int) -> float:
    """Return a number in [0, 1) that follows from a path and the seed."""
    return int.from_bytes(hashlib.sha256(f"{seed}:{path}".encode()).digest()[:8]) / 2**64


SOURCE = CommonCrawl

FORM: Mapping[str, Mapping[str, Any]] = {
    "crawl": {"title": "Crawl", "description": "An id, as CC-MAIN-2026-45, or latest"},
    "kind": {"title": "Kind", "description": "Pages, or extracted texts", "enum": [*KINDS]},
    "segments": {"title": "Segments", "description": "By number, as 0-3 or 0,5,7-9; empty: all"},
    "sample": {"title": "Share", "description": "A share of the files", "maximum": 1},
    "files": {"title": "Files", "description": "This many of them; 0: all", "minimum": 0},
    "seed": {"section": "Advanced", "description": "Which files a number or a share takes"},
    "without": {"section": "Advanced", "description": "Names of files to leave out"},
    "address": {"section": "Advanced", "description": "Common Crawl, or a mirror"},
    "in_place": {
        "title": "In place",
        "section": "Advanced",
        "description": "Read files where they are, without a copy",
    },
    "bucket": {"section": "Advanced", "description": "Where they are then"},
}
"""What the form of a run says of the fields of a query."""
