r"""Gives each formula of a page once, as TeX: what its author wrote, or MathML translated.

Libraries draw a formula twice or three times, for eyes, for screen readers and as its source: KaTeX, MathJax 2 and 3,
MediaWiki. Sources: MathML Core (W3C); the markup that these libraries document. TeX has the marks `\(` `\)`, or `\[`
`\]` where the formula has its own line. A formula that is a line of signs, as `a≠0`, is given as it is.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from resiliparse.parse.html import ElementNode, HTMLTree, Node

FORMULAS = "math, mjx-container, .katex, script[type^='math/tex'], [data-latex]"

_HOLDERS = ".katex, mjx-container, .MathJax, [data-latex]"  # what a library draws a formula into, sources and all
_DISPLAYED = ".katex-display, [display='block'], [display='true'], .MathJax_Display"
_HIDDEN = "[style*='display:none' i], [style*='display: none' i]"
_SOURCE = "annotation[encoding*='tex' i]"
_TEX = re.compile(r"[\\^_{}]")
_IMAGE = re.compile(r"(?i)(?<![a-z])(?:(?:la|mime|math)?tex|math|equation)(?![a-z])")
"""How renderers of formulas name themselves in the class or address of an image."""

_SHORT = re.compile(r"[A-Za-z]|.*[\^_=<>+*/\\|(){}\[\]-].*")
_SIGNS = re.compile(r"\\[A-Za-z]{2,}|[\^_]\{|\{\\")
_INVISIBLE = dict.fromkeys(map(ord, "\u2061\u2062\u2063\u2064\u200b\ufe0e\ufe0f"))
_OVER = dict(
    zip(
        "\u00af\u203e^\u02c6~\u02dc\u2192\u02d9",
        ["overline", "overline", "hat", "hat", "tilde", "tilde", "vec", "dot"],
        strict=True,
    )
)
_NEXT_ROW = r" \\ "
_DEEPEST = 60  # elements of MathML in each other that are read; below, their text is


def write_formulas(tree: "HTMLTree", nodes: list["ElementNode"]) -> bool:
    """Put TeX in the place of each of the elements that `FORMULAS` selects; return whether there was one."""
    changed = False
    for script in [node for node in nodes if node.tag == "script"]:
        drawn = script.prev_element
        while drawn is not None and "mathjax" in (drawn.getattr("class") or "").lower():
            drawn.remove()
            drawn = script.prev_element
        changed |= _write(tree, script, script.text, displayed="mode=display" in script.getattr("type").lower())
    for node in nodes:
        if node.tag == "script" or not tree.body.contains(node) or node.closest(_HIDDEN) is not None:
            continue
        holder = node.closest(_HOLDERS) or node
        changed |= _write(tree, holder, _source(holder), displayed=_is_displayed(holder))
    return changed


def image_formula(image: "ElementNode") -> str:
    """Return the TeX of an image that is a formula, by its alternative text; "" if it is none.

    A group in braces needs no marks: MediaWiki writes its formulas so.
    """
    alt = " ".join((image.getattr("alt") or "").split())
    if not alt:
        return ""
    names = f"{image.getattr('class') or ''} {image.getattr('src') or ''}"
    if _SIGNS.search(alt) or (_SHORT.fullmatch(alt) and _IMAGE.search(names)):
        return alt if alt.startswith("{\\") and alt.endswith("}") else marked(alt)
    return ""


def marked(tex: str, *, displayed: bool = False, is_glued: bool = False) -> str:
    """Return TeX between its marks; signs without any command need none beside blanks, nor does what has some."""
    tex = " ".join(tex.split())
    if not (displayed or is_glued or _TEX.search(tex)):
        return tex
    if tex.startswith(("\\(", "\\[", "$")):
        return tex
    return f"\\[{tex}\\]" if displayed else f"\\({tex}\\)"


def _write(tree: "HTMLTree", holder: "ElementNode", tex: str, *, displayed: bool) -> bool:
    """Put TeX in the place of a formula; one without a source keeps the signs that are drawn."""
    if tex.strip():
        text = marked(tex, displayed=displayed, is_glued=_is_glued(holder))
        holder.parent.insert_before(tree.create_text_node(text), holder)
        holder.remove()
        return True
    for part in holder.query_selector_all("[aria-hidden]").values():
        part.delattr("aria-hidden")
    return True


def _is_glued(holder: "ElementNode") -> bool:
    """Return whether a formula has a letter or digit right beside it."""
    before, after = holder.prev, holder.next
    return bool(before and before.text[-1:].isalnum()) or bool(after and after.text[:1].isalnum())


def _is_displayed(holder: "ElementNode") -> bool:
    return holder.closest(_DISPLAYED) is not None or holder.query_selector(_DISPLAYED) is not None


def _source(holder: "ElementNode") -> str:
    """Return the TeX that a formula has beside its drawing, else its MathML as TeX."""
    source = holder.query_selector(_SOURCE)
    if source is not None and source.text.strip():
        return str(source.text)
    latex = holder if holder.hasattr("data-latex") else holder.query_selector("[data-latex]")
    if latex is not None:
        return str(latex.getattr("data-latex"))
    math = holder if holder.tag == "math" else holder.query_selector("math")
    if math is None:
        return ""
    return str(math.getattr("alttext") or tex_of(math))


def children(node: "Node") -> Iterator["Node"]:
    """Yield what an element has; the library's `child_nodes` takes the square of their number."""
    child = node.first_child
    while child is not None:
        yield child
        child = child.next


def tex_of(node: "ElementNode", depth: int = 0) -> str:
    """Return an element of presentation MathML as TeX; what TeX has no word for keeps its signs."""
    tag = node.tag.rpartition(":")[2]
    if tag in ("annotation", "annotation-xml"):
        return ""
    parts = [tex_of(child, depth + 1) for child in children(node) if child.type == 1] if depth < _DEEPEST else []
    if not parts:
        return _leaf(tag, " ".join(node.text.translate(_INVISIBLE).split()))
    write = _WRITTEN.get(tag)
    return write(parts) if write is not None and len(parts) == _ARGUMENTS[tag] else _row(tag, parts, node)


def _leaf(tag: str, text: str) -> str:
    if tag == "mtext" and text:
        return f"\\text{{{text}}}"
    return f"\\mathrm{{{text}}}" if tag == "mi" and len(text) > 1 and text.isalpha() else text


def _row(tag: str, parts: list[str], node: "ElementNode") -> str:
    if tag == "msqrt":
        return f"\\sqrt{{{''.join(parts)}}}"
    if tag == "mfenced":
        separator = node.getattr("separators") or ","
        return f"{node.getattr('open') or '('}{separator[0].join(parts)}{node.getattr('close') or ')'}"
    if tag == "mtable":
        return rf"\begin{{matrix}}{_NEXT_ROW.join(parts)}\end{{matrix}}"
    return (" & " if tag == "mtr" else "").join(parts)


def _argument(part: str) -> str:
    return part if len(part) == 1 else f"{{{part}}}"


def _over(parts: list[str]) -> str:
    base, over = parts
    return f"\\{_OVER[over]}{{{base}}}" if over in _OVER else f"{base}^{_argument(over)}"


_ARGUMENTS = {"mfrac": 2, "mroot": 2, "msup": 2, "mover": 2, "msub": 2, "munder": 2, "msubsup": 3, "munderover": 3}
_WRITTEN = {
    "mfrac": lambda parts: f"\\frac{{{parts[0]}}}{{{parts[1]}}}",
    "mroot": lambda parts: f"\\sqrt[{parts[1]}]{{{parts[0]}}}",
    "msup": lambda parts: f"{_base(parts[0])}^{_argument(parts[1])}",
    "mover": _over,
    **dict.fromkeys(("msub", "munder"), lambda parts: f"{_base(parts[0])}_{_argument(parts[1])}"),
    **dict.fromkeys(
        ("msubsup", "munderover"),
        lambda parts: f"{_base(parts[0])}_{_argument(parts[1])}^{_argument(parts[2])}",
    ),
}


def _base(part: str) -> str:
    """Return what a script is of: in braces if it has scripts itself."""
    return f"{{{part}}}" if "^" in part or "_" in part else part
