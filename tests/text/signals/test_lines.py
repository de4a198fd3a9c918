"""Lines and paragraphs of the Gopher and FineWeb rules equal a plain reading, for any text."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.signals import lines
from tests.text import plain
from tests.text.texts import BATCHES, views


@given(BATCHES)
def test_line_shapes(texts: list[str]) -> None:
    assert lines.line_shapes(*views(texts)).tolist() == [plain.shapes(text) for text in texts]


@given(BATCHES)
def test_repeated_lines_and_paragraphs(texts: list[str]) -> None:
    assert lines.repeated_parts(*views(texts)).tolist() == [plain.repeats(text) for text in texts]


@given(BATCHES, st.sampled_from([0.0, 5.0, 30.0]))
def test_prose_lines(texts: list[str], short: float) -> None:
    measured = lines.prose_lines(*views(texts), np.full(len(texts), short))
    assert measured.tolist() == [plain.prose(text, short) for text in texts]
