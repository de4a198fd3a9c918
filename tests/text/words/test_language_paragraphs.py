"""Paragraphs are what stands between empty lines, and vote by their letters."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.words.language_paragraphs import Paragraphs, count_votes, cut_paragraphs
from tests.text.texts import views

LINE = st.sampled_from(
    [
        "",
        "",
        "short",
        "word " * 30,
        "слово " * 40,
        "中文字" * 20,
        "| row " + "word " * 30,
        "x = {1; 2};",
        "  \t",
        "é" * 99,
        "\u3000",
    ]
)
TEXT = st.lists(LINE, max_size=12).map("\n".join) | st.text(max_size=300)


def letters_of(text: str) -> int:
    wide = sum("\u2e80" <= letter < "\ud800" for letter in text if not letter.isspace())
    return sum(not letter.isspace() for letter in text) + wide


def is_prose(text: str) -> bool:
    signs = sum(" " < letter < "\x7f" and not letter.isalpha() for letter in text)
    return signs * 20 <= letters_of(text) * 3


def is_blank(line: str) -> bool:
    return all(letter <= " " for letter in line)


def visible(text: str) -> str:
    """The text without C0 controls and DEL, which count for nothing here."""
    return "".join(letter for letter in text if letter in "\n\t" or (" " <= letter != "\x7f"))


def expected(text: str) -> list[tuple[int, int, int]]:
    """Paragraphs of a text: first code point, past-last, letters."""
    parts: list[list[int]] = []
    start, stop, total, at = -1, 0, 0, 0
    lines = text.split("\n")
    for number, line in enumerate(lines):
        letters = letters_of(line)
        if letters:
            start, stop, total = (at if start < 0 else start), at + len(line), total + letters
            is_last = number + 1 == len(lines) or is_blank(lines[number + 1])
            if total >= 100 and (is_last or (letters >= 100 and line[0] != "|") or total >= 1000):
                parts.append([start, stop, total])
                start, total = -1, 0
        at += len(line) + 1
    if total and parts:
        parts[-1][1], parts[-1][2] = stop, parts[-1][2] + total
    elif total:
        parts.append([start, stop, total])
    return [(first, last, letters) for first, last, letters in parts]


@given(st.lists(TEXT.map(visible), max_size=4))
def test_paragraphs(texts: list[str]) -> None:
    offsets, data = views(texts)
    found, places = cut_paragraphs(offsets, data, 1)
    for row, text in enumerate(texts):
        own = slice(found.ends[row], found.ends[row + 1])
        parts = [
            (*bounds, letters)
            for bounds, letters in zip(found.points[own].tolist(), found.letters[own].tolist(), strict=True)
        ]
        assert parts == expected(text)
        assert sum(letters for _, _, letters in parts) == letters_of(text)
        whole = [text[first:last] for first, last, _ in parts]
        read = [bytes(data[begin:end]).decode() if begin >= 0 else None for begin, end in places[own].tolist()]
        assert all(one in (None, other) for one, other in zip(read, whole, strict=True))
        assert whole == [] or any(one is not None for one in read)


def test_programs_and_figures_are_read_only_where_there_is_nothing_else() -> None:
    program, prose = (
        "for (i = 0; i < 10; i++) { x[i] += 1; }\n" * 5,
        "The otter swims in the cold river every day. " * 4,
    )
    assert (is_prose(program), is_prose(prose)) == (False, True)
    offsets, data = views([f"{program}\n{prose}", program, f"{prose}\n\n1\n2", "hm"])
    found, places = cut_paragraphs(offsets, data, 3)
    assert found.ends.tolist() == [0, 2, 3, 4, 5]
    assert (places[:, 0] >= 0).tolist() == [False, True, True, True, False]


# --- Votes -----------------------------------------------------------------------------------------------------------

PART = st.tuples(st.integers(0, 3), st.sampled_from([0.2, 0.6, 0.7, 1.0]), st.sampled_from([50, 100, 150]))


def voted(
    rows: list[list[tuple[int, float, int]]], *, cuts: bool = False, wanted: tuple[int, ...] = (0, 1, 2, 3)
) -> list[tuple[int, float, bool, list[tuple[int, int, int]]]]:
    """Language, score, mixed and spans (first part, past-last, language) of rows of (language, probability, letters)."""
    parts = [part for row in rows for part in row]
    ends = np.cumsum([0, *map(len, rows)])
    places = [at for row in rows for at in range(len(row))]
    points = np.array([(at, at + 1) for at in places], np.int64).reshape(-1, 2)
    paragraphs = Paragraphs(ends, points, np.array([part[2] for part in parts], np.int64))
    read = (np.array([part[0] for part in parts], np.int64), np.array([part[1] for part in parts], np.float64))
    bounds = (np.full(4, 0.5), np.full(4, 0.65))
    votes = count_votes(paragraphs, read, bounds, np.isin(np.arange(4), wanted), 200, cuts=cuts)
    spans = [
        [(first, last, number) for owner, first, last, number in votes.spans.tolist() if owner == row]
        for row in range(len(rows))
    ]
    return list(zip(votes.numbers.tolist(), votes.scores.tolist(), votes.mixed.tolist(), spans, strict=True))


@given(st.lists(st.lists(PART, max_size=8), max_size=4))
def test_votes_by_letters(rows: list[list[tuple[int, float, int]]]) -> None:
    for row, (number, score, mixed, spans) in zip(rows, voted(rows), strict=True):
        sure = {one: sum(n for language, p, n in row if language == one and p >= 0.5) for one, _, _ in row if one}
        weights = {one: sum(n * p for language, p, n in row if language == one) for one, _, _ in row if one}
        counted = sure if any(sure.values()) else weights
        assert number == (max(counted, key=lambda one: counted[one]) if counted else 0)
        foreign = sum(sure.values()) - sure.get(number, 0)
        left = sum(n for language, _, n in row if language) - foreign
        assert score == (round(weights[number] / left, 6) if left else 0.0)
        assert mixed == (4 * foreign > sum(sure.values()))
        for first, last, language in spans:
            assert language not in (0, number)
            assert all(part[0] == language and part[1] >= 0.65 for part in row[first:last])
            assert sum(part[2] for part in row[first:last]) >= 200
        assert spans == sorted(spans)


def test_every_long_stretch_in_another_language_is_listed_once() -> None:
    row = [
        (1, 1.0, 900),
        (2, 0.7, 150),
        (2, 0.7, 100),
        (3, 1.0, 150),
        (2, 0.6, 500),
        (0, 0.0, 50),
        (3, 0.9, 200),
        (1, 1.0, 50),
    ]
    assert voted([row, [], row]) == [
        (1, 1.0, True, [(1, 3, 2), (6, 7, 3)]),
        (0, 0.0, False, []),
        (1, 1.0, True, [(1, 3, 2), (6, 7, 3)]),
    ]


def test_a_cut_keeps_the_wanted_part_of_a_text_whose_majority_is_unwanted() -> None:
    half = [(2, 1.0, 400), (1, 0.9, 250), (2, 1.0, 300)]
    assert voted([half])[0][0] == 2
    assert voted([half], wanted=(0, 1))[0][0] == 2
    assert voted([half], wanted=(0, 1), cuts=True) == [(1, 0.9, False, [(0, 1, 2), (2, 3, 2)])]
    small = [(2, 1.0, 900), (1, 0.9, 250)]
    short = [(2, 1.0, 400), (1, 0.9, 150), (2, 1.0, 300)]
    scattered = [(2, 1.0, 150), (1, 1.0, 150), (2, 1.0, 350), (1, 1.0, 150)]
    assert [vote[0] for vote in voted([small, short, scattered], wanted=(0, 1), cuts=True)] == [2, 2, 2]
