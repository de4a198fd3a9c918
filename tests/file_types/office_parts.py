"""Builds small files of the types that the readers read: archives and the parts within them."""

import zipfile
from io import BytesIO

from pipeline_tasks.text.page.block_text import all_blocks
from pipeline_tasks.text.page.file_text import FileText

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
M = 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
MC = 'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
S = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
P = 'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
OPEN = " ".join(
    f'xmlns:{short}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for short, name in (
        ("office", "office"), ("text", "text"), ("table", "table"), ("draw", "drawing"), ("style", "style"),
        ("fo", "xsl-fo-compatible"), ("presentation", "presentation"), ("meta", "meta"),
    )
) + ' xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:dc="http://purl.org/dc/elements/1.1/"'  # fmt: skip
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
_KINDS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def zipped(members: dict[str, str | bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return an archive; a member `mimetype` is stored, as the standards want it."""
    out = BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_STORED if name == "mimetype" else method)
    return out.getvalue()


def relations(**named: tuple[str, str]) -> str:
    """Return relations by id: kind and target."""
    rows = "".join(
        f'<Relationship Id="{name}" Type="{_KINDS}/{kind}" Target="{target}"/>'
        for name, (kind, target) in named.items()
    )
    return f'<?xml version="1.0"?><Relationships xmlns="{_RELATIONS}">{rows}</Relationships>'


def p(inner: str, properties: str = "") -> str:
    """Return a paragraph of Word: text, or runs if it has markup."""
    runs = inner if inner.startswith("<") else f"<w:r><w:t>{inner}</w:t></w:r>"
    return f"<w:p>{f'<w:pPr>{properties}</w:pPr>' if properties else ''}{runs}</w:p>"


def docx(body: str, **parts: str) -> bytes:
    """Return a Word file; `styles` and other parts by name are what is in their roots."""
    roots = {"styles": "styles", "numbering": "numbering", "footnotes": "footnotes", "endnotes": "endnotes"}
    members = {
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": relations(a=("officeDocument", "word/document.xml")),
        "word/document.xml": f"<w:document {W} {M} {MC}><w:body>{body}</w:body></w:document>",
    }
    for name, inner in parts.items():
        members[f"word/{name}.xml"] = f"<w:{roots[name]} {W}>{inner}</w:{roots[name]}>"
    return zipped(members)


def xlsx(*sheets: str, strings: str = "", styles: str = "", names: str = "") -> bytes:
    """Return an Excel file of sheets by their rows; `names` are attributes of each sheet, parted by bars."""
    told = names.split("|") if names else ["" for _ in sheets]
    rows = "".join(f'<sheet name="Sheet {nth}" r:id="r{nth}" {attributes}/>' for nth, attributes in enumerate(told, 1))
    members = {
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": relations(a=("officeDocument", "xl/workbook.xml")),
        "xl/workbook.xml": f"<workbook {S} {R}><sheets>{rows}</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": relations(
            **{f"r{nth}": ("worksheet", f"worksheets/s{nth}.xml") for nth in range(1, len(sheets) + 1)}
        ),
        "xl/sharedStrings.xml": f"<sst {S}>{strings}</sst>",
        "xl/styles.xml": f"<styleSheet {S}>{styles}</styleSheet>",
    }
    for nth, sheet in enumerate(sheets, 1):
        data = sheet if "<sheetData>" in sheet else f"<sheetData>{sheet}</sheetData>"
        members[f"xl/worksheets/s{nth}.xml"] = f"<worksheet {S}>{data}</worksheet>"
    return zipped(members)


def pptx(*slides: str, notes: str = "") -> bytes:
    """Return a presentation of slides by their shapes; `notes` are behind the first."""
    ids = "".join(f'<p:sldId id="{nth}" r:id="r{nth}"/>' for nth in range(1, len(slides) + 1))
    members = {
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": relations(a=("officeDocument", "ppt/presentation.xml")),
        "ppt/presentation.xml": f"<p:presentation {P} {R}><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>",
        "ppt/_rels/presentation.xml.rels": relations(
            **{f"r{nth}": ("slide", f"slides/slide{nth}.xml") for nth in range(1, len(slides) + 1)}
        ),
    }
    for nth, slide in enumerate(slides, 1):
        whole = (
            slide if slide.startswith("<p:sld") else f"<p:sld {P}><p:cSld><p:spTree>{slide}</p:spTree></p:cSld></p:sld>"
        )
        members[f"ppt/slides/slide{nth}.xml"] = whole
    if notes:
        members["ppt/slides/_rels/slide1.xml.rels"] = relations(n=("notesSlide", "../notesSlides/n1.xml"))
        members["ppt/notesSlides/n1.xml"] = f"<p:notes {P}><p:cSld><p:spTree>{notes}</p:spTree></p:cSld></p:notes>"
    return zipped(members)


def shape(*lines: str, kind: str | None = None) -> str:
    """Return a shape of a slide by its paragraphs; `kind` is that of a placeholder."""
    held = "" if kind is None else f'<p:ph type="{kind}"/>' if kind else "<p:ph/>"
    rows = "".join(line if line.startswith("<") else f"<a:p><a:r><a:t>{line}</a:t></a:r></a:p>" for line in lines)
    return (
        f'<p:sp><p:nvSpPr><p:cNvPr id="1" name="s"/><p:cNvSpPr/><p:nvPr>{held}</p:nvPr></p:nvSpPr>'
        f"<p:txBody><a:bodyPr/>{rows}</p:txBody></p:sp>"
    )


def opendocument(kind: str, body: str, automatic: str = "", **parts: str) -> bytes:
    """Return an OpenDocument file; `styles` and `meta` are what is in their roots."""
    members = {
        "mimetype": f"application/vnd.oasis.opendocument.{kind}",
        "content.xml": f"<office:document-content {OPEN}><office:automatic-styles>{automatic}</office:automatic-styles>"
        f"<office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>",
        "META-INF/manifest.xml": parts.pop("manifest", "<manifest/>"),
    }
    for name, inner in parts.items():
        members[f"{name}.xml"] = f"<office:document-{name} {OPEN}>{inner}</office:document-{name}>"
    return zipped(members)


def text_of(text: FileText) -> str:
    """Return the parts of a file as the core writes them, parted by lines."""
    return "\n-----\n".join(all_blocks(part).text for part in text.parts)
