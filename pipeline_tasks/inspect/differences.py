"""Shows where two texts differ: word by word, side by side, with a little of what is around."""

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import chain, zip_longest

AROUND = 6
"""Words shown on each side of a change; changes closer than twice that are shown as one."""

LARGE = 2000
"""Words of a block of changed lines above which it is not looked at word by word: that takes quadratic time."""


@dataclass(frozen=True, slots=True)
class Change:
    """One place where texts differ: the words of each, and the words that both have before and after."""

    before: str
    left: str
    right: str
    after: str


Span = tuple[int, int, int, int]
"""Words [a, b) of the left text stand where words [c, d) of the right text do."""


def changes(left: str, right: str) -> list[Change]:
    """Return every place where the words of two texts differ, in order; white space does not count."""
    ours, theirs = left.split(), right.split()
    found = []
    for a, b, c, d in _spans(left, right):
        before, after = ours[max(a - AROUND, 0) : a], ours[b : b + AROUND]
        found.append(Change(" ".join(before), " ".join(ours[a:b]), " ".join(theirs[c:d]), " ".join(after)))
    return found


def _spans(left: str, right: str) -> Iterator[Span]:
    """Yield what differs: lines are compared first, and the words of lines that differ."""
    ours, theirs = ([line.split() for line in text.splitlines() if line.split()] for text in (left, right))
    starts, others = _starts(ours), _starts(theirs)
    lines = SequenceMatcher(None, [*map(tuple, ours)], [*map(tuple, theirs)], autojunk=False)
    for tag, a, b, c, d in lines.get_opcodes():
        if tag == "equal":
            continue
        mine, yours = ([*chain.from_iterable(some)] for some in (ours[a:b], theirs[c:d]))
        for i, j, k, m in _words(mine, yours):
            yield starts[a] + i, starts[a] + j, others[c] + k, others[c] + m


def _starts(lines: Sequence[Sequence[str]]) -> list[int]:
    """Return the number of words before each line, and of all."""
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
    found = changes(left, right)
    if not found:
        yield "the same words in the same order"
        return
    column = (width - 3) // 2
    yield f"{titles[0]:<{column}} | {titles[1]}"
    for one in found[:most]:
        sides = (_wrapped(one.before, side, one.after, column) for side in (one.left, one.right))
        for mine, yours in zip_longest(*sides, fillvalue=""):
            yield f"{mine:<{column}} | {yours}".rstrip()
        yield f"{'':<{column}} |"
    if len(found) > most:
        yield f"... and {len(found) - most} more places"


def _wrapped(before: str, words: str, after: str, column: int) -> list[str]:
    shown = textwrap.shorten(words, 4 * column, placeholder=" ...")
    marked = " ".join(part for part in (before and f"... {before}", f"[{shown}]", after and f"{after} ...") if part)
    return textwrap.wrap(marked, column)
