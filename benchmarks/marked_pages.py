"""Writes the pages of two development snapshots that were marked by hand, for `refinery model extractor`.

Usage: PYTHONPATH=. python benchmarks/marked_pages.py SNAPSHOT... --output pages.jsonl

`marked_pages.jsonl.gz` has a line for each page: its digest, address, language, type, origin and licence, and
`kept`: a digest of the words of each block that is main text, in order. The pages themselves are third parties'
and in no file of this project.
"""

import argparse
import gzip
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from fastwarc.warc import ArchiveIterator, WarcRecordType

from pipeline_tasks.text.blocks.blocks import read_blocks
from pipeline_tasks.text.blocks.reading import B_KIND, HEADED
from pipeline_tasks.text.page.charset import decode

MARKS = Path(__file__).parent / "marked_pages.jsonl.gz"
WEIGHT = 3.0
"""Of a page in training: what was marked word by word says more than what a benchmark keeps of an article."""

_WORD = re.compile(r"\w+")


def block_texts(html: str) -> list[tuple[str, bool]]:
    """Return the text of each block of a page, in order, and whether it is a heading."""
    blocks = read_blocks(np.frombuffer(html.encode("utf-8", "ignore"), np.uint8))
    texts = [
        blocks.text[start:end].tobytes().decode("utf-8", "replace")
        for start, end in zip(blocks.starts, blocks.ends, strict=True)
    ]
    return list(zip(texts, (blocks.table[:, B_KIND] == HEADED).tolist(), strict=True))


def words_digest(text: str) -> str:
    """Return ten digits of the digest of a text's words in small letters."""
    return hashlib.sha256(" ".join(_WORD.findall(text.lower())).encode()).hexdigest()[:10]


def marks() -> dict[str, dict[str, Any]]:
    """Return the marks of each page by the SHA-1 of its payload."""
    with gzip.open(MARKS, "rt", encoding="utf-8") as lines:
        return {mark["payload_sha1"]: mark for mark in map(json.loads, lines)}


def payloads(snapshots: list[str]) -> Iterator[tuple[str, bytes, str]]:
    """Yield digest, payload and type of each response of the snapshots."""
    for path in sorted(path for folder in snapshots for path in Path(folder).glob("*.warc.gz")):
        with path.open("rb") as stream:
            for record in ArchiveIterator(stream, record_types=WarcRecordType.response):
                body = record.reader.read()
                kind = record.http_headers.get("Content-Type", "") if record.http_headers else ""
                yield hashlib.sha1(body, usedforsecurity=False).hexdigest(), body, kind


def marked_page(mark: dict[str, Any], html: str) -> dict[str, Any]:
    """Return a page with its main text: the blocks whose digests are marked, each as often as it is.

    A heading rather than the line of a list of contents that says the same.
    """
    left, blocks = Counter(mark["kept"]), block_texts(html)
    kept = list[int]()
    for at in sorted(range(len(blocks)), key=lambda at: not blocks[at][1]):
        digest = words_digest(blocks[at][0])
        if left[digest]:
            left[digest] -= 1
            kept.append(at)
    named = {name: mark[name] for name in ("url", "language", "page_type")}
    return {
        "id": mark["payload_sha1"],
        **named,
        "weight": WEIGHT,
        "html": html,
        "main_content": "\n".join(blocks[at][0] for at in sorted(kept)),
    }


def main() -> None:
    """Write each marked page that the snapshots have, once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("snapshots", nargs="+", metavar="SNAPSHOT", help="folders with WARC files")
    parser.add_argument("--output", required=True)
    options = parser.parse_args()
    left = marks()
    with Path(options.output).open("w", encoding="utf-8") as output:
        for digest, body, kind in payloads(options.snapshots):
            mark = left.pop(digest, None)
            if mark is not None:
                output.write(json.dumps(marked_page(mark, decode(body, kind).text), ensure_ascii=False) + "\n")
    print(f"{len(left)} marked pages are in none of the snapshots")


if __name__ == "__main__":
    main()
