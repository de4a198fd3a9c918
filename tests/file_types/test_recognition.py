"""Bytes tell the type of a file; labels tell it only where bytes are text."""

import io
import zipfile

import pyarrow as pa
import pytest

from pipeline_tasks.file_types import FileType, brought_types, type_names
from pipeline_tasks.file_types.recognition import types_of

PAGE = b"<!DOCTYPE html><html><body><p>words</p></body></html>"
PDF = b"%PDF-1.7\n1 0 obj\n<<>>\nendobj\n"
FEED = b'<?xml version="1.0"?><rss version="2.0"><channel><title>news</title></channel></rss>'
MAIL = b"From: a@example.org\r\nTo: b@example.org\r\nSubject: words\r\nDate: Mon, 30 Nov 2026 10:00:00 +0000\r\n\r\nHello\r\n"


def zipped(*members: tuple[str, str]) -> bytes:
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as archive:
        for name, text in members:
            archive.writestr(name, text)
    return body.getvalue()


XHTML = b"""<?xml version="1.0" encoding="utf-8"?>
<!-- a -->
<?xml-stylesheet href="a.css"?>
<html xmlns="http://www.w3.org/1999/xhtml"><body><p>words</p></body></html>"""

WORD = zipped(("[Content_Types].xml", "<Types/>"), ("word/document.xml", "<w:document/>"))
BOOK = zipped(("mimetype", "application/epub+zip"), ("META-INF/container.xml", "<container/>"))
ODT = zipped(("mimetype", "application/vnd.oasis.opendocument.text"), ("content.xml", "<c/>"))

GUIDE = b"""# How a PDF is made

The smallest file has a head, objects and a table:

```
%PDF-1.7
1 0 obj
<</Type /Catalog>>
endobj
trailer
<</Root 1 0 R>>
%%EOF
```
"""

CASES: list[tuple[str | None, bytes | None, str | None]] = [
    ("text/html", PAGE, "html"),
    ("application/pdf", PAGE, "html"),
    ("application/json", b"  <html><p>words", "html"),
    ("application/pdf", b"<!-- a server -->\n<!-- a -- b ---><html><p>words", "html"),
    ("application/pdf", b"<!-- no root -->\n<p>words</p>", "html"),
    ("application/pdf", b"\xef\xbb\xbf <table ><tr><td>words</table>", "html"),
    ("image/gif", "<h1>words</h1>".encode("utf-16"), "html"),
    ("application/octet-stream", XHTML, "html"),
    ("application/pdf", b"<!-- cut", "html"),
    *(
        (label, b"\xef\xbb\xbf<?xml version='1.0'?>" + front + PAGE, "html")
        for label in (None, "application/xml", "text/xml")
        for front in (b"\xef\xbb\xbf", b"<style>p {}</style>", b"<script>" + b"a" * 3000 + b"</script>")
    ),
    ("application/xml", b"<?xml version='1.0'?><style>p {}</style><sitemap/>", None),
    ("application/octet-stream", b"<?xml version='1.0'?><sitemap><![CDATA[<html>]]></sitemap>", None),
    ("application/xml", b"<?xml version='1.0'?><sitemap><![CDATA[<html>]]></sitemap>", None),
    ("application/json", b"<!-- a --><!DOCTYPE html><p>words", "html"),
    ("application/json", b"<p>words</p>", None),
    ("image/svg+xml", b"<style>p {}</style>", None),
    ("application/octet-stream", b"<svg xmlns='http://www.w3.org/2000/svg'/>", None),
    ("application/javascript", b"<!-- hide\nalert(1)", None),
    ("application/x-javascript", b"<!-- hide -->\nalert('<html>')", None),
    ("text/html", b"words and no markup", "html"),
    ("text/plain", PAGE, "text"),
    ("text/plain; charset=utf-8", b"words", "text"),
    ("text/markdown", b"# words", "text"),
    ("text/css", b"p { margin: 0 }", None),
    ("application/octet-stream", b"words", None),
    (None, b"words", "text"),
    (None, b"\x00\x01", None),
    ("image/png", b"\x89PNG\r\n\x1a\n", None),
    ("text/html", b"\x89PNG\r\n\x1a\n", None),
    ("text/html", PDF, "pdf"),
    ("application/octet-stream", b"\r\njunk\r\n" + PDF, "pdf"),
    ("application/pdf", b" \t" + PDF, "pdf"),
    ("application/pdf", b"\xef\xbb\xbf \n" + PDF, "pdf"),
    (None, b"\x01junk" + PDF, "pdf"),
    (None, b"junk" * 250 + b"%PDF-1.4\r\n%\xe2\xe3\xcf\xd3\r\n", "pdf"),
    ("text/plain", b"junk" * 257 + PDF, "text"),
    ("text/html", b"<p>A file begins with %PDF-1.7</p>", "html"),
    ("text/plain", b"A file begins with %PDF-1.7", "text"),
    ("text/plain", GUIDE, "text"),
    ("text/markdown; charset=utf-8", GUIDE, "text"),
    ("text/plain", GUIDE.replace(b"\n", b"\r\n"), "text"),
    ("text/plain", "# Café\n%PDF-1.7\n".encode("latin-1"), "text"),
    ("text/plain", b"The first line:\n%PDF-1.7\n", "text"),
    ("text/plain", PDF, "pdf"),
    ("text/plain", b"\n %PDF-1.4\r\n%\xe2\xe3\xcf\xd3\r\n%made by hand\r\n12 0 obj\r\n", "pdf"),
    ("text/plain", b"junk\n" + PDF + b"stream\n\x01\x02\nendstream\n", "pdf"),
    ("text/plain", b"%PDF-1.7\nstream\n\x00\nendstream", "pdf"),
    ("application/zip", WORD, "office"),
    ("text/html", ODT, "office"),
    ("application/zip", BOOK, "epub"),
    ("application/epub+zip", zipped(("a.txt", "words")), None),
    ("application/rtf", b"{\\rtf1\\ansi words}", "office"),
    ("text/html", FEED, "feed"),
    ("application/xml", FEED, "feed"),
    ("application/xml", b'<?xml version="1.0"?><sitemap/>', None),
    ("application/xml", b"<urlset><url><loc>https://example.org/</loc></url></urlset>", None),
    ("text/xml", b"words", None),
    ("message/rfc822", MAIL, "mail"),
    (None, MAIL, "mail"),
    ("text/plain", MAIL.replace(b"To:", b"Message-ID: <1@example.org>\r\nTo:"), "mail"),
    ("text/plain", MAIL, "text"),
    ("text/plain", b"Subject: words\nFrom: a@example.org\n\nwords", "text"),
    (None, b"Subject: words\nFrom: a@example.org\n\nwords", "text"),
    ("text/plain", b"Received: by mail\nFrom: a@example.org\nand more words", "text"),
    ("message/rfc822", b"Subject: words\nFrom: a@example.org\n\nwords", "mail"),
    ("text/plain", b"Note: this is no mail.\nIt has one colon.", "text"),
    ("text/html", b"", "html"),
    ("text/html", None, None),
]


@pytest.mark.parametrize(("label", "body", "kind"), CASES)
def test_the_type_of_a_file(label: str | None, body: bytes | None, kind: str | None) -> None:
    assert types_of(pa.array([label], pa.string()), pa.array([body], pa.large_binary())).to_pylist() == [kind]


def test_rows_are_told_apart_as_alone() -> None:
    labels, bodies, kinds = zip(*CASES, strict=True)
    told = types_of(pa.array(labels, pa.string()), pa.array(bodies, pa.large_binary()))
    assert told.to_pylist() == list(kinds)


@pytest.mark.parametrize("card", brought_types().values(), ids=list(brought_types()))
def test_a_card_says_where_its_reader_is_and_how_files_are_called(card: FileType) -> None:
    assert card.name in type_names()
    assert card.read.count(":") == 1
    assert card.endings
    assert all(ending == ending.lower().strip(".") for ending in card.endings)
    assert card.libraries
