"""Lines that run to the left are read as they are read, however a producer drew them."""

import pytest
from pdf_files import pdf
from refinery_files.pdf import read

HEBREW = "\u05e9\u05dc\u05d5\u05dd \u05dc\u05db\u05dd, \u05d9\u05e9 250 \u05e1\u05e4\u05e8\u05d9\u05dd \u05d1\u05d1\u05d9\u05ea"
WIDTH = 6.0


def drawn(y: float, *, from_left: bool) -> str:
    """Return operators that draw the words of a line from one of its ends."""
    right, placed = 500.0, []
    for word in HEBREW.split(" "):
        shown = word if word.isdigit() else word[::-1]
        right -= WIDTH * len(word)
        placed.append((right, "".join(f"{ord(letter):04X}" for letter in shown)))
        right -= WIDTH / 2
    if from_left:
        placed.reverse()
    return "\n".join(f"BT /X 10 Tf {x} {y} Td <{codes}> Tj ET" for x, codes in placed)


def font() -> dict[int, bytes]:
    cmap = (
        b"begincmap 1 begincodespacerange <0000> <FFFF> endcodespacerange "
        b"2 beginbfrange <0020> <007E> <0020> <0590> <05FF> <0590> endbfrange endcmap"
    )
    return {
        1000: b"<</Type/Font/Subtype/Type0/BaseFont/Some/Encoding/Identity-H/DescendantFonts[1001 0 R]/ToUnicode 1002 0 R>>",
        1001: b"<</Type/Font/Subtype/CIDFontType2/BaseFont/Some/DW 600/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)"
        b"/Supplement 0>>/FontDescriptor 1003 0 R>>",
        1002: b"<</Length %d>>stream\n%s\nendstream" % (len(cmap), cmap),
        1003: b"<</Type/FontDescriptor/FontName/Some/Flags 4/FontBBox[0 -200 600 800]/Ascent 800/Descent -200/ItalicAngle 0/CapHeight 700/StemV 80>>",
    }


def parts_of(*drawn: str) -> tuple[str, ...]:
    """Return what is read of lines below each other, each as it is seen from left to right."""
    lines = [
        f"BT /X 10 Tf 50 {700 - 12 * at} Td <{''.join(f'{ord(letter):04X}' for letter in line)}> Tj ET"
        for at, line in enumerate(drawn)
    ]
    return read(pdf(lines, objects=font()).replace(b"/Font<<", b"/Font<</X 1000 0 R")).parts


def read_lines(*, from_left: bool) -> tuple[str, ...]:
    page = [drawn(700 - 12 * at, from_left=from_left) for at in range(2)]
    body = pdf(page, objects=font()).replace(b"/Font<<", b"/Font<</X 1000 0 R")
    return read(body).parts


def test_the_order_in_which_words_are_drawn_does_not_matter() -> None:
    assert read_lines(from_left=True) == read_lines(from_left=False) == (f"<p>{HEBREW} {HEBREW}</p>",)


LATIN = "the house at the river has two doors and nine windows that"
SHALOM, LAKHEM, SFARIM = "\u05e9\u05dc\u05d5\u05dd", "\u05dc\u05db\u05dd", "\u05e1\u05e4\u05e8\u05d9\u05dd"


def test_one_word_that_runs_to_the_left_is_turned_in_a_page_that_runs_to_the_right() -> None:
    seen = [*[LATIN] * 6, f"look ({SHALOM[::-1]}) east, as {LAKHEM[::-1]} does."]
    assert parts_of(*seen) == (f"<p>{' '.join([LATIN] * 6)} look ({SHALOM}) east, as {LAKHEM} does.</p>",)


def test_words_that_run_to_the_left_are_in_their_order_in_a_line_that_runs_to_the_right() -> None:
    seen = f"we read {SFARIM[::-1]} 250 ,{SHALOM[::-1]} in the east"
    assert parts_of(LATIN, seen) == (f"<p>{LATIN} we read {SHALOM}, 250 {SFARIM} in the east</p>",)


def test_a_line_of_mostly_other_letters_runs_as_the_lines_beside_it() -> None:
    first = f"{SFARIM} {SHALOM} {LAKHEM} {SFARIM} {SHALOM} {LAKHEM} {SFARIM}"
    last = f"{LAKHEM} {SHALOM} {SFARIM}"
    seen = [
        first[::-1],
        f"houses at the river {SHALOM[::-1]} {LAKHEM[::-1]}".rjust(len(first)),
        last[::-1].rjust(len(first)),
    ]
    assert parts_of(*seen) == (f"<p>{first} {LAKHEM} {SHALOM} houses at the river</p>\n<p>{last}</p>",)


@pytest.mark.parametrize("strokes", ["\u0003", "\u0003" * 3])
def test_strokes_that_fill_a_line_part_no_word(strokes: str) -> None:
    seen = [f"{SFARIM} {SHALOM} {LAKHEM}"[::-1], f"{SFARIM} {SHALOM[:2]}{strokes}{SHALOM[2:]} {LAKHEM}"[::-1]]
    assert parts_of(*seen) == (f"<p>{SFARIM} {SHALOM} {LAKHEM} {SFARIM} {SHALOM} {LAKHEM}</p>",)
