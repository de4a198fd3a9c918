"""The media type of a page by its Content-Type, else by its first bytes, as the Fetch and MIME Sniffing Standards say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.page.media_types import HTML, OTHER, PLAIN, XML, declared_type, media_type, sniffed_type


@pytest.mark.parametrize(
    ("content_type", "declared"),
    [
        ("text/html", "text/html"),
        ("Text/HTML; charset=utf-8", "text/html"),
        ("text/html;;charset=utf-8", "text/html"),
        (" text/html ;charset", "text/html"),
        ("text/html,text/html", "text/html"),
        ("text/html, text/plain; charset=utf-8", "text/plain"),
        ('text/html; a="b,c/d"', "text/html"),
        ("text/plain, */*", "text/plain"),
        ("text/html, nonsense", "text/html"),
        ("application/xhtml+xml", "application/xhtml+xml"),
        ("text/html charset=utf-8", ""),
        ("*/*", ""),
        ("unknown/unknown", ""),
        ("application/unknown", ""),
        ("html", ""),
        ("/html", ""),
        ("text/", ""),
        ("text/html/x", ""),
        ("charset=utf-8", ""),
        ("", ""),
    ],
)
def test_what_a_content_type_says(content_type: str, declared: str) -> None:
    assert declared_type(content_type) == declared


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (b"<!DOCTYPE html><p>", HTML),
        (b"\n\t <html lang=en>", HTML),
        (b"\xef\xbb\xbf<html>", HTML),
        ("<html><body>".encode("utf-16"), HTML),
        ("<html><body>".encode("utf-16-le"), HTML),
        (b"<!-- a --><p>", HTML),
        (b'<?xml version="1.0"?><!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN"><html>', HTML),
        (b"\xef\xbb\xbf" * 2 + b"<!DOCTYPE html><p>", HTML),
        (b'<?xml version="1.0"?>\n\xef\xbb\xbf<!DOCTYPE html><p>', HTML),
        (b'<?xml version="1.0"?><style type="text/css">p > a {}</style>\n<!DOCTYPE html><p>', HTML),
        (b'<?xml version="1.0"?><script>if (1 < 2) { write("</b>") }</script ><html>', HTML),
        (b'<?xml version="1.0"?><!-- a --><STYLE></STYLE><Script></Script><html>', HTML),
        (b'<?xml version="1.0"?><style>p {}</style><rss>', XML),
        (b'<?xml version="1.0"?><styles>p {}</styles><html>', XML),
        (b'<?xml version="1.0"?><style>a {}<html></style>', XML),
        (b'<?xml version="1.0"?>' + b"<script></script>" * 80 + b"<rss>", XML),
        (b'<?xml version="1.0"?><script>' + b"<" * 1400, XML),
        (b'<?xml version="1.0"?><rss>', XML),
        (b"<blink>never a page by its first tag", PLAIN),
        (b"The ferry leaves the harbor.", PLAIN),
        ("Мост".encode("koi8-r"), PLAIN),
        ("Мост".encode("utf-16"), PLAIN),
        (b"%PDF-1.4", OTHER),
        (b"\x89PNG\r\n", OTHER),
        (b"text and \x00", OTHER),
        (b"", OTHER),
    ],
)
def test_what_the_first_bytes_show(body: bytes, shown: str) -> None:
    assert sniffed_type(body) == shown
    assert media_type("", body) == shown
    assert media_type("*/*", memoryview(body)) == shown
    assert media_type("text/css", body) == "text/css"


@given(content_type=st.text(max_size=60), body=st.binary(max_size=60))
def test_anything_has_a_type_of_two_tokens(content_type: str, body: bytes) -> None:
    kind, slash, subtype = media_type(content_type, body).partition("/")
    assert kind
    assert slash
    assert subtype


XHTML = b'<html xmlns="http://www.w3.org/1999/xhtml"><body/></html>'


@pytest.mark.parametrize("declared", ["application/xml", "text/xml; charset=utf-8"])
@pytest.mark.parametrize(
    "front",
    [
        *(b"", b"<!DOCTYPE html>\n", b'<?xml version="1.0"?>\n', b"<?xml version='1.0'?><!DOCTYPE html>"),
        *(b"\xef\xbb\xbf<?xml version='1.0'?>\xef\xbb\xbf", b"<?xml version='1.0'?><style>p {}</style>"),
    ],
)
def test_xhtml_is_html_by_whichever_type_of_xml_it_comes(declared: str, front: bytes) -> None:
    assert media_type(declared, front + XHTML) == HTML
    assert media_type(declared, b'<?xml version="1.0"?><rss><title>html</title></rss>') == declared_type(declared)
