import pytest
from refinery_files.office import read

from pipeline_tasks.text.page.file_text import FileRefused
from tests.file_types.office_parts import text_of

HEAD = r"{\rtf1\ansi\ansicpg1252\deff0{\fonttbl{\f0 Times;}{\f1\fcharset204 Arial;}{\f2\fcharset2 Symbol;}{\f3\fcharset128 Mincho;}}{\stylesheet{\s1\outlinelevel0 heading 1;}{\s2 heading 2;}}"


def written(body: str) -> str:
    return text_of(read(f"{HEAD}{body}}}".encode("latin-1")))


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (r"one\par two\line three", "one\n\ntwo\nthree"),
        (r"caf\'e9 \u8364?5 \u-10179?\u-8704?!", "caf\u00e9 \u20ac5 \U0001f600!"),
        (r"{\f1 \'ef\'f0\'e8}", "\u043f\u0440\u0438"),
        (r"{\f3 \'93\'fa\'96\'7b}", "\u65e5\u672c"),
        (r"{\uc2 \u26085\'93\'fax}", "\u65e5x"),
        (r"a{\v hidden}b{\deleted gone}c", "abc"),
        (r"{\field{\*\fldinst HYPERLINK x}{\fldrslt link}}", "link"),
        (r"a{\*\unknown b}c{\pict 00ff}d{\header e}f", "acdf"),
        (r"{\pict\bin4 }}}}x}y", "y"),
        (r"x{\super 2}\par{\footnote note}\pard z", "x\u00b2\n\n\u00b9z\n\n1. note"),
        (r"\{\}\\\~\_-", "{}\\ \u2011-"),
        (r"{\listtext 3.\tab}\ilvl0 third\par{\listtext\u8226 ?\tab}dot\par", "3. third\n\n- dot"),
        (
            r"\trowd\cellx1\cellx2\pard\intbl a\cell b\par c\cell\row\trowd\intbl d\cell e\cell\row\pard after",
            "a\tb c\nd\te\n\nafter",
        ),
        (r"{\f2 a}", "\u03b1"),
    ],
)
def test_what_is_shown_is_read(body: str, text: str) -> None:
    assert written(body) == text


def test_headings_are_known_by_the_outline_or_the_name_of_their_style() -> None:
    html = read(f"{HEAD}\\s1 One\\par\\pard\\s2 Two\\par\\pard text}}".encode()).parts[0]
    assert html == "<h1>One</h1>\n<h2>Two</h2>\n<p>text</p>\n"


def test_code_keeps_its_blanks() -> None:
    head = HEAD.replace("{\\stylesheet", "{\\stylesheet{\\s7 HTML Preformatted;}")
    assert text_of(read(f"{head}\\s7 if x:\\par     y\\par}}".encode())) == "if x:\n    y"


def test_tables_of_contents_are_left_out() -> None:
    head = HEAD.replace("{\\stylesheet", "{\\stylesheet{\\s7 toc 1;}{\\s8 TOC Heading;}")
    assert text_of(read(f"{head}\\s8 Contents\\par\\pard\\s7 One 1\\par\\pard text}}".encode())) == "text"


def test_what_the_file_tells_of_itself() -> None:
    found = read(HEAD.encode() + rb"{\info{\title A title}{\creatim\yr2019\mo5\dy6}}\deflang1031 x}")
    assert (found.title, found.published, found.language) == ("A title", "2019-05-06", "de-DE")


def test_a_file_that_ends_early_is_cut() -> None:
    assert read(HEAD.encode() + b"text").is_cut
    assert not read(HEAD.encode() + b"text}").is_cut


def test_groups_that_are_too_deep_are_refused() -> None:
    with pytest.raises(FileRefused, match="too_large"):
        read(b"{\\rtf1" + b"{" * 1_000_000)
