import pytest
from refinery_files.office import read

from pipeline_tasks.text.page.file_text import FileRefused
from tests.file_types.office_parts import opendocument, text_of

LISTS = """
<text:list-style style:name="N"><text:list-level-style-number text:level="1" style:num-format="1" style:num-suffix="."/>
<text:list-level-style-bullet text:level="2" text:bullet-char="-"/></text:list-style>
<style:style style:name="P1" style:family="paragraph" style:parent-style-name="Preformatted_20_Text"/>
<style:style style:name="T1" style:family="text"><style:text-properties text:display="none"/></style:style>
<style:style style:name="T2" style:family="text"><style:text-properties style:text-position="super 58%"/></style:style>
<style:style style:name="A" style:family="paragraph" style:parent-style-name="B"/>
<style:style style:name="B" style:family="paragraph" style:parent-style-name="A"/>
"""


def written(body: str, kind: str = "text", **parts: str) -> str:
    return text_of(read(opendocument(kind, body, LISTS, **parts)))


def test_headings_paragraphs_and_their_spaces() -> None:
    body = '<text:h text:outline-level="2">A\n heading</text:h><text:p>two<text:s text:c="2"/>words<text:line-break/>line<text:tab/>tab</text:p>'
    assert read(opendocument("text", body)).parts[0].startswith("<h2>A heading</h2>")
    assert written(body) == "A heading\n\ntwo words\nline tab"


def test_numbered_headings_have_their_numbers() -> None:
    outline = '<text:outline-style><text:outline-level-style text:level="1" style:num-format="1"/><text:outline-level-style text:level="2" style:num-format="1" text:display-levels="2"/></text:outline-style>'
    body = "".join(
        f'<text:h text:outline-level="{level}">{text}</text:h>'
        for level, text in ((1, "a"), (2, "b"), (2, "c"), (1, "d"))
    )
    assert written(body, styles=outline) == "1 a\n\n1.1 b\n\n1.2 c\n\n2 d"


def test_lists_nest_and_count() -> None:
    inner = "<text:list><text:list-item><text:p>deep</text:p></text:list-item></text:list>"
    body = f'<text:list text:style-name="N"><text:list-item><text:p>a</text:p>{inner}</text:list-item><text:list-item text:start-value="5"><text:p>b</text:p></text:list-item></text:list>'
    assert written(body) == "1. a\n   - deep\n5. b"


def test_what_is_hidden_deleted_or_said_of_the_text_is_left_out() -> None:
    body = (
        "<text:tracked-changes><text:p>gone</text:p></text:tracked-changes><text:table-of-content><text:p>toc</text:p></text:table-of-content>"
        '<text:p>a<text:span text:style-name="T1">no</text:span><office:annotation><text:p>said</text:p></office:annotation>b</text:p>'
    )
    assert written(body) == "ab"


def test_styles_that_are_based_on_each_other_end() -> None:
    assert written('<text:p text:style-name="A">x</text:p>') == "x"


def test_notes_are_behind_the_text() -> None:
    note = "<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>the note</text:p></text:note-body></text:note>"
    assert written(f"<text:p>text{note}.</text:p><text:p>more</text:p>") == "text\u00b9.\n\nmore\n\n1. the note"


def test_code_keeps_its_blanks_and_tables_their_rows() -> None:
    code = '<text:p text:style-name="P1">if x:</text:p><text:p text:style-name="P1"><text:s text:c="4"/>y</text:p>'
    row = "<table:table-row><table:table-cell><text:p>a</text:p></table:table-cell><table:table-cell><text:p>b</text:p></table:table-cell></table:table-row>"
    assert written(f"{code}<table:table>{row}{row}</table:table>") == "if x:\n    y\n\na\tb\na\tb"


def test_a_sheet_shows_its_values_and_repeats_what_is_repeated() -> None:
    row = '<table:table-row table:number-rows-repeated="2"><table:table-cell/><table:table-cell table:number-columns-repeated="2"><text:p>x</text:p></table:table-cell></table:table-row>'
    empty = '<table:table-row table:number-rows-repeated="1048576"><table:table-cell table:number-columns-repeated="16384"/></table:table-row>'
    assert written(f'<table:table table:name="S">{row}{empty}</table:table>', "spreadsheet") == "S\n\nx\tx\nx\tx"


@pytest.mark.parametrize(("rows", "columns"), [(999_999_999, 1), (1, 999_999_999), (99_999, 99_999)])
def test_values_that_are_repeated_too_often_are_refused(rows: int, columns: int) -> None:
    row = f'<table:table-row table:number-rows-repeated="{rows}"><table:table-cell table:number-columns-repeated="{columns}"><text:p>x</text:p></table:table-cell></table:table-row>'
    with pytest.raises(FileRefused, match="too_large"):
        written(f"<table:table>{row}</table:table>", "spreadsheet")


def test_slides_have_title_first_and_notes_behind() -> None:
    box = '<draw:frame presentation:class="{}"><draw:text-box><text:p>{}</text:p></draw:text-box></draw:frame>'
    notes = f"<presentation:notes>{box.format('notes', 'said')}</presentation:notes>"
    shapes = box.format("outline", "text") + box.format("title", "Title") + box.format("footer", "foot")
    page = f"<draw:page>{shapes}{notes}</draw:page>"
    text = read(opendocument("presentation", page))
    assert text.is_paged
    assert text_of(text) == "Title\n\ntext\n\nsaid"


def test_a_file_with_a_password_is_encrypted() -> None:
    with pytest.raises(FileRefused, match="encrypted"):
        written("<text:p>x</text:p>", manifest="<manifest:manifest><manifest:encryption-data/></manifest:manifest>")


def test_the_language_is_that_of_paragraphs_where_the_file_tells_none() -> None:
    style = '<office:styles><style:default-style style:family="paragraph"><style:text-properties fo:language="pt" fo:country="BR"/></style:default-style></office:styles>'
    assert read(opendocument("text", "<text:p>x</text:p>", styles=style)).language == "pt-BR"


def test_what_the_file_tells_of_itself() -> None:
    meta = "<office:meta><dc:title>T</dc:title><dc:language>fr</dc:language><dc:date>2020-01-02T03:04:05</dc:date></office:meta>"
    found = read(opendocument("text", "<text:p>x</text:p>", meta=meta))
    assert (found.title, found.language, found.published) == ("T", "fr", "2020-01-02")
