"""Windows have all of a text that is no space, none is too long, and cuts are where a reader would cut."""

import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline_tasks.stages.rephrase.windows import windows

PIECES = st.lists(st.sampled_from(["word", "Ende. ", "\n\n", "\n", " ", "。", "x" * 50, "ä", "😀 ", "Mr. Smith? "]))


def stretches(text: str, most: int) -> list[str]:
    return [text[start:end] for start, end in windows(text, most)]


@settings(max_examples=300, deadline=None)
@given(PIECES.map("".join), st.integers(1, 60))
def test_nothing_but_space_is_lost_or_doubled(text: str, most: int) -> None:
    found = windows(text, most)
    assert all(0 < end - start <= most for start, end in found)
    assert all(before.end <= after.start for before, after in pairwise(found))
    assert "".join("".join(text[start:end] for start, end in found).split()) == "".join(text.split())
    assert all(text[start:end].strip() == text[start:end] for start, end in found)


@pytest.mark.parametrize(
    ("text", "most", "expected"),
    [
        ("", 10, []),
        (" \n\n\t", 10, []),
        ("short", 10, ["short"]),
        ("One two.\n\nThree. Four five six seven", 24, ["One two.\n\nThree.", "Four five six seven"]),
        (
            "First block is here.\n\nSecond. One.\n\nThird block",
            30,
            ["First block is here.", "Second. One.\n\nThird block"],
        ),
        ("No blank line. But sentences! And a third", 32, ["No blank line. But sentences!", "And a third"]),
        ("一二三四五六七八。九十一二三四五六七八九十", 14, ["一二三四五六七八。", "九十一二三四五六七八九十"]),
        ("abcdefghijkl", 5, ["abcde", "fghij", "kl"]),
    ],
)
def test_cuts_are_at_the_best_border(text: str, most: int, expected: list[str]) -> None:
    assert stretches(text, most) == expected


def test_a_small_rest_shares_with_the_window_before_it() -> None:
    text = "word " * 21
    assert [len(part) for part in stretches(text, 100)] == [49, 54]


def test_time_grows_with_the_text_and_no_faster() -> None:
    def seconds(text: str) -> float:
        began = time.perf_counter()
        windows(text, 2000)
        return time.perf_counter() - began

    for piece in ("x", "a. ", "\n", "。"):
        small, large = seconds(piece * 100_000), seconds(piece * 800_000)
        assert large < 8 * small * 3 + 0.2
