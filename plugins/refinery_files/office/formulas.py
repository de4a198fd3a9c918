"""Translates formulas of Office Math (ECMA-376, part 1, chapter 22) to MathML, which the core writes as TeX."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING
from unicodedata import combining

from refinery_files.markup import escaped
from refinery_files.xml import local

if TYPE_CHECKING:
    from lxml.etree import _Element

M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_VAL = f"{M}val"
_TOKEN = re.compile(r"(\d+(?:[.,]\d+)*)|([^\W\d_]+)|(\S)")
_Writer = Callable[["_Element"], str]
_NARY = "\u222b"
"""The integral: what an operator over a range is where its sign is not stated."""


def math(formula: "_Element", *, displayed: bool = False) -> str:
    """Return a formula as an element `math`; "" if it has nothing."""
    html = _children(formula)
    shown = ' display="block"' if displayed else ""
    return f"<math{shown}><mrow>{html}</mrow></math>" if html else ""


def _children(element: "_Element") -> str:
    return "".join(map(_element, element))


def _element(element: "_Element") -> str:
    name = local(element)
    if name == "r":
        return _text(element)
    write = _WRITTEN.get(name)
    if write is not None:
        return write(element)
    return "" if name.endswith("Pr") else _children(element)


def _text(run: "_Element") -> str:
    text = "".join(part.text or "" for part in run if local(part) == "t")
    if run.find(f"{M}rPr/{M}nor") is not None:
        return f"<mtext>{escaped(text)}</mtext>" if text.strip() else ""
    return "".join(map(_token, _TOKEN.finditer(text)))


def _token(found: "re.Match[str]") -> str:
    number, word, sign = found.groups()
    if number:
        return f"<mn>{number}</mn>"
    if word:
        return "".join(f"<mi>{letter}</mi>" for letter in word)
    return f"<mo>{escaped(sign)}</mo>"


def _argument(element: "_Element", name: str) -> str:
    part = element.find(M + name)
    return f"<mrow>{'' if part is None else _children(part)}</mrow>"


def _is_set(element: "_Element", name: str) -> bool:
    found = element.find(f"{M}{local(element)}Pr/{M}{name}")
    return found is not None and found.get(_VAL, "1") not in ("0", "off", "false")


def _sign(element: "_Element", name: str, default: str) -> str:
    found = element.find(f"{M}{local(element)}Pr/{M}{name}")
    return default if found is None else found.get(_VAL, "")


def _of(tag: str, *names: str) -> _Writer:
    def write(element: "_Element") -> str:
        return f"<{tag}>{''.join(_argument(element, name) for name in names)}</{tag}>"

    return write


def _fraction(element: "_Element") -> str:
    above, below = _argument(element, "num"), _argument(element, "den")
    kind = _sign(element, "type", "bar")
    if kind == "noBar":  # a binomial, between the signs that are around it
        return _table([[above], [below]])
    return f"{above}<mo>/</mo>{below}" if kind == "lin" else f"<mfrac>{above}{below}</mfrac>"


def _root(element: "_Element") -> str:
    base = _argument(element, "e")
    degree = element.find(f"{M}deg")
    if degree is None or _is_set(element, "degHide") or not _children(degree):
        return f"<msqrt>{base}</msqrt>"
    return f"<mroot>{base}{_argument(element, 'deg')}</mroot>"


def _nary(element: "_Element") -> str:
    sign = f"<mo>{escaped(_sign(element, 'chr', _NARY))}</mo>"
    below, above = (
        ("sub" if not _is_set(element, "subHide") else ""),
        ("sup" if not _is_set(element, "supHide") else ""),
    )
    if below and above:
        sign = f"<munderover>{sign}{_argument(element, below)}{_argument(element, above)}</munderover>"
    elif below or above:
        tag = "munder" if below else "mover"
        sign = f"<{tag}>{sign}{_argument(element, below or above)}</{tag}>"
    return sign + _argument(element, "e")


def _delimited(element: "_Element") -> str:
    begin, end, between = _sign(element, "begChr", "("), _sign(element, "endChr", ")"), _sign(element, "sepChr", "|")
    parts = [_children(part) for part in element.findall(f"{M}e")]
    return f"<mo>{escaped(begin)}</mo>{f'<mo>{escaped(between)}</mo>'.join(parts)}<mo>{escaped(end)}</mo>"


def _function(element: "_Element") -> str:
    name = element.find(f"{M}fName")
    texts = [] if name is None else [text.text or "" for text in name.iter(f"{M}t")]
    word = "".join(texts)
    is_word = name is not None and len(texts) == 1 and word.isalpha() and local(name[0]) == "r"
    written = f"<mi>{escaped(word)}</mi>" if is_word else _argument(element, "fName")
    return f"{written}<mo> </mo>{_argument(element, 'e')}"


def _accent(element: "_Element") -> str:
    sign = _sign(element, "chr", "\u0302")
    spacing = {
        "\u0302": "^",
        "\u0303": "~",
        "\u0304": "\u00af",
        "\u0305": "\u00af",
        "\u20d7": "\u2192",
        "\u0307": "\u02d9",
    }
    if sign and sign not in spacing and combining(sign[0]):  # no command of TeX that the core writes: as Unicode has it
        return f"{_argument(element, 'e')}<mo>{escaped(sign)}</mo>"
    return f"<mover>{_argument(element, 'e')}<mo>{escaped(spacing.get(sign, sign))}</mo></mover>"


def _bar(element: "_Element") -> str:
    if _sign(element, "pos", "bot") == "bot":
        return f"<munder>{_argument(element, 'e')}<mo>_</mo></munder>"
    return f"<mover>{_argument(element, 'e')}<mo>\u00af</mo></mover>"


def _matrix(element: "_Element") -> str:
    rows = [[_children(cell) for cell in row.findall(f"{M}e")] for row in element.findall(f"{M}mr")]
    return _table(rows)


def _equations(element: "_Element") -> str:
    return _table([[_children(line)] for line in element.findall(f"{M}e")])


def _table(rows: list[list[str]]) -> str:
    lines = ("".join(f"<mtd><mrow>{cell}</mrow></mtd>" for cell in row) for row in rows)
    return f"<mtable>{''.join(f'<mtr>{line}</mtr>' for line in lines)}</mtable>"


_WRITTEN: dict[str, _Writer] = {
    "f": _fraction,
    "sSup": _of("msup", "e", "sup"),
    "sSub": _of("msub", "e", "sub"),
    "sSubSup": _of("msubsup", "e", "sub", "sup"),
    "limLow": _of("munder", "e", "lim"),
    "limUpp": _of("mover", "e", "lim"),
    "rad": _root,
    "nary": _nary,
    "d": _delimited,
    "func": _function,
    "acc": _accent,
    "bar": _bar,
    "m": _matrix,
    "eqArr": _equations,
}
