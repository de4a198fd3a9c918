"""Windows have all of a text that is no space, none is too long, and cuts are where a reader would cut."""

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


@pytest.mark.parametrize("piece", ["x", "a. ", "\n", "。"])
def test_a_text_of_one_piece_is_cut_to_its_end(piece: str) -> None:
    """Its square would take longer than a test may."""
    text = piece * 800_000
    cut = windows(text, 2000)
    assert len(cut) <= len(text) // 1000 + 1
    assert all(window.end - window.start <= 2000 for window in cut)
