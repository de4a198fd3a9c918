"""Bytes become text by mark, header, meta tag or detector, and what cannot be read is counted."""

import pytest

from pipeline_tasks.text.page.charset import decode

RUSSIAN = "<html><body><p>" + "Это обычное предложение на русском языке, без всякого смысла. " * 9
GERMAN = "<p>Schöne Grüße aus Köln, wo die Straßen naß sind.</p>" * 5


@pytest.mark.parametrize(
    ("data", "header", "expected"),
    [
        (GERMAN.encode(), "text/html; charset=utf-8", GERMAN),
        (GERMAN.encode(), "", GERMAN),
        (GERMAN.encode("latin-1"), "text/html; charset=ISO-8859-1", GERMAN),
        (
            b"<meta charset=iso-8859-15>" + GERMAN.encode("iso-8859-15"),
            "text/html",
            "<meta charset=iso-8859-15>" + GERMAN,
        ),
        (RUSSIAN.encode("koi8-r"), "text/html; charset='koi8-r'", RUSSIAN),
        (RUSSIAN.encode("koi8-r"), "text/html; charset=utf-8", RUSSIAN),
        (RUSSIAN.encode("cp1251"), "text/html; charset=utf-8", RUSSIAN),
        (RUSSIAN.encode("utf-16"), "text/html; charset=utf-8", RUSSIAN),
        (GERMAN.encode("utf-16-le"), "text/html; charset=utf-8", GERMAN),
        (GERMAN.encode("utf-16-be"), "text/html", GERMAN),
        (b"\xef\xbb\xbf" + GERMAN.encode(), "text/html; charset=latin-1", GERMAN),
        (b"x" * 20_000 + GERMAN.encode("cp1252"), "text/html; charset=utf-8", "x" * 20_000 + GERMAN),
        (GERMAN.encode(), "text/html; charset=no-such-thing", GERMAN),
    ],
)
def test_a_page_is_read_as_what_it_is(data: bytes, header: str, expected: str) -> None:
    decoded = decode(data, header)
    assert decoded.text == expected
    assert (decoded.replaced, decoded.understood) == (0, True)


def test_what_no_encoding_explains_is_not_understood() -> None:
    decoded = decode("日本語の文章です。".encode() * 20 + b"\xff" * 9, "text/html; charset=utf-8")
    assert (decoded.replaced, decoded.understood) == (9, False)
    few = decode("日本語の文章です。".encode() * 900 + b"\xff", "text/html; charset=utf-8")
    assert (few.replaced, few.understood) == (1, True)


def test_replaced_characters_of_others_count_too() -> None:
    assert not decode(("word \ufffd" * 20).encode(), "text/html").understood
