"""A document of a file with pages is shown by its pages: on the command line as text, in the web UI as images."""

import io
import re
import sys
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refinery_study.read import page_lines
from refinery_study.read.beside import LandedPage, landed_page
from refinery_study.read.sample import Choice, Sampled, sample

from pipeline_tasks import api
from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.file_types import brought_types, type_names
from pipeline_tasks.inspect.document import blocks_of, document
from pipeline_tasks.inspect.page_again import Landed, draw_pages
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.text.page.sandbox_messages import Page
from tests.archives import http, response, zipped
from tests.file_types.hostile_pdfs import CATALOG, FONT, PAGE, stream, written

pytestmark = pytest.mark.skipif("pdf" not in type_names(), reason="no package brings the type pdf here")

LINES = {
    1: [f"The harbor lies at the mouth of the river, and line {number} says so." for number in range(9)],
    2: [f"Whoever asks writes to keeper{number}@harbor-office.org for the tables." for number in range(9)],
}
TYPES = {"types": ["html", "text", "pdf"]}


def text_of(lines: list[str]) -> bytes:
    drawn = b"".join(b"(%s) Tj 0 -20 Td " % line.encode() for line in lines)
    return b"BT /F 12 Tf 72 720 Td " + drawn + b"ET"


def pdf(*contents: bytes) -> bytes:
    """A PDF with a page for each content."""
    kids = b" ".join(b"%d 0 R" % (4 + 2 * at) for at in range(len(contents)))
    objects = [CATALOG, b"<</Type/Pages/Kids[%s]/Count %d>>" % (kids, len(contents)), FONT]
    for at, content in enumerate(contents):
        page = PAGE.replace(b"/Contents 4 0 R", b"/Contents %d 0 R" % (5 + 2 * at)).replace(b"/F 5 0 R", b"/F 3 0 R")
        objects += [page, stream(content)]
    return written(objects)


FILE = pdf(*map(text_of, LINES.values()))


def refined(folder: Path, stages: Mapping[str, Any]) -> tuple[str, Version]:
    archive = zipped([response("https://harbor.org/tables.pdf", http(FILE, headers="Content-Type: application/pdf"))])
    (folder / "crawl").mkdir()
    (folder / "crawl" / "a.warc.gz").write_bytes(b"".join(archive))
    recipe = api.recipe([*stages.items()], "mine")
    override = dict.fromkeys((*stages, "publish"), "a test")
    api.refine(folder / "crawl", folder / "root", recipe, snapshot="monday", override=override)
    return str(folder / "root"), version_log.current(str(folder / "root"), "mine")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Version]:
    return refined(tmp_path_factory.mktemp("pages"), {"ingest": TYPES, "extract": {}})


def only(root: str, version: Version) -> Sampled:
    [found] = sample(root, version, Choice(kept=9, rejected=9))
    return found


def test_a_document_of_a_file_names_its_pages(root: tuple[str, Version], capsys: pytest.CaptureFixture[str]) -> None:
    found = only(*root)
    assert main(["document", found.id, root[0], "--blocks"]) == 0
    printed = capsys.readouterr().out
    assert "PDF file of 2 pages" in printed
    assert re.search(r"blocks +\d+ blocks in its file, \d+ kept: page, words, text", printed)
    assert re.search(r"kept +1 +\d+  The harbor lies", printed)
    assert re.search(r"kept +2 +\d+  Whoever asks", printed)
    [record] = document(*root, found.id).records
    blocks = blocks_of(*root, record)
    assert blocks is not None
    assert (blocks.why_not, {block.page for block in blocks.blocks}) == ("", {1, 2})


def test_the_pages_of_a_file_are_shown_beside_its_text(root: tuple[str, Version]) -> None:
    page = landed_page(*root, only(*root))
    assert [(each.number, each.is_read, each.is_withheld) for each in page.pages] == [
        (1, True, False),
        (2, True, False),
    ]
    assert all(line.is_kept for line in page.lines)
    printed = list(page_lines(page))
    assert printed[1] == "--- page 1 of 2"
    assert printed[printed.index("--- page 2 of 2") + 1].startswith("  Whoever asks writes")
    for each in page.pages:
        pixels = decoded(each.image)
        assert pixels.shape[1] == 900
        assert 0.001 < (pixels < 128).mean() < 0.2, "black on white"
        assert each.address.startswith("data:image/png;base64,")


def test_the_command_draws_pages_into_a_folder(
    root: tuple[str, Version], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("q\n"))
    assert main(["read", root[0], "--kept", "1", "--rejected", "0", "--images", str(tmp_path / "drawn")]) == 0
    found = only(*root)
    assert f"--- page 2 looks as {tmp_path / 'drawn' / f'{found.id}-2.png'}" in capsys.readouterr().err
    assert [decoded(path.read_bytes()).shape[1] for path in sorted((tmp_path / "drawn").iterdir())] == [900, 900]
    monkeypatch.setattr(sys, "stdin", io.StringIO("q\n"))
    inside = ["--images", f"{root[0]}/drawn"]
    assert main(["read", root[0], "--kept", "1", "--rejected", "0", *inside]) == RecipeError.exit_code


def decoded(image: bytes) -> Any:
    """The pixels of an image as `pdf_image` writes it."""
    assert image.startswith(b"\x89PNG\r\n\x1a\n")
    wide, tall = (int.from_bytes(image[at : at + 4]) for at in (16, 20))
    size = int.from_bytes(image[33:37])
    rows = np.frombuffer(zlib.decompress(image[41 : 41 + size]), np.uint8).reshape(tall, 1 + 3 * wide)
    return rows[:, 1:].reshape(tall, wide, 3)


def test_an_image_is_withheld_where_its_text_lacks_personal_data(tmp_path: Path) -> None:
    root, version = refined(tmp_path, {"ingest": TYPES, "extract": {}, "dedup_exact": {}, "scrub_pii": {}})
    page = landed_page(root, version, only(root, version))
    assert [(bool(each.image), each.is_withheld) for each in page.pages] == [(True, False), (False, True)]
    assert not any("keeper" in line.text for line in page.lines)


def test_a_page_that_cannot_be_drawn_is_left_out(root: tuple[str, Version]) -> None:
    card = brought_types()["pdf"]
    assert [number for number, _ in draw_pages(Landed(Page(FILE), "pdf", card), [1, 3, 2], 40)] == [1, 2]
    assert not list(draw_pages(Landed(Page(b"%PDF-1.7 and no more"), "pdf", card), [1], 40))
    assert not list(draw_pages(Landed(Page(FILE), "html"), [1], 40))


def test_a_page_without_pages_is_shown_as_before() -> None:
    assert list(page_lines(LandedPage(why_not="It is gone."))) == ["It is gone."]
