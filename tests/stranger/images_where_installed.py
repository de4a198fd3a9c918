"""Pages of a PDF that are images are read by a model that a package brings, and join the text of their file."""

import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from stranger.capitals import Capitals, drawn

from pipeline_tasks.cards import stage_card
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.schema import PAGE
from pipeline_tasks.stages import read_images
from tests.refining import commit_parent, refined, rows

LINES = ["THE HARBOR WAS BUILT", "BY THE MEN OF THE VALLEY", "AND IT HELD FOR AGES"]
PRINTED = "A page that has its text as letters, and a second sentence that follows the first one."


def pdf(pages: Sequence[npt.NDArray[np.uint8] | str]) -> bytes:
    """Return a PDF whose pages are images, or have a text."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b""]
    kids = []
    for page in pages:
        first = len(objects) + 1
        kids.append(f"{first} 0 R")
        if isinstance(page, str):
            content = f"BT /F 12 Tf 50 700 Td ({page}) Tj ET".encode()
            objects += [
                f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {first + 1} 0 R "
                f"/Resources << /Font << /F << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>".encode(),
                b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
            ]
            continue
        tall, wide = page.shape
        content, data = b"q 612 0 0 792 0 0 cm /I Do Q", zlib.compress(page.tobytes())
        objects += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {first + 1} 0 R "
            f"/Resources << /XObject << /I {first + 2} 0 R >> >> >>".encode(),
            b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
            b"<< /Type /XObject /Subtype /Image /Width %d /Height %d /ColorSpace /DeviceGray /BitsPerComponent 8 "
            b"/Filter /FlateDecode /Length %d >>\nstream\n%s\nendstream" % (wide, tall, len(data), data),
        ]
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>".encode()
    body, places = b"%PDF-1.7\n", []
    for number, each in enumerate(objects, 1):
        places.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    count = len(objects) + 1
    end = b"xref\n0 %d\n0000000000 65535 f \n%strailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n"
    return body + end % (count, table, count, len(body))


def scan() -> npt.NDArray[np.uint8]:
    """Return a page as a scanner has it: letters that are dots."""
    page = drawn(LINES, 6)
    whole = np.full((page.shape[1] * 792 // 612, page.shape[1]), 255, np.uint8)
    whole[: page.shape[0]] = page
    return whole


@pytest.fixture(scope="module")
def pages() -> pa.Table:
    scanned = pdf([PRINTED, scan(), PRINTED.upper(), scan()])
    page = {"source": "crawl", "kind": "response", "type": "pdf", "url": "https://example.org/a", "file": "f"}
    kept = [{**page, "payload": scanned}, {**page, "payload": pdf([PRINTED])}]
    return pa.Table.from_pylist([*kept, {**page, "type": "html", "payload": b"<p>words</p>"}], PAGE)


def test_the_model_reads_what_a_scanner_made() -> None:
    from refinery_files.pdf_image import draw

    assert Capitals().read([draw(pdf([scan()]), 1, 1600)]) == ["\n".join(LINES)]


@pytest.mark.parametrize("on", ["local", "threads"])
def test_its_texts_join_those_of_their_files_where_their_pages_are(tmp_path: Path, pages: pa.Table, on: str) -> None:
    parent = commit_parent(tmp_path, [pages])
    path, read = refined(tmp_path, "read_images", parent, {"model": "capitals"}, on=on)
    [[first, second], none, html] = rows(tmp_path, read)["image_texts"].to_pylist()
    assert (first["page"], second["page"], none, html) == (2, 4, None, None)
    assert rows(tmp_path, read)["images_read"].to_pylist() == [1.0, None, None]
    _, done = refined(tmp_path, "extract", path, {"min_chars": 1, "types": ["html", "pdf"]})
    document = rows(tmp_path, done).to_pylist()[0]
    assert document["text"].split("\n\n") == [PRINTED, "\n".join(LINES), PRINTED.upper(), "\n".join(LINES)]
    assert (document["pages"], document["unread_pages"]) == (4, [])
    places = [(block["page"], document["text"][block["start"] : block["end"]]) for block in document["blocks"]]
    assert [(page, text.strip()) for page, text in places] == [
        *((1, PRINTED), (2, "\n".join(LINES)), (3, PRINTED.upper()), (4, "\n".join(LINES)))
    ]


def test_without_a_model_nothing_is_read_and_that_is_said(tmp_path: Path, pages: pa.Table) -> None:
    parent = commit_parent(tmp_path, [pages])
    path, read = refined(tmp_path, "read_images", parent)
    assert rows(tmp_path, read)["image_texts"].null_count == pages.num_rows
    card = stage_card("read_images")
    assert "no model" in str(card.idle(card.params(), {})[0])
    _, done = refined(tmp_path, "extract", path, {"min_chars": 1, "types": ["html", "pdf"]})
    assert rows(tmp_path, done)["unread_pages"].to_pylist() == [[2, 4], [], None]


def test_the_package_of_a_model_is_identity() -> None:
    card = stage_card("read_images")
    assert card.libraries_of(read_images.Params("capitals")) == ("pypdfium2", "refinery-stranger")
    assert card.libraries_of(read_images.Params()) == ()


def test_a_model_that_nobody_brings_is_told_the_nearest() -> None:
    with pytest.raises(RecipeError, match="did you mean 'capitals'"):
        read_images.Params("capital")
