import pyarrow as pa
import pytest
from refinery_files import TYPES

from pipeline_tasks.file_types.recognition import types_of
from tests.file_types.office_parts import docx, opendocument, p, pptx, xlsx, zipped

MAIL = b"From: a@b.c\r\nDate: Tue, 05 Mar 2024 10:00:00 +0100\r\n\r\nx"
BOMB = zipped({"word/document.xml": "x", **{str(nth): "" for nth in range(10_050)}})


def test_each_type_is_called_as_its_card_says() -> None:
    assert [card.name for card in TYPES.values()] == list(TYPES) == ["pdf", "office", "epub", "feed", "mail"]


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (b"%PDF-1.7\n", "pdf"),
        (b"\xef\xbb\xbf%PDF-1.4", "pdf"),
        (b"some junk\r\n%PDF-1.4", "pdf"),
        (b"<html><p>about\n%PDF-1.4</p></html>", None),
        (b"the mark %PDF-1.4 is what readers look for", None),
        (docx(p("x")), "office"),
        (xlsx("<row/>"), "office"),
        (pptx("<p:sp/>"), "office"),
        (opendocument("text", ""), "office"),
        (docx(p("words " * 9_000))[:300], "office"),
        (b"{\\rtf1 x}", "office"),
        (zipped({"mimetype": "application/epub+zip", "META-INF/container.xml": ""}), "epub"),
        (zipped({"readme.txt": "x"}), None),
        (BOMB, "office"),
        (b"PK\x03\x04", None),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", None),
        (b'<?xml version="1.0"?>\n<!-- a - b -->\n<?xml-stylesheet href="x"?><rss version="2.0">', "feed"),
        (b'<feed xmlns="http://www.w3.org/2005/Atom">', "feed"),
        (b'<rdf:RDF xmlns="http://purl.org/rss/1.0/">', "feed"),
        (b'<rdf:RDF xmlns:owl="http://www.w3.org/2002/07/owl#">', None),
        (b"<rssfeed>", None),
        (MAIL, "mail"),
        (b"From a@b.c Tue Mar  5 10:00:00 2024\n" + MAIL, "mail"),
        (b"Title: words\n\nmore words", None),
    ],
)
def test_bytes_say_the_type(body: bytes, name: str | None) -> None:
    (found,) = types_of(pa.array(["application/octet-stream"]), pa.array([body], pa.large_binary())).to_pylist()
    assert found == name if name else found not in TYPES
