"""Line ends are those of `str.split` at one newline or two."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.base import newlines

TEXT = st.lists(
    st.sampled_from(["\n", "\n\n", "a", "word", "é", "\x8a".encode("latin-1").decode("latin-1"), "\x0b"]), max_size=30
).map("".join)


def parts(data: np.ndarray, begin: int, end: int, separator: int) -> list[bytes]:
    pieces, at = [], begin
    while True:
        stop = newlines.part_end(data, at, end, separator)
        pieces.append(bytes(data[at:stop]))
        if stop == end:
            return pieces
        at = stop + separator


@given(TEXT, TEXT, TEXT)
def test_parts(before: str, text: str, after: str) -> None:
    data = np.frombuffer((before + text + after).encode(), np.uint8)
    begin, end = len(before.encode()), len((before + text).encode())
    assert parts(data, begin, end, 1) == text.encode().split(b"\n")
    assert parts(data, begin, end, 2) == text.encode().split(b"\n\n")


@given(st.binary(max_size=40))
def test_the_first_newline_of_any_bytes(octets: bytes) -> None:
    place = octets.find(b"\n")
    assert newlines.line_end(np.frombuffer(octets, np.uint8), 0, len(octets)) == (place if place >= 0 else len(octets))


@given(st.lists(TEXT, max_size=5))
def test_most_lines(texts: list[str]) -> None:
    data = np.frombuffer("".join(texts).encode(), np.uint8)
    offsets = np.cumsum([0, *(len(text.encode()) for text in texts)]).astype(np.int64)
    assert newlines.most_lines(offsets, data) == max((text.count("\n") + 1 for text in texts), default=1)
