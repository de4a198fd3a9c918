"""Finds and replaces personal data in UTF-8 text: e-mail addresses, phone numbers and IP addresses, in linear time."""

from bisect import bisect_left, insort
from collections.abc import Callable

from pipeline_tasks.text.pii import emails, ip_addresses, phones
from pipeline_tasks.text.pii.candidates import Limits, Span, masked
from pipeline_tasks.text.pii.invisible import visible

_FINDERS = (
    (emails.find_emails,),
    (ip_addresses.find_ipv4s, ip_addresses.find_ipv6s),
    (phones.find_phones,),
)
"""In the order in which they win: what one kind has found is masked for the kinds after it."""


def find_pii(text: bytes, limits: Limits) -> list[Span]:
    """Return the findings of `text` (UTF-8), ordered and disjoint; mail wins over IP wins over phone.

    Invisible characters (soft hyphens, zero-width spaces) hide none: browsers show it whole.
    """
    seen = visible(text)
    if seen is None:
        return _find(text, limits)
    return [seen.original(span) for span in _find(seen.text, limits)]


def _find(text: bytes, limits: Limits) -> list[Span]:
    spans: list[Span] = []
    for finders in _FINDERS:
        view = masked(text, spans) if spans else text
        for finder in finders:
            for span in finder(view, limits):
                if not _overlaps(span, spans):
                    insort(spans, span)
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
