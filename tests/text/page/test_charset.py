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


THAI = "<p>“ภาษาไทย” เป็นภาษาที่มีระดับเสียงของคำแน่นอน</p>" * 4
KOREAN = "<p>똠방각하와 펲시콜라는 완성형에 없는 글자이다.</p>" * 4
JAPANESE = "<p>①番の㈱山田商会は髙い山の上にある。</p>" * 4


@pytest.mark.parametrize("header", ["iso-8859-15", "koi8-r", "tis-620", "windows-1256", "iso-8859-7", "utf-16"])
@pytest.mark.parametrize(
    "text", [GERMAN, RUSSIAN, THAI, "<p>مرحبا بالعالم</p>", "<p>Καλημέρα κόσμε</p>", "<p>Où ça ?</p>"]
)
def test_utf_8_that_is_valid_is_utf_8_whatever_is_declared(text: str, header: str) -> None:
    assert decode(text.encode(), f"text/html; charset={header}") == (text, "utf-8", 0)
    faulty = text.encode() * 9 + "ü".encode()[:1]
    assert decode(faulty, f"text/html; charset={header}") == (text * 9 + "\ufffd", "utf-8", 1)


@pytest.mark.parametrize(
    ("text", "codec", "label"),
    [
        (JAPANESE, "cp932", "Shift_JIS"),
        (JAPANESE, "cp932", "windows-31j"),
        ("<p>香港嘅𨋢同埋啲嘢</p>", "big5hkscs", "big5"),
        (KOREAN, "cp949", "euc-kr"),
        (KOREAN, "cp949", "ks_c_5601-1987"),
        ("<p>朱镕基和㐀字𠀀。</p>" * 4, "gb18030", "gb2312"),
        (THAI, "cp874", "windows-874"),
        (THAI, "cp874", "tis-620"),
        (THAI, "cp874", "iso-8859-11"),
        ("<p>Ґанок і їжак.</p>" * 4, "mac_cyrillic", "x-mac-cyrillic"),  # noqa: RUF001 -- Ukrainian
        ("<p>“Curly” – naïve</p>", "cp1252", "latin1"),  # noqa: RUF001 -- a dash of its own
        ("<p>Çağrı şöyle</p>", "cp1254", "iso-8859-9"),  # noqa: RUF001 -- Turkish
    ],
)
def test_a_label_means_what_browsers_take_it_for(text: str, codec: str, label: str) -> None:
    data = text.encode(codec)
    assert decode(data, f"text/html; charset={label}")[::2] == (text, 0)
    meta = f"<meta charset='{label}'>"
    assert decode(meta.encode() + data, "text/html")[::2] == (meta + text, 0)
    old = f'<META content="text/html; charset={label}" HTTP-EQUIV=Content-Type>'
    assert decode(old.encode() + data, "text/html")[::2] == (old + text, 0)


@pytest.mark.parametrize("label", ["windows-1252", "windows-1250", "windows-1257", "windows-874"])
def test_bytes_that_a_windows_encoding_leaves_free_are_control_characters(label: str) -> None:
    name = {"windows-874": "cp874"}.get(label, label)
    free = [
        byte for byte in range(0x80, 0xA0) if byte not in bytes(range(0x80, 0xA0)).decode(name, "ignore").encode(name)
    ]
    assert free
    text = decode(b"<p>caf\xe9" + bytes(free) + b"</p>", f"text/html; charset={label}").text
    assert text.endswith("".join(map(chr, free)) + "</p>")


def test_iso_2022_jp_is_read_where_it_is_declared_or_evident() -> None:
    data = b"<title>\x1b$BF|K\\8l\x1b(B</title>\x1b(I1\x1b(B"
    for header in ("text/html", *(f"text/html; charset={label}" for label in ("iso-2022-jp", "utf-8", "iso-8859-1"))):
        assert decode(data, header) == ("<title>日本語</title>ｱ", "iso-2022-jp", 0)
    circled = b"x" * 2000 + b"\x1b$B-!\x1b(B"  # in no JIS row of Python's codec
    assert decode(circled, "text/html").text == "x" * 2000 + "①"
    assert decode(b"a \x1b[1mbold\x1b[0m word", "text/plain").text == "a \x1b[1mbold\x1b[0m word"
    assert decode(b"not \x1b$B\x7f\x7f really", "text/html") == ("not \x1b$B\x7f\x7f really", "utf-8", 0)


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("text", [RUSSIAN, JAPANESE, "<p>שלום עולם, זה משפט.</p>" * 9])
def test_utf_16_without_a_mark_is_read_in_any_script(text: str, codec: str) -> None:
    for header in ("text/html", "text/html; charset=utf-16", "text/html; charset=iso-8859-1"):
        assert decode(text.encode(codec), header).text == text


def test_utf_16_that_only_the_header_shows_is_believed_where_the_bytes_allow_it() -> None:
    plain = ("Это простой текст без разметки. " * 9).encode("utf-16-le")
    assert decode(plain, "text/plain; charset=utf-16").text == "Это простой текст без разметки. " * 9
    assert decode(b"plain ASCII under a header that is wrong", "text/plain; charset=utf-16").text.startswith("plain")


@pytest.mark.parametrize(
    "hidden",
    [
        b"<!-- <meta charset=koi8-r> -->",
        b"<script>var a = '<meta charset=koi8-r>';</script>",
        b"<style>/* <meta charset=koi8-r> */</style>",
        b"<title><meta charset=koi8-r></title>",
        b'<meta name=description content="how to write charset=koi8-r">',
    ],
)
def test_a_meta_tag_that_is_none_does_not_count(hidden: bytes) -> None:
    page = hidden + b"<meta charset=windows-1251>" + RUSSIAN.encode("cp1251")
    assert decode(page, "text/html") == (str(page, "cp1251"), "windows-1251", 0)


@pytest.mark.parametrize(
    ("length", "broken", "understood"),
    [(900, 1, True), (900, 4, False), (60, 2, False), (9000, 9, True), (9000, 10, False)],
)
def test_replaced_characters_are_bounded_by_share_and_number(length: int, broken: int, understood: bool) -> None:
    data = "ü".encode() * (length - broken) + b"\xff" * broken
    decoded = decode(data, "text/html")
    assert (len(decoded.text), decoded.replaced, decoded.understood) == (length, broken, understood)
