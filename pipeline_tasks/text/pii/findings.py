"""Finds and replaces personal data in UTF-8 text, in linear time."""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module

from pipeline_tasks.text.pii.candidates import Limits, Span, masked
from pipeline_tasks.text.pii.forms import find_forms
from pipeline_tasks.text.pii.kinds import FOUND_IN_ORDER, TABLE, Kind
from pipeline_tasks.text.pii.visible import visible

Finder = Callable[[bytes, Limits], Iterator[Span]]


@cache
def finders_of(kinds: frozenset[Kind]) -> tuple[tuple[Finder, ...], ...]:
    """Return the finders of some kinds, in the order in which they win: what one group finds is masked for the next."""
    groups = ([kind for kind in group if kind in kinds] for group in FOUND_IN_ORDER)
    return tuple(tuple(_finders(group)) for group in groups if group)


def _finders(group: Sequence[Kind]) -> Iterator[Finder]:
    for name in (name for kind in group for name in TABLE[kind].finders):
        module, _, function = name.partition(".")
        yield getattr(import_module(f"{__package__}.{module}"), function)
    if any(TABLE[kind].forms for kind in group):
        yield find_forms


def find_pii(text: bytes, limits: Limits) -> list[Span]:
    """Return the findings of `text` (UTF-8), ordered and disjoint; mail wins over IP over what has a form over phone.

    Invisible characters (soft hyphens, zero-width spaces) hide none: browsers show it whole. Nor do full-width forms.
    """
    seen = visible(text)
    if seen is None:
        return _find(text, limits)
    return [seen.in_original(span) for span in _find(seen.text, limits)]


def _find(text: bytes, limits: Limits) -> list[Span]:
    spans: list[Span] = []
    for finders in finders_of(limits.kinds):
        view = masked(text, spans) if spans else text
        for finder in finders:
            found: list[Span] = []  # of its own, and merged at once: in a list of all, each would move those behind it
            for span in finder(view, limits):
                if not (_overlaps(span, spans) or _overlaps(span, found)):
                    insort(found, span)
            spans = sorted([*spans, *found])
    return spans


def replace_spans(text: bytes, spans: list[Span], name: Callable[[Span], bytes]) -> bytes:
    """Return `text` with every span replaced by `name(span)`."""
    pieces: list[bytes] = []
    at = 0
    for span in spans:
        pieces += [text[at : span.start], name(span)]
        at = span.end
    return b"".join([*pieces, text[at:]])


def _overlaps(span: Span, spans: list[Span]) -> bool:
    at = bisect_left(spans, (span.start,))
    after = at < len(spans) and spans[at].start < span.end
    return after or (at > 0 and spans[at - 1].end > span.start)
