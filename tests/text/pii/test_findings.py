"""Findings of all kinds are ordered and disjoint, and replacing them changes nothing else."""

from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.pii.candidates import Limits, Span, after, before, is_separate, masked
from pipeline_tasks.text.pii.findings import find_pii, replace_spans

PIECES = [
    "a@b.com", "212-555-2368", "+44 20 7123 4567", "call 2125552368", "69.196.0.85", "2400:c401::5054:ff:fe1b:b031",
    "@", ".", "-", "+", " ", "1", "x", "é", "<EMAIL>", "<PHONE>", "\n",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), max_size=10).map("".join)


@given(TEXTS)
def test_findings_are_ordered_and_disjoint(text: str) -> None:
    spans = find_pii(text.encode(), Limits(("US", "GB")))
    assert [span for span in spans if not span.start < span.end] == []
    edges = [0, *(edge for span in spans for edge in (span.start, span.end)), len(text.encode())]
    assert edges == sorted(edges)


@given(TEXTS)
def test_replacing_keeps_all_other_bytes(text: str) -> None:
    spans = find_pii(text.encode(), Limits())
    assert replace_spans(text.encode(), spans, lambda span: text.encode()[span.start : span.end]) == text.encode()
    removed = sum(span.end - span.start for span in spans)
    assert len(replace_spans(text.encode(), spans, lambda _: b"")) == len(text.encode()) - removed


def test_mail_wins_over_ip_wins_over_phone() -> None:
    text = b"69.196.0.85@example.org 69.196.0.85 +1 212 555 2368"
    assert [span.kind for span in find_pii(text, Limits())] == ["email", "ip", "phone"]


def test_a_mask_is_as_long_and_reads_as_what_it_hides() -> None:
    text = "é jane@example.org 69.196.0.85 é".encode()
    hidden = masked(text, find_pii(text, Limits()))
    assert len(hidden) == len(text)
    assert hidden == "é ".encode() + b"\x01" * 16 + b" " + b"\x02" * 11 + " é".encode()
    assert (before(hidden, 19), before(hidden, 20), after(hidden, 19)) == (b"xx", b"x ", b" 0")


def test_a_placeholder_reads_as_what_it_replaced() -> None:
    text = b"<PHONE>1.2.3.4<EMAIL> x"
    assert before(text, 7) == b"00"
    assert after(text, 14) == b"xx"
    assert (before(b"", 0), after(b"", 0)) == (b"  ", b"  ")
    assert not is_separate(text, 7, 14, b".")
    assert is_separate(b"(1.2.3.4).", 1, 8, b".")
    assert not is_separate(b"5.1.2.3.4", 2, 9, b".")


def test_a_span_is_equal_by_value() -> None:
    assert find_pii(b"to A@B.com", Limits()) == [Span(3, 10, "email", "a@b.com")]
