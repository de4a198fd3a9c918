"""Cuts the citations of encyclopedias out of lines: `[12]`, `[edit]`, `[citation needed]`."""

from pipeline_tasks.text.base.ascii import CLOSING_BRACKET, OPENING_BRACKET
from pipeline_tasks.text.base.characters import DIGIT, class_of, decode
from pipeline_tasks.text.base.compiled import inlined

MARKERS = ("edit]", "citation needed]")
"""What may follow `[` in a citation, other than digits and `]`."""


@inlined
def _is_at(data, at, end, letters, first, last):
    """Return whether letters[first:last] is at `at` in data[:end]."""
    if at + last - first > end:
        return False
    for nth in range(last - first):
        if data[at + nth] != letters[first + nth]:
            return False
    return True


@inlined
def citation_end(data, at, end, markers, index, flags):
    """Return where the citation that begins with the `[` at `at` ends, or `at` if it is none."""
    letters, ends = markers
    for marker in range(len(ends) - 1):
        if _is_at(data, at + 1, end, letters, ends[marker], ends[marker + 1]):
            return at + 1 + ends[marker + 1] - ends[marker]
    tip = at + 1
    while tip < end:
        code, width = decode(data, tip, end)
        if not class_of(index, flags, code) & DIGIT:
            return tip + 1 if code == CLOSING_BRACKET else at
        tip += width
    return at


@inlined
def copy_without_citations(data, at, end, markers, table, out, to):
    """Copy data[at:end] to out[to:] without citations; return (where it ends, citations cut)."""
    index, flags = table
    cut = 0
    while at < end:
        if data[at] == OPENING_BRACKET:
            after = citation_end(data, at, end, markers, index, flags)
            if after > at:
                cut += 1
                at = after
                continue
        out[to] = data[at]
        to += 1
        at += 1
    return to, cut
