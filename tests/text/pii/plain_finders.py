"""Finds personal data by patterns over the whole text: what the compiled loops must equal.

The rules are those of `pipeline_tasks.text.pii`; the patterns and validators that the finders still use come from there.
"""

import ipaddress
import re
from bisect import insort
from collections.abc import Iterator

from pipeline_tasks.text.pii import emails, forms, ip_addresses
from pipeline_tasks.text.pii.candidates import (
    Limits,
    Span,
    is_separate,
    masked,
    pattern,
)
from pipeline_tasks.text.pii.findings import _overlaps
from pipeline_tasks.text.pii.phones import find_phones
from pipeline_tasks.text.pii.visible import visible

IPV4 = r"\d+(?:\.\d+){3,}"
IPV6 = r"[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,}(?:\.\d{1,3}){0,3}(?:%[0-9A-Za-z]+)?"


def candidates(expression: str, text: bytes) -> Iterator[tuple[int, int]]:
    """Yield the byte ranges that match, left to right, without overlaps."""
    for match in pattern(expression).finditer(text):
        yield match.span()


def find_pii(text: bytes, limits: Limits) -> list[Span]:
    seen = visible(text)
    return (
        _find_pii(text, limits) if seen is None else [seen.in_original(span) for span in _find_pii(seen.text, limits)]
    )


def _find_pii(text: bytes, limits: Limits) -> list[Span]:
    """Return the findings of `text`: mail wins over IP over what has a form over phone."""
    spans: list[Span] = []
    for finders in ((find_emails,), (find_ipv4s, find_ipv6s), (find_forms,), (find_phones,)):
        view = masked(text, spans) if spans else text
        for finder in finders:
            for span in finder(view, limits):
                if not _overlaps(span, spans):
                    insort(spans, span)
    return spans


def find_emails(text: bytes, limits: Limits) -> Iterator[Span]:
    yield from emails._with_sign(text, 0, len(text), limits)
    for expression in (emails.IN_BRACKETS, emails.IN_WORDS, emails.IN_CAPITALS):
        yield from emails._written_out(text, expression, limits)


_CLASSES = {
    "9": rb"[0-9]", "A": rb"[A-Z]", "a": rb"[A-Za-z]", "#": rb"[0-9xX]", "H": rb"[0-9A-Fa-f]",
    " ": rb"(?: |\xc2\xa0|\xe2\x80[\x87\x89\xaf])", "-": rb"(?:-|\xe2\x80[\x90-\x93])",
}  # fmt: skip
_WORD = re.compile(rb"[A-Za-z0-9]+")
_LONG = re.compile(rb"[A-Za-z0-9_-]{20,}|-----(?=B)")


def form_starts(text: bytes) -> set[int]:
    """Return where a value may begin: with a word that has a digit, or with one or two letters right before it."""
    starts = set()
    for word in _WORD.finditer(text):
        first = re.search(rb"[0-9]", word.group())
        if first and first.start() <= 18:
            starts.add(word.start())
            prefix = re.search(rb"(?<![A-Za-z0-9])[A-Za-z]{1,2}[ -]$", text[max(0, word.start() - 4) : word.start()])
            starts |= {word.start() - len(prefix.group())} if prefix else set()
    return starts


def find_forms(text: bytes, limits: Limits) -> Iterator[Span]:
    table, spans = forms._table(limits.kinds), []
    for form, (kind, check) in enumerate(table.owners):
        signs, places, *_ = table.forms
        written_as = signs[places[form] : places[form + 1]].tobytes().decode("latin-1")
        body = written_as.removesuffix("*")
        written = re.compile(b"".join(_CLASSES.get(sign, re.escape(sign.encode("latin-1"))) for sign in body))
        for start in form_starts(text):
            match = written.match(text, start)
            if match:
                ahead = is_separate(text[:start] + b" ", start, start, b".-+")
                behind = body != written_as or is_separate(b" " + text[match.end() :], 1, 1, b".-+")
                if ahead and behind and (accepted := check(forms.Place(text, start, match.end(), limits))):
                    spans.append(Span(accepted.start, accepted.end, kind, accepted.value))
    for word in _LONG.finditer(text):
        for kind, check in table.words:
            if accepted := check(forms.Place(text, word.start(), word.end(), limits)):
                spans.append(Span(accepted.start, accepted.end, kind, accepted.value))
    last = 0
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if span.start >= last:
            last = span.end
            yield span


def find_ipv4s(text: bytes, limits: Limits) -> Iterator[Span]:
    last = version = -1
    for start, end in candidates(IPV4, text):
        if not is_separate(text, start, end, b"."):
            continue
        if ip_addresses.is_version(text, start, end, version):
            version = end
            continue
        address = ip_addresses._parse(text[start:end])
        if not isinstance(address, ipaddress.IPv4Address) or not ip_addresses._counts(address, limits):
            continue
        small = max(address.packed) < ip_addresses._LOW_PART
        if limits.public_ips and small and not ip_addresses._is_announced(text, start, last):
            continue
        last = end
        yield Span(start, end, "ip", address.compressed)


def find_ipv6s(text: bytes, limits: Limits) -> Iterator[Span]:
    for start, end in candidates(IPV6, text):
        if end - start > 64 or not is_separate(text, start, end, b":."):
            continue
        address = ip_addresses._parse(text[start:end])
        if address is not None and ip_addresses._counts(address, limits):
            yield Span(start, end, "ip", address.compressed)
