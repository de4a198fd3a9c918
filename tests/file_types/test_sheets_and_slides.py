import pytest
from refinery_files.office import read, sheets
from refinery_files.office.number_formats import shown

from pipeline_tasks.text.page.file_text import FileRefused
from tests.file_types.office_parts import P, pptx, shape, text_of, xlsx

STYLES = '<numFmts><numFmt numFmtId="164" formatCode="0.0%"/></numFmts><cellXfs><xf/><xf numFmtId="14"/><xf numFmtId="164"/></cellXfs>'


def cell(place: str, value: str, attributes: str = "") -> str:
    return f'<c r="{place}" {attributes}><v>{value}</v></c>'


def row(*cells: str, attributes: str = "") -> str:
    return f"<row {attributes}>{''.join(cells)}</row>"


def test_a_sheet_is_a_heading_and_a_table_of_what_it_shows() -> None:
    rows = row(cell("A1", "0", 't="s"'), cell("B1", "1", 't="s"')) + row(
        cell("A2", "45356", 's="1"'), cell("B2", "0.256", 's="2"')
    )
    strings = "<si><t>day</t></si><si><r><t>sh</t></r><r><t>are</t></r><rPh><t>reading</t></rPh></si>"
    read_text = read(xlsx(rows, strings=strings, styles=STYLES))
    assert text_of(read_text) == "Sheet 1\n\nday\tshare\n2024-03-05\t25.6%"
    assert not read_text.is_paged


def test_a_formula_has_the_value_that_it_last_gave() -> None:
    assert (
        text_of(read(xlsx(row('<c r="A1" t="str"><f>"a"&amp;"b"</f><v>ab</v></c>', cell("B1", "1", 't="b"')))))
        == "Sheet 1\n\nab\tTRUE"
    )


def test_hidden_sheets_rows_and_columns_are_left_out() -> None:
    rows = "<cols><col min='2' max='2' hidden='1'/></cols><sheetData>" + row(
        cell("A1", "1"), cell("B1", "2"), cell("C1", "3")
    )
    rows += row(cell("A2", "4"), attributes='hidden="1"') + "</sheetData>"
    assert text_of(read(xlsx(rows, row(cell("A1", "5")), names='|state="hidden"'))) == "Sheet 1\n\n1\t3"


def test_columns_and_rows_without_a_value_are_left_out() -> None:
    rows = row(cell("B2", "1"), cell("XFD2", "2")) + row() + row(cell("B9", "3"))
    assert text_of(read(xlsx(rows))) == "Sheet 1\n\n1\t2\n3"


def test_too_many_cells_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sheets, "MOST_CELLS", 9)
    rows = row('<c t="inlineStr"><is><t>x</t></is></c>') * 10
    with pytest.raises(FileRefused, match="too_large"):
        read(xlsx(rows))


@pytest.mark.parametrize(
    ("number", "form", "text"),
    [
        (1234.5, "#,##0.00", "1,234.50"),
        (-2.5, "0.00;[Red](0.00)", "(2.50)"),
        (1234.5, '"EUR" #,##0', "EUR 1,234"),
        (1234.5, "[$\u20ac-407] #,##0.0", "\u20ac 1,234.5"),
        (742, "00000", "00742"),
        (0.5, "0%", "50%"),
        (45356.604166, "yyyy-mm-dd hh:mm", "2024-03-05 14:30"),
        (45356.604166, "d. mmmm yyyy", "5. March 2024"),
        (45356.604166, "h:mm AM/PM", "2:30 PM"),
        (1.5, "[h]:mm", "36:00"),
        (12345678, '0.0,,"M"', "12.3M"),
        (0.000012, "0.00E+00", "1.20E-05"),
        (3.14159, "0.0##", "3.142"),
        (1, "General", "1"),
        (1.1, "", "1.1"),
        (0, '0;-0;"none"', "none"),
        (1e18, "yyyy", "1E+18"),
        (2958465.999999, "yyyy", "2958466"),
    ],
)
def test_numbers_are_shown_as_sheets_do(number: float, form: str, text: str) -> None:
    assert shown(number, form) == text


def test_a_slide_is_a_page_with_its_title_first_and_notes_behind() -> None:
    body = shape("one", '<a:p><a:pPr lvl="1"/><a:r><a:t>two</a:t></a:r></a:p>', kind="body")
    deck = pptx(body + shape("Title", kind="title"), shape("Next", kind="ctrTitle"), notes=shape("said", kind="body"))
    text = read(deck)
    assert text.is_paged
    assert text_of(text) == "Title\n\n- one\n  - two\n\nsaid\n-----\nNext"


def test_dates_numbers_and_feet_of_slides_are_left_out() -> None:
    assert text_of(read(pptx(shape("t", kind="title") + shape("7", kind="sldNum") + shape("foot", kind="ftr")))) == "t"


def test_numbers_of_items_are_counted_and_boxes_have_no_marks() -> None:
    numbered = '<a:p><a:pPr><a:buAutoNum type="arabicPeriod" startAt="3"/></a:pPr><a:r><a:t>{}</a:t></a:r></a:p>'
    assert (
        text_of(read(pptx(shape("free", "text") + shape(numbered.format("a"), numbered.format("b")))))
        == "free\n\ntext\n\n3. a\n4. b"
    )


def test_a_hidden_slide_has_no_text_and_others_keep_their_numbers() -> None:
    hidden = f'<p:sld {P} show="0"><p:cSld><p:spTree>{shape("secret")}</p:spTree></p:cSld></p:sld>'
    assert read(pptx(hidden, shape("shown"))).parts == ("", "<p>shown</p>\n")


def test_a_slide_that_is_a_picture_is_unread() -> None:
    picture = "<p:pic/>"
    assert read(pptx(picture, shape("text") + picture)).unread == (1,)


def test_tables_of_slides_are_rows() -> None:
    cells = "".join(f"<a:tc><a:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></a:txBody></a:tc>" for text in "ab")
    frame = f"<p:graphicFrame><a:graphic><a:graphicData><a:tbl><a:tr>{cells}</a:tr><a:tr>{cells}</a:tr></a:tbl></a:graphicData></a:graphic></p:graphicFrame>"
    assert text_of(read(pptx(frame))) == "a\tb\na\tb"
