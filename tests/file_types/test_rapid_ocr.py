"""Lines that a model finds on an image become paragraphs."""

from refinery_files.rapid_ocr import Line, paragraphs


def lines(*texts: tuple[str, float, float]) -> list[Line]:
    """Return lines of 10 pixels, each with its top and its right side."""
    return [Line(text, 0, top, right, top + 10) for text, top, right in texts]


def test_full_lines_go_on_and_hyphens_of_line_ends_go() -> None:
    found = lines(("A correc-", 0, 99), ("tion of the well-", 14, 98), ("Known name.", 28, 60), ("A new one.", 42, 55))
    assert list(paragraphs(found)) == ["A correction of the well- Known name.", "A new one."]


def test_a_gap_ends_a_paragraph() -> None:
    assert list(paragraphs(lines(("One full line", 0, 100), ("Another one", 30, 100)))) == [
        "One full line",
        "Another one",
    ]


def test_scripts_without_blanks_are_joined_without() -> None:
    assert list(paragraphs(lines(("\u6625\u5929", 0, 100), ("\u6765\u4e86", 12, 40)))) == ["\u6625\u5929\u6765\u4e86"]


def test_an_image_without_lines_has_no_paragraph() -> None:
    assert list(paragraphs([])) == []
