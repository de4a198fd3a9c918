"""Scores texts against the annotated blocks of pages: what is found, and what is laid out as readers see it."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tests.golden.structure.pages import Block, Page

_MARKER = re.compile(r"^\s*(?:[-*•+]|\d+[.)])\s+")
_HEADING = re.compile(r"^\s*#+\s+")


class Score(NamedTuple):
    """Shares over the blocks of all pages; `laid_out` of the blocks that are kept."""

    recall: float
    precision: float
    f1: float
    laid_out: float


def score(pages: Sequence[Page], texts: Sequence[str]) -> Score:
    """Return recall, precision and F1 of blocks by their letters and digits, and the share that is laid out.

    A block is found if the text has its letters and digits in a row. It is laid out if a row is a line with its cells
    parted, an item a line with a marker, code its lines with their blanks and an indent in common, and any other block a
    line of its own.
    """
    kept = found = laid_out = wrong = 0
    for page, text in zip(pages, texts, strict=True):
        key = letters(text)
        lines = [line.rstrip() for line in text.split("\n")]
        for block in page.blocks:
            is_found = letters(block.text) in key
            kept += block.kept
            found += is_found and block.kept
            wrong += is_found and not block.kept
            laid_out += is_found and block.kept and is_laid_out(block, lines)
    recall, precision = found / kept, found / max(found + wrong, 1)
    return Score(recall, precision, 2 * found / (kept + found + wrong), laid_out / kept)


def letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", text)


def is_laid_out(block: Block, lines: Iterable[str]) -> bool:
    """Return whether the lines of a text have a block as a reader sees it."""
    if block.kind == "code":
        return _has_code(block.text.split("\n"), list(lines))
    if block.kind == "row":
        cells = [letters(cell) for cell in block.text.split("\t")]
        return any([letters(cell) for cell in re.split(r"\t|\s\|\s?|\|", _bare(line))] == cells for line in lines)
    key = letters(block.text)
    if block.kind == "item":
        return any(_MARKER.match(line) and letters(_MARKER.sub("", line)) == key for line in lines)
    return any(letters(_HEADING.sub("", _MARKER.sub("", line))) == key or letters(line) == key for line in lines)


def _bare(line: str) -> str:
    """Return a line without the pipes at its ends."""
    return re.sub(r"^\s*\|\s?|\s?\|\s*$", "", line) if line.lstrip().startswith("|") else line


def _has_code(code: list[str], lines: list[str]) -> bool:
    """Return whether lines in a row are those of code, all behind the same indent."""
    for at, line in enumerate(lines):
        if line.strip() != code[0].strip():
            continue
        indent = line[: len(line) - len(line.lstrip())]
        wanted = [(indent + part).rstrip() for part in code]
        if lines[at : at + len(code)] == wanted:
            return True
    return False
