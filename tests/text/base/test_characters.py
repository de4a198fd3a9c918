"""Classes and traits are those of Python's Unicode database and of the lists; UTF-8 is decoded as Python decodes it."""

import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.base import character_traits, characters

TEXT = st.text(max_size=20)
BLANK_TEXT = st.lists(st.sampled_from(" \t\n\x1f\x85\xa0\u2003\u3000ab.é中"), max_size=12).map("".join)


def buffer(text: str) -> np.ndarray:
    return np.frombuffer(text.encode(), np.uint8)


def listed(ranges: str) -> set[int]:
    return {code for first, last in characters.parse_ranges(ranges) for code in range(first, last + 1)}


@given(st.characters(exclude_categories=["Cs"]))
def test_classes(letter: str) -> None:
    bits = int(characters.class_of(*characters.classes(), ord(letter)))
    assert bool(bits & characters.SPACE) == letter.isspace()
    assert bool(bits & characters.ALPHA) == letter.isalpha()
    assert bool(bits & characters.DIGIT) == letter.isdecimal()
    assert bool(bits & characters.MARK) == (unicodedata.category(letter)[0] == "P")
    assert bool(bits & characters.TERMINAL) == (ord(letter) in listed(characters.TERMINALS))
    assert bool(bits & characters.BREAK) == (len(f"a{letter}b".splitlines()) == 2)


@given(st.characters(exclude_categories=["Cs"]))
def test_traits(letter: str) -> None:
    bits = int(characters.class_of(*character_traits.traits(), ord(letter)))
    assert bool(bits & character_traits.SPACE) == letter.isspace()
    assert bool(bits & character_traits.ALNUM) == letter.isalnum()
    assert bool(bits & character_traits.UPPER) == letter.isupper()
    assert bool(bits & character_traits.DIGIT) == letter.isdigit()
    assert bool(bits & character_traits.DECIMAL) == letter.isdecimal()


@pytest.mark.parametrize(
    ("letter", "kind"),
    [
        ("a", character_traits.LETTER),
        ("中", character_traits.OTHER),
        ("カ", character_traits.KATAKANA),
        ("7", character_traits.NUMBER),
        ("_", character_traits.CONNECTOR),
        ("\u0301", character_traits.EXTEND),
        (":", character_traits.MID_LETTER),
        (",", character_traits.MID_NUMBER),
        (".", character_traits.MID_BOTH),
        ("\u200b", character_traits.OTHER),
    ],
)
def test_word_break_classes(letter: str, kind: int) -> None:
    assert characters.class_of(*character_traits.traits(), ord(letter)) >> character_traits.KIND_SHIFT == kind


def test_tables_are_read_only() -> None:
    parts = [*characters.classes(), *character_traits.traits()]
    assert [part.flags.writeable for part in parts] == [False] * len(parts)
    assert parts


@given(TEXT)
def test_decode(text: str) -> None:
    data, at, codes = buffer(text), 0, []
    while at < len(data):
        code, width = characters.decode(data, at, len(data))
        codes.append(int(code))
        at += width
    assert codes == [ord(letter) for letter in text]
    assert characters.count_code_points(data, 0, len(data)) == len(text)


@pytest.mark.parametrize("broken", [b"\x80", b"\xc3", b"\xe4\xb8", b"\xf0\x9f\x98", b"\xff"])
def test_cut_or_broken_bytes_are_replacement_characters(broken: bytes) -> None:
    assert characters.decode(np.frombuffer(broken, np.uint8), 0, len(broken)) == (0xFFFD, 1)


@given(BLANK_TEXT)
def test_trim(text: str) -> None:
    data = buffer(text)
    begin, end = characters.trim(data, 0, len(data), *characters.classes())
    assert bytes(data[begin:end]).decode() == text.strip()


def test_an_ellipsis_is_three_bytes() -> None:
    data = buffer("a…b")
    assert [bool(characters.is_ellipsis(data, at)) for at in range(3)] == [False, True, False]
