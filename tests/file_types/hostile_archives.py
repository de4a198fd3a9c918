"""Office files and books that are made to harm who reads them: archives, and what is in them."""

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping

from tests.file_types.hostile_file import MEGABYTE, Hostile, raw_bomb

_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_TYPES = '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="xml" ContentType="application/xml"/><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>{}</Types>'
_RELATIONS = '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{}</Relationships>'
_RELATION = (
    '<Relationship Id="r{}" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/{}" Target="{}"/>'
)
_OPEN_NAMES = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:'
    'text:1.0" xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"'
)
MARKER = "secret-of-another-file"
"""What the file has that external entities ask for."""

MARKED = "/tmp/refinery-hostile-marker"
LAUGHS = '<!DOCTYPE x [<!ENTITY a "hahahahaha">{}]>'.format(
    "".join(f'<!ENTITY {two} "{f"&{one};" * 10}">' for one, two in zip("abcdefghi", "bcdefghij", strict=True))
)
SQUARE = f'<!DOCTYPE x [<!ENTITY a "{"x" * 100_000}">]>'
OUTSIDE = f'<!DOCTYPE x [<!ENTITY a SYSTEM "file://{MARKED}">]>'
REMOTE = '<!DOCTYPE x SYSTEM "http://127.0.0.1:9/x.dtd" [<!ENTITY % p SYSTEM "http://127.0.0.1:9/p"> %p;]>'
_SAID = "The station writes one line every ten minutes."


def archive(members: Mapping[str, str | bytes]) -> bytes:
    """Return an archive of members with no times."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, body in members.items():
            file.writestr(zipfile.ZipInfo(name), body, zipfile.ZIP_STORED if name == "mimetype" else None)
    return buffer.getvalue()


def raw_archive(members: list[tuple[bytes, bytes, int, int]], repeat: int = 1, flags: int = 0) -> bytes:
    """Return an archive of members that are deflated already: name, body, its size as told, and its checksum.

    With `repeat` the list at the end names each so often.
    """
    body, entries = bytearray(), bytearray()
    for name, packed, size, checksum in members:
        place = len(body)
        fields = (flags, 8, 0, 0x21, checksum, len(packed), size, len(name))
        body += struct.pack("<IHHHHHIIIHH", 0x04034B50, 20, *fields, 0) + name + packed
        for at in range(repeat):
            other = name if repeat == 1 else name.replace(b"0", b"%d" % at)
            told = (*fields[:7], len(other))
            entries += struct.pack("<IHHHHHHIIIHHHHHII", 0x02014B50, 20, 20, *told, 0, 0, 0, 0, 0, place) + other
    count = len(members) * repeat
    return bytes(body + entries) + struct.pack(
        "<IHHHHIIH", 0x06054B50, 0, 0, count & 0xFFFF, count & 0xFFFF, len(entries), len(body), 0
    )


def deflated(body: bytes) -> bytes:
    """Return a body as archives have it."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(body) + packer.flush()


# --- Office -----------------------------------------------------------------------------------------------------


def paragraphs(count: int = 1) -> str:
    """Return paragraphs of a text."""
    return f"<w:p><w:r><w:t>{_SAID}</w:t></w:r></w:p>" * count


def _main(inner: str, head: str = "") -> str:
    return f'<?xml version="1.0" encoding="UTF-8"?>{head}<w:document xmlns:w="{_WORD}" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><w:body>{inner}</w:body></w:document>'


def word_members(main: str | bytes) -> dict[str, str | bytes]:
    """Return the members of a DOCX with a main part."""
    kind = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    return {
        "[Content_Types].xml": _TYPES.format(f'<Override PartName="/word/document.xml" ContentType="{kind}"/>'),
        "_rels/.rels": _RELATIONS.format(_RELATION.format(1, "officeDocument", "word/document.xml")),
        "word/document.xml": main,
    }


def word(inner: str, head: str = "", **more: str | bytes) -> bytes:
    """Return a DOCX; `more` are members by their path, with `__` in place of slashes."""
    others = {name.replace("__", "/").replace("_xml", ".xml"): body for name, body in more.items()}
    return archive({**word_members(_main(inner, head)), **others})


def open_text(inner: str, head: str = "", kind: str = "text") -> bytes:
    """Return an OpenDocument file."""
    media = f"application/vnd.oasis.opendocument.{kind}"
    return archive(
        {
            "mimetype": media,
            "content.xml": f'<?xml version="1.0" encoding="UTF-8"?>{head}<office:document-content {_OPEN_NAMES} office:version="1.2"><office:body><office:{kind}>{inner}</office:{kind}></office:body></office:document-content>',
            "META-INF/manifest.xml": f'<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"><manifest:file-entry manifest:full-path="/" manifest:media-type="{media}"/></manifest:manifest>',
        }
    )


def sheet(rows: str, shared: str = "", head: str = "") -> bytes:
    """Return an XLSX with one sheet."""
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml."
    types = "".join(
        f'<Override PartName="/xl/{name}" ContentType="{kind}{what}+xml"/>'
        for name, what in (
            ("workbook.xml", "sheet.main"),
            ("worksheets/sheet1.xml", "worksheet"),
            ("sharedStrings.xml", "sharedStrings"),
        )
    )
    relations = _RELATION.format(1, "worksheet", "worksheets/sheet1.xml") + _RELATION.format(
        2, "sharedStrings", "sharedStrings.xml"
    )
    return archive(
        {
            "[Content_Types].xml": _TYPES.format(types),
            "_rels/.rels": _RELATIONS.format(_RELATION.format(1, "officeDocument", "xl/workbook.xml")),
            "xl/workbook.xml": f'<workbook xmlns="{space}" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets><sheet name="A" sheetId="1" r:id="r1"/></sheets></workbook>',
            "xl/_rels/workbook.xml.rels": _RELATIONS.format(relations),
            "xl/sharedStrings.xml": f'<sst xmlns="{space}">{shared}</sst>',
            "xl/worksheets/sheet1.xml": f'<?xml version="1.0"?>{head}<worksheet xmlns="{space}"><sheetData>{rows}</sheetData></worksheet>',
        }
    )


SAMPLE_OFFICE = word(paragraphs(3))
_CELL = "<w:tc><w:p><w:r><w:t>a</w:t></w:r></w:p>{}</w:tc>"
_READ = ("text", "cut")


def office_files() -> Iterator[Hostile]:
    """Yield all office files."""
    for name, body, ends in (*_archives(), *_parts(), *_open(), *_sheets(), *_rich()):
        yield Hostile(f"office_{name}", "office", body, ends, MARKER)


_Files = Iterator[tuple[str, bytes, tuple[str, ...]]]


def _archives() -> _Files:
    whole = SAMPLE_OFFICE
    for share in (1, 3, 6, 9):
        yield f"cut_at_{share}0", whole[: len(whole) * share // 10], ("damaged", "text", "cut")
    yield "no_list_of_members", whole[: whole.index(b"PK\x01\x02")], ("damaged", "text", "cut")
    yield "list_of_zeros", whole[: whole.index(b"PK\x01\x02")] + bytes(2000), ()
    yield "bad_checksum", whole.replace(struct.pack("<I", zlib.crc32(_main(paragraphs(3)).encode())), b"\1\2\3\4"), ()
    yield "locked_member", _flagged(whole), ("encrypted", "damaged")
    yield (
        "locked_in_ole",
        bytes.fromhex("D0CF11E0A1B11AE1") + bytes(504) + "EncryptedPackage".encode("utf-16-le") + bytes(4096),
        ("encrypted", "damaged"),
    )
    main = b"word/document.xml"
    heads = [
        (name.encode(), deflated(str(body).encode()), len(str(body).encode()), zlib.crc32(str(body).encode()))
        for name, body in word_members("").items()
        if name.encode() != main
    ]
    yield "bomb_of_blanks", raw_archive([*heads, (main, raw_bomb(b" ", 2048), 0x7FFFFFFF, 0)]), ("too_large", "damaged")
    yield "bomb_that_lies", raw_archive([*heads, (main, raw_bomb(b" ", 1024), 1000, 0)]), ("too_large", "damaged")
    text = _main("").encode().replace(b"</w:body></w:document>", b"") + b""
    yield (
        "bomb_of_paragraphs",
        raw_archive([*heads, (main, deflated(text)[:-2] + raw_bomb(paragraphs().encode(), 512), 512 * MEGABYTE, 0)]),
        (),
    )
    yield (
        "member_beside_bomb",
        raw_archive(
            [
                *[(n, p, s, c) for n, p, s, c in heads],
                (
                    main,
                    deflated(_main(paragraphs()).encode()),
                    len(_main(paragraphs())),
                    zlib.crc32(_main(paragraphs()).encode()),
                ),
                (b"word/media/image0.png", raw_bomb(b"\0", 4096), 0x7FFFFFFF, 0),
            ]
        ),
        ("text", "too_large"),
    )
    yield (
        "members_that_overlap",
        raw_archive([*heads[:0], (b"word/0.xml", raw_bomb(b" ", 16), 16 * MEGABYTE, 0)], repeat=60_000),
        (),
    )
    yield (
        "100000_members",
        archive({**word_members(_main(paragraphs())), **{f"word/{at}.xml": "" for at in range(100_000)}}),
        ("text", "too_large"),
    )
    yield (
        "names_that_climb",
        archive(
            {
                **word_members(_main(paragraphs())),
                "../../../../tmp/refinery-climbed": "x",
                "/tmp/refinery-climbed": "x",
                "word\\..\\..\\x": "x",
            }
        ),
        ("text", "damaged"),
    )
    yield (
        "long_names",
        archive({**word_members(_main(paragraphs())), **{"a" * 60_000 + str(at): "" for at in range(20)}}),
        ("text", "too_large"),
    )
    inner = SAMPLE_OFFICE
    for _ in range(30):
        inner = word(paragraphs(), word__embeddings__a_docx=inner)
    yield "30_in_each_other", inner, ("text", "too_large")
    yield "other_archive", archive({"readme.txt": "nothing of an office"}), ("damaged",)
    yield "empty_archive", b"PK\x05\x06" + bytes(18), ("damaged",)


def _flagged(whole: bytes) -> bytes:
    body = bytearray(whole)
    for sign, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = -1
        while (at := whole.find(sign, at + 1)) >= 0:
            body[at + place] |= 1
    return bytes(body)


def _parts() -> _Files:
    yield "billion_laughs", word("<w:p><w:r><w:t>&j;</w:t></w:r></w:p>", LAUGHS), ()
    yield "square_of_entities", word(f"<w:p><w:r><w:t>{'&a;' * 100_000}</w:t></w:r></w:p>", SQUARE), ()
    yield "entity_of_a_file", word(f"<w:p><w:r><w:t>&a; {_SAID}</w:t></w:r></w:p>", OUTSIDE), ()
    yield "entity_of_a_server", word(paragraphs(), REMOTE), ()
    yield (
        "no_main_part",
        archive({name: body for name, body in word_members("").items() if "document" not in name}),
        ("damaged",),
    )
    yield "empty_main_part", archive(word_members("")), ("damaged", "text")
    yield "main_part_of_zeros", archive(word_members(bytes(10_000))), ("damaged", "text")
    yield "main_part_cut", archive(word_members(_main(paragraphs(50))[:3000])), ("damaged", "cut", "text")
    yield (
        "main_part_in_utf_16",
        archive(word_members(_main(paragraphs()).replace("UTF-8", "UTF-16").encode("utf-16"))),
        ("text", "damaged"),
    )
    yield "main_part_in_utf_7", archive(word_members(_main(paragraphs()).replace("UTF-8", "UTF-7"))), ()
    yield (
        "no_types",
        archive({name: body for name, body in word_members(_main(paragraphs())).items() if "Types" not in name}),
        (),
    )
    yield "signs_that_xml_forbids", word("<w:p><w:r><w:t>a\x00\x08\ufffe&#0;&#xD800;b</w:t></w:r></w:p>"), ()
    for deep in (300, 5_000, 200_000):
        yield (
            f"tables_{deep}_deep",
            word("<w:tbl><w:tr><w:tc>" * deep + paragraphs() + "</w:tc></w:tr></w:tbl>" * deep),
            (),
        )
    yield "runs_100000_deep", word("<w:ins>" * 100_000 + paragraphs() + "</w:ins>" * 100_000), ()
    yield "300000_paragraphs", word(paragraphs(300_000)), ("text", "too_large", "cut")
    row = "<w:tr>" + _CELL.format("") * 63 + "</w:tr>"
    yield "table_of_600000_cells", word(f"<w:tbl>{row * 10_000}</w:tbl>"), ("text", "too_large", "cut")
    wide = '<w:tc><w:tcPr><w:gridSpan w:val="2147483647"/><w:vMerge w:val="restart"/></w:tcPr><w:p><w:r><w:t>wide</w:t></w:r></w:p></w:tc>'
    yield "cell_over_2_billion", word(f"<w:tbl><w:tr>{wide}</w:tr></w:tbl>"), ("text",)
    yield (
        "numbers_that_are_none",
        word(
            '<w:p><w:pPr><w:pStyle w:val="Heading99999999999"/><w:numPr><w:ilvl w:val="-9"/><w:numId w:val="x"/></w:numPr><w:outlineLvl w:val="abc"/></w:pPr><w:r><w:t>x</w:t></w:r></w:p>'
        ),
        ("text",),
    )
    style = f'<w:styles xmlns:w="{_WORD}"><w:style w:type="paragraph" w:styleId="A"><w:basedOn w:val="B"/></w:style><w:style w:type="paragraph" w:styleId="B"><w:basedOn w:val="A"/></w:style></w:styles>'
    yield (
        "styles_in_a_circle",
        archive(
            {
                **word_members(_main(f'<w:p><w:pPr><w:pStyle w:val="A"/></w:pPr><w:r><w:t>{_SAID}</w:t></w:r></w:p>')),
                "word/styles.xml": style,
                "word/_rels/document.xml.rels": _RELATIONS.format(_RELATION.format(1, "styles", "styles.xml")),
            }
        ),
        ("text",),
    )
    yield (
        "relation_to_itself",
        archive(
            {
                **word_members(_main(paragraphs() + '<w:altChunk r:id="r1"/>')),
                "word/_rels/document.xml.rels": _RELATIONS.format(
                    _RELATION.format(1, "aFChunk", "document.xml")
                    + _RELATION.format(2, "footnotes", "document.xml")
                    + _RELATION.format(3, "footnotes", f"file://{MARKED}")
                ),
            }
        ),
        ("text",),
    )
    yield "macros", word(paragraphs(), word__vbaProject_bin=bytes.fromhex("D0CF11E0A1B11AE1") + bytes(4096)), ("text",)
    yield (
        "field_that_runs",
        word(
            f"<w:p><w:r><w:instrText>DDEAUTO c:\\windows\\system32\\cmd.exe</w:instrText></w:r><w:r><w:t>{_SAID}</w:t></w:r></w:p>"
        ),
        ("text",),
    )
    yield (
        "core_with_entities",
        archive(
            {
                **word_members(_main(paragraphs())),
                "docProps/core.xml": f'<?xml version="1.0"?>{LAUGHS}<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties" xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>&j;</dc:title></cp:coreProperties>',
            }
        ),
        (),
    )


def _open() -> _Files:
    said = f"<text:p>{_SAID}</text:p>"
    yield "open_2_billion_blanks", open_text('<text:p>a<text:s text:c="2000000000"/>b</text:p>'), ("text", "too_large")
    yield "open_blanks_by_100000", open_text("<text:p>" + '<text:s text:c="65535"/>' * 100_000 + "</text:p>"), ()
    cell = '<table:table-cell table:number-columns-repeated="16384"><text:p>x</text:p></table:table-cell>'
    yield (
        "open_rows_repeated",
        open_text(
            f'<table:table><table:table-row table:number-rows-repeated="1048576">{cell}</table:table-row></table:table>',
            kind="spreadsheet",
        ),
        (),
    )
    yield (
        "open_columns_spanned",
        open_text(
            '<table:table><table:table-row><table:table-cell table:number-columns-spanned="99999999999" table:number-rows-spanned="-4"><text:p>x</text:p></table:table-cell></table:table-row></table:table>'
        ),
        ("text",),
    )
    yield (
        "open_lists_50000_deep",
        open_text("<text:list><text:list-item>" * 50_000 + said + "</text:list-item></text:list>" * 50_000),
        (),
    )
    yield "open_sections_400_deep", open_text("<text:section>" * 400 + said + "</text:section>" * 400), ()
    yield "open_billion_laughs", open_text("<text:p>&j;</text:p>", LAUGHS), ()
    yield "open_entity_of_a_file", open_text(f"<text:p>&a;</text:p>{said}", OUTSIDE), ()
    yield (
        "open_heading_levels",
        open_text(
            '<text:h text:outline-level="-1">A</text:h><text:h text:outline-level="999999999999999999999">B</text:h><text:h text:outline-level="x">C</text:h>'
        ),
        ("text",),
    )
    yield "open_no_content", archive({"mimetype": "application/vnd.oasis.opendocument.text"}), ("damaged",)
    manifest = '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"><manifest:file-entry manifest:full-path="content.xml" manifest:size="99"><manifest:encryption-data manifest:checksum-type="x"><manifest:algorithm manifest:algorithm-name="http://www.w3.org/2001/04/xmlenc#aes256-cbc"/></manifest:encryption-data></manifest:file-entry></manifest:manifest>'
    yield (
        "open_locked",
        archive(
            {
                "mimetype": "application/vnd.oasis.opendocument.text",
                "content.xml": bytes(range(256)) * 8,
                "META-INF/manifest.xml": manifest,
            }
        ),
        ("encrypted",),
    )


def _sheets() -> _Files:
    yield (
        "sheet_far_cell",
        sheet('<row r="1048576"><c r="XFD1048576" t="inlineStr"><is><t>far</t></is></c></row>'),
        ("text",),
    )
    yield "sheet_beyond", sheet('<row r="99999999999"><c r="ZZZZZZZZ99999999999"><v>1</v></c></row>'), ()
    yield (
        "sheet_no_string",
        sheet(
            '<row r="1"><c r="A1" t="s"><v>99999999</v></c><c r="B1" t="s"><v>-1</v></c><c r="C1" t="s"><v>x</v></c></row>'
        ),
        (),
    )
    yield (
        "sheet_same_long_string",
        sheet('<row r="1">' + '<c t="s"><v>0</v></c>' * 200_000 + "</row>", f"<si><t>{'x' * 32_000}</t></si>"),
        (),
    )
    yield (
        "sheet_day_of_no_year",
        sheet(
            '<row r="1"><c r="A1" s="14" t="d"><v>9999-99-99</v></c><c r="B1" s="99999"><v>1e308</v></c><c r="C1"><v>nan</v></c></row>'
        ),
        (),
    )
    yield (
        "sheet_100000_rows",
        sheet("".join(f'<row r="{at}"><c r="A{at}"><v>{at}</v></c></row>' for at in range(1, 100_001))),
        ("text", "too_large", "cut"),
    )
    yield (
        "sheet_rows_far_apart",
        sheet("".join(f'<row r="{at}"><c r="XFD{at}"><v>{at}</v></c></row>' for at in range(1, 1_048_576, 500))),
        (),
    )
    yield "sheet_laughs", sheet('<row r="1"><c r="A1" t="inlineStr"><is><t>&j;</t></is></c></row>', head=LAUGHS), ()


def _rich() -> _Files:
    said = _SAID.encode()
    yield "rich_200000_deep", b"{\\rtf1 " + b"{" * 200_000 + said + b"}" * 200_001, ()
    yield "rich_never_ends", b"{\\rtf1\\ansi " + said + b"{\\b ", ("text", "cut", "damaged")
    yield "rich_ends_too_often", b"{\\rtf1\\ansi " + said + b"}" * 50_000 + b"behind", ()
    yield "rich_binary_of_4_gigabytes", b"{\\rtf1 a {\\pict\\bin4294967295 " + b"x" * 1000 + b"} " + said + b"}", ()
    yield "rich_negative_binary", b"{\\rtf1 a {\\pict\\bin-5 xxxxx} " + said + b"}", ()
    yield "rich_characters", b"{\\rtf1\\uc999999999 a\\u-99999999999 b\\u55357?\\u-1?\\'zz\\' " + said + b"}", ()
    yield (
        "rich_page_of_no_code",
        b"{\\rtf1\\ansicpg99999 \\'e9\\'ff " + said + b"{\\fonttbl{\\f0\\fcharset999 A;}}\\f0 \\'e9}",
        (),
    )
    yield (
        "rich_object_of_10_megabytes",
        b"{\\rtf1 {\\object\\objocx{\\*\\objdata " + b"0123456789abcdef" * 650_000 + b"}} " + said + b"}",
        (),
    )
    yield "rich_a_million_words", b"{\\rtf1 " + b"\\b0\\i1\\par " * 400_000 + said + b"}", ()
    yield "rich_table_of_a_million", b"{\\rtf1 " + b"\\trowd\\cellx1\\intbl a\\cell\\row" * 100_000 + b"}", ()
    yield "rich_long_name", b"{\\rtf1 \\" + b"a" * 2_000_000 + b"1 " + said + b"}", ()
    yield "rich_long_number", b"{\\rtf1 \\fs" + b"9" * 1_000_000 + b" " + said + b"}", ()
    yield "rich_zeros", b"{\\rtf1" + bytes(1_000_000) + said + b"}", ()


# --- Books ------------------------------------------------------------------------------------------------------

_CONTAINER = '<?xml version="1.0"?>{}<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="{}" media-type="application/oebps-package+xml"/></rootfiles></container>'


def book_members(chapter: str | bytes, spine: int = 1, head: str = "", href: str = "c.xhtml") -> dict[str, str | bytes]:
    """Return the members of an EPUB whose spine names one chapter so often."""
    said, named = "&a;" if head else "", '<itemref idref="c"/>' * spine
    return {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": _CONTAINER.format("", "OPS/p.opf"),
        "OPS/p.opf": f'<?xml version="1.0"?>{head}<package xmlns="http://www.idpf.org/2007/opf" version="3.0"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Book{said}</dc:title><dc:language>en</dc:language></metadata><manifest><item id="c" href="{href}" media-type="application/xhtml+xml"/></manifest><spine>{named}</spine></package>',
        "OPS/c.xhtml": chapter,
    }


def chapter(inner: str, head: str = "") -> str:
    """Return a chapter."""
    return f'<?xml version="1.0" encoding="utf-8"?>{head}<html xmlns="http://www.w3.org/1999/xhtml"><head><title>A</title></head><body>{inner}</body></html>'


_PARAGRAPH = f"<p>{_SAID}</p>"
SAMPLE_BOOK = archive(book_members(chapter(_PARAGRAPH * 3)))


def book_files() -> Iterator[Hostile]:
    """Yield all books."""
    for name, members, ends in _books():
        body = members if isinstance(members, bytes) else archive(members)
        yield Hostile(f"epub_{name}", "epub", body, ends, MARKER)


def _books() -> Iterator[tuple[str, bytes | dict[str, str | bytes], tuple[str, ...]]]:
    said = chapter(_PARAGRAPH)
    whole = SAMPLE_BOOK
    for share in (2, 5, 8):
        yield f"cut_at_{share}0", whole[: len(whole) * share // 10], ("damaged", "text", "cut")
    known = book_members(said)
    for lost in ("META-INF/container.xml", "OPS/p.opf", "OPS/c.xhtml"):
        yield (
            f"without_{lost.rpartition('/')[2]}",
            {name: body for name, body in known.items() if name != lost},
            ("damaged", "text", "cut"),
        )
    yield "chapter_60000_times", book_members(chapter(_PARAGRAPH * 200), spine=60_000), ()
    yield (
        "package_in_a_circle",
        {**known, "META-INF/container.xml": _CONTAINER.format("", "META-INF/container.xml")},
        ("damaged",),
    )
    yield "path_that_climbs", book_members(said, href=f"../../../../../..{MARKED}"), ()
    yield "path_of_a_file", book_members(said, href=f"file://{MARKED}"), ()
    yield "path_of_a_server", book_members(said, href="http://127.0.0.1:9/x"), ()
    yield "package_laughs", book_members(said, head=LAUGHS), ()
    yield "package_entity_of_a_file", book_members(said, head=OUTSIDE), ()
    yield "container_laughs", {**known, "META-INF/container.xml": _CONTAINER.format(LAUGHS, "OPS/p.opf&j;")}, ()
    yield "chapter_laughs", book_members(chapter("<p>&j;</p>", LAUGHS)), ()
    yield "chapter_entity_of_a_file", book_members(chapter(f"<p>&a;</p>{_PARAGRAPH}", OUTSIDE)), ()
    yield "chapter_100000_deep", book_members(chapter("<div>" * 100_000 + _PARAGRAPH + "</div>" * 100_000)), ()
    yield (
        "chapter_tables_3000_deep",
        book_members(chapter("<table><tr><td>" * 3_000 + "a" + "</td></tr></table>" * 3_000)),
        (),
    )
    yield "chapter_of_zeros", book_members(bytes(100_000)), ()
    yield "chapter_in_no_charset", book_members(said.replace("utf-8", "klingon")), ()
    locks = '<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><EncryptedData xmlns="http://www.w3.org/2001/04/xmlenc#"><EncryptionMethod Algorithm="http://www.w3.org/2001/04/xmlenc#aes128-cbc"/><CipherData><CipherReference URI="OPS/c.xhtml"/></CipherData></EncryptedData></encryption>'
    yield (
        "locked",
        {**book_members(bytes(range(256)) * 30), "META-INF/encryption.xml": locks, "META-INF/rights.xml": "<x/>"},
        ("encrypted",),
    )
    parts = [
        (
            name.encode(),
            deflated(body if isinstance(body, bytes) else body.encode()),
            len(body),
            zlib.crc32(body if isinstance(body, bytes) else body.encode()),
        )
        for name, body in known.items()
        if name != "OPS/c.xhtml"
    ]
    yield "bomb", raw_archive([*parts, (b"OPS/c.xhtml", raw_bomb(b"<p>a</p>", 2048), 0x7FFFFFFF, 0)]), ()
