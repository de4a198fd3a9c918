"""Texts for the tests of signals: Hypothesis strategies, and texts as compiled loops read them."""

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from pipeline_tasks.text.base import buffers

STOPS = ("the", "be", "to", "of", "and", "that", "have", "with")
PIECES = (
    *STOPS, "a", "b", "Wort", "naïve", "1", "42", "...", "…", ". ", "!", "? ", "。", "؟", " ", " ", "  ", "\t", "\n", "\n",
    "\n\n", "\r\n", "\r", "\v", "\x1c", "\x85", "\u2028", "\xa0", "\u3000", "• ", "- ", "#", "_", "'", '"', ")", "{", "[1]",
    "[٣]", "[edit]", "[citation needed]", "[", "JavaScript ", "Lorem ipsum", "Terms of Use", "use cookies", "中文字", "の",
    "กา", "é", "e\u0301", "\U0001f600", "\x00", "x" * 1001,
)  # fmt: skip
PROFILE_PIECES = (
    *STOPS, "The", "a", "b", "B", "naïve", "1", "42", "¾", "...", "…", ". ", "!", "? ", "。", " ", " ", "  ", "\t", "\n",
    "\n", "\n\n", "\n\n\n", "\r\n", "\x1c", "\x85", "\u2028", "\xa0", "\u3000", "\0", "• ", "- ", "* ", "#", "##", "_", "'",
    '"', ")", "{", "don't", "3.14", "1,000", "中文字", "の", "カナ", "กา", "é", "e\u0301", "\U0001f600", "http://x.y/?a=~b",
    "https://", "%", "aF", ";", "]", "\u0663", "\uff13", "3 likes", "1.5K views", "12 items in cart", "Read more...", "read more →→", "Sign-in", "LOUD LINE",
    "[...]", "-»", ". . .", "Ünit", "\u017f", "x" * 40,
)  # fmt: skip

BATCHES = st.lists(st.lists(st.sampled_from(PIECES), max_size=60).map("".join) | st.text(max_size=80), max_size=4)
PROFILE_BATCHES = st.lists(
    st.lists(st.sampled_from(PROFILE_PIECES), max_size=60).map("".join) | st.text(max_size=80), max_size=4
)


def views(texts: list[str]) -> tuple[buffers.Offsets, buffers.Bytes]:
    """The texts as a slice of a longer column, so that offsets do not begin at 0."""
    return buffers.views(pa.array(["before", *texts, "after"], pa.large_string()).slice(1, len(texts)))


def rules(texts: list[str], rule: int) -> np.ndarray:
    return np.full(len(texts), rule, np.uint8)
