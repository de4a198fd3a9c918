"""Gives a text that a library chose the layout of its page, and the lists, tables and code between its lines."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

STRUCTURE = "\x03"
"""Begins each laid-out line of code. Each heading begins with two."""

_HEADING = 2 * STRUCTURE

SHARE = 0.6
"""Part of a laid-out line that the chosen text has, from which on it is that line."""

SHORT = 16
"""Word characters below which a line may be anywhere, and is looked for close to the line before it alone."""

NEAR = 400
"""Word characters in which a short line is looked for."""

BLOB = 200
"""Characters from which on a line that no laid-out line has may be a whole page, which its library took as it is."""

SEARCHED = 64
"""How often as many characters as both texts have are read to find lines; lines behind that stay as they were chosen.

A page of lines that are nowhere would else be read once for each of them.
"""

NO_WORD = re.compile(r"[\W_]+")
_PART = re.compile(rf"{STRUCTURE}|\s*(?:- |\d+\. |\|)|\s{{2}}|.*\t")
_SENTENCE = 30  # characters of a short one
_GAP = 1500  # characters of structure between two chosen lines that are kept


class _Match(NamedTuple):
    """A line of the chosen text, and the first and last laid-out line that has its words; -1 for none."""

    line: str
    first: int
    last: int


def merge(chosen: str, laid: str) -> str:
    """Return the lines of `laid` that `chosen` has, in the order of `chosen`; lines that only `chosen` has stay.

    Between two of its lines that are kept, short lists, tables and code that `chosen` left out are kept as well: no
    author writes boilerplate between two paragraphs. Lines are compared by their letters and digits. Lines of code
    and headings begin with `STRUCTURE` in `laid`, and no longer in what is returned.
    """
    lines = laid.split("\n")
    keys = [NO_WORD.sub("", line) for line in lines]
    starts = [0, *accumulate(map(len, keys))]
    covered = [0] * len(lines)
    search = _Search(SEARCHED * (len(chosen) + len(laid)))
    matches = [*_matches(chosen.split("\n"), "".join(keys), starts, covered, search)]
    is_kept = [share >= SHARE * len(key) for share, key in zip(covered, keys, strict=True)]
    out, done, last = list[str](), [False] * len(lines), -1
    for match in matches:
        rows = range(match.first, match.last + 1) if match.first >= 0 else ()
        if not rows and len(match.line) >= BLOB and (within := _within(match.line, keys, search)):
            around = {row + step for row in within for step in (-1, 1) if not keys[min(row + step, len(keys) - 1)]}
            out += [line for row, line in enumerate(lines) if not line or row in within or row in around]
            done, last = [is_done or row in within for row, is_done in enumerate(done)], max(within)
            continue
        if not rows or not all(is_kept[row] for row in rows if keys[row]):
            out.append(match.line.strip())
            continue
        if last >= 0 and last + 1 < match.first:
            out += _between(lines[last + 1 : match.first], done[last + 1 : match.first], lines[match.first])
        for row in rows:
            if not keys[row] or not done[row]:
                out.append(lines[row])
                done[row] = True
        last = max(last, match.last)
    return "\n".join(out).replace(STRUCTURE, "")


class _Search:
    """Finds texts in others; all searches together read `left` characters or rows at most."""

    def __init__(self, left: int) -> None:
        self.left = left

    def find(self, text: str, part: str, start: int, stop: int | None = None) -> int:
        """Return where `part` begins in text[start:stop], -1 if it does not, or if nothing is left to read."""
        stop = min(len(text) if stop is None else stop, start + max(self.left, 0))
        found = text.find(part, start, stop)
        self.left -= 1 + (stop if found < 0 else found + len(part)) - start
        return found


def _within(blob: str, keys: list[str], search: _Search) -> set[int]:
    """Return the laid-out lines that make up half of a line without layout, in their order; none if they are less."""
    key, at, rows, chars = NO_WORD.sub("", blob), 0, set[int](), 0
    search.left -= len(keys)
    for row, part in enumerate(keys if search.left > 0 else ()):
        found = search.find(key, part, at) if part else -1
        if found >= 0:
            at, chars = found + len(part), chars + len(part)
            rows.add(row)
    return rows if 2 * chars >= len(key) else set()


def _between(lines: list[str], done: list[bool], following: str) -> list[str]:
    """Return the lines between two that are kept: all if they are a little structure, else an empty one.

    The last of them may be the heading of what follows, if that is a sentence or structure, too.
    """
    fresh = [line for line, is_done in zip(lines, done, strict=True) if line.strip() and not is_done]
    if fresh and sum(map(len, fresh)) <= _GAP and all(map(_PART.match, fresh)):
        is_content = len(following) >= _SENTENCE or _PART.match(following)
        if is_content or not fresh[-1].startswith(_HEADING):
            return lines
    return [""] if "" in lines or fresh else []


def _matches(chosen: list[str], page: str, starts: list[int], covered: list[int], search: _Search) -> Iterator[_Match]:
    """Yield the place of each line, from the words of the page; `covered` gets the characters found of its lines."""
    at = 0
    for line in chosen:
        key = NO_WORD.sub("", line)
        if not key:
            continue
        found = search.find(page, key, at, at + NEAR + len(key) if len(key) < SHORT else None)
        if found < 0 and len(key) >= SHORT:
            found = search.find(page, key, 0)
        if found < 0:
            yield _Match(line, -1, -1)
            continue
        end = found + len(key)
        first, last = bisect_right(starts, found) - 1, bisect_right(starts, end - 1) - 1
        search.left -= last - first
        for row in range(first, last + 1):
            covered[row] += min(end, starts[row + 1]) - max(found, starts[row])
        at = max(at, end)
        yield _Match(line, first, last)
