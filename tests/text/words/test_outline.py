"""An outline has the words of `str.split` and the line breaks of `str.splitlines`."""

from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate

import pytest
from hypothesis import given

from pipeline_tasks.text.base.eight_bytes import hash_bytes
from pipeline_tasks.text.words import outline
from tests.text.plain import SYMBOLS
from tests.text.texts import BATCHES, views


@given(BATCHES)
def test_words(texts: list[str]) -> None:
    read = outline.read_outline(*views(texts))
    words = [word for text in texts for word in text.split()]
    assert read.words_at.tolist() == [0, *accumulate(len(text.split()) for text in texts)]
    kinds = read.kinds[: len(words)].tolist()
    assert read.lengths[: len(words)].tolist() == [len(word) for word in words]
    encoded = [views([word]) for word in words]
    assert read.hashes[: len(words)].tolist() == [hash_bytes(data, *offsets) for offsets, data in encoded]
    assert [bool(kind & outline.ALPHA) for kind in kinds] == [any(map(str.isalpha, word)) for word in words]
    assert [bool(kind & outline.SOLID) for kind in kinds] == [not SYMBOLS.issuperset(word) for word in words]


@given(BATCHES)
def test_line_breaks(texts: list[str]) -> None:
    offsets, data = views(texts)
    read = outline.read_outline(offsets, data)
    cut_up = []
    for row, start in enumerate(offsets[:-1]):
        at, lines = start, []
        for line in range(read.breaks_at[row], read.breaks_at[row + 1]):
            before = bytes(data[start : read.places[line]]).decode()
            assert read.first_words[line] - read.words_at[row] == len(before.split())
            lines.append(bytes(data[at : read.places[line]]).decode())
            at = read.places[line] + read.widths[line]
        rest = bytes(data[at : offsets[row + 1]]).decode()
        cut_up.append([*lines, rest] if rest else lines)
    assert cut_up == [text.splitlines() for text in texts]


@given(BATCHES)
def test_bits_of_texts(texts: list[str]) -> None:
    read = outline.read_outline(*views(texts))
    assert [bool(bits & outline.WIDE) for bits in read.traits] == [not text.isascii() for text in texts]
    odd = [any(end.splitlines() and end.splitlines()[0] == "" and end != "\n" for end in text) for text in texts]
    assert [bool(bits & outline.ODD_BREAK) for bits in read.traits] == odd


def test_the_last_outline_is_kept() -> None:
    offsets, data = views(["one two", "three"])
    assert outline.outline_of(offsets, data) is outline.outline_of(offsets, data)
    other = outline.read_outline(*views(["four"]))
    assert outline.set_outline(offsets, data, other) is outline.outline_of(offsets, data) is other
    assert outline.outline_of(*views(["five six"])).words_at.tolist() == [0, 2]


@pytest.mark.slow
def test_threads_do_not_read_the_words_of_each_other() -> None:
    """What was read last was one list for all threads, and changed between two looks: 621 of 390,600 calls."""
    texts = [views([f"one {'two ' * number}three"]) for number in range(1, 9)]
    wanted = [outline.read_outline(*text).hashes.tolist() for text in texts]

    def read(number: int) -> list[int]:
        wrong = []
        for turn in range(400):
            at = (number + turn) % len(texts)
            if outline.outline_of(*texts[at]).hashes.tolist() != wanted[at]:
                wrong.append(at)
        return wrong

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(read, range(8))) == [[]] * 8
