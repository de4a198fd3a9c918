"""Writes crawls of any size from real pages: each copy of a page has other words of about the same frequency.

    python benchmarks/varied_crawl.py --output FOLDER --megabytes 1600 [--input SNAPSHOT] [--seed 0]

The pages of the source snapshot are written again and again until there is enough HTML. In each copy of the source the
words of a class are exchanged for one another: words of one language, script, length and case, whose frequencies are
within a factor of two. The exchange is one to one and holds for the whole copy. So markup, lengths, repetitions,
languages and the duplicates within a copy stay as they are in the source, and no two copies have the same sentences.
The words that make a thousandth or more of a language stay: without its articles and prepositions a text has no
language. The vocabulary does not grow with the crawl. The same arguments give the same bytes.

Files are WARC with a gzip member per record, a request and a response of each page. Without --input the source is the
demo's own crawl.
"""

import argparse
import hashlib
import re
import shutil
import tempfile
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from http import HTTPStatus
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import documents
import numpy as np

from pipeline_tasks.demo import warc
from pipeline_tasks.landing import formats
from pipeline_tasks.text.page.charset import decode

MEGABYTE = 10**6
FILE_BYTES = 50 * MEGABYTE
"""HTML in one file; the sizes that are compared then have different numbers of files, and files of one size."""

FREQUENT = 1000
"""A word that makes this part of its language or more stays as it is."""

_MARKUP = r"<(?:script|style)\b.*?</(?:script|style)\s*>|<!--.*?-->|<[^<>]*>|&#?\w{1,30};"
_LETTERS = (
    "[\u0600-\u06ff]+"  # Arabic
    "|[\u0900-\u0dff]+"  # the scripts of India
    "|[\u3400-\u9fff]{1,2}"  # Han, which has no spaces; kana stay, as they carry the grammar
    "|[^\\W\\d_\u3040-\u30ff\u3400-\u9fff]+"
)
_TOKEN = re.compile(f"{_MARKUP}|({_LETTERS})", re.DOTALL | re.IGNORECASE)

Numbers = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class Page:
    """A page cut at its words: the bytes between them, one more than words, and the number of each word."""

    url: str
    date: str
    between: tuple[bytes, ...]
    words: Numbers

    def written(self, vocabulary: Any) -> bytes:  # noqa: ANN401 -- an array of bytes objects
        """Return the page with the words of a vocabulary."""
        parts: list[bytes] = [b""] * (2 * len(self.between) - 1)
        parts[0::2] = self.between
        parts[1::2] = vocabulary[self.words].tolist()
        return b"".join(parts)


@dataclass(slots=True)
class Words:
    """The vocabulary of the source: (language, word) by number, and how often each occurs."""

    numbers: dict[tuple[str, str], int] = field(default_factory=dict)
    counts: Counter[int] = field(default_factory=Counter)

    def number(self, language: str, word: str) -> int:
        """Return the number of a word, and count it."""
        number = self.numbers.setdefault((language, word), len(self.numbers))
        self.counts[number] += 1
        return number


class Source(NamedTuple):
    """Real pages, their vocabulary, and the numbers of the words of each class."""

    pages: list[Page]
    words: list[str]
    classes: list[Numbers]

    def vocabulary(self, seed: int, copy: int) -> Any:  # noqa: ANN401 -- an array of bytes objects
        """Return the words of a copy: those of each class, turned by a number that follows from seed and copy."""
        order = np.arange(len(self.words))
        for rank, members in enumerate(self.classes):
            drawn = int.from_bytes(hashlib.blake2b(f"{seed} {copy} {rank}".encode(), digest_size=8).digest(), "big")
            order[members] = np.roll(members, drawn % len(members))
        encoded = np.array([word.encode() for word in self.words], dtype=object)
        return encoded[order]


def read_source(snapshot: Path) -> Source:
    """Read the HTML pages of a snapshot, with the languages that Refinery's own filter finds."""
    languages, words = languages_of(snapshot), Words()
    pages = [_page(row, languages.get(row["url"], ""), words) for row in responses(snapshot)]
    return Source(pages, [word for _, word in words.numbers], classes_of(words))


def responses(snapshot: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a snapshot that have an HTML page."""
    for path in sorted(snapshot.glob("*.warc*")):
        with path.open("rb") as stream:
            for batch in formats.read_records(path.name, stream, snapshot=snapshot.name):
                rows = (row for row in batch.to_pylist() if row["kind"] == "response" and not row["error"])
                good = (row for row in rows if row["payload"] and row["status"] == HTTPStatus.OK)
                yield from (row for row in good if "html" in (row["content_type"] or ""))


def languages_of(snapshot: Path) -> dict[str, str]:
    """Return the language of each URL of a snapshot that the language filter keeps."""
    with tempfile.TemporaryDirectory(prefix="refinery-bench-") as root:
        kept = documents.after("filter_language", [snapshot], Path(root), ("url", "language"))
    return dict(zip(kept["url"].to_pylist(), kept["language"].to_pylist(), strict=True))


def _page(row: dict[str, Any], language: str, words: Words) -> Page:
    text = decode(row["payload"], row["content_type"] or "").text
    between, numbers, behind = [], [], 0
    for token in _TOKEN.finditer(text):
        if token[1]:
            between.append(text[behind : token.start()].encode("utf-8", "replace"))
            numbers.append(words.number(language, token[1]))
            behind = token.end()
    between.append(text[behind:].encode("utf-8", "replace"))
    return Page(row["url"], row["crawled_at"], tuple(between), np.array(numbers, dtype=np.int64))


def classes_of(words: Words) -> list[Numbers]:
    """Return the words that may be exchanged for one another, in the order of their first words."""
    totals: Counter[str] = Counter()
    for (language, _), number in words.numbers.items():
        totals[language] += words.counts[number]
    classes: dict[tuple[object, ...], list[int]] = {}
    for (language, word), number in words.numbers.items():
        often = words.counts[number]
        if often * FREQUENT < totals[language] or often == 1:
            key = (language, _script(word[0]), len(word), _case(word), often.bit_length())
            classes.setdefault(key, []).append(number)
    return [np.array(members) for members in classes.values() if len(members) > 1]


@lru_cache(maxsize=1 << 16)
def _script(letter: str) -> str:
    return unicodedata.name(letter, "unknown").split()[0]


def _case(word: str) -> int:
    return (word[0].isupper() << 1) | (word[-1].isupper())


def exchanges(source: Source, seed: int) -> Iterator[warc.Exchange]:
    """Yield pages without end, copy after copy, each copy in an order of its own and below hosts of its own."""
    for copy in count():
        vocabulary = source.vocabulary(seed, copy)
        for page in sorted(source.pages, key=lambda page: hashlib.md5(f"{copy} {page.url}".encode()).digest()):  # noqa: S324 -- an order, not a secret
            scheme, mark, rest = page.url.partition("://")
            body = page.written(vocabulary)
            headers = (("Content-Type", "text/html; charset=utf-8"), ("Content-Length", str(len(body))))
            yield warc.Exchange(f"{scheme}{mark}v{copy}.{rest}", page.date, "200 OK", headers, body)


class Volume(NamedTuple):
    """How much to write: bytes of HTML (or files, whichever is reached first), and bytes of HTML in a file."""

    html: int
    file: int = FILE_BYTES
    files: int = 1 << 60


def write(folder: Path, pages: Iterator[warc.Exchange], volume: Volume) -> int:
    """Write files until there is enough; return the bytes of HTML in them."""
    folder.mkdir(parents=True)
    written = 0
    for number in range(volume.files):
        if written >= volume.html:
            break
        written += _write_file(folder / f"varied-{number:05}.warc.gz", pages, min(volume.file, volume.html - written))
    return written


def _write_file(path: Path, pages: Iterator[warc.Exchange], size: int) -> int:
    written = 0
    with path.open("wb") as file:
        file.write(_member(warc.warcinfo(path.name, "2026-11-20T00:00:00Z")))
        for exchange in pages:
            identifier = warc.record_id(path.name, exchange.url, exchange.date)
            file.write(_member(warc.request(exchange, identifier)))
            file.write(_member(warc.response(exchange, identifier)))
            written += len(exchange.body)
            if written >= size:
                break
    return written


def _member(record: bytes) -> bytes:
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    return packer.compress(record) + packer.flush()


def source_of(inputs: Sequence[str]) -> Path:
    """Return the snapshot to vary: the first that is named, else the development data's, else the demo's crawl."""
    if inputs:
        return Path(inputs[0])
    return documents.SNAPSHOT if documents.SNAPSHOT.exists() else documents.demo_crawl() / "2026-11-19"


def main() -> None:
    """Write a crawl."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", action="append", default=[])
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--megabytes", type=int, default=100, help="MB of HTML in all")
    parser.add_argument("--file", type=int, default=FILE_BYTES // MEGABYTE, help="MB of HTML in a file")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    source = read_source(source_of(options.input))
    volume = Volume(options.megabytes * MEGABYTE, options.file * MEGABYTE)
    written = write(options.output, exchanges(source, options.seed), volume)
    print(f"{written / MEGABYTE:.1f} MB of HTML from {len(source.pages):,} pages, {len(source.words):,} words")
    remove_demo()


def remove_demo() -> None:
    """Remove the demo's crawl if it was the source."""
    if documents.demo_crawl.cache_info().currsize:
        shutil.rmtree(documents.demo_crawl())
        documents.demo_crawl.cache_clear()


if __name__ == "__main__":
    main()
