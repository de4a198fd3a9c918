"""Makes the files of `file_types.py` from the known texts, by each producer that is installed.

    python benchmarks/known_files.py FOLDER [PRODUCER ...]

It runs in an environment of its own (`peers_files.txt`). FOLDER gets the files and `files.json`: a row for each file,
and the producers that are missing with how they are installed.
"""

import io
import json
import random
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from email.message import EmailMessage
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import known_texts
from known_texts import RIGHT_TO_LEFT, UNSPACED, Block, Known

LATIN = ("en", "de", "fr", "es")
LAYERED = (*LATIN, "ru", "el")
"""Languages that the font of a scanner's layer of text has, from left to right."""

FONTS = Path("/usr/share/fonts")
DEJAVU = FONTS / "truetype/dejavu/DejaVuSans.ttf"
DEJAVU_BOLD = DEJAVU.with_name("DejaVuSans-Bold.ttf")
DEVANAGARI = FONTS / "truetype/noto/NotoSansDevanagari-Regular.ttf"
DAY = "2026-11-19"
SCAN_DPI = 130
LONG_CELL = 40  # characters
PAGE_TOP, PAGE_END, LINE_WIDTH = 780.0, 70.0, 470.0  # points


class Made(NamedTuple):
    """A file: its type, producer, document, and the numbers of the pages that have no text to be had."""

    path: str
    type: str
    producer: str
    document: str
    unread: list[int]


def named(folder: Path, producer: str, document: Known, ending: str) -> Path:
    """Return the path of a file."""
    return folder / f"{producer}-{document.name}.{ending}"


def made(path: Path, producer: str, document: Known, kind: str = "pdf", unread: list[int] | None = None) -> Made:
    """Return the row of a file that is written."""
    return Made(path.name, kind, producer, document.name, unread or [])


# --- Browsers and what renders HTML -------------------------------------------------------------------------------

_STYLE = """
body {{ font: 10.5pt/1.35 {family}; hyphens: auto; text-align: {align}; margin: 0 }}
h1 {{ font-size: 20pt }} h2 {{ font-size: 14pt }} h3 {{ font-size: 12pt }}
pre {{ font-size: 8pt; white-space: pre-wrap }}
main.columns {{ column-count: 2; column-gap: 8mm }} main.columns h1 {{ column-span: all; text-align: center }}
table {{ border-collapse: collapse; margin: 4mm 0 }} td, th {{ padding: 1mm 3mm; text-align: start }}
table.ruled td, table.ruled th {{ border: 0.5pt solid black }}
@page {{ size: A4; margin: 25mm 20mm; @top-center {{ content: "{head}"; font-size: 8pt }}
  @bottom-left {{ content: "{foot}"; font-size: 8pt }} @bottom-right {{ content: counter(page); font-size: 8pt }} }}
"""


def page_of(document: Known) -> str:
    """Return a document as a page for printing: running head and foot, and every second table without rules."""
    counted = iter(range(1000))
    body = re.sub("<table>", lambda _: '<table class="ruled">' if next(counted) % 2 == 0 else "<table>", document.html)
    style = _STYLE.format(
        family="DejaVu Serif" if document.layout == "columns" else "DejaVu Sans",
        align="justify" if document.layout == "columns" else "start",
        head=document.head,
        foot=document.foot,
    )
    direction = ' dir="rtl"' if document.language in RIGHT_TO_LEFT else ""
    return (
        f'<!DOCTYPE html><html lang="{document.language}"{direction}><head><meta charset="utf-8">'
        f'<title>{escape(document.title)}</title><meta name="dcterms.created" content="{DAY}">'
        f'<style>{style}</style></head><body><main class="{document.layout}">{body}</main></body></html>'
    )


def weasyprint(documents: list[Known], folder: Path) -> Iterator[Made]:
    """WeasyPrint, which sets pages by CSS."""
    import weasyprint as weasy

    for document in documents:
        path = named(folder, "weasyprint", document, "pdf")
        weasy.HTML(string=page_of(document)).write_pdf(path)
        yield made(path, "weasyprint", document)


def chromium(documents: list[Known], folder: Path) -> Iterator[Made]:
    """The browser's print to PDF."""
    browser = shutil.which("chromium") or shutil.which("google-chrome") or "chromium"
    page = folder / "page.html"
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer", "--virtual-time-budget=2000")
    for document in documents:
        path = named(folder, "chromium", document, "pdf")
        page.write_text(page_of(document), encoding="utf-8")
        run([browser, *options, f"--print-to-pdf={path}", str(page)], folder)
        yield made(path, "chromium", document)
    page.unlink()


def run(command: list[str], folder: Path, *, fails: bool = False) -> None:
    """Run a program without its output; CalledProcessError unless it may fail."""
    subprocess.run(command, cwd=folder, check=not fails, timeout=300, capture_output=True)


# --- Office suites ----------------------------------------------------------------------------------------------

_NAMES = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" '
    'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" '
    'xmlns:meta="urn:oasis:names:tc:opendocument:xmlns:meta:1.0" '
    'xmlns:dc="http://purl.org/dc/elements/1.1/" '
    'xmlns:fo="urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0" '
    'office:version="1.2" office:mimetype="application/vnd.oasis.opendocument.text"'
)
_CELL = 'fo:padding="1mm"{}'
_BORDER = ' fo:border="0.5pt solid #000000"'


def flat_text(document: Known) -> str:
    """Return a document as a flat OpenDocument text with its styles, running head and foot."""
    blocks = known_texts.blocks_of(document.html)
    inner, number = list[str](), 0
    for block in blocks:
        if block.kind == "table":
            inner.append(_flat_table(block, number))
            number += 1
        elif block.kind.startswith("h"):
            level = int(block.kind[1])
            inner.append(
                f'<text:h text:style-name="H{level}" text:outline-level="{level}">{escape(block.text)}</text:h>'
            )
        elif block.kind == "li":
            item = f'<text:list-item><text:p text:style-name="P">{escape(block.text)}</text:p></text:list-item>'
            inner.append(f'<text:list text:style-name="L">{item}</text:list>')
        else:
            inner.append(f'<text:p text:style-name="P">{_lines(block.text)}</text:p>')
    if document.layout == "columns":
        body = f'{inner[0]}<text:section text:style-name="Two" text:name="S">{"".join(inner[1:])}</text:section>'
    else:
        body = "".join(inner)
    mode = ' style:writing-mode="rl-tb" fo:text-align="start"' if document.language in RIGHT_TO_LEFT else ""
    direction = ' style:writing-mode="rl-tb"' if mode else ""
    sizes = {1: 20, 2: 14, 3: 12, 4: 11}
    styles = "".join(
        f'<style:style style:name="H{level}" style:family="paragraph" style:default-outline-level="{level}">'
        f'<style:paragraph-properties fo:margin-top="4mm" fo:margin-bottom="2mm"{mode}/><style:text-properties '
        f'fo:font-size="{size}pt" fo:font-weight="bold" style:font-weight-complex="bold" '
        f'style:font-size-complex="{size}'
        f'pt" style:font-size-asian="{size}pt"/></style:style>'
        for level, size in sizes.items()
    )
    foot = f'{escape(document.foot)} · <text:page-number text:select-page="current">1</text:page-number>'
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><office:document {_NAMES}><office:meta><dc:title>'
        f"{escape(document.title)}</dc:title><dc:language>{document.language}</dc:language><meta:creation-date>{DAY}"
        "T00:00:00</meta:creation-date></office:meta><office:styles>"
        f'<style:style style:name="P" style:family="paragraph"><style:paragraph-properties fo:margin-bottom="2mm"{mode}'
        f"/></style:style>{styles}"
        '<text:list-style style:name="L"><text:list-level-style-bullet text:level="1" text:bullet-char="•">'
        '<style:list-level-properties text:space-before="5mm" text:min-label-width="5mm"/>'
        "</text:list-level-style-bullet></text:list-style></office:styles><office:automatic-styles>"
        '<style:page-layout style:name="Page"><style:page-layout-properties fo:page-width="210mm" '
        'fo:page-height="297mm"'
        ' fo:margin-top="15mm" fo:margin-bottom="15mm" fo:margin-left="20mm" fo:margin-right="20mm"'
        f"{direction}/>"
        '<style:header-style><style:header-footer-properties fo:min-height="8mm" fo:margin-bottom="4mm"/>'
        '</style:header-style><style:footer-style><style:header-footer-properties fo:min-height="8mm" '
        'fo:margin-top="4mm"/></style:footer-style></style:page-layout>'
        '<style:style style:name="Two" style:family="section"><style:section-properties><style:columns '
        'fo:column-count="2" fo:column-gap="8mm"/></style:section-properties></style:style>'
        f'<style:style style:name="Ruled" style:family="table-cell"><style:table-cell-properties '
        f'{_CELL.format(_BORDER)}/></style:style><style:style style:name="Bare" style:family="table-cell">'
        f"<style:table-cell-properties {_CELL.format('')}/></style:style>"
        '</office:automatic-styles><office:master-styles><style:master-page style:name="Standard" '
        f'style:page-layout-name="Page"><style:header><text:p>{escape(document.head)}</text:p></style:header>'
        f"<style:footer><text:p>{foot}</text:p></style:footer></style:master-page></office:master-styles>"
        f"<office:body><office:text>{body}</office:text></office:body></office:document>"
    )


def _lines(text: str) -> str:
    lines = [re.sub(" {2,}", lambda m: f'<text:s text:c="{len(m[0])}"/>', escape(line)) for line in text.split("\n")]
    return "<text:line-break/>".join(lines)


def _flat_table(block: Block, number: int) -> str:
    style = "Bare" if number % 2 else "Ruled"
    width = max(map(len, block.rows))
    rows = "".join(
        "<table:table-row>"
        + "".join(
            f'<table:table-cell table:style-name="{style}" office:value-type="string"><text:p text:style-name="P">'
            f"{escape(cell)}</text:p></table:table-cell>"
            for cell in row
        )
        + "</table:table-row>"
        for row in block.rows
    )
    columns = f'<table:table-column table:number-columns-repeated="{width}"/>'
    return f'<table:table table:name="T{number}">{columns}{rows}</table:table>'


def libreoffice(documents: list[Known], folder: Path) -> Iterator[Made]:
    """LibreOffice: each document as PDF, and those with one column as DOCX, ODT and RTF."""
    room = folder / "flat"
    room.mkdir()
    for document in documents:
        (room / f"libreoffice-{document.name}.fodt").write_text(flat_text(document), encoding="utf-8")
    kinds = {"pdf": "pdf", "docx": "office", "odt": "office", "rtf": "office"}
    for ending, kind in kinds.items():
        wanted = [document for document in documents if ending == "pdf" or document.layout != "columns"]
        paths = [str(room / f"libreoffice-{document.name}.fodt") for document in wanted]
        profile = f"-env:UserInstallation=file://{room}/profile"
        run(["soffice", profile, "--headless", "--convert-to", ending, "--outdir", str(folder), *paths], folder)
        for document in wanted:
            yield made(named(folder, "libreoffice", document, ending), f"libreoffice {ending}", document, kind)
    shutil.rmtree(room)


# --- Libraries that draw ----------------------------------------------------------------------------------------


def reportlab(documents: list[Known], folder: Path) -> Iterator[Made]:
    """ReportLab: fonts of the machine, those of readers for Chinese and Japanese, and lines in visual order."""
    for document in documents:
        if document.language == "hi":
            continue  # its letters are not joined
        path = named(folder, "reportlab", document, "pdf")
        if document.language in RIGHT_TO_LEFT:
            if document.layout != "plain":
                continue
            _visual(document, path)
        else:
            _flowing(document, path)
        yield made(path, "reportlab", document)


def _fonts(language: str) -> tuple[str, str]:
    from reportlab.pdfbase import pdfmetrics
    from reportlab.pdfbase.cidfonts import UnicodeCIDFont
    from reportlab.pdfbase.ttfonts import TTFont

    known = {"zh": "STSong-Light", "ja": "HeiseiMin-W3"}
    if language in known:
        pdfmetrics.registerFont(UnicodeCIDFont(known[language]))
        return (known[language],) * 2
    pdfmetrics.registerFont(TTFont("Sans", str(DEJAVU)))
    pdfmetrics.registerFont(TTFont("SansBold", str(DEJAVU_BOLD)))
    return "Sans", "SansBold"


def _flowing(document: Known, path: Path) -> None:
    from reportlab.lib import colors
    from reportlab.lib.pagesizes import A4
    from reportlab.lib.styles import ParagraphStyle
    from reportlab.platypus import BaseDocTemplate, Frame, PageTemplate, Paragraph, Preformatted, Table

    plain, bold = _fonts(document.language)
    width, height = A4
    wrap = {"wordWrap": "CJK"} if document.language in UNSPACED else {}
    text = ParagraphStyle("text", fontName=plain, fontSize=10, leading=14, spaceAfter=6, **wrap)
    code = ParagraphStyle("code", fontName="Courier", fontSize=7, leading=9, spaceAfter=6)
    heads = {
        f"h{level}": ParagraphStyle(f"h{level}", text, fontName=bold, fontSize=size, leading=size + 4, spaceBefore=8)
        for level, size in ((1, 19), (2, 14), (3, 12), (4, 11))
    }

    def frame(canvas: Any, template: Any) -> None:  # noqa: ANN401 -- of a library without types
        canvas.setFont(plain, 8)
        canvas.drawCentredString(width / 2, height - 40, document.head)
        canvas.drawString(60, 36, document.foot)
        canvas.drawRightString(width - 60, 36, str(template.page))

    flow, number = [], 0
    for block in known_texts.blocks_of(document.html):
        if block.kind == "table":
            cells = [[Paragraph(escape(cell), text) for cell in row] for row in block.rows]
            style = [] if number % 2 else [("GRID", (0, 0), (-1, -1), 0.5, colors.black)]
            flow.append(Table(cells, style=style))
            number += 1
        elif block.kind == "pre":
            flow.append(Preformatted(block.text, code, maxLineLength=100))
        elif block.kind == "li":
            flow.append(Paragraph(escape(block.text), ParagraphStyle("li", text, leftIndent=18), bulletText="•"))
        else:
            flow.append(Paragraph(escape(block.text), heads.get(block.kind, text)))
    count = 2 if document.layout == "columns" else 1
    across = (width - 120 - 20 * (count - 1)) / count
    frames = [Frame(60 + at * (across + 20), 60, across, height - 120, 0, 0, 0, 0) for at in range(count)]
    template = BaseDocTemplate(str(path), pagesize=A4, title=document.title, lang=document.language, invariant=1)
    template.addPageTemplates([PageTemplate("page", frames, onPage=frame)])
    template.build(flow)


def _visual(document: Known, path: Path) -> None:
    """Draw right-to-left lines glyph by glyph from the left, Arabic in presentation forms, as old programs do."""
    from arabic_reshaper import reshape
    from bidi.algorithm import get_display
    from reportlab.pdfbase.pdfmetrics import stringWidth
    from reportlab.pdfgen.canvas import Canvas

    plain, bold = _fonts(document.language)
    canvas, y = Canvas(str(path), pagesize=(595, 842), invariant=1), PAGE_TOP
    canvas.setTitle(document.title)
    for block in known_texts.blocks_of(document.html):
        size = {"h1": 19, "h2": 14}.get(block.kind, 10)
        font, lines = (bold if block.kind[0] == "h" else plain), [""]
        for word in block.text.split():
            longer = f"{lines[-1]} {word}".strip()
            if stringWidth(reshape(longer), font, size) > LINE_WIDTH:
                lines.append(word)
            else:
                lines[-1] = longer
        y -= 6
        for line in lines:
            if y < PAGE_END:
                canvas.showPage()
                y = PAGE_TOP
            canvas.setFont(font, size)
            canvas.drawRightString(535, y, get_display(reshape(line), base_dir="R"))
            y -= size * 1.4
    canvas.save()


def fpdf2(documents: list[Known], folder: Path) -> Iterator[Made]:
    """The library fpdf2, which shapes letters by HarfBuzz."""
    from fpdf import FPDF

    class Paper(FPDF):  # type: ignore[misc]  # installed with the peers alone
        known: Known

        def header(self) -> None:
            self.set_font("F", size=8)
            self.cell(0, 6, self.known.head, align="C", new_x="LMARGIN", new_y="NEXT")
            self.ln(4)

        def footer(self) -> None:
            self.set_y(-18)
            self.set_font("F", size=8)
            self.cell(0, 6, f"{self.known.foot}  {self.page_no()}", align="C")

    for document in documents:
        regular = DEVANAGARI if document.language == "hi" else DEJAVU
        is_mirrored = document.layout != "plain" and document.language in RIGHT_TO_LEFT  # it begins at the left
        if document.language in UNSPACED or document.name.startswith("manual") or is_mirrored or not regular.exists():
            continue
        pdf = Paper(format="A4")
        pdf.known = document
        pdf.add_font("F", fname=str(regular))
        pdf.add_font("F", style="B", fname=str(DEJAVU_BOLD if regular == DEJAVU else regular))
        pdf.set_text_shaping(True)
        pdf.set_title(document.title)
        pdf.set_lang(document.language)
        pdf.set_auto_page_break(True, margin=25)
        pdf.add_page()
        _draw_fpdf(pdf, document)
        path = named(folder, "fpdf2", document, "pdf")
        pdf.output(str(path))
        yield made(path, "fpdf2", document)


def _draw_fpdf(pdf: Any, document: Known) -> None:  # noqa: ANN401 -- of a library that is not here
    align = "R" if document.language in RIGHT_TO_LEFT else "L"
    blocks = known_texts.blocks_of(document.html)
    sizes = {"h1": 19, "h2": 14, "h3": 12}
    if document.layout == "columns":
        with pdf.text_columns(ncols=2, gutter=8, text_align=align) as columns:
            for block in blocks:
                pdf.set_font("F", style="B" if block.kind in sizes else "", size=sizes.get(block.kind, 10))
                with columns.paragraph(bottom_margin=2) as paragraph:
                    paragraph.write(block.text)
        return
    number = 0
    for block in blocks:
        pdf.set_font("F", style="B" if block.kind in sizes else "", size=sizes.get(block.kind, 10))
        if block.kind == "table":
            layout = "NONE" if number % 2 else "ALL"
            with pdf.table(block.rows, borders_layout=layout, text_align=align):
                pass
            number += 1
            pdf.ln(3)
        else:
            bullet = "• " if block.kind == "li" else ""
            height = 0.5 * sizes.get(block.kind, 10)
            pdf.multi_cell(0, height, bullet + block.text, align=align, new_x="LMARGIN", new_y="NEXT")
            pdf.ln(2)


# --- TeX --------------------------------------------------------------------------------------------------------

_TEX = str.maketrans(
    {char: f"\\{char}" for char in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "|": r"\textbar{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "°": r"$^\circ$", "©": r"\copyright{}", "·": r"$\cdot$"}
    | {
        "→": r"$\to$",
        "\u2013": "--",
        "—": "---",
        "“": "``",
        "”": "''",
        "\u2019": "'",
        "\u00d7": r"$\times$",
        "≥": r"$\geq$",
    }
    | {'"': "''", "≤": r"$\leq$", "\u2212": "$-$", "\u00a0": "~"}
)


def tex(documents: list[Known], folder: Path) -> Iterator[Made]:
    """PdfTeX with Computer Modern: ligatures, accents that are drawn over letters, words hyphenated."""
    for document in documents:
        if document.language not in LATIN or "manual" in document.name:
            continue
        path = named(folder, "tex", document, "pdf")
        path.with_suffix(".tex").write_text(tex_of(document), encoding="utf-8")
        command = ["pdflatex", "-interaction=nonstopmode", f"-output-directory={folder}", str(path.with_suffix(".tex"))]
        run(command, folder, fails=True)  # it ends with 1 after a warning of a missing sign
        for ending in ("tex", "aux", "log", "out"):
            path.with_suffix(f".{ending}").unlink(missing_ok=True)
        yield made(path, "tex", document)


def tex_of(document: Known) -> str:
    """Return a document as LaTeX."""
    columns = document.layout == "columns"
    lines = [
        rf"\documentclass[a4paper,10pt{',twocolumn' if columns else ''}]{{article}}",
        r"\usepackage[utf8]{inputenc}\usepackage{textcomp,booktabs,fancyhdr,array}\pagestyle{fancy}",
        rf"\fancyhead[L]{{{document.head.translate(_TEX)}}}\fancyhead[R]{{}}",
        rf"\fancyfoot[L]{{\small {document.foot.translate(_TEX)}}}\fancyfoot[C]{{}}\fancyfoot[R]{{\thepage}}",
        r"\setcounter{secnumdepth}{0}\begin{document}",
    ]
    names, number = {"h1": "section*", "h2": "subsection*", "h3": "subsubsection*"}, 0
    for block in known_texts.blocks_of(document.html):
        text = block.text.translate(_TEX)
        if block.kind == "table":
            lines.append(_tex_table(block, ruled=number % 2 == 0))
            number += 1
        elif block.kind in names:
            lines.append(rf"\{names[block.kind]}{{{text}}}")
        elif block.kind == "li":
            lines.append(rf"\begin{{itemize}}\item {text}\end{{itemize}}")
        else:
            lines.append(f"\n{text}\n")
    return "\n".join([*lines, r"\end{document}"])


def _tex_table(block: Block, *, ruled: bool) -> str:
    longest = [max(len(row[at]) for row in block.rows) for at in range(len(block.rows[0]))]
    sign = "|" if ruled else ""
    shape = sign + sign.join("p{60mm}" if size > LONG_CELL else "l" for size in longest) + sign
    rows = [" & ".join(cell.translate(_TEX) for cell in row) + r" \\" for row in block.rows]
    if ruled:
        inner = "\\hline\n" + "\n\\hline\n".join(rows) + "\n\\hline"
    else:
        inner = "\\toprule\n" + rows[0] + "\n\\midrule\n" + "\n".join(rows[1:]) + "\n\\bottomrule"
    return f"\n\\medskip\\noindent\\begin{{tabular}}{{{shape}}}\n{inner}\n\\end{{tabular}}\\medskip\n"


# --- Scanners ---------------------------------------------------------------------------------------------------


def scanner(documents: list[Known], folder: Path) -> Iterator[Made]:
    """Pages as images: alone, with a layer of recognized text, and between pages with text."""
    import pypdfium2 as pdfium
    import weasyprint as weasy

    for document in documents:
        if document.layout == "tables" or document.name.startswith("manual"):
            continue
        body = weasy.HTML(string=page_of(document)).write_pdf()
        source = pdfium.PdfDocument(body)
        count = len(source)
        path = named(folder, "scan", document, "pdf")
        if document.layout == "plain":
            _scanned(source, path, range(count), layer=False)
            yield made(path, "scan", document, unread=list(range(1, count + 1)))
            if document.language in LAYERED:
                path = named(folder, "scan_layer", document, "pdf")
                _scanned(source, path, range(count), layer=True)
                yield made(path, "scan layer", document)
        else:
            _scanned(source, path, range(1, count), layer=False)
            mixed = pdfium.PdfDocument.new()
            mixed.import_pages(source, [0])
            mixed.import_pages(pdfium.PdfDocument(path))
            mixed.save(path)
            yield made(path, "scan mixed", document, unread=list(range(2, count + 1)))


def _scanned(source: Any, path: Path, numbers: range, *, layer: bool) -> None:  # noqa: ANN401 -- as above
    """Write pages as images, turned by less than half a degree and with noise; `layer` adds the text unseen."""
    from PIL import Image
    from reportlab.lib.utils import ImageReader
    from reportlab.pdfbase.pdfmetrics import stringWidth
    from reportlab.pdfgen.canvas import Canvas

    draw = random.Random(path.name)  # noqa: S311 -- noise
    plain, _ = _fonts("en")
    canvas = Canvas(str(path), invariant=1)
    for number in numbers:
        page = source[number]
        width, height = page.get_size()
        image = page.render(scale=SCAN_DPI / 72, grayscale=True).to_pil().convert("L")
        image = image.rotate(draw.uniform(-0.4, 0.4), fillcolor=250, resample=Image.Resampling.BILINEAR)
        noise = Image.frombytes(
            "L", (image.width // 8, image.height // 8), draw.randbytes(image.width // 8 * (image.height // 8))
        )
        image = Image.blend(image, noise.resize(image.size), 0.06)
        buffer = io.BytesIO()
        image.save(buffer, "jpeg", quality=60)
        canvas.setPageSize((width, height))
        canvas.drawImage(ImageReader(buffer), 0, 0, width, height)
        if layer:
            text = page.get_textpage()
            for at in range(text.count_rects()):
                left, bottom, right, top = text.get_rect(at)
                said = text.get_text_bounded(left, bottom, right, top).strip()
                size = max(top - bottom, 1)
                line = canvas.beginText(left, bottom)
                line.setFont(plain, size)
                line.setTextRenderMode(3)
                line.setHorizScale(100 * (right - left) / max(stringWidth(said, plain, size), 1))
                line.textOut(said)
                canvas.drawText(line)
        canvas.showPage()
    canvas.save()


def garbled(documents: list[Known], folder: Path) -> Iterator[Made]:
    """PDFs whose fonts do not say which letters their glyphs are."""
    import weasyprint as weasy
    from pypdf import PdfReader, PdfWriter

    for document in documents:
        if document.layout != "plain" or document.name.startswith("manual"):
            continue
        writer = PdfWriter(clone_from=PdfReader(io.BytesIO(weasy.HTML(string=page_of(document)).write_pdf())))
        for found in writer._objects:  # noqa: SLF001 -- each object, whatever refers to it
            if isinstance(found, dict) and "/ToUnicode" in found:
                del found["/ToUnicode"]
        path = named(folder, "garbled", document, "pdf")
        writer.write(path)
        yield made(path, "garbled", document, unread=list(range(1, len(writer.pages) + 1)))


# --- Office files, books, feeds and mail by libraries -------------------------------------------------------------


def python_docx(documents: list[Known], folder: Path) -> Iterator[Made]:
    """The library python-docx, with the styles of its template."""
    from docx import Document

    for document in documents:
        if document.layout == "columns":
            continue
        file = Document()
        file.core_properties.title = document.title
        file.core_properties.language = document.language
        file.sections[0].header.paragraphs[0].text = document.head
        file.sections[0].footer.paragraphs[0].text = document.foot
        for block in known_texts.blocks_of(document.html):
            if block.kind == "table":
                table = file.add_table(rows=len(block.rows), cols=max(map(len, block.rows)))
                for row, cells in zip(table.rows, block.rows, strict=True):
                    for cell, text in zip(row.cells, cells, strict=False):
                        cell.text = text
            elif block.kind[0] == "h":
                file.add_heading(block.text, int(block.kind[1]))
            else:
                file.add_paragraph(block.text, "List Bullet" if block.kind == "li" else None)
        path = named(folder, "python_docx", document, "docx")
        file.save(str(path))
        yield made(path, "python-docx", document, "office")


def books(documents: list[Known], folder: Path) -> Iterator[Made]:
    """EPUB 3 with a chapter for each section."""
    for document in documents:
        if document.layout == "columns":
            continue
        chapters = re.split("(?=<h2>)", document.html)
        items = "".join(
            f'<item id="c{at}" href="c{at}.xhtml" media-type="application/xhtml+xml"/>' for at in range(len(chapters))
        )
        spine = "".join(f'<itemref idref="c{at}"/>' for at in range(len(chapters)))
        package = (
            '<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id">'
            '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:identifier id="id">urn:x:1</dc:identifier>'
            f"<dc:title>{escape(document.title)}</dc:title><dc:language>{document.language}</dc:language>"
            f"<dc:date>{DAY}</dc:date></metadata><manifest>{items}</manifest><spine>{spine}</spine></package>"
        )
        container = (
            '<?xml version="1.0"?><container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
            '<rootfiles><rootfile full-path="OPS/package.opf" media-type="application/oebps-package+xml"/></rootfiles>'
            "</container>"
        )
        path = named(folder, "epub", document, "epub")
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
            book.writestr(zipfile.ZipInfo("mimetype"), "application/epub+zip")
            book.writestr("META-INF/container.xml", container)
            book.writestr("OPS/package.opf", package)
            for at, chapter in enumerate(chapters):
                html = f"<head><title>{at}</title></head><body>{chapter}</body>"
                html = f'<html xmlns="http://www.w3.org/1999/xhtml">{html}</html>'
                book.writestr(f"OPS/c{at}.xhtml", '<?xml version="1.0" encoding="utf-8"?>' + html)
        yield made(path, "epub", document, "epub")


def feeds(documents: list[Known], folder: Path) -> Iterator[Made]:
    """RSS 2.0 and Atom with an entry for each section, as escaped HTML."""
    for document in documents:
        if document.layout != "plain" or document.name.startswith("manual"):
            continue
        parts = [part.partition("</h2>") for part in document.html.split("<h2>")[1:]]
        rss = "".join(
            f"<item><title>{head}</title><link>https://example.org/{at}</link>"
            f"<description>{escape(body)}</description></item>"
            for at, (head, _, body) in enumerate(parts)
        )
        atom = "".join(
            f"<entry><title>{head}</title><id>urn:x:{at}</id><updated>{DAY}T00:00:00Z</updated>"
            f'<content type="html">{escape(body)}</content></entry>'
            for at, (head, _, body) in enumerate(parts)
        )
        title, language = f"<title>{escape(document.title)}</title>", document.language
        texts = {
            "rss": f'<rss version="2.0"><channel>{title}<language>{language}</language>{rss}</channel></rss>',
            "atom": f'<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="{language}">{title}{atom}</feed>',
        }
        for ending, text in texts.items():
            path = named(folder, ending, document, "xml")
            path.write_text(f'<?xml version="1.0" encoding="utf-8"?>\n{text}', encoding="utf-8")
            yield made(path, ending, document, "feed")


def mails(documents: list[Known], folder: Path) -> Iterator[Made]:
    """Mail with a plain and an HTML alternative, and a file that is attached."""
    for document in documents:
        if document.layout != "plain" or document.name.startswith("manual"):
            continue
        mail = EmailMessage()
        mail["Subject"], mail["From"], mail["To"] = document.title, "a@example.org", "b@example.org"
        mail["Date"] = "Thu, 19 Nov 2026 10:00:00 +0000"
        blocks = known_texts.blocks_of(document.html)
        mail.set_content("\n\n".join(block.text for block in blocks))
        mail.add_alternative(f"<html><body>{document.html}</body></html>", subtype="html")
        mail.add_attachment(b"\x00\x01" * 500, maintype="application", subtype="octet-stream", filename="x.bin")
        path = named(folder, "mail", document, "eml")
        path.write_bytes(bytes(mail))
        yield made(path, "mail", document, "mail")


class Producer(NamedTuple):
    """A maker of files, what it needs (a program or a module), and how that is installed."""

    make: Callable[[list[Known], Path], Iterator[Made]]
    needs: str = ""
    install: str = ""


_FILES = "benchmarks/peers_files.txt has it"
PRODUCERS = {
    "weasyprint": Producer(weasyprint, "python:weasyprint", f"{_FILES}, with libpango-1.0-0 of apt"),
    "chromium": Producer(chromium, "chromium", "apt-get install chromium"),
    "libreoffice": Producer(libreoffice, "soffice", "apt-get install --no-install-recommends libreoffice-writer-nogui"),
    "reportlab": Producer(reportlab, "python:reportlab", _FILES),
    "fpdf2": Producer(fpdf2, "python:fpdf", _FILES),
    "tex": Producer(tex, "pdflatex", "apt-get install --no-install-recommends texlive-latex-recommended"),
    "scanner": Producer(scanner, "python:weasyprint", f"{_FILES}, with libpango-1.0-0 of apt"),
    "garbled": Producer(garbled, "python:weasyprint", f"{_FILES}, with libpango-1.0-0 of apt"),
    "python_docx": Producer(python_docx, "python:docx", _FILES),
    "books": Producer(books),
    "feeds": Producer(feeds),
    "mails": Producer(mails),
}


def is_installed(needs: str) -> bool:
    """Return whether a program is there, or a module imports with the libraries that it loads."""
    if not needs.startswith("python:"):
        return not needs or shutil.which(needs) is not None
    try:
        __import__(needs.removeprefix("python:"))
    except (ImportError, OSError):
        return False
    return True


def main() -> None:
    """Make the files of all producers, or of those that are named."""
    folder, names = Path(sys.argv[1]), sys.argv[2:] or list(PRODUCERS)
    folder.mkdir(parents=True, exist_ok=True)
    documents = known_texts.documents()
    rows, missing = list[Made](), dict[str, str]()
    for name in names:
        producer = PRODUCERS[name]
        if is_installed(producer.needs):
            rows += producer.make(documents, folder)
            print(name, len(rows), file=sys.stderr)
        else:
            missing[name] = producer.install
    listed = [row._asdict() for row in rows if (folder / row.path).exists()]
    lost = [row.path for row in rows if not (folder / row.path).exists()]
    (folder / "files.json").write_text(json.dumps({"files": listed, "missing": missing, "lost": lost}))
    print(json.dumps({"files": len(listed), "missing": missing, "lost": lost}))


if __name__ == "__main__":
    main()
