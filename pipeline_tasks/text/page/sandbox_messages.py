"""The messages between a sandbox and its child: structs, windows of pages, answers, and access to shared files.

Parent and child share two files in memory. The parent writes a window of pages to one, the child its answers to the
other. Pipes carry the requests and their ends.
"""

import json
import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

Output = Literal["plain", "markdown"]
Outcome = Literal["done", "charset", "timeout", "crash", "refused"]
OUTCOMES: tuple[Outcome, ...] = ("done", "charset", "timeout", "crash", "refused")
REPAIR = "repair"
"""The method that undoes mojibake in a text, next to the methods of `main_text`."""

PLAIN = "plain"
"""The method of pages that are no HTML."""

WINDOW_BYTES = 4 << 20  # bytes of pages that are requested at once
REQUEST = struct.Struct("<QHIIQ")  # window number, length of the method's name, pages, bytes of heads and of all
PAGE = struct.Struct("<QHIB")  # lengths of body and content type, depth and bits of a page
ANSWER = struct.Struct("<QBIQqI")  # window number, outcome, repaired lines, lengths of text, blocks and facts
DONE = struct.Struct("<?Qd")  # whether this child ends, bytes of answers, seconds of its processor time so far
READY = b"+"
_LONGEST_TYPE = 1000  # bytes of a content type
_VECTORS = 1024  # buffers that a system call takes


class Page(NamedTuple):
    """What to work on: the bytes of a page and its `tags.survey`; or UTF-8 to repair."""

    body: bytes | memoryview
    content_type: str = ""
    depth: int = 0
    bits: int = 0


class Result(NamedTuple):
    """The result of a page: `text` as UTF-8, not yet in normal form, and the method that extracted it.

    `detail` describes an outcome other than `done`, by one of `file_text.REFUSED` if it is `refused`; `encoding` is
    what a page of markup was read in other than UTF-8; `blocks` is that of `main_text.Main`. A file has `pages`, 0
    without any, of which some are `unread`, and may be cut (`file_text.FileText`).
    """

    outcome: Outcome
    text: bytes | memoryview = b""
    title: str | None = None
    language: str | None = None
    published: str | None = None
    detail: str = ""
    method: str | None = None
    repaired: int = 0
    encoding: str | None = None
    blocks: bytes | memoryview | None = None
    pages: int = 0
    unread: tuple[int, ...] = ()
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds of processor time per page, and bytes of address space; the others: see `main_text`."""

    language: str = "English"
    seconds: float = 10.0
    memory: int = 4 << 30
    output: Output = "plain"
    beta: float = 1.0
    model: str = ""


def write_pages(file: int, method: str, pages: Sequence[Page]) -> tuple[int, int]:
    """Write a window of pages; return the bytes of its heads, and of all."""
    types = [page.content_type.encode()[:_LONGEST_TYPE] for page in pages]
    heads = [
        PAGE.pack(len(page.body), len(content_type), page.depth, page.bits)
        for page, content_type in zip(pages, types, strict=True)
    ]
    head = b"".join([method.encode(), *heads, *types])
    return len(head), write_at(file, [head, *(page.body for page in pages)], 0)


def read_pages(window: memoryview, name_size: int, head_size: int, count: int) -> Iterator[Page]:
    """Read the pages of a window, one after the other."""
    heads = [PAGE.unpack_from(window, name_size + nth * PAGE.size) for nth in range(count)]
    type_at, body_at = name_size + count * PAGE.size, head_size
    for size, type_size, depth, bits in heads:
        content_type = str(window[type_at : type_at + type_size], "utf-8", "ignore")
        yield Page(window[body_at : body_at + size], content_type, depth, bits)
        type_at, body_at = type_at + type_size, body_at + size


def write_answer(file: int, number: int, result: Result, at: int) -> int:
    """Write an answer, its head last, so that a reader never reads half of one; return where the next one goes."""
    named = (result.title, result.language, result.published, result.detail, result.method, result.encoding)
    of_file = json.dumps([result.pages, result.unread, result.is_cut]) if result.pages or result.is_cut else ""
    parts = [*(part or "" for part in named), of_file]
    joined = "\0".join(parts)
    if joined.count("\0") >= len(parts):
        joined = "\0".join(part.replace("\0", "") for part in parts)
    facts = joined.encode("utf-8", "ignore")
    end = write_at(file, [result.text, result.blocks or b"", facts], at + ANSWER.size)
    outcome = OUTCOMES.index(result.outcome)
    sizes = len(result.text), -1 if result.blocks is None else len(result.blocks), len(facts)
    os.pwrite(file, ANSWER.pack(number, outcome, result.repaired, *sizes), at)
    return end


def read_answers(file: int, number: int, size: int) -> Iterator[Result]:
    """Yield the answers to window `number`; what is behind them is of an earlier one, or unfinished."""
    body = memoryview(_read_at(file, size, 0))
    at = 0
    while at + ANSWER.size <= len(body):
        window, outcome, repaired, text, blocks, facts = ANSWER.unpack_from(body, at)
        start = at + ANSWER.size
        end = start + text + max(blocks, 0) + facts
        if window != number or end > len(body):
            return
        *named, of_file = str(body[end - facts : end], "utf-8").split("\0")
        title, language, published, detail, method, encoding = named
        pages, unread, is_cut = json.loads(of_file) if of_file else (0, (), False)
        yield Result(
            OUTCOMES[outcome],
            body[start : start + text],
            title or None,
            language or None,
            published or None,
            detail,
            method or None,
            repaired,
            encoding or None,
            body[start + text : end - facts] if blocks >= 0 else None,
            pages,
            tuple(unread),
            is_cut,
        )
        at = end


def write_at(file: int, parts: Sequence[bytes | memoryview], at: int) -> int:
    """Write `parts` one after the other from byte `at` of a file on; return where they end."""
    for start in range(0, len(parts), _VECTORS):
        some = parts[start : start + _VECTORS]
        size = sum(map(len, some))
        written = os.pwritev(file, some, at)
        if written < size:  # a call takes at most 2 GiB
            rest = memoryview(b"".join(some))[written:]
            while rest:
                rest = rest[os.pwrite(file, rest, at + size - len(rest)) :]
        at += size
    return at


def _read_at(file: int, size: int, at: int) -> bytes:
    """Read `size` bytes from byte `at` of a file on; a single read gives at most 2 GiB."""
    data = os.pread(file, size, at)
    return data if len(data) == size or not data else data + _read_at(file, size - len(data), at + len(data))
