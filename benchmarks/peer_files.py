"""Reads files by a peer, in the environment of `peers_files.txt`; the last line is a row for each file.

    python peer_files.py PEER FOLDER TURNS

A row has the HTML of blocks, `pages`, the numbers of pages that the peer calls `unread`, the processor `seconds`, and
`error` in place of them.
"""

import io
import json
import re
import sys
import time
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

Read = tuple[str, int, list[int]]


def paragraphs(pages: list[str]) -> str:
    """Return plain text as HTML: what has an empty line after it is a paragraph."""
    return "".join(f"<p>{escape(part)}</p>" for page in pages for part in re.split(r"\n\s*\n", page))


def pypdf(body: bytes) -> Read:
    """Read by pypdf."""
    from pypdf import PdfReader

    pages = [page.extract_text() for page in PdfReader(io.BytesIO(body)).pages]
    return paragraphs(pages), len(pages), []


def pdfminer(body: bytes) -> Read:
    """Read by pdfminer.six with its analysis of layout."""
    from pdfminer.high_level import extract_text

    pages = extract_text(io.BytesIO(body)).split("\f")[:-1]
    return paragraphs(pages), len(pages), []


def pypdfium2(body: bytes) -> Read:
    """Return the bare text of PDFium, in the order in which the file draws it."""
    import pypdfium2 as pdfium

    document = pdfium.PdfDocument(body)
    pages = [page.get_textpage().get_text_bounded() for page in document]
    return paragraphs(pages), len(pages), []


def pdf_inspector(body: bytes) -> Read:
    """Read by pdf-inspector, as Markdown; the pages are those that it would give to OCR."""
    import pdf_inspector as inspector

    found = inspector.process_pdf_bytes(body)
    return found.markdown or "", found.page_count, list(found.pages_needing_ocr)


def mammoth(body: bytes) -> Read:
    """Read DOCX by mammoth, as HTML."""
    import mammoth as reader

    return reader.convert_to_html(io.BytesIO(body)).value, 1, []


def docx2python(body: bytes) -> Read:
    """Read DOCX by docx2python."""
    from docx2python import docx2python as opened

    with opened(io.BytesIO(body)) as file:
        return paragraphs([file.text]), 1, []


def python_docx(body: bytes) -> Read:
    """Read DOCX by python-docx: its paragraphs, headings and tables in order."""
    from docx import Document
    from docx.table import Table

    parts = []
    for block in Document(io.BytesIO(body)).iter_inner_content():
        if isinstance(block, Table):
            rows = "".join(
                f"<tr>{''.join(f'<td>{escape(cell.text)}</td>' for cell in row.cells)}</tr>" for row in block.rows
            )
            parts.append(f"<table>{rows}</table>")
        else:
            level = re.fullmatch(r"Heading ([1-6])", block.style.name if block.style else "")
            tag = f"h{level[1]}" if level else "p"
            parts.append(f"<{tag}>{escape(block.text)}</{tag}>")
    return "".join(parts), 1, []


PEERS: dict[str, tuple[str, Callable[[bytes], Read]]] = {
    "pypdfium2": (".pdf", pypdfium2),
    "pdf_inspector": (".pdf", pdf_inspector),
    "pypdf": (".pdf", pypdf),
    "pdfminer": (".pdf", pdfminer),
    "mammoth": (".docx", mammoth),
    "docx2python": (".docx", docx2python),
    "python_docx": (".docx", python_docx),
}


def row_of(body: bytes, read: Callable[[bytes], Any], turns: int) -> dict[str, Any]:
    """Return the row of a file; its seconds are the least of some turns."""
    least = float("inf")
    for _ in range(turns):
        started = time.process_time()
        try:
            html, pages, unread = read(body)
        except Exception as error:  # noqa: BLE001 -- whatever a peer raises
            return {"error": type(error).__name__, "seconds": time.process_time() - started}
        least = min(least, time.process_time() - started)
    return {"html": html, "pages": pages, "unread": unread, "seconds": least}


def main() -> None:
    """Print the rows of a folder's files by name."""
    name, folder, turns = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    ending, read = PEERS[name]
    rows: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.rglob(f"*{ending}")):
        if not rows:
            row_of(path.read_bytes(), read, 1)  # imports are not counted
        rows[str(path.relative_to(folder))] = row_of(path.read_bytes(), read, turns)
    if name == "pdf_inspector":
        from markdown_it import MarkdownIt

        parser = MarkdownIt("commonmark").enable("table")
        for row in rows.values():
            row["html"] = parser.render(row.get("html", ""))
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
