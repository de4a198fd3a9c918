"""Reads a file by the reader of its type, and writes the HTML that this gives as pages are written."""

from collections.abc import Sequence
from typing import cast

from pipeline_tasks.text.page.file_text import REFUSED, Drawer, FileRefused, Reader, function_at
from pipeline_tasks.text.page.sandbox_messages import Output, Result

BETWEEN = b"\n\n"
"""What is between the texts of pages, as between paragraphs."""


def reader_at(place: str) -> Reader:
    """Return the reader at a place."""
    return cast("Reader", function_at(place))


def drawing(place: str, number: int, width: int) -> str:
    """Return the method that gives a page of a file, so many pixels wide, by the drawer at a place, as PNG."""
    return f"{place}#{number}x{width}"


def read_file(body: bytes | memoryview, method: str, output: Output) -> Result:
    """Return the text of a file by the reader at a place, which is its method, or what a `drawing` gives."""
    place, is_drawn, page = method.partition("#")
    try:
        if is_drawn:
            return Result("done", _drawn(bytes(body), cast("Drawer", function_at(place)), page), method=method)
        found = reader_at(place)(bytes(body))
        text, blocks = written(found.parts, output, is_paged=found.is_paged)
    except FileRefused as refused:
        reason = str(refused)
        return Result("refused", detail=reason) if reason in REFUSED else Result("crash", detail="FileRefused")
    except Exception as error:  # noqa: BLE001 -- whatever a reader raises is the file's fault, and counted as that
        return Result("crash", detail=type(error).__name__)
    facts = found.title, found.language, found.published
    paged = (len(found.parts) if found.is_paged else 0, found.unread, found.is_cut)
    return Result("done", text, *facts, "", place, 0, None, blocks, *paged)


def _drawn(body: bytes, draw: Drawer, page: str) -> bytes:
    number, _, width = page.partition("x")
    return draw(body, int(number), int(width))


def written(parts: Sequence[str], output: Output, *, is_paged: bool) -> tuple[bytes, bytes]:
    """Return the text of all blocks of the parts as UTF-8, and the rows of `block_evidence` of these blocks."""
    import numpy as np  # the child of a sandbox that reads no files stays without it, and 200 MB smaller

    from pipeline_tasks.text.page.block_evidence import CERTAIN, END, PAGE, SCORE, START, unpacked
    from pipeline_tasks.text.page.block_text import all_blocks

    texts, rows, size = [], [], 0
    for number, part in enumerate(parts, 1):
        found = all_blocks(part, output)
        text, its = found.text.encode("utf-8", "ignore"), unpacked(found.blocks).copy()
        if not text:
            continue
        its[:, START : END + 1] += np.where(its[:, START : END + 1] >= 0, size, 0)
        its[:, SCORE] = CERTAIN
        its[:, PAGE] = number if is_paged else -1
        texts.append(text)
        rows.append(its)
        size += len(text) + len(BETWEEN)
    return BETWEEN.join(texts), b"".join(its.tobytes() for its in rows)
