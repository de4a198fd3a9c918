"""The first of equal lines is kept, and marks are what is removed."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.edits.cc_net import ascii_marks, line_keys, mark_repeats, remove_repeats, zero_digits

LINES = st.sampled_from(["Same 1", "same 2", " SAME 3 ", "other", "", "  ", "é«x»", "ÉX", "\x00other"])
TEXTS = st.lists(st.lists(LINES, max_size=8).map("\n".join), max_size=4)


def plain(text: str) -> str:
    """Return a text without lines whose key was seen before; blank lines are kept, unless nothing is before them."""
    seen: set[str] = set()
    out = ""
    for line in text.split("\n"):
        (key,) = line_keys(pa.array([line])).to_pylist()
        if line.strip() and key in seen:
            continue
        seen |= {key} if line.strip() else set()
        out += ("\n" if out else "") + line
    return out


@given(TEXTS)
def test_repeated_lines_are_removed(texts: list[str]) -> None:
    column = pa.array(texts, pa.large_string())
    edited, counts = remove_repeats(column)
    assert edited.to_pylist() == [plain(text) for text in texts]
    marks = mark_repeats(column)
    kept = "".join(texts).encode()
    assert (
        bytes(byte for byte, mark in zip(kept, marks, strict=False) if not mark) == "".join(map(plain, texts)).encode()
    )
    for text, (lines, points, _) in zip(texts, counts.tolist(), strict=True):
        stripped = [line.strip() for line in text.split("\n") if line.strip()]
        assert (lines, points) == (len(stripped), len("\n".join(stripped)))


def test_keys_by_hand() -> None:
    texts = pa.array(["  Ünï 12٣ “x” \n\tTWO\x00 ", "İΣ"], pa.large_string())
    assert line_keys(texts).to_pylist() == ["ünï 000 x\ntwo", "i̇ς"]
    assert ascii_marks(pa.array(["“a”—b…"])).to_pylist() == ['"a" - b...']
    assert zero_digits(pa.array(["a1٣"])).to_pylist() == ["a00"]
