"""Scores texts of pages whose blocks are known, between 0 and 1: words, formulas, code, tables and terms."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Table = list[list[str]]

_SINGLE = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\\W\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
_DELIMITERS = re.compile(r"^(?:\\\(|\\\[|\$\$?)|(?:\\\)|\\\]|\$\$?)$")
_STYLE = re.compile(r"\\(?:displaystyle|textstyle|left|right|limits|quad|[,;:!])(?![A-Za-z])")
_UPRIGHT = re.compile(r"\\(?:mathrm|text|operatorname)\{([^{}]*)\}")
_BRACED = re.compile(r"\{(\\[A-Za-z]+|[^{}\\])\}")
_SIGNS = {
    r"\pm": "\u00b1",
    r"\sum": "\u2211",
    r"\int": "\u222b",
    r"\infty": "\u221e",
    r"\leq": "\u2264",
    r"\le": "\u2264",
    r"\lambda": "\u03bb",
    r"\mu": "\u03bc",
    r"\pi": "\u03c0",
    r"\omega": "\u03c9",
    r"\lbrace": "{",
    r"\mid": "|",
    "\u2212": "-",
}
_SIGN = re.compile("|".join(rf"{re.escape(name)}(?![A-Za-z])" for name in _SIGNS))


# --- Words ------------------------------------------------------------------------------------------------------


def word_scores(text: str, gold: str) -> tuple[float, float, float]:
    r"""Return F1, precision and recall of the multisets of `\w+` of lower-cased texts, as WCXB scores a page.

    Two texts without words are the same.
    """
    words, wanted = (Counter(re.findall(r"\w+", part.lower())) for part in (text, gold))
    if not words or not wanted:
        return (float(words == wanted),) * 3
    shared = (words & wanted).total()
    precision, recall = shared / words.total(), shared / wanted.total()
    return 2 * shared / (words.total() + wanted.total()), precision, recall


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case; a sign of Chinese or Japanese is a word."""
    return _SINGLE.findall(text.lower())


def kept_share(text: str, block: str, run: int = 3) -> float:
    """Return the share of a block's runs of three words, or of so many, that are in a text."""
    runs, wanted = (Counter(_runs(words_of(part), run)) for part in (text, block))
    return (runs & wanted).total() / max(wanted.total(), 1)


def _runs(words: list[str], size: int) -> Iterable[tuple[str, ...]]:
    return zip(*(words[at:] for at in range(size)), strict=False)


# --- Edits ------------------------------------------------------------------------------------------------------


def edit_distance(
    one: Sequence[Item],
    other: Sequence[Item],
    size: Callable[[Item], float] = lambda _: 1,
    change: Callable[[Item, Item], float] = lambda a, b: float(a != b),
) -> float:
    """Return the least cost of edits between sequences: `size` of what is left out or added, `change` of two items."""
    costs = [0.0]
    for item in other:
        costs.append(costs[-1] + size(item))
    for left in one:
        above, costs = costs, [costs[0] + size(left)]
        for at, right in enumerate(other):
            costs.append(min(above[at + 1] + size(left), costs[at] + size(right), above[at] + change(left, right)))
    return costs[-1]


def similarity(one: str, other: str) -> float:
    """Return 1 less the edits between texts, as a share of the longer one."""
    return 1 - edit_distance(one, other) / max(len(one), len(other), 1)


# --- Formulas ---------------------------------------------------------------------------------------------------


def formula_similarity(text: str, before: str, tex: str, after: str) -> float:
    """Return how similar what a text has between two sentences is to TeX; 0 where a sentence is lost."""
    flat = " ".join(text.split())
    start = flat.find(before)
    end = flat.find(after, start + len(before)) if start >= 0 else -1
    if end < 0:
        return 0.0
    found = flat[start + len(before) : end].strip().removeprefix(":").removesuffix(".").strip()
    return similarity(plain_tex(found), plain_tex(tex))


def plain_tex(tex: str) -> str:
    """Return TeX without what is a matter of writing: delimiters, blanks, styles, braces around one sign."""
    tex = _DELIMITERS.sub("", _DELIMITERS.sub("", tex.strip()))
    tex = _SIGN.sub(lambda sign: _SIGNS[sign[0]], _STYLE.sub("", _UPRIGHT.sub(r"\1", tex)))
    tex = "".join(tex.split())
    while (shorter := _BRACED.sub(r"\1", tex)) != tex:
        tex = shorter
    return tex[1:-1] if _is_group(tex) else tex


def _is_group(tex: str) -> bool:
    """Return whether the first brace of TeX closes at its end."""
    if not tex.startswith("{"):
        return False
    depth = 0
    for at, sign in enumerate(tex):
        depth += {"{": 1, "}": -1}.get(sign, 0)
        if depth == 0:
            return at == len(tex) - 1
    return False


# --- Code, tables, terms ----------------------------------------------------------------------------------------


def code_share(text: str, code: str) -> float:
    """Return the share of the lines of code that a text has as lines, with one indentation added to all at most."""
    wanted = [line for line in code.split("\n") if line.strip()]
    lines = {line.rstrip() for line in text.split("\n")}
    indents = {line[: line.find(wanted[0])] for line in lines if line.lstrip() == wanted[0]} | {""}
    return max(sum(indent + line in lines for line in wanted) for indent in indents) / len(wanted)


def tables_of(text: str) -> list[Table]:
    """Return the tables of a text: lines in a row with pipes at both ends, or with tabs."""
    tables, inside = list[Table](), False
    for line in text.split("\n"):
        row = _row(line)
        if row is None:
            inside = False
        elif not all(re.fullmatch(":?-+:?", cell) for cell in row) or not inside:
            tables += [] if inside else [[]]
            tables[-1].append(row)
            inside = True
    return tables


def _row(line: str) -> list[str] | None:
    bare = line.strip()
    if bare.startswith("|") and bare.endswith("|") and len(bare) > 1:
        return [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", bare[1:-1])]
    return [cell.strip() for cell in line.split("\t")] if "\t" in line.strip() else None


def table_similarity(text: str, table: Table) -> float:
    """Return the similarity of a table to the most similar one of a text, by edits of trees of rows and cells (TEDS).

    A cell that is changed costs the edits of its text. Empty cells at the end of a row are none.
    """
    return nearest_table(tables_of(text), table)


def nearest_table(tables: Iterable[Table], table: Table) -> float:
    """Return the similarity of a table to the most similar one of some, as `table_similarity` does."""
    return max((_teds(_trimmed(found), _trimmed(table)) for found in tables), default=0.0)


def _trimmed(table: Table) -> Table:
    return [row[: max((at for at, cell in enumerate(row, 1) if cell), default=0)] for row in table]


def _teds(one: Table, other: Table) -> float:
    cost = edit_distance(one, other, lambda row: 1 + len(row), _row_edits)
    return 1 - cost / max(_nodes(one), _nodes(other))


def _row_edits(one: list[str], other: list[str]) -> float:
    if one == other:
        return 0.0
    return edit_distance(one, other, lambda _: 1, lambda a, b: 1 - similarity(a, b))


def _nodes(table: Table) -> int:
    return 1 + sum(1 + len(row) for row in table)


def term_share(text: str, pairs: Iterable[Sequence[str]]) -> float:
    """Return the share of terms that a text has right before their descriptions, with only marks between them."""
    flat = " ".join(text.split())
    found = [re.search(rf"{re.escape(term)}[\s:*_-]*{re.escape(said)}", flat) is not None for term, said in pairs]
    return sum(found) / max(len(found), 1)


# --- Names ------------------------------------------------------------------------------------------------------

_TAG = re.compile(rb"<[A-Za-z][^<>]*>")
_NAMES = re.compile(rb"""(?i)(\s(?:class|id)\s*=\s*)("[^"]*"|'[^']*'|[^\s"'>]+)""")
_LINKS = re.compile(rb"""(?i)(\s(?:for|href|aria-(?:controls|describedby|labelledby))\s*=\s*["']?#?)([^"'\s>#]+)""")


def renamed(page: bytes, name: Callable[[bytes], bytes]) -> bytes:
    """Return a page with another name for every class and id, and for what refers to an id; style sheets stay."""
    ids = {
        part for tag in _TAG.findall(page) for _, value in _NAMES.findall(tag) for part in value.strip(b"\"'").split()
    }

    def named(match: re.Match[bytes]) -> bytes:
        return match[1] + re.sub(rb"[^\s\"']+", lambda part: name(part[0]), match[2])

    def linked(match: re.Match[bytes]) -> bytes:
        is_name = match[2] in ids and (b"href" not in match[1].lower() or match[1].endswith(b"#"))
        return match[1] + name(match[2]) if is_name else match[0]

    return _TAG.sub(lambda tag: _LINKS.sub(linked, _NAMES.sub(named, tag[0])), page)
