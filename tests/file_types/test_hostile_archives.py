import contextlib
import struct

import pytest
from refinery_files.archive import Archive
from refinery_files.epub import holds as is_book
from refinery_files.epub import read as read_book
from refinery_files.mail import read as read_mail
from refinery_files.office import holds, read

from pipeline_tasks.text.page.file_text import FileRefused
from tests.file_types.office_parts import W, docx, opendocument, p, pptx, text_of, xlsx, zipped


def with_document(document: str | bytes, **more: str | bytes) -> bytes:
    return zipped({"[Content_Types].xml": "<Types/>", "word/document.xml": document, **more})


def test_an_archive_that_unpacks_to_too_much_is_refused() -> None:
    bomb = with_document(f"<w:document {W}><w:body>".encode() + b" " * (16 << 20))
    assert len(bomb) < 1 << 15
    with pytest.raises(FileRefused, match="too_large"):
        read(bomb)


def repeated(name: str, data: bytes, count: int) -> bytes:
    """Return an archive whose directory names one member many times, each time as another."""
    body = zipped({name: data})
    start, end = body.index(b"PK\x01\x02"), body.index(b"PK\x05\x06")
    entry, size = body[start:end], len(name)
    names = [f"{nth:0{size}d}".encode() for nth in range(count)]
    directory = b"".join([entry, *(entry[:46] + each + entry[46 + size :] for each in names)])
    return body[:start] + directory + struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, len(directory), start, 0)


def test_members_that_are_one_and_large_together_are_refused() -> None:
    archive = Archive(repeated("word/document.xml", bytes(range(256)) * 32_000, 40))
    with pytest.raises(FileRefused, match="too_large"):
        [archive.read(name) for name in archive.names]


def test_members_that_are_too_many_are_refused() -> None:
    body = repeated("word/document.xml", b"<a/>", 100_000)
    assert holds(body)
    with pytest.raises(FileRefused, match="too_large"):
        read(body)
    with pytest.raises(FileRefused, match="too_large"):
        read_book(body)


def test_members_without_a_directory_that_are_too_many_are_refused() -> None:
    whole = zipped({"a": b""})
    body = whole[: whole.index(b"PK\x01\x02")] * 10_100
    assert not holds(body)
    assert not is_book(body)
    with pytest.raises(FileRefused, match="too_large"):
        read(body)


def test_sizes_that_an_archive_states_are_not_believed() -> None:
    body = bytearray(with_document(f"<w:document {W}><w:body>{p('text')}</w:body></w:document>"))
    at = body.index(b"PK\x01\x02", body.index(b"PK\x01\x02") + 4)
    struct.pack_into("<L", body, at + 24, 0xFFFFFFF0)
    assert text_of(read(bytes(body))) == "text"


def test_names_are_no_paths() -> None:
    names = {
        "../../word/document.xml": "<no/>",
        "/etc/passwd": "x",
        "word/document.xml": f"<w:document {W}><w:body>{p('text')}</w:body></w:document>",
    }
    assert text_of(read(zipped(names))) == "text"
    with pytest.raises(FileRefused, match="damaged"):
        read(zipped({"word/../../document.xml": "x", "_rels/.rels": "<r/>"}))


@pytest.mark.parametrize(
    "subset",
    [
        '<!ENTITY x SYSTEM "file:///etc/passwd">',
        '<!ENTITY x SYSTEM "http://127.0.0.1:1/x">',
        '<!ENTITY % x SYSTEM "http://127.0.0.1:1/x"> %x;',
        '<!ENTITY a "ha"><!ENTITY x "' + "&a;" * 1000 + '">',
    ],
)
def test_entities_are_neither_fetched_nor_expanded(subset: str) -> None:
    document = f"<!DOCTYPE w:document [{subset}]><w:document {W}><w:body><w:p><w:r><w:t>&x;</w:t></w:r></w:p></w:body></w:document>"
    with pytest.raises(FileRefused, match="damaged"):
        read(with_document(document))


def test_an_outer_dtd_is_not_fetched() -> None:
    document = f'<!DOCTYPE w:document SYSTEM "http://127.0.0.1:1/x.dtd"><w:document {W}><w:body>{p("text")}</w:body></w:document>'
    assert text_of(read(with_document(document))) == "text"


def test_elements_that_are_too_deep_are_damage() -> None:
    with pytest.raises(FileRefused, match="damaged"):
        read(docx("<w:sdt><w:sdtContent>" * 5_000 + p("x") + "</w:sdtContent></w:sdt>" * 5_000))


@pytest.mark.parametrize("depth", [20, 80])
def test_tables_in_tables_end(depth: int) -> None:
    body = "<w:tbl><w:tr><w:tc>" * depth + p("in") + "</w:tc></w:tr></w:tbl>" * depth
    assert text_of(read(docx(body))) == "in"


def test_formulas_as_deep_as_xml_may_be_end() -> None:
    deep = "<m:box>" * 240 + "<m:r><m:t>x</m:t></m:r>" + "</m:box>" * 240
    assert text_of(read(docx(f"<w:p><m:oMath>{deep}</m:oMath></w:p>"))) == "x"
    halves = "<m:f><m:num>" * 118 + "<m:r><m:t>x</m:t></m:r>" + "</m:num></m:f>" * 118
    assert "x" in read(docx(f"<w:p><m:oMath>{halves}</m:oMath></w:p>")).parts[0]


def test_pages_of_books_as_deep_as_they_please_end() -> None:
    page = "<html><body>" + "<div>" * 100_000 + "deep" + "</body></html>"
    members = {
        "META-INF/container.xml": "<container><rootfile full-path='b.opf'/></container>",
        "b.opf": "<package><item id='a' href='a.html'/><itemref idref='a'/></package>",
        "a.html": page,
    }
    assert isinstance(read_book(zipped(members)).parts, tuple)


FILES = {
    "docx": docx(p("one ") * 400 + p("two"), styles="<w:style/>"),
    "xlsx": xlsx("".join(f'<row><c r="A{nth}"><v>{nth}</v></c></row>' for nth in range(1, 400))),
    "pptx": pptx("<p:sp/>", "<p:pic/>"),
    "odt": opendocument("text", "<text:p>one</text:p>" * 400),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_cut_anywhere_has_a_text_or_a_reason(name: str) -> None:
    whole, refused = FILES[name], set[str]()
    for size in range(0, len(whole), max(len(whole) // 60, 1)):
        try:
            assert read(whole[:size]).is_cut
        except FileRefused as error:
            refused.add(error.args[0])
    assert refused == {"damaged"}


@pytest.mark.parametrize("name", FILES)
def test_a_file_with_any_byte_changed_has_a_text_or_a_reason(name: str) -> None:
    whole, count = FILES[name], 0
    for at in range(0, len(whole), max(len(whole) // 90, 1)):
        changed = bytearray(whole)
        changed[at] ^= 0xFF
        with contextlib.suppress(FileRefused):
            read(bytes(changed))
        count += 1
    assert count > 80


def test_an_archive_in_an_archive_stays_closed() -> None:
    inner = docx(p("inner"))
    assert (
        text_of(
            read(
                with_document(
                    f"<w:document {W}><w:body>{p('outer')}</w:body></w:document>", **{"word/embeddings/a.docx": inner}
                )
            )
        )
        == "outer"
    )


def test_a_member_with_a_password_is_encrypted() -> None:
    body = bytearray(docx(p("x")))
    at = body.index(b"PK\x01\x02")
    while at >= 0:
        body[at + 8] |= 1
        at = body.find(b"PK\x01\x02", at + 4)
    with pytest.raises(FileRefused, match="encrypted"):
        read(bytes(body))


@pytest.mark.parametrize(
    "body", [b"", b"PK\x03\x04", b"PK\x05\x06" + bytes(18), b"PK\x03\x04" * 1000, b"\xd0\xcf\x11\xe0" * 100]
)
def test_what_is_no_archive_is_damaged(body: bytes) -> None:
    assert not holds(body)
    assert not is_book(body)
    for reader in (read, read_book):
        with pytest.raises(FileRefused, match="damaged"):
            reader(body)


def test_parts_of_mail_that_are_too_many_or_too_deep_are_refused() -> None:
    head = "From: a\nDate: b\nContent-Type: multipart/mixed; boundary=x\n\n"
    many = head + "--x\n\ntext\n" * 21_000
    with pytest.raises(FileRefused, match="too_large"):
        read_mail(many.encode())
    deep = "".join("From: a\nContent-Type: message/rfc822\n\n" for _ in range(5_000))
    with pytest.raises(FileRefused, match="too_large"):
        read_mail(deep.encode())
    assert text_of(read_mail((head + "--x\n\ntext\n" * 2_000).encode())).startswith("text")
