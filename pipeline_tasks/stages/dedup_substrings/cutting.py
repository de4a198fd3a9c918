"""Says what a text loses of its matches: whole words, each character once, and the white space around a cut."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pipeline_tasks.text.base.character_traits import (
    CONNECTOR,
    EXTEND,
    KATAKANA,
    KIND_SHIFT,
    LETTER,
    MID_BOTH,
    MID_LETTER,
    MID_NUMBER,
    NUMBER,
    traits,
)

JOINING = (LETTER, NUMBER, KATAKANA, CONNECTOR, EXTEND)
"""Classes of characters that are one word with each other (UAX #29, without what its rules say of each pair)."""

MIDDLES = (MID_LETTER, MID_NUMBER, MID_BOTH)
"""Those that are part of a word between two such characters."""

JOINER = "\u200d"


class Span(NamedTuple):
    """Code points of a text, and where the document `winner` has the same ones; white space has no winner."""

    start: int
    end: int
    winner: str | None
    place: int | None


def disjoint(matches: Iterable[tuple[int, int, str, int]]) -> list[Span]:
    """Return spans that cover what matches do, and of which none has a character of another one; the fewest such.

    Matches are sorted by their start, and none ends before one that begins before it.
    """
    cover: list[Span] = []
    for start, end, winner, place in matches:
        before = cover[-1] if cover else None
        if before and start <= before.end and (winner, place - start) == (before.winner, _shift(before)):
            cover[-1] = before._replace(end=end)
            continue
        while len(cover) > 1 and start <= cover[-2].end:
            cover.pop()  # the one before it and this one have all of its characters
        cover.append(Span(start, end, winner, place))
    spans: list[Span] = []
    for span in cover:
        begin = max(span.start, spans[-1].end) if spans else span.start
        spans.append(span._replace(start=begin, place=_shift(span) + begin))
    return spans


def _shift(span: Span) -> int:
    return (span.place or 0) - span.start


def whole_words(text: str, spans: Sequence[Span]) -> list[Span]:
    """Return what a cut takes of spans: no part of a word, and of the white space at its sides the lesser."""
    cuts: list[tuple[int, int]] = []
    for begin, stop in _stretches(spans):
        start, end = _within_words(text, begin, stop)
        if start == end:
            continue
        if cuts and not text[cuts[-1][1] : start].strip():
            start = cuts.pop()[0]
        cuts.append((start, end))
    kept: list[Span] = []
    following = iter(spans)
    span = next(following, None)
    for start, end in cuts:
        at, stop = _with_spaces(text, start, end)
        while span and span.start < end:
            first, last = max(span.start, start), min(span.end, end)
            if first < last:
                kept += [Span(at, first, None, None), Span(first, last, span.winner, _shift(span) + first)]
                at = last
            if span.end > end:
                break  # the rest of it may be in the next cut
            span = next(following, None)
        kept.append(Span(at, stop, None, None))
    return [one for one in kept if one.start < one.end]


def _stretches(spans: Sequence[Span]) -> Iterator[tuple[int, int]]:
    """Yield the stretches that spans cover without a gap."""
    begin = end = -1
    for span in spans:
        if span.start != end:
            if begin < end:
                yield begin, end
            begin = span.start
        end = span.end
    if begin < end:
        yield begin, end


def _within_words(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the part of a stretch that begins and ends where words do, and whose removal joins no two words."""
    while start < end and (text[start].isspace() or not _is_border(text, start)):
        start += 1
    while start < end and (text[end - 1].isspace() or not _is_border(text, end)):
        end -= 1
    while 0 < start < end < len(text) and _is_joined(text[start - 1], text[end]):
        start += 1
    return start, end


def _is_joined(left: str, right: str) -> bool:
    return _kind(left) in JOINING and _kind(right) in JOINING


def _with_spaces(text: str, start: int, end: int) -> tuple[int, int]:
    """Return a stretch with the white space that its removal leaves over: the side with fewer line ends."""
    before, after = start, end
    while before > 0 and text[before - 1].isspace():
        before -= 1
    while after < len(text) and text[after].isspace():
        after += 1
    if after == len(text):
        return before, after
    if before == 0:
        return start, after
    if text.count("\n", before, start) < text.count("\n", end, after):
        return before, end
    return start, after if before < start else end


def _kind(sign: str) -> int:
    index, flags = traits()
    code = ord(sign)
    return int(flags[(int(index[code >> 8]) << 8) | (code & 0xFF)]) >> KIND_SHIFT


def _is_border(text: str, at: int) -> bool:
    """Return whether no word, and no character of several code points, goes on at a place."""
    if at <= 0 or at >= len(text):
        return True
    left, right = _kind(text[at - 1]), _kind(text[at])
    if right == EXTEND or text[at - 1] == JOINER:
        return False
    if left in MIDDLES and at > 1:
        left = _kind(text[at - 2])
    elif right in MIDDLES and at + 1 < len(text):
        right = _kind(text[at + 1])
    return not (left in JOINING and right in JOINING)
