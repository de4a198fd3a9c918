"""Parts of texts: how they are cut, looked up and removed, against plain Python."""

import re

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.edits.paragraphs import Seen, cut_parts, remove_parts

TEXTS = st.lists(st.lists(st.sampled_from(["a", "bc", "é", "\n", "\n\n", " "]), max_size=9).map("".join), max_size=5)


def plain_parts(text: str, breaks: int) -> list[tuple[str, str]]:
    """Return the parts of a text with the line ends behind each; those at its start make an empty part."""
    pieces = re.split(f"(\n{{{breaks},}}|\n+\\Z)", text)
    pairs = [*zip(pieces[::2], [*pieces[1::2], ""], strict=True)]
    return [pair for pair in pairs if pair != ("", "")] or [("", "")]


@given(TEXTS, st.sampled_from([1, 2]))
def test_parts_tile_their_texts(texts: list[str], breaks: int) -> None:
    parts = cut_parts(pa.array(texts, pa.large_string()), breaks, 1)
    data = "".join(texts).encode()
    pairs = [
        (int(row), data[begin:end].decode(), data[end:after].decode())
        for row, (begin, end, after) in zip(parts.doc, parts.bytes.tolist(), strict=True)
    ]
    assert pairs == [(row, *pair) for row, text in enumerate(texts) for pair in plain_parts(text, breaks)]
    for (_, part, ends), (begin, end, after) in zip(pairs, parts.points.tolist(), strict=True):
        assert (end - begin, after - end) == (len(part), len(ends))


def test_equal_parts_have_equal_hashes_and_short_ones_none() -> None:
    parts = cut_parts(pa.array(["same\nother\nsame\nx"], pa.large_string()), 1, 2)
    assert parts.hash[0] == parts.hash[2] != parts.hash[1]
    assert (parts.hash[3], parts.check[3]) == (0, 0)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2)), max_size=40))
def test_the_table_of_parts_is_a_dictionary(keys: list[tuple[int, int]]) -> None:
    hashes, checks = (np.array([key[side] for key in keys], np.int64) for side in (0, 1))
    numbers: dict[tuple[int, int], int] = {}
    wanted = []
    for number, key in enumerate(keys):
        wanted.append(numbers.get(key, -1) if key[0] else -1)
        if key[0]:
            numbers.setdefault(key, number)
    seen = Seen()
    assert seen.add(hashes, checks, np.arange(len(keys))).tolist() == wanted
    assert seen.find(hashes, checks).tolist() == [numbers.get(key, -1) for key in keys]
    assert seen.used == len(numbers)


def test_the_table_grows() -> None:
    hashes, seen = np.arange(1, 5001), Seen()
    seen.add(hashes, hashes, hashes * 2)
    assert seen.find(hashes, hashes).tolist() == (hashes * 2).tolist()
    assert 2 * seen.used <= len(seen.table)


@given(TEXTS, st.data())
def test_spans_are_what_was_removed(texts: list[str], drawn: st.DataObject) -> None:
    column = pa.array(texts, pa.large_string())
    parts = cut_parts(column, 1, 1)
    removed = np.array([drawn.draw(st.booleans()) for _ in parts.doc], np.bool_)
    edited, spans = remove_parts(column, parts, removed)
    gone: list[set[int]] = [set() for _ in texts]
    for part in np.flatnonzero(removed):
        gone[parts.doc[part]].update(range(*spans[part]))
    assert edited.to_pylist() == [
        "".join(letter for at, letter in enumerate(text) if at not in gone[row]) for row, text in enumerate(texts)
    ]
