"""Finds and replaces personal data in UTF-8 text: e-mail addresses, phone numbers and IP addresses, in linear time."""

from bisect import bisect_left, insort
from collections.abc import Callable

from pipeline_tasks.text.pii.candidates import Limits, Span
from pipeline_tasks.text.pii.emails import find_emails
from pipeline_tasks.text.pii.ip_addresses import find_ipv4s, find_ipv6s
from pipeline_tasks.text.pii.phones import GAP, find_phones, is_nanp_only

_FINDERS = (find_emails, find_ipv4s, find_ipv6s, find_phones)
"""In the order in which they win where two findings overlap."""

_PREFILTER = r"@[\pL\pN]|\+\d|\d\.\d{1,3}\.\d{1,3}\.\d|:[0-9A-Fa-f]{0,4}:|" + rf"\d{{3}}\)?{GAP}?\d{{3}}{GAP}?\d{{4}}"


def prefilter(limits: Limits) -> str:
    """Return the RE2 pattern that every text with a finding matches; for a whole Arrow column at once."""
    foreign = "" if is_nanp_only(limits.regions) else r"|(?:\d[ .\-/()\x{a0}]{0,2}){7}"
    return _PREFILTER + foreign


def find_pii(text: bytes, limits: Limits) -> list[Span]:
    """Return the findings of `text` (UTF-8), ordered and disjoint; mail wins over IP wins over phone."""
    spans: list[Span] = []
    for finder in _FINDERS:
        for span in finder(text, limits):
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
