"""PDFs that are made to harm who reads them; each is written by code, byte by byte."""

import hashlib
import zlib
from collections.abc import Iterator, Sequence

from tests.file_types.hostile_file import Hostile, bomb

TEXT = b"BT /F 12 Tf 72 720 Td (The station writes one line every ten minutes.) Tj ET"
PAGE = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>"
FONT = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
CATALOG = b"<</Type/Catalog/Pages 2 0 R>>"
PAGES = b"<</Type/Pages/Kids[3 0 R]/Count 1>>"


def stream(body: bytes, head: bytes = b"") -> bytes:
    """Return a stream with its dictionary."""
    return b"<<%s/Length %d>>stream\n%s\nendstream" % (head, len(body), body)


def written(objects: Sequence[bytes], trailer: bytes = b"") -> bytes:
    """Return a PDF of objects, which are numbered from 1, with a table of their places."""
    body, places = bytearray(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"), list[int]()
    for number, inner in enumerate(objects, 1):
        places.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, inner)
    start, count = len(body), len(objects) + 1
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    body += b"xref\n0 %d\n0000000000 65535 f \n%s" % (count, table)
    body += b"trailer<</Size %d/Root 1 0 R%s>>\nstartxref\n%d\n%%%%EOF\n" % (count, trailer, start)
    return bytes(body)


def simple(content: bytes = TEXT, head: bytes = b"", *more: bytes, page: bytes = PAGE, trailer: bytes = b"") -> bytes:
    """Return a PDF of one page with a content; `more` are objects from number 6 on."""
    return written([CATALOG, PAGES, page, stream(content, head), FONT, *more], trailer)


def resources(inner: bytes) -> bytes:
    """Return the page with other resources besides its font."""
    return PAGE.replace(b"/Font<<", inner + b"/Font<<")


SAMPLE = written(
    [
        CATALOG,
        b"<</Type/Pages/Kids[3 0 R 6 0 R]/Count 2>>",
        PAGE,
        stream(TEXT + b" " + TEXT.replace(b"720", b"700")),
        FONT,
        PAGE,
    ],
    b"/Info<</Title(Keeping a weather station)>>",
)
_READ = ("text", "cut")
_BROKEN = ("text", "cut", "damaged", "unread")


def files() -> Iterator[Hostile]:
    """Yield all PDFs."""
    for name, body, ends in (*_broken(), *_circles(), *_bombs(), *_drawn(), *_locked()):
        yield Hostile(name, "pdf", body, ends)


_Files = Iterator[tuple[str, bytes, tuple[str, ...]]]


def _broken() -> _Files:
    whole = simple()
    yield "pdf_header_alone", b"%PDF-1.7\n", ("damaged",)
    yield "pdf_header_and_zeros", b"%PDF-1.4\n" + bytes(100_000), ("damaged",)
    yield "pdf_without_places", whole[: whole.rindex(b"xref\n0")], _BROKEN
    yield "pdf_without_end", whole[: whole.rindex(b"startxref")], _BROKEN
    yield "pdf_wrong_start", whole.replace(b"startxref\n", b"startxref\n9"), _BROKEN
    yield "pdf_start_beyond", whole[: whole.rindex(b"startxref")] + b"startxref\n99999999999999999999\n%%EOF", _BROKEN
    yield "pdf_4_billion_places", whole.replace(b"xref\n0 6", b"xref\n0 4294967295"), _BROKEN
    yield "pdf_negative_places", whole.replace(b"xref\n0 6", b"xref\n-5 -6"), _BROKEN
    yield "pdf_junk_before", b"\x00\xff" * 400 + whole, (*_BROKEN, "text")
    yield "pdf_junk_behind", whole + b"junk" * 100_000, _BROKEN
    yield "pdf_page_of_html", whole + b"<html><body>not found</body></html>", _BROKEN
    yield "pdf_is_html", b"%PDF-1.4\n<html><body><p>not found</p></body></html>", ("damaged",)
    yield "pdf_no_pages", written([CATALOG, b"<</Type/Pages/Kids[]/Count 0>>"]), ("text", "damaged", "unread")
    yield (
        "pdf_count_lies",
        written([CATALOG, b"<</Type/Pages/Kids[3 0 R]/Count 2147483647>>", PAGE, stream(TEXT), FONT]),
        (),
    )
    yield (
        "pdf_negative_count",
        written([CATALOG, b"<</Type/Pages/Kids[3 0 R]/Count -7>>", PAGE, stream(TEXT), FONT]),
        (),
    )
    yield "pdf_no_root", whole.replace(b"/Root 1 0 R", b"/Root 99 0 R"), ()
    yield "pdf_length_negative", whole.replace(b"/Length %d" % len(TEXT), b"/Length -5"), ()
    yield "pdf_length_beyond", whole.replace(b"/Length %d" % len(TEXT), b"/Length 999999999999"), ()
    yield "pdf_length_is_itself", whole.replace(b"/Length %d" % len(TEXT), b"/Length 4 0 R"), ()
    yield "pdf_open_string", simple(b"BT /F 12 Tf (The station " + b"(" * 5000), ()
    yield "pdf_number_overflow", whole.replace(b"5 0 obj", b"99999999999999 0 obj"), ()
    yield "pdf_zero_names", whole.replace(b"/Helvetica", b"/Hel\x00#00vetica"), ()
    yield "pdf_bad_deflate", simple(b"\x78\x9c\xff\xff\xff\xff", b"/Filter/FlateDecode"), ()
    yield "pdf_unknown_filter", simple(TEXT, b"/Filter/Secret"), ()
    yield "pdf_100_filters", simple(TEXT, b"/Filter[" + b"/ASCIIHexDecode" * 100 + b"]"), ()
    yield "pdf_bad_title", simple(trailer=b"/Info<</Title<FEFFD800D800>/CreationDate(D:99999999999999)>>"), ()
    yield (
        "pdf_bad_language",
        written([CATALOG.replace(b"/Pages", b"/Lang(" + b"x" * 70_000 + b")/Pages"), PAGES, PAGE, stream(TEXT), FONT]),
        (),
    )
    for share in (1, 3, 6, 9):
        yield f"pdf_cut_at_{share}0", SAMPLE[: len(SAMPLE) * share // 10], _BROKEN


def _circles() -> _Files:
    places = simple()
    start = places.rindex(b"xref\n0")
    yield "pdf_previous_is_itself", simple(trailer=b"/Prev %d" % start), ()
    yield (
        "pdf_pages_in_a_circle",
        written([CATALOG, b"<</Type/Pages/Kids[2 0 R 3 0 R]/Count 2>>", PAGE, stream(TEXT), FONT]),
        (),
    )
    yield (
        "pdf_page_is_its_parent",
        written(
            [
                CATALOG,
                b"<</Type/Pages/Kids[3 0 R]/Count 1/Parent 3 0 R>>",
                PAGE.replace(b"/MediaBox[0 0 595 842]", b""),
                stream(TEXT),
                FONT,
            ]
        ),
        (),
    )
    deep = [b"<</Type/Pages/Kids[%d 0 R]/Count 1/Parent %d 0 R>>" % (at + 1, at - 1) for at in range(6, 20_006)]
    yield (
        "pdf_pages_20000_deep",
        written([CATALOG, b"<</Type/Pages/Kids[6 0 R]/Count 1>>", PAGE, stream(TEXT), FONT, *deep, PAGE]),
        (),
    )
    form = stream(
        b"/X Do " + TEXT,
        b"/Type/XObject/Subtype/Form/BBox[0 0 595 842]/Resources<</XObject<</X 6 0 R>>/Font<</F 5 0 R>>>>",
    )
    yield "pdf_form_draws_itself", simple(b"/X Do " + TEXT, b"", form, page=resources(b"/XObject<</X 6 0 R>>")), ()
    levels = [
        stream(
            b"/X Do " * 10 + TEXT,
            b"/Type/XObject/Subtype/Form/BBox[0 0 595 842]/Resources<</XObject<</X %d 0 R>>/Font<</F 5 0 R>>>>"
            % (at + 1),
        )
        for at in range(6, 16)
    ]
    yield (
        "pdf_billion_forms",
        simple(
            b"/X Do",
            b"",
            *levels,
            stream(TEXT, b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]"),
            page=resources(b"/XObject<</X 6 0 R>>"),
        ),
        (),
    )
    glyph = stream(b"0 0 10 10 d1 BT /F 10 Tf (a) Tj ET")
    type3 = b"<</Type/Font/Subtype/Type3/FontBBox[0 0 9 9]/FontMatrix[.1 0 0 .1 0 0]/CharProcs<</a 6 0 R>>/Encoding<</Differences[97/a]>>/FirstChar 97/LastChar 97/Widths[10]/Resources<</Font<</F 5 0 R>>>>>>"
    yield (
        "pdf_glyph_draws_itself",
        written([CATALOG, PAGES, PAGE, stream(b"BT /F 12 Tf 72 720 Td (aaaa) Tj ET"), type3, glyph]),
        (),
    )
    outline = b"<</Title(A)/Parent 6 0 R/Next 7 0 R/Prev 7 0 R/First 6 0 R>>"
    yield (
        "pdf_outline_in_a_circle",
        written(
            [
                CATALOG.replace(b"/Pages", b"/Outlines 6 0 R/Pages"),
                PAGES,
                PAGE,
                stream(TEXT),
                FONT,
                b"<</First 7 0 R/Last 7 0 R/Count 1>>",
                outline,
            ]
        ),
        (),
    )
    tree = b"<</Type/StructTreeRoot/K 7 0 R>>"
    element = b"<</Type/StructElem/S/P/P 7 0 R/K[7 0 R 7 0 R 0]/Pg 3 0 R>>"
    yield (
        "pdf_structure_in_a_circle",
        written(
            [
                CATALOG.replace(b"/Pages", b"/MarkInfo<</Marked true>>/StructTreeRoot 6 0 R/Pages"),
                PAGES,
                PAGE,
                stream(TEXT),
                FONT,
                tree,
                element,
            ]
        ),
        (),
    )
    nested = stream(b"6 0 7 3 " + b"<<>> <<>>", b"/Type/ObjStm/N 2/First 8/Extends 6 0 R")
    yield "pdf_objects_in_themselves", simple(TEXT, b"", nested), ()
    cmap = (
        b"/CIDInit /ProcSet findresource begin begincmap /A usecmap 1 begincodespacerange <0000> <FFFF> endcodespacerange 100 beginbfrange "
        + b"<0000> <FFFF> <0041> " * 20_000
        + b"endbfrange endcmap"
    )
    wide = b"<</Type/Font/Subtype/Type0/BaseFont/A/Encoding/Identity-H/ToUnicode 6 0 R/DescendantFonts[<</Type/Font/Subtype/CIDFontType2/BaseFont/A/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>>>]>>"
    yield (
        "pdf_map_of_20000_ranges",
        written([CATALOG, PAGES, PAGE, stream(b"BT /F 12 Tf 72 720 Td <00010002> Tj ET"), wide, stream(cmap)]),
        (),
    )


def _bombs() -> _Files:
    yield "pdf_10000_pages", pages(10_000), ("text", "cut", "too_large", "empty")
    kids = b"3 0 R " * 300_000
    yield (
        "pdf_page_300000_times",
        written([CATALOG, b"<</Type/Pages/Kids[%s]/Count 300000>>" % kids, PAGE, stream(TEXT), FONT]),
        (),
    )
    yield "pdf_bomb_of_blanks", simple(bomb(b" ", 1024), b"/Filter/FlateDecode"), ()
    yield "pdf_bomb_of_text", simple(bomb(TEXT + b"\n", 256), b"/Filter/FlateDecode"), ()
    yield "pdf_bomb_of_states", simple(bomb(b"q ", 64), b"/Filter/FlateDecode"), ()
    yield "pdf_bomb_in_bomb", simple(zlib.compress(bomb(b" ", 2048)), b"/Filter[/FlateDecode/FlateDecode]"), ()
    yield "pdf_bomb_of_runs", simple(b"\x81 " * 2_000_000 + b"\x80", b"/Filter/RunLengthDecode"), ()
    yield (
        "pdf_bomb_of_objects",
        written(
            [
                CATALOG,
                PAGES,
                PAGE,
                stream(TEXT),
                FONT,
                stream(bomb(b"0 ", 512), b"/Type/ObjStm/N 99999999/First 9/Filter/FlateDecode"),
            ]
        ),
        (),
    )
    yield (
        "pdf_bomb_of_predictor",
        simple(bomb(b"\0", 256), b"/Filter/FlateDecode/DecodeParms<</Predictor 15/Columns 2147483647/Colors 4>>"),
        (),
    )
    yield "pdf_arrays_200000_deep", simple(b"[" * 200_000 + TEXT), ()
    yield (
        "pdf_dictionaries_100000_deep",
        written([CATALOG, PAGES, PAGE, stream(TEXT), FONT, b"<</A" * 100_000 + b">>" * 100_000]),
        (),
    )
    yield (
        "pdf_arrays_deep_in_page",
        written([CATALOG, PAGES, PAGE.replace(b"[0 0 595 842]", b"[" * 50_000 + b"]" * 50_000), stream(TEXT), FONT]),
        (),
    )
    yield (
        "pdf_image_of_10_gigapixels",
        simple(
            b"q 500 0 0 500 0 0 cm /I Do Q",
            b"",
            stream(
                b"\0" * 100,
                b"/Type/XObject/Subtype/Image/Width 100000/Height 100000/BitsPerComponent 8/ColorSpace/DeviceRGB",
            ),
            page=resources(b"/XObject<</I 6 0 R>>"),
        ),
        (),
    )
    for name in ("JBIG2Decode", "JPXDecode", "DCTDecode", "CCITTFaxDecode"):
        image = stream(
            b"\x97JB2\r\n\x1a\n\xff\xd8\xff" + bytes(range(256)) * 20,
            b"/Type/XObject/Subtype/Image/Width 60000/Height 60000/BitsPerComponent 1/ColorSpace/DeviceGray/Filter/%s"
            % name.encode(),
        )
        yield (
            f"pdf_image_by_{name}",
            simple(b"q 595 0 0 842 0 0 cm /I Do Q", b"", image, page=resources(b"/XObject<</I 6 0 R>>")),
            (),
        )
    yield (
        "pdf_metadata_with_entities",
        written(
            [
                CATALOG.replace(b"/Pages", b"/Metadata 6 0 R/Pages"),
                PAGES,
                PAGE,
                stream(TEXT),
                FONT,
                stream(
                    b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;"><!ENTITY e SYSTEM "file:///etc/passwd">]><x:xmpmeta xmlns:x="adobe:ns:meta/">&c;&e;</x:xmpmeta>',
                    b"/Type/Metadata/Subtype/XML",
                ),
            ]
        ),
        _READ,
    )
    yield "pdf_10_megabytes_of_comments", b"%PDF-1.7\n" + b"%" * 10_000_000 + b"\n" + simple()[9:], ()


def pages(count: int) -> bytes:
    """Return a PDF of many pages that share their content."""
    kids = b" ".join(b"%d 0 R" % number for number in range(5, 5 + count))
    page = PAGE.replace(b"4 0 R", b"3 0 R").replace(b"5 0 R", b"4 0 R")
    return written([CATALOG, b"<</Type/Pages/Kids[%s]/Count %d>>" % (kids, count), stream(TEXT), FONT, *[page] * count])


def _drawn() -> _Files:
    def shown(count: int, at: str, said: bytes = b"word") -> bytes:
        lines = (f"1 0 0 1 {eval(at, {'i': i})} Tm".encode() + b" (%s) Tj" % said for i in range(count))
        return zlib.compress(b"BT /F 9 Tf\n" + b"\n".join(lines) + b"\nET")

    deflated = b"/Filter/FlateDecode"
    yield "pdf_200000_words_in_one_place", simple(shown(200_000, "'72 720'"), deflated), ()
    yield "pdf_100000_words_strewn", simple(shown(100_000, "f'{i * 7919 % 595} {i * 104729 % 842}'"), deflated), ()
    yield "pdf_50000_lines_of_a_letter", simple(shown(50_000, "f'72 {842 - i * 0.016:.3f}'", b"a"), deflated), ()
    yield "pdf_staircase_of_20000", simple(shown(20_000, "f'{i % 500} {842 - i * 0.04:.3f}'"), deflated), ()
    yield (
        "pdf_100_columns_of_100",
        simple(
            shown(10_000, "f'{i % 100 * 60} {i // 100 * 80}'"), deflated, page=PAGE.replace(b"595 842", b"6000 8000")
        ),
        (),
    )
    yield (
        "pdf_line_of_a_million",
        simple(zlib.compress(b"BT /F 9 Tf 72 720 Td (" + b"x" * 1_000_000 + b") Tj ET"), deflated),
        (),
    )
    rules = b"\n".join(
        b"%d 0 m %d 842 l S 0 %d m 595 %d l S" % (i % 595, i % 595, i % 842, i % 842) for i in range(40_000)
    )
    yield "pdf_80000_rules", simple(zlib.compress(rules + TEXT), deflated), ()
    cells = b"\n".join(b"%d %d 4 4 re S" % (i % 140 * 4, i // 140 * 4) for i in range(28_000))
    yield "pdf_28000_cells", simple(zlib.compress(cells + shown(0, "''") + TEXT), deflated), ()
    for name, box in {
        "huge": b"[0 0 1e30 1e30]",
        "none": b"[0 0 0 0]",
        "backward": b"[595 842 0 0]",
        "words": b"[a b c d]",
        "negative": b"[-9e9 -9e9 -8e9 -8e9]",
    }.items():
        yield f"pdf_{name}_page", simple(page=PAGE.replace(b"[0 0 595 842]", box)), ()
    for name, matrix in {
        "far": b"1 0 0 1 1e9 1e9",
        "tiny": b"1e-9 0 0 1e-9 72 720",
        "flat": b"0 0 0 0 72 720",
        "endless": b"1e38 1e38 1e38 1e38 1e38 1e38",
    }.items():
        yield f"pdf_{name}_text", simple(TEXT.replace(b"72 720 Td", matrix + b" Tm")), ()
    yield (
        "pdf_page_turned_by_47",
        simple(
            page=PAGE.replace(b"/Type/Page", b"/Type/Page/Rotate 47"),
        ),
        (),
    )
    yield (
        "pdf_garbage_font",
        written(
            [
                CATALOG,
                PAGES,
                PAGE,
                stream(TEXT),
                b"<</Type/Font/Subtype/TrueType/BaseFont/A/FontDescriptor<</Type/FontDescriptor/FontName/A/FontFile2 6 0 R>>>>",
                stream(b"\0\1\0\0\xff\xff" + bytes(range(256)) * 40),
            ]
        ),
        (),
    )
    yield "pdf_no_font", simple(page=PAGE.replace(b"/Font<</F 5 0 R>>", b"")), ()
    yield "pdf_code_points", simple(b"BT /F 12 Tf 72 720 Td (\\000\\001\\377\\376\\033\\177) Tj ET"), ()
    yield (
        "pdf_runs_a_program",
        written(
            [
                CATALOG.replace(
                    b"/Pages", b"/OpenAction<</S/Launch/F(/bin/sh)/Next<</S/JavaScript/JS(app.alert\\(1\\))>>>>/Pages"
                ),
                PAGES,
                PAGE,
                stream(TEXT),
                FONT,
            ]
        ),
        _READ,
    )
    yield (
        "pdf_holds_a_file",
        written(
            [
                CATALOG.replace(b"/Pages", b"/Names<</EmbeddedFiles<</Names[(a)<</F(a)/EF<</F 6 0 R>>>>]>>>>/Pages"),
                PAGES,
                PAGE,
                stream(TEXT),
                FONT,
                stream(bomb(b"x", 512), b"/Filter/FlateDecode"),
            ]
        ),
        ("text", "cut", "too_large"),
    )


_PADDING = bytes.fromhex("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A")


def _rc4(key: bytes, body: bytes) -> bytes:
    state, at = list(range(256)), 0
    for i in range(256):
        at = (at + state[i] + key[i % len(key)]) % 256
        state[i], state[at] = state[at], state[i]
    out, i, at = bytearray(), 0, 0
    for byte in body:
        i = (i + 1) % 256
        at = (at + state[i]) % 256
        state[i], state[at] = state[at], state[i]
        out.append(byte ^ state[(state[i] + state[at]) % 256])
    return bytes(out)


def locked(password: bytes) -> bytes:
    """Return a PDF that is encrypted by RC4 with 40 bits and a password, "" for one that every reader opens."""
    padded = (password + _PADDING)[:32]
    owner = _rc4(hashlib.md5(padded).digest()[:5], padded)
    identity, rights = b"0123456789abcdef", -4
    key = hashlib.md5(padded + owner + rights.to_bytes(4, "little", signed=True) + identity).digest()[:5]
    user = _rc4(key, _PADDING)
    content = _rc4(hashlib.md5(key + (4).to_bytes(3, "little") + b"\0\0").digest()[:10], TEXT)
    head = b"/Encrypt<</Filter/Standard/V 1/R 2/O<%s>/U<%s>/P %d>>/ID[<%s><%s>]" % (
        owner.hex().encode(),
        user.hex().encode(),
        rights,
        *(identity.hex().encode(),) * 2,
    )
    return simple(content, trailer=head)


def _locked() -> _Files:
    yield "pdf_locked", locked(b"secret"), ("encrypted",)
    yield "pdf_locked_by_nothing", locked(b""), ("text",)
    yield (
        "pdf_locked_by_other_means",
        simple(trailer=b"/Encrypt<</Filter/Adobe.PubSec/V 4/R 4>>"),
        ("encrypted", "damaged"),
    )
    aes = (
        b"/Encrypt<</Filter/Standard/V 5/R 6/Length 256/O<%s>/U<%s>/OE<%s>/UE<%s>/Perms<%s>/P -4/CF<</StdCF<</CFM/AESV3/Length 32>>>>/StmF/StdCF/StrF/StdCF>>"
        % (b"00" * 48, b"11" * 48, b"22" * 32, b"33" * 32, b"44" * 16)
    )
    yield "pdf_locked_by_256_bits", simple(trailer=aes), ("encrypted",)
    yield "pdf_lock_is_broken", simple(trailer=b"/Encrypt 99 0 R"), ()
