"""Exceptions and units are found by their spelling, with the sizes of their parts."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.words.spacy_english import AFTER_DIGIT, exceptions
from pipeline_tasks.text.words.spacy_exceptions import LONGEST, exception_parts, is_unit


def parts(word: str) -> list[str]:
    data = b"(" + word.encode() + b")"
    packed, at, cut = int(exception_parts(np.frombuffer(data, np.uint8), 1, len(data) - 1)), 1, []
    while packed:
        cut.append(data[at : at + packed % 256].decode())
        at, packed = at + packed % 256, packed // 256
    return cut


def test_every_exception_has_its_parts() -> None:
    assert len(exceptions()) > 1000
    assert {word: parts(word) for word in exceptions()} == {word: list(cut) for word, cut in exceptions().items()}
    assert max(len(word.encode()) for word in exceptions()) <= LONGEST


@given(st.text(min_size=1, max_size=5))
def test_other_words_are_no_exception(word: str) -> None:
    assert parts(word) == list(exceptions().get(word, ()))


@given(st.text(min_size=1, max_size=3) | st.sampled_from(AFTER_DIGIT))
def test_units(word: str) -> None:
    data = np.frombuffer(word.encode(), np.uint8)
    assert is_unit(data, 0, len(data)) == (word in AFTER_DIGIT)
