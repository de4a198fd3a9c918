"""Shows where two texts differ, word by word and side by side, with the words around each change."""

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import chain, zip_longest

AROUND = 6
"""Words shown on each side of a change; changes closer than twice that are shown as one."""

LARGE = 2000
"""Words of a block of changed lines above which it is one change: comparing words takes quadratic time."""


@dataclass(frozen=True, slots=True)
class Change:
    """A place where texts differ: the words of each, and the words that both have before and after."""

    before: str
    left: str
    right: str
    after: str


Span = tuple[int, int, int, int]
"""(a, b, c, d): words [a, b) of the left text are replaced by words [c, d) of the right text."""


def changes(left: str, right: str) -> list[Change]:
    """Return every place where the words of two texts differ, in order; white space does not count."""
    left_words, right_words = left.split(), right.split()
    differences = []
    for a, b, c, d in _spans(left, right):
        parts = left_words[max(a - AROUND, 0) : a], left_words[a:b], right_words[c:d], left_words[b : b + AROUND]
        differences.append(Change(*map(" ".join, parts)))
    return differences


def _spans(left: str, right: str) -> Iterator[Span]:
    """Yield the spans that differ: lines are compared first, then the words of lines that differ."""
    left_lines, right_lines = ([line.split() for line in text.splitlines() if line.split()] for text in (left, right))
    left_starts, right_starts = _starts(left_lines), _starts(right_lines)
    lines = SequenceMatcher(None, [*map(tuple, left_lines)], [*map(tuple, right_lines)], autojunk=False)
    for tag, a, b, c, d in lines.get_opcodes():
        if tag == "equal":
            continue
        words = ([*chain.from_iterable(block)] for block in (left_lines[a:b], right_lines[c:d]))
        for i, j, k, m in _words(*words):
            yield left_starts[a] + i, left_starts[a] + j, right_starts[c] + k, right_starts[c] + m


def _starts(lines: Sequence[Sequence[str]]) -> list[int]:
    """Return the number of words before each line, then that of all words."""
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    return starts


def _words(left: Sequence[str], right: Sequence[str]) -> Iterator[Span]:
    if max(len(left), len(right)) > LARGE:
        yield 0, len(left), 0, len(right)
        return
    for tag, a, b, c, d in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if tag != "equal":
            yield a, b, c, d


def side_by_side(left: str, right: str, titles: tuple[str, str], width: int = 116, most: int = 20) -> Iterator[str]:
    """Yield two columns of together `width` characters: each change in brackets, at most `most` of them."""
    differences = changes(left, right)
    if not differences:
        yield "the same words in the same order"
        return
    column = (width - 3) // 2
    yield f"{titles[0]:<{column}} | {titles[1]}"
    for change in differences[:most]:
        sides = (_wrapped(change.before, words, change.after, column) for words in (change.left, change.right))
        for left_line, right_line in zip_longest(*sides, fillvalue=""):
            yield f"{left_line:<{column}} | {right_line}".rstrip()
        yield f"{'':<{column}} |"
    if len(differences) > most:
        yield f"... and {len(differences) - most} more places"


def _wrapped(before: str, words: str, after: str, column: int) -> list[str]:
    shown = textwrap.shorten(words, 4 * column, placeholder=" ...")
    marked = " ".join(part for part in (before and f"... {before}", f"[{shown}]", after and f"{after} ...") if part)
    return textwrap.wrap(marked, column)
