"""Writes the MathML of a formula document without what its program adds: its source in another language, attributes."""

import re
from typing import TYPE_CHECKING

from refinery_files.markup import escaped
from refinery_files.xml import local

if TYPE_CHECKING:
    from lxml.etree import _Element

_NAMES = frozenset(
    re.findall(
        r"\w+",
        """math mrow mi mn mo mtext ms mspace mfrac msqrt mroot mstyle merror mpadded mphantom mfenced menclose msub
        msup msubsup munder mover munderover mmultiscripts mtable mtr mtd""",
    )
)
_LEFT_OUT = ("annotation", "annotation-xml")
_KEPT = ("open", "close", "separators")


def mathml(element: "_Element") -> str:
    """Return an element `math` and what it has as HTML; "" if it shows nothing."""
    return _written(element) if "".join(element.itertext()).strip() else ""


def _written(element: "_Element") -> str:
    name = local(element)
    if not name or name in _LEFT_OUT:
        return ""
    inner = escaped(element.text or "").strip() + "".join(
        _written(child) + escaped(child.tail or "").strip() for child in element
    )
    if name not in _NAMES:  # `semantics`
        return inner
    kept = "".join(f' {key}="{_quoted(element.get(key, ""))}"' for key in _KEPT if key in element.attrib)
    return f"<{name}{kept}>{inner}</{name}>"


def _quoted(text: str) -> str:
    return escaped(text).replace('"', "&quot;")
