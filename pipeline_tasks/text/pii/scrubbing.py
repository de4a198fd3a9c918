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


def scrub_text(text: bytes, limits: Limits, name: Callable[[Span], bytes], by_model: Sequence[Span] = ()) -> Scrubbed:
    """Return `text` (UTF-8) with each finding replaced by `name(finding)`; spans are byte ranges of `text` itself.

    `by_model` is what a model found in it, in order: it counts where nothing else is found.
    """
    spans = [_closed(text, span) for span in find_pii(text, limits)]
    if by_model:
        spans = sorted([*spans, *_outside(spans, by_model, text)])
    for _ in range(PASSES):
        if not spans:
            return Scrubbed(text, [], [])
        tokens, clean = _replaced(text, spans, name)
        widened = _widened(spans, tokens, find_pii(clean, limits))
        if widened == spans:
            break
        spans = widened
    else:
        tokens, clean = _replaced(text, spans, name)
    return Scrubbed(clean, spans, list(_redactions(text, spans, tokens)))


def _closed(text: bytes, span: Span) -> Span:
    """Return a finding with the angle brackets around it: `Jane <jane@example.org>` becomes `Jane <EMAIL>`."""
    if text[span.start - 1 : span.start] == b"<" and text[span.end : span.end + 1] == b">":
        return span._replace(start=span.start - 1, end=span.end + 1)
    return span


def _replaced(text: bytes, spans: list[Span], name: Callable[[Span], bytes]) -> tuple[list[bytes], bytes]:
    """Return what stands for each finding, and the text with it."""
    tokens = [name(span) for span in spans]
    return tokens, replace_spans(text, spans, dict(zip(spans, tokens, strict=True)).__getitem__)


def _outside(spans: Sequence[Span], by_model: Sequence[Span], text: bytes) -> Iterator[Span]:
    """Yield the parts of what a model found that are in no other finding, have letters, and no blanks at their ends."""
    at = 0
    for found in _joined(sorted(by_model)):
        start = found.start
        while start < found.end:
            while at < len(spans) and spans[at].end <= start:
                at += 1
            taken = spans[at] if at < len(spans) else found._replace(start=found.end)
            end = min(taken.start, found.end)
            part = text[start:end]
            if any(map(str.isalnum, part.decode())):
                yield found._replace(start=end - len(part.lstrip()), end=start + len(part.rstrip()))
            start = max(taken.end, end)


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
