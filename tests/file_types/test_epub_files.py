import pytest
from refinery_files.epub import holds, read

from pipeline_tasks.text.page.file_text import FileRefused
from tests.file_types.office_parts import text_of, zipped

CONTAINER = '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'
ENCRYPTED = '<encryption xmlns="c"><EncryptedData xmlns="e"><EncryptionMethod Algorithm="{}"/><CipherData><CipherReference URI="{}"/></CipherData></EncryptedData></encryption>'
TOLD = "<dc:title>A Book</dc:title><dc:language>en-GB</dc:language><dc:date>2019-05-01</dc:date>"


def book(spine: str, manifest: str, told: str = TOLD, **pages: str) -> bytes:
    package = f'<package xmlns="http://www.idpf.org/2007/opf"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">{told}</metadata><manifest>{manifest}</manifest><spine>{spine}</spine></package>'
    members = {"mimetype": "application/epub+zip", "META-INF/container.xml": CONTAINER, "OEBPS/book.opf": package}
    members |= {f"OEBPS/{name.replace('_', '.')}": page for name, page in pages.items() if name != "encryption"}
    if "encryption" in pages:
        members["META-INF/encryption.xml"] = pages["encryption"]
    return zipped(members)


def page(body: str) -> str:
    return f'<?xml version="1.0"?><!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops"><head><title/><style>x</style></head><body>{body}</body></html>'


def items(*names: str, properties: str = "") -> str:
    return "".join(
        f'<item id="{name}" href="{name}.xhtml" media-type="application/xhtml+xml" properties="{properties}"/>'
        for name in names
    )


def refs(*names: str) -> str:
    return "".join(f'<itemref idref="{name}"/>' for name in names)


def test_chapters_are_in_the_order_of_the_spine_without_the_table_of_contents() -> None:
    manifest = items("a", "b") + items("nav", properties="nav")
    text = read(
        book(
            refs("nav", "b", "a"),
            manifest,
            a_xhtml=page("<h1>One</h1><p>x</p>"),
            b_xhtml=page("<p>Zero</p>"),
            nav_xhtml=page("<p>toc</p>"),
        )
    )
    assert text_of(text) == "Zero\n-----\nOne\n\nx"
    assert (text.title, text.language, text.published, text.is_paged) == ("A Book", "en-GB", "2019-05-01", False)


def test_a_chapter_has_what_is_shown_of_it_and_no_attributes() -> None:
    body = '<p onclick="x()">a&nbsp;b<a id="x"/> <span epub:type="pagebreak">12</span>c</p><script>no</script><nav>no</nav><p style="display: none">no</p><ol start="3"><li>x</li></ol>'
    assert read(book(refs("a"), items("a"), a_xhtml=page(body))).parts == (
        '<p>a\u00a0b c</p><ol start="3"><li>x</li></ol>',
    )


def test_a_chapter_that_is_no_xml_is_read_as_html() -> None:
    assert text_of(read(book(refs("a"), items("a"), a_xhtml="<html><body><p>one<p>two <b>three"))) == "one\n\ntwo three"


def test_chapters_that_are_missing_are_left_out_and_none_at_all_is_damaged() -> None:
    assert text_of(read(book(refs("gone", "a"), items("a", "gone"), a_xhtml=page("<p>here</p>")))) == "here"
    with pytest.raises(FileRefused, match="damaged"):
        read(book(refs("gone"), items("gone")))


def test_chapters_that_are_encrypted_are_refused_and_fonts_are_not() -> None:
    chapter, font = (
        ENCRYPTED.format("aes", "OEBPS/a.xhtml"),
        ENCRYPTED.format("http://www.idpf.org/2008/embedding", "OEBPS/a.xhtml"),
    )
    with pytest.raises(FileRefused, match="encrypted"):
        read(book(refs("a"), items("a"), a_xhtml=page("<p>x</p>"), encryption=chapter))
    assert text_of(read(book(refs("a"), items("a"), a_xhtml=page("<p>x</p>"), encryption=font))) == "x"


def test_a_date_that_is_a_year_is_no_day() -> None:
    assert read(book(refs("a"), items("a"), "<dc:date>1999</dc:date>", a_xhtml=page("<p>x</p>"))).published is None


def test_a_book_that_is_cut_has_the_chapters_that_are_whole() -> None:
    body = book(
        refs("a", "b"), items("a", "b"), a_xhtml=page("<p>whole</p>"), b_xhtml=page(f"<p>{'long words ' * 5000}</p>")
    )
    cut = body[: body.index(b"OEBPS/b.xhtml") + 40]
    assert holds(cut)
    text = read(cut)
    assert text.is_cut
    assert text_of(text).startswith("whole")


def test_books_are_known_by_what_they_hold() -> None:
    assert holds(book(refs("a"), items("a")))
    assert holds(zipped({"META-INF/container.xml": CONTAINER, "OEBPS/book.opf": "<package/>"}))
    assert not holds(zipped({"a.txt": "application/epub+zip"}))
