from html import escape

import pytest
from refinery_files.office import read

from pipeline_tasks.text.page.file_text import FileText
from tests.file_types.office_parts import W, docx, p, text_of, zipped

STYLES = """
<w:style w:type="paragraph" w:styleId="H1"><w:name w:val="heading 1"/><w:pPr><w:outlineLvl w:val="0"/></w:pPr></w:style>
<w:style w:type="paragraph" w:styleId="H2"><w:name w:val="heading 2"/><w:basedOn w:val="H1"/><w:pPr><w:outlineLvl w:val="1"/></w:pPr></w:style>
<w:style w:type="paragraph" w:styleId="Mine"><w:name w:val="My heading"/><w:basedOn w:val="H2"/></w:style>
<w:style w:type="paragraph" w:styleId="Code"><w:name w:val="Source Code"/></w:style>
<w:style w:type="character" w:styleId="Secret"><w:name w:val="Secret"/><w:rPr><w:vanish/></w:rPr></w:style>
<w:style w:type="paragraph" w:styleId="Loop"><w:name w:val="Loop"/><w:basedOn w:val="Pool"/></w:style>
<w:style w:type="paragraph" w:styleId="Pool"><w:name w:val="Pool"/><w:basedOn w:val="Loop"/></w:style>
<w:style w:type="paragraph" w:styleId="Toc1"><w:name w:val="toc 1"/></w:style>
"""

NUMBERING = """
<w:abstractNum w:abstractNumId="1">
<w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl>
<w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="lowerLetter"/><w:lvlText w:val="%2)"/></w:lvl>
<w:lvl w:ilvl="2"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1.%2.%3"/></w:lvl>
</w:abstractNum>
<w:abstractNum w:abstractNumId="2"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/><w:lvlText w:val="\uf0b7"/></w:lvl></w:abstractNum>
<w:num w:numId="1"><w:abstractNumId w:val="1"/></w:num>
<w:num w:numId="2"><w:abstractNumId w:val="2"/></w:num>
<w:num w:numId="3"><w:abstractNumId w:val="1"/><w:lvlOverride w:ilvl="0"><w:startOverride w:val="7"/></w:lvlOverride></w:num>
"""


def numbered(list_id: int, level: int = 0) -> str:
    return f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{list_id}"/></w:numPr>'


def written(body: str, **parts: str) -> str:
    return text_of(read(docx(body, **parts)))


def test_a_style_that_is_based_on_a_heading_is_one_of_its_level() -> None:
    html = read(docx(p("One", '<w:pStyle w:val="H1"/>') + p("Two", '<w:pStyle w:val="Mine"/>'), styles=STYLES)).parts[0]
    assert html == "<h1>One</h1>\n<h2>Two</h2>\n"


def test_styles_that_are_based_on_each_other_end() -> None:
    assert written(p("Text", '<w:pStyle w:val="Loop"/>'), styles=STYLES) == "Text"


def test_items_have_the_numbers_that_are_shown_in_levels() -> None:
    body = p("a", numbered(1)) + p("b", numbered(1, 1)) + p("c", numbered(1, 1)) + p("d", numbered(1))
    assert written(body, numbering=NUMBERING) == "1. a\n   a. b\n   b. c\n2. d"


def test_a_number_of_several_levels_begins_its_paragraph() -> None:
    body = p("a", numbered(1)) + p("b", numbered(1, 1)) + p("c", numbered(1, 2))
    assert written(body, numbering=NUMBERING).endswith("\n\n1.a.1 c")


def test_a_list_that_begins_anew_has_its_start() -> None:
    body = p("a", numbered(1)) + p("x", numbered(3)) + p("y", numbered(3))
    assert written(body, numbering=NUMBERING) == "1. a\n7. x\n8. y"


def test_bullets_are_items() -> None:
    assert written(p("a", numbered(2)) + p("b", numbered(2)), numbering=NUMBERING) == "- a\n- b"


def test_cells_are_a_row_and_their_paragraphs_lines() -> None:
    row = "<w:tr><w:tc>{}</w:tc><w:tc>{}</w:tc></w:tr>"
    rows = row.format(p("a") + p("b"), p("c")) + row.format(p("d"), p("e"))
    assert written(f"<w:tbl>{rows}</w:tbl>") == "a b\tc\nd\te"


def test_a_cell_that_is_merged_keeps_the_columns() -> None:
    merged = "<w:tr><w:tc><w:tcPr><w:vMerge/></w:tcPr>{}</w:tc><w:tc>{}</w:tc></w:tr>".format(p(" "), p("y"))
    first = '<w:tr><w:tc><w:tcPr><w:vMerge w:val="restart"/></w:tcPr>{}</w:tc><w:tc>{}</w:tc></w:tr>'
    wide = '<w:tr><w:tc><w:tcPr><w:gridSpan w:val="2"/></w:tcPr>{}</w:tc><w:tc>{}</w:tc></w:tr>'.format(p("w"), p("z"))
    assert written(f"<w:tbl>{first.format(p('r'), p('x'))}{merged}{wide}</w:tbl>") == "r\tx\n\ty\nw\t\tz"


def test_a_table_of_one_column_is_a_frame_of_what_is_in_it() -> None:
    assert written(f"<w:tbl><w:tr><w:tc>{p('a')}{p('b')}</w:tc></w:tr></w:tbl>") == "a\n\nb"


def test_insertions_are_kept_and_deletions_are_not() -> None:
    runs = "<w:r><w:t>old </w:t></w:r><w:ins><w:r><w:t>new</w:t></w:r></w:ins><w:del><w:r><w:delText>gone</w:delText></w:r></w:del>"
    assert written(p(runs)) == "old new"


def test_a_paragraph_whose_end_is_deleted_goes_on_with_the_next() -> None:
    assert written(p("one ", "<w:rPr><w:del/></w:rPr>") + p("two")) == "one two"


def test_codes_of_fields_are_left_out_and_their_results_kept() -> None:
    runs = (
        '<w:r><w:t>see </w:t></w:r><w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>HYPERLINK "x"</w:instrText>'
        '<w:t>code</w:t></w:r><w:r><w:fldChar w:fldCharType="separate"/></w:r><w:r><w:t>here</w:t></w:r>'
        '<w:r><w:fldChar w:fldCharType="end"/></w:r>'
    )
    assert written(p(runs)) == "see here"


def test_a_field_that_never_ends_hides_nothing() -> None:
    assert written(p('<w:r><w:fldChar w:fldCharType="begin"/></w:r>') + p("text")) == "text"


def test_hidden_text_is_left_out() -> None:
    runs = '<w:r><w:rPr><w:vanish/></w:rPr><w:t>no</w:t></w:r><w:r><w:rPr><w:rStyle w:val="Secret"/></w:rPr><w:t>no</w:t></w:r>'
    shown = '<w:r><w:rPr><w:vanish w:val="0"/></w:rPr><w:t>yes</w:t></w:r>'
    assert written(p(runs + shown), styles=STYLES) == "yes"


def test_tables_of_contents_are_left_out() -> None:
    contents = '<w:sdt><w:sdtPr><w:docPartObj><w:docPartGallery w:val="Table of Contents"/></w:docPartObj></w:sdtPr><w:sdtContent>{}</w:sdtContent></w:sdt>'
    body = contents.format(p("Intro 1")) + p("Intro 1", '<w:pStyle w:val="Toc1"/>') + p("text")
    assert written(body, styles=STYLES) == "text"


def test_what_a_content_control_holds_is_text() -> None:
    assert written(f"<w:sdt><w:sdtContent>{p('held')}</w:sdtContent></w:sdt>") == "held"


def test_a_text_box_is_read_once_behind_its_paragraph() -> None:
    box = f"<w:txbxContent>{p('boxed')}</w:txbxContent>"
    runs = f"<w:r><mc:AlternateContent><mc:Choice><w:drawing>{box}</w:drawing></mc:Choice><mc:Fallback><w:pict>{box}</w:pict></mc:Fallback></mc:AlternateContent></w:r>"
    assert written(p(f"<w:r><w:t>anchor</w:t></w:r>{runs}") + p("next")) == "anchor\n\nboxed\n\nnext"


def test_notes_are_behind_the_text_by_their_numbers() -> None:
    body = p('<w:r><w:t>text</w:t></w:r><w:r><w:footnoteReference w:id="5"/></w:r>') + p("more")
    notes = f'<w:footnote w:id="0" w:type="separator">{p("line")}</w:footnote><w:footnote w:id="5">{p("the note")}</w:footnote>'
    assert written(body, footnotes=notes) == "text\u00b9\n\nmore\n\n1. the note"


def test_a_formula_is_written_as_formulas_of_pages_are() -> None:
    half = "<m:oMath><m:f><m:num><m:r><m:t>1</m:t></m:r></m:num><m:den><m:r><m:t>2a</m:t></m:r></m:den></m:f></m:oMath>"
    total = (
        '<m:oMathPara><m:oMath><m:nary><m:naryPr><m:chr m:val="\u2211"/></m:naryPr><m:sub><m:r><m:t>i=1</m:t></m:r></m:sub>'
        "<m:sup><m:r><m:t>n</m:t></m:r></m:sup><m:e><m:sSup><m:e><m:r><m:t>i</m:t></m:r></m:e><m:sup><m:r><m:t>2</m:t></m:r>"
        "</m:sup></m:sSup></m:e></m:nary></m:oMath></m:oMathPara>"
    )
    text = written(p(f"<w:r><w:t>is </w:t></w:r>{half}") + p(total))
    assert text == "is \\(\\frac{1}{2a}\\)\n\n\\[\u2211_{i=1}^ni^2\\]"


def test_lines_of_code_are_one_block_with_their_blanks() -> None:
    body = p('<w:r><w:t xml:space="preserve">if x:</w:t></w:r>', '<w:pStyle w:val="Code"/>')
    body += p('<w:r><w:t xml:space="preserve">    y()</w:t></w:r>', '<w:pStyle w:val="Code"/>')
    assert written(body, styles=STYLES) == "if x:\n    y()"


FIXED = '<w:r><w:rPr><w:rFonts w:ascii="Courier New"/></w:rPr><w:t xml:space="preserve">{}</w:t></w:r>'


def test_paragraphs_whose_letters_are_as_wide_as_each_other_are_code() -> None:
    code = p(FIXED.format("if x:")) + p(FIXED.format("    y()"))
    assert written(p("A sentence that is longer than the code.") + code).endswith("code.\n\nif x:\n    y()")


def test_a_text_that_is_typed_is_no_code() -> None:
    html = read(docx(p(FIXED.format("One sentence.")) + p(FIXED.format("Another one.")))).parts[0]
    assert html == "<p>One sentence.</p>\n<p>Another one.</p>\n"


def test_code_in_a_cell_leaves_the_row_a_row() -> None:
    row = f"<w:tr><w:tc>{p(FIXED.format('--flag'))}</w:tc><w:tc>{p('what it does, at some length')}</w:tc></w:tr>"
    assert written(f"<w:tbl>{row}{row}</w:tbl>") == "\n".join(["--flag\twhat it does, at some length"] * 2)


def test_signs_of_the_font_symbol_are_letters() -> None:
    assert written(p('<w:r><w:sym w:font="Symbol" w:char="F061"/><w:t>=1</w:t></w:r>')) == "\u03b1=1"


def test_stresses_go_over_runs_and_are_not_in_headings() -> None:
    strong = "<w:r><w:rPr><w:b/></w:rPr><w:t>{}</w:t></w:r>"
    html = read(docx(p(strong.format("a") + strong.format("b")))).parts[0]
    assert html == "<p><strong>ab</strong></p>\n"
    headed = read(docx(p(strong.format("a"), '<w:pStyle w:val="H1"/>'), styles=STYLES)).parts[0]
    assert headed == "<h1>a</h1>\n"


def test_the_strict_form_is_read_as_the_usual_one() -> None:
    body = docx(p("strict"))
    strict = zipped(
        {
            "word/document.xml": f'<w:document xmlns:w="http://purl.oclc.org/ooxml/wordprocessingml/main"><w:body>{p("strict")}</w:body></w:document>'
        }
    )
    assert text_of(read(strict)) == text_of(read(body)) == "strict"


def test_properties_are_told() -> None:
    core = (
        '<cp:coreProperties xmlns:cp="c" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/">'
        "<dc:title>A title</dc:title><dc:language>de-AT</dc:language><dcterms:modified>2021-02-03T04:05:06Z</dcterms:modified></cp:coreProperties>"
    )
    body = zipped(
        {"word/document.xml": f"<w:document {W}><w:body>{p('x')}</w:body></w:document>", "docProps/core.xml": core}
    )
    assert read(body) == FileText(("<p>x</p>\n",), title="A title", language="de-AT", published="2021-02-03")


@pytest.mark.parametrize("sign", ["<b>", "&amp;", "]]>"])
def test_signs_of_markup_in_texts_are_text(sign: str) -> None:
    assert written(p(f"a{escape(sign)}b")) == f"a{sign}b"
