"""Scrubs one text: replaces its findings until none is left, and says where they were."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from pipeline_tasks.text.pii.candidates import Limits, Span
from pipeline_tasks.text.pii.findings import find_pii, replace_spans
from pipeline_tasks.text.pii.kinds import Kind

PASSES = 8
"""Passes over a text at most: a replacement rarely uncovers a finding, and never a chain of them."""


class Redaction(NamedTuple):
    """One replacement: its kind, its code points [start, end) before, and the first code point of its token after."""

    kind: Kind
    start: int
    end: int
    at: int


class Scrubbed(NamedTuple):
    """A text after scrubbing, and what was replaced, in order."""

    text: bytes
    spans: list[Span]
    redactions: list[Redaction]


def scrub_text(text: bytes, limits: Limits, name: Callable[[Span], bytes]) -> Scrubbed:
    """Return `text` (UTF-8) with each finding replaced by `name(finding)`; spans are byte ranges of `text` itself."""
    spans = find_pii(text, limits)
    for _ in range(PASSES):
        if not spans:
            return Scrubbed(text, [], [])
        tokens = [name(span) for span in spans]
        clean = replace_spans(text, spans, dict(zip(spans, tokens, strict=True)).__getitem__)
        widened = _widened(spans, tokens, find_pii(clean, limits))
        if widened == spans:
            break
        spans = widened
    return Scrubbed(clean, spans, list(_redactions(text, spans, tokens)))


def _widened(spans: list[Span], tokens: list[bytes], uncovered: list[Span]) -> list[Span]:
    """Return `spans` and what replacing uncovered, as ranges of the text before; overlaps become one range."""
    if not uncovered:
        return spans
    starts, shifts = _token_places(spans, tokens)
    moved = [
        Span(
            _original(span.start, spans, tokens, starts, shifts, at_end=False),
            _original(span.end, spans, tokens, starts, shifts, at_end=True),
            span.kind,
            span.value,
        )
        for span in uncovered
    ]
    return _joined(sorted([*spans, *moved]))


def _token_places(spans: Sequence[Span], tokens: Sequence[bytes]) -> tuple[list[int], list[int]]:
    """Return where each token begins in the text after, and by how many bytes what follows it has moved."""
    starts: list[int] = []
    shifts: list[int] = []
    shift = 0
    for span, token in zip(spans, tokens, strict=True):
        starts.append(span.start + shift)
        shift += len(token) - (span.end - span.start)
        shifts.append(shift)
    return starts, shifts


def _original(
    place: int, spans: list[Span], tokens: list[bytes], starts: list[int], shifts: list[int], *, at_end: bool
) -> int:
    """Return where a place of the text after is in the text before; a place in a token is an end of its span."""
    rank = bisect_right(starts, place - at_end) - 1
    if rank < 0:
        return place
    if place - at_end < starts[rank] + len(tokens[rank]):
        return spans[rank].end if at_end else spans[rank].start
    return place - shifts[rank]


def _joined(spans: list[Span]) -> list[Span]:
    """Return sorted spans without overlaps: the first of those that overlap names the kind and the value."""
    joined: list[Span] = []
    for span in spans:
        if joined and span.start < joined[-1].end:
            joined[-1] = joined[-1]._replace(end=max(joined[-1].end, span.end))
        else:
            joined.append(span)
    return joined


def _redactions(text: bytes, spans: Sequence[Span], tokens: Sequence[bytes]) -> Iterator[Redaction]:
    place = at = last = 0
    for span, token in zip(spans, tokens, strict=True):
        between = len(text[last : span.start].decode())
        length = len(text[span.start : span.end].decode())
        place, at, last = place + between, at + between, span.end
        yield Redaction(span.kind, place, place + length, at)
        place, at = place + length, at + len(token.decode())
