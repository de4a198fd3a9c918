"""The work of every stage and filter grows with a document, and not with its square, whatever is repeated in it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.stages import NAMES
from pipeline_tasks.stages.filter_language import without
from tests.every_stage import chain, land, params

PARTS = (
    *(
        "f*",
        "f-",
        "a ",
        "a\n",
        "\n",
        " ",
        ".",
        "-",
        "'",
        '"',
        "<",
        "&",
        "(",
        "[",
        "{",
        "1.",
        "1-",
        "1 ",
        "+1",
        "@",
        "/",
    ),
    *("a@", "http://", "www.a.", "://a:", "%25", "e\u0301", "\u200b", "\u0430a", "aa", "a1", "A", "\u3042", "\ufdfa"),
    *(
        "der Hund. ",
        "le chien\n\n",
        "\u2022 x\n",
        "| a ",
        "# a\n",
        "0x1f",
        "IBAN DE89",
        "sk-",
        "fuck ",
        "- a\n",
        "x=1;",
    ),
)
"""What adversarial texts repeat: joints of words, marks, digits, letters of several scripts, markup, prose."""

SMALL, GROWN, MOST = 20_000, 8, 24
"""Characters of a short text, how many times as long the others are, and the growth of the time that is allowed.

Linear work grows by 8, quadratic by 64. The margin is for what a machine does beside it; processor time is compared.
"""

LEAST = 0.5
"""Seconds of processor time below which nothing is said of a stage."""


def spent(folder: Path, length: int) -> dict[str, float]:
    """The processor time of each stage over texts of this length, the second time that it ran in this process."""
    folder.mkdir()
    given, landing = params(folder), folder / "2026-11-20"
    texts = [f"{at} {part * (length // len(part))} {at}" for at, part in enumerate(PARTS)]
    parent = land(folder / "root", landing, texts)
    return {step.stage: step.done.cost.cpu for step in chain(folder / "root", parent, str(landing), given)}


@pytest.fixture(scope="module")
def times(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, float], dict[str, float]]:
    folder = tmp_path_factory.mktemp("work")
    spent(folder / "first", 100)  # loops are compiled, tables are read
    return spent(folder / "short", SMALL), spent(folder / "long", SMALL * GROWN)


@pytest.mark.slow
@pytest.mark.parametrize("stage", NAMES)
def test_work_grows_with_the_length(stage: str, times: tuple[dict[str, float], dict[str, float]]) -> None:
    short, long = (part[stage] for part in times)
    assert long < LEAST or long < MOST * short, (short, long)


@given(
    st.lists(st.tuples(st.text("ab\n", max_size=6), st.text("xy\n", max_size=4)), max_size=6),
    st.text("ab\n", max_size=4),
)
def test_a_text_without_its_spans_is_that_of_a_cut_after_the_other(pieces: list[tuple[str, str]], last: str) -> None:
    spans, whole = [], ""
    for kept, cut in pieces:
        spans.append((len(whole + kept), len(whole + kept + cut)))
        whole += kept + cut
    expected = whole = whole + last
    for start, end in reversed(spans):
        rest = expected[end:].lstrip("\n")
        expected = expected[:start] + rest if rest else expected[:start].rstrip("\n")
    assert without(whole, spans) == expected
