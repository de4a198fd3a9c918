"""Words of scripts whose letters join into clusters are whole, however a producer drew the glyphs of a cluster."""

import pytest
from pdf_files import pdf
from refinery_files.pdf import read

# Devanagari for "child" and "work", Thai for "order"
BAL, KAM, SANG = "\u092c\u093e\u0932", "\u0915\u093e\u092e", "\u0e2a\u0e31\u0e48\u0e07"
# glyphs of Courier stand for letters, of which each is 6 points wide
GLYPHS = dict(zip(BAL[0] + BAL[1:] + "\u0915\u092e" + SANG, "balkmstuv", strict=True))


def font() -> dict[int, bytes]:
    """Return the font of the glyphs."""
    known = [f"<{ord(glyph):02x}> <{ord(letter):04x}>" for letter, glyph in GLYPHS.items()]
    known.append("<20> <0020>")
    ranges = "1 begincodespacerange <00> <FF> endcodespacerange"
    cmap = f"begincmap {ranges} {len(known)} beginbfchar {' '.join(known)} endbfchar endcmap"
    return {
        1000: b"<</Type/Font/Subtype/Type1/BaseFont/Courier/ToUnicode 1001 0 R>>",
        1001: f"<</Length {len(cmap)}>>stream\n{cmap}\nendstream".encode(),
    }


def glyphs(text: str) -> str:
    """Return an operator that draws letters by one glyph each."""
    return f"({''.join(GLYPHS.get(one, one) for one in text)}) Tj"


def cluster(text: str, *operators: str) -> str:
    """Return operators with the text of the cluster that they draw."""
    return f"/Span<</ActualText<FEFF{text.encode('utf-16-be').hex()}>>>BDC {' '.join(operators)} EMC"


def parts_of(*operators: str) -> tuple[str, ...]:
    """Return what is read of a page that text operators draw."""
    page = ["BT /Y 10 Tf 50 700 Td", *operators, "ET"]
    return read(pdf(page, objects=font()).replace(b"/Font<<", b"/Font<</Y 1000 0 R")).parts


def test_no_blank_is_read_behind_the_first_glyph_of_a_cluster() -> None:
    first = [cluster(BAL[:2], "(b) Tj 6 0 Td (a) Tj"), "6 0 Td (l) Tj", "6 0 Td ( ) Tj"]
    second = [cluster(KAM[:2], "6 0 Td (k) Tj 6 0 Td (a) Tj"), "6 0 Td (m) Tj"]
    assert parts_of(*first, *second) == (f"<p>{BAL} {KAM}</p>",)


def test_the_text_of_a_cluster_is_read_once() -> None:
    marked = cluster(SANG[:3], "(s) Tj", "6.4 0 Td (t) Tj")
    assert parts_of(marked, "-0.4 0 Td (v) Tj") == (f"<p>{SANG}</p>",)


def test_a_mark_that_is_drawn_by_itself_stays_with_its_letter() -> None:
    assert parts_of("(st) Tj", "12.4 0.5 Td (u) Tj", "-0.4 -0.5 Td (vv) Tj") == (f"<p>{SANG}\u0e07</p>",)


def test_glyphs_of_a_cluster_that_stand_for_no_letter_are_not_read() -> None:
    assert parts_of(r"(ka\201m) Tj") == (f"<p>{KAM}</p>",)


@pytest.mark.parametrize("gap", [0, 1.0])
def test_places_say_where_blanks_are_that_are_not_in_the_file(gap: float) -> None:
    assert parts_of(glyphs(BAL), f"{18 + 3 * gap} 0 Td", glyphs(KAM)) == (f"<p>{BAL}{' ' if gap else ''}{KAM}</p>",)
