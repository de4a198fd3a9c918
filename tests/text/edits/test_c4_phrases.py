"""C4's phrases are found in any case, and no block that has one goes unmarked."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.base.compiled import compiled
from pipeline_tasks.text.edits.c4_phrases import BLOCK, CITED, PHRASED, PHRASES, find_phrases, mark_blocks, searched

PIECES = [
    *PHRASES,
    "LOREM IPSUM",
    "JavaScript",
    "uses  cookies",
    "use",
    " ",
    "cookies",
    "x" * 200,
    "é",
    "[",
    "terms of",
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)


@compiled
def _find(data: Any, phrases: Any) -> Any:
    return find_phrases(data, 0, len(data), phrases)


@given(TEXTS)
def test_phrases_are_found_in_any_case(text: str) -> None:
    bits = _find(np.frombuffer(text.encode(), np.uint8), searched())
    lowered = "".join(letter.lower() if letter.isascii() else letter for letter in text)
    assert bits == sum(1 << number for number, phrase in enumerate(PHRASES) if phrase in lowered)


@given(TEXTS)
def test_every_phrase_begins_in_or_runs_into_a_marked_block(text: str) -> None:
    data = text.encode()
    marks = np.zeros(len(data) // BLOCK + 1, np.uint8)
    bits = mark_blocks(np.frombuffer(data, np.uint8), marks)
    assert bits == (np.bitwise_or.reduce(marks) if data else 0)
    folded = data.lower()
    for phrase in PHRASES:
        at = folded.find(phrase.encode())
        while at >= 0:
            blocks = range(at // BLOCK, (at + len(phrase) - 1) // BLOCK + 1)
            assert any(marks[block] & PHRASED for block in blocks)
            at = folded.find(phrase.encode(), at + 1)
    for at in [at for at, byte in enumerate(data) if byte == ord("[")]:
        assert marks[at // BLOCK] & CITED
