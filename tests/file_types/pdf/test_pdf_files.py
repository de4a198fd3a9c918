"""What a PDF says of itself, pages that cannot be read, and files that are locked, cut, damaged or bombs."""

import zlib

import pytest
from pdf_files import Drawn, lines, pdf
from refinery_files.pdf import read

from pipeline_tasks.text.page.file_text import FileRefused

TEXTS = ["The river begins in the hills north of the town, and is", "fed by snow until the end of May."]
IMAGE = b"<</Type/XObject/Subtype/Image/Width 1/Height 1/ColorSpace/DeviceGray/BitsPerComponent 8/Length 1>>stream\n\x80\nendstream"


def test_title_language_and_day_are_what_is_declared() -> None:
    body = pdf(lines(TEXTS), info="/Title(Of rivers)/CreationDate(D:20240131103000+01'00')", catalog="/Lang(en-GB)")
    assert read(body)[1:] == (True, (), "Of rivers", "en-GB", "2024-01-31", False)


@pytest.mark.parametrize(
    "title",
    ["The final report.doc", "report_final.doc", "Microsoft Word - r3.docx", "untitled", "C:/texts/river/one", ""],
)
def test_names_of_files_are_no_titles(title: str) -> None:
    assert read(pdf(lines(TEXTS), info=f"/Title({title})")).title is None


@pytest.mark.parametrize(
    ("title", "line", "is_one"),
    [
        ("git-helpers(7)", "git-helpers(7) Manual", True),
        ("EN-301549", "The standard EN-301549", True),
        ("U2", "u2", True),
        ("U2", "A map of U2", False),
        ("scan0017", "The mills", False),
        ("report_2", "report_20", False),
    ],
)
def test_a_title_that_may_be_a_name_is_one_that_the_first_page_shows(title: str, line: str, is_one: bool) -> None:
    body = pdf(
        [Drawn(50, 80, line, 18), *lines(TEXTS, y=110)],
        info=f"/Title({title.replace('(7)', chr(92) + '(7' + chr(92) + ')')})",
    )
    assert read(body).title == (title if is_one else None)


def test_an_image_without_text_is_an_unread_page() -> None:
    scan = "q 600 0 0 800 0 0 cm /I Do Q"
    body = pdf(
        [scan], lines(TEXTS), [], [scan, *lines(TEXTS)], objects={1000: IMAGE}, resources="/XObject<</I 1000 0 R>>"
    )
    found = read(body)
    assert found.unread == (1,)
    assert found.parts[0] == found.parts[2] == ""
    assert found.parts[1] == found.parts[3] == f"<p>{' '.join(TEXTS)}</p>"


@pytest.mark.parametrize("shift", [0xE000, 0])
def test_garbled_pages_are_unread(shift: int) -> None:
    """Characters of private use, and words without a vowel, are no text."""
    letters = "bcdfghjklmnpqrstvwxz" if not shift else "\u00b0\u00b1\u00b2\u00b3"
    words = [letters[at % 7 : at % 7 + 6] if not shift else letters for at in range(60)]
    page = lines([" ".join(words[at : at + 10]) for at in range(0, 60, 10)])
    cmap = (
        "begincmap 1 begincodespacerange <00> <FF> endcodespacerange 1 beginbfrange <00> <FF> <E000> endbfrange endcmap"
    )
    body = pdf(page, lines(TEXTS), objects={1000: f"<</Length {len(cmap)}>>stream\n{cmap}\nendstream".encode()})
    if shift:
        body = body.replace(b"/Helvetica/Encoding", b"/Helvetica/ToUnicode 1000 0 R/Encoding", 1)
    assert read(body).unread == (1,)


WHITE = "1 g BT /R 10 Tf 50 500 Td {} (White words) Tj ET 0 g"
SHADES = b"<</PatternType 2/Shading<</ShadingType 2/ColorSpace/DeviceRGB/Coords[0 0 600 0]/Function<</FunctionType 2/Domain[0 1]/C0[1 0 0]/C1[0 0 1]/N 1>>>>>>"


@pytest.mark.parametrize(
    ("drawn", "is_kept"),
    [
        (WHITE.format(""), False),
        ("1 g 0 0 600 800 re f " + WHITE.format(""), False),
        ("0 0 1 rg 40 490 200 30 re f " + WHITE.format(""), True),
        (WHITE.format("3 Tr"), True),
        (WHITE.format("1 Tr"), True),
        (WHITE.format("").replace("1 g", "/Pattern cs /P scn"), True),
        ("q 600 0 0 800 0 0 cm /I Do Q " + WHITE.format(""), True),
    ],
    ids=["page", "white area", "area", "layer", "stroke", "pattern", "image"],
)
@pytest.mark.parametrize("entries", ["", "/Rotate 90/CropBox[20 30 580 770]"])
def test_white_text_on_a_white_page_is_left_out(drawn: str, is_kept: bool, entries: str) -> None:
    body = pdf(
        [drawn, *lines(TEXTS)],
        objects={1000: IMAGE, 1001: SHADES},
        resources="/XObject<</I 1000 0 R>>/Pattern<</P 1001 0 R>>",
        page_entries=entries,
    )
    (part,) = read(body).parts
    assert ("White words" in part) == is_kept
    assert all(text in part for text in TEXTS)


def test_a_file_that_is_cut_is_read_as_far_as_it_goes() -> None:
    body = pdf(*([Drawn(50, 100, f"Page {one} has a word.")] for one in ("one", "two", "three", "four")))
    found = read(body[: body.index(b"Page three")])
    assert found.is_cut
    assert found.parts == ("<p>Page one has a word.</p>", "<p>Page two has a word.</p>")


def test_a_cut_file_of_which_nothing_is_read_is_damaged_and_none_of_images_scanned() -> None:
    """Letters without their fonts are no images; an image that is left is one to be read."""
    garbled = lines([" ".join(["bcdfgh", "cdfghj", "dfghjk", "fghjkl"] * 3)] * 6)
    body = pdf(garbled)
    assert read(body).unread == (1,)
    with pytest.raises(FileRefused, match="damaged"):
        read(body[: body.index(b"xref")])
    scan = pdf(["q 600 0 0 800 0 0 cm /I Do Q"], objects={1000: IMAGE}, resources="/XObject<</I 1000 0 R>>")
    assert read(scan[: scan.index(b"xref")])[2:] == ((1,), None, None, None, True)


def lost(text: str, y: int = 700) -> str:
    """Return a text in codes of two bytes for a font that the file names and does not have."""
    return f"BT /X 10 Tf 50 {y} Td <{''.join(f'{ord(letter) - 29:04X}' for letter in text)}> Tj ET"


def with_lost_font(*pages: list[Drawn | str]) -> bytes:
    return pdf(*pages).replace(b"/Font<<", b"/Font<</X 1000 0 R")


def test_pages_of_lost_fonts_are_unread_and_a_few_of_their_characters_are_left_out() -> None:
    """What PDFium writes for them are letters that are moved by a number."""
    texts = lines(TEXTS * 4)
    body = with_lost_font(
        texts, [lost("The mills stand on the hill."), *texts], [lost("mill"), *texts], [lost("A mill.")]
    )
    found = read(body)
    whole = f"<p>{' '.join(TEXTS * 4)}</p>"
    assert found.unread == (2, 4)
    assert found.parts == (whole, "", whole, "")


@pytest.mark.parametrize("is_cut", [True, False])
def test_a_file_without_its_fonts_is_damaged(is_cut: bool) -> None:
    body = with_lost_font([lost("The mills stand on the hill.")], [lost("A mill.")])
    with pytest.raises(FileRefused, match="damaged"):
        read(body[: body.index(b"xref")] if is_cut else body)


def test_a_cut_file_whose_catalog_is_lost_is_mended() -> None:
    body = pdf(lines(TEXTS), lines(TEXTS[1:]))
    begin = body.index(b"10 0 obj")
    found = read(b"%PDF-1.7\n" + body[begin : body.index(b"xref")])
    assert found.is_cut
    assert found.parts == (f"<p>{' '.join(TEXTS)}</p>", f"<p>{TEXTS[1]}</p>")


def test_pages_in_streams_of_objects_are_mended() -> None:
    page = b"<</Type/Page/MediaBox[0 0 600 800]/Contents 11 0 R/Resources<</Font<</R<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>>>"
    packed = zlib.compress(b"10 0 " + page)
    stream = b"BT /R 10 Tf 50 700 Td (A page in a stream.) Tj ET"
    body = b"%%PDF-1.5\n11 0 obj\n<</Length %d>>stream\n%s\nendstream\nendobj\n" % (len(stream), stream)
    body += b"12 0 obj\n<</Type/ObjStm/N 1/First 5/Filter/FlateDecode/Length %d>>stream\n%s\nendstream\nendobj\n" % (
        len(packed),
        packed,
    )
    assert read(body + b"13 0 obj\n<</Type/Fo").parts == ("<p>A page in a stream.</p>",)


def bomb(count: int) -> bytes:
    packed = zlib.compress(b"q " * count)
    return pdf(
        lines(TEXTS), objects={1000: b"<</Length %d/Filter/FlateDecode>>stream\n%s\nendstream" % (len(packed), packed)}
    )


LOCKED = b"/Encrypt<</Filter/Standard/V 1/R 2/P -4/O<%s>/U<%s>>>/ID[<00><00>]" % (b"11" * 32, b"22" * 32)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "damaged"),
        (b"%PDF-1.7\n", "damaged"),
        (b"%PDF-1.7\n" + bytes(range(256)) * 40, "damaged"),
        (b"<html><p>This is a page.</html>", "damaged"),
        (pdf(lines(TEXTS)).replace(b"/Root", LOCKED + b"/Root"), "encrypted"),
        (pdf(*[[]] * 10_001), "too_large"),
        (bomb(40_000_000), "too_large"),
    ],
    ids=["empty", "header", "noise", "html", "locked", "pages", "bomb"],
)
def test_what_cannot_be_read_is_refused_with_a_reason(body: bytes, reason: str) -> None:
    with pytest.raises(FileRefused, match=reason):
        read(body)
