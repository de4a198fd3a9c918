"""Findings of all kinds are ordered and disjoint, and replacing them changes nothing else."""

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline_tasks.text.pii.candidates import Limits, Span, after, before, is_separate, masked
from pipeline_tasks.text.pii.findings import find_pii, replace_spans
from pipeline_tasks.text.pii.suspects import suspects
from pipeline_tasks.text.pii.visible import visible

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


INVISIBLE = ["\u00ad", "\u200b", "\u2060", "\ufeff", "\u200e", "\u200d\u200c"]


@given(
    st.lists(
        st.tuples(st.sampled_from([*"@.-+ 1x<>", "a@b.com", "é", "2125552368", "69.196.0.85"]), st.booleans()),
        max_size=12,
    )
)
def test_invisible_characters_hide_nothing(pieces: list[tuple[str, bool]]) -> None:
    """What is found is what readers see, and what is replaced is where it stands."""
    seen = "".join(piece for piece, _ in pieces).encode()
    split = [
        piece[:1] + INVISIBLE[at % len(INVISIBLE)] * hidden + piece[1:] for at, (piece, hidden) in enumerate(pieces)
    ]
    text = "".join(split).encode()
    found, wanted = find_pii(text, Limits()), find_pii(seen, Limits())
    assert [(span.kind, span.value) for span in found] == [(span.kind, span.value) for span in wanted]
    left_out = "".join(INVISIBLE)
    values = [text[span.start : span.end].decode() for span in found]
    shown = [value.translate(dict.fromkeys(map(ord, left_out))) for value in values]
    assert shown == [seen[span.start : span.end].decode() for span in wanted]
    assert values == [value.strip(left_out) for value in values]


def test_a_number_in_short_parts_is_suspect() -> None:
    texts = pa.array(
        ["212\u00ad555\u00ad2368", "+44 20\u200b71\u200b23\u200b45\u200b67", "Unterneh\u00admen", "می‌خواهم"]
    )
    assert suspects(texts).to_pylist() == [True, True, False, False]
    assert [span.kind for span in find_pii("call 212\u00ad555\u00ad2368".encode(), Limits())] == ["phone"]


FULL_WIDTH = {sign: sign + 0xFEE0 for sign in range(0x21, 0x7F)}
WRITTEN = ["a@b.com", "212-555-2368", "(03) 1234-5678", "69.196.0.85", "4111 1111 1111 1111", "jane [at] b.com"]
WRITTEN += ["2026-11-27", "DE89370400440532013000", "tel ", *"@.-+ 1x:,()/", "\u96fb\u8a71", "\u3002"]


@given(st.lists(st.tuples(st.sampled_from(WRITTEN), st.sampled_from(["none", "all", "half"])), max_size=10))
@example([("4111 1111 1111 1111", "all")])
@example([("212-555-2368", "half")])
def test_full_width_forms_are_found_as_the_ascii_that_they_show(pieces: list[tuple[str, str]]) -> None:
    """What is found is the same, and what is replaced is where it stands; no such text is passed over."""
    widths = {"none": slice(0, 0), "all": slice(None), "half": slice(0, None, 2)}
    written = []
    for piece, width in pieces:
        signs = [*piece]
        signs[widths[width]] = [sign.translate(FULL_WIDTH) for sign in signs[widths[width]]]
        written.append("".join(signs))
    shown, text = "".join(piece for piece, _ in pieces), "".join(written)
    limits = Limits(("US", "JP"))
    found, wanted = find_pii(text.encode(), limits), find_pii(shown.encode(), limits)
    assert [(span.kind, span.value) for span in found] == [(span.kind, span.value) for span in wanted]
    assert [_chars(text, span) for span in found] == [_chars(shown, span) for span in wanted]
    assert (
        suspects(pa.array([text], pa.large_string())).to_pylist()
        == suspects(pa.array([shown], pa.large_string())).to_pylist()
    )


def _chars(text: str, span: Span) -> tuple[int, int]:
    """Return a finding's code points."""
    body = text.encode()
    return len(body[: span.start].decode()), len(body[: span.end].decode())


def test_other_characters_of_three_bytes_are_as_they_are() -> None:
    for text in ("\uff00", "\uff5f", "\uffe5", "\uff66\uff9f", "\ufeaf", "\ufffd", "\uff61"):
        assert visible(text.encode()) is None
    shown = visible("\uff01\uff20\uff3f\uff40\uff5e\ufeff\uff11".encode())
    assert shown is not None
    assert shown.text == b"!@_`~1"
