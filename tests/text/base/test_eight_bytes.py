"""Eight bytes at a time give what one byte at a time gives."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.base import eight_bytes

EIGHT = st.binary(min_size=8, max_size=8)
HIGH = 0x8080808080808080


def number(octets: bytes) -> np.uint64:
    return np.uint64(int.from_bytes(octets, "little"))


def marked(marks: int) -> list[bool]:
    assert int(marks) & ~HIGH == 0
    return [bool(octet) for octet in int(marks).to_bytes(8, "little")]


def is_letter(octet: int) -> bool:
    return octet < 0x80 and chr(octet).isalpha()


@given(EIGHT)
def test_marks(octets: bytes) -> None:
    assert marked(eight_bytes.mark_blanks(number(octets))) == [octet <= 0x20 for octet in octets]
    assert marked(eight_bytes.mark_letters(number(octets))) == [is_letter(octet) for octet in octets]
    assert marked(eight_bytes.mark_digits(number(octets))) == [0x30 <= octet <= 0x39 for octet in octets]


@given(st.binary(max_size=40), st.integers(0, 40), st.integers(0, 40))
def test_hashes_depend_on_nothing_but_the_bytes(octets: bytes, begin: int, size: int) -> None:
    begin = min(begin, len(octets))
    end = min(begin + size, len(octets))
    whole, part = np.frombuffer(octets, np.uint8), np.frombuffer(octets[begin:end], np.uint8)
    value = eight_bytes.hash_bytes(whole, begin, end)
    assert value == eight_bytes.hash_bytes(part, 0, len(part)) != 0
    points = sum((octet & 0xC0) != 0x80 for octet in octets[begin:end])
    assert eight_bytes.hash_and_points(whole, begin, end) == (value, points)


@given(st.binary(max_size=24), st.binary(max_size=24))
def test_different_bytes_have_different_hashes(left: bytes, right: bytes) -> None:
    hashes = [eight_bytes.hash_bytes(np.frombuffer(octets, np.uint8), 0, len(octets)) for octets in (left, right)]
    assert (hashes[0] == hashes[1]) == (left == right)


@given(st.binary(max_size=7))
def test_the_last_bytes_are_padded_with_zeros(octets: bytes) -> None:
    assert eight_bytes.load_tail(np.frombuffer(octets, np.uint8), 0) == number(octets.ljust(8, b"\0"))


@given(EIGHT, st.integers(0, 7))
def test_the_first_bytes_are_kept(octets: bytes, size: int) -> None:
    assert eight_bytes.keep_first(number(octets), size) == number(octets[:size].ljust(8, b"\0"))
