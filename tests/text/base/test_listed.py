"""A text is found if, and only if, it has a character of the list."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.base.listed import have_listed, listed

LISTED = {0xE9, 0x4F60, 0x1F600, 0x10FFFF}
TEXTS = st.lists(st.text(st.sampled_from("abc \né\xe8你好😀😁\U0010ffff"), max_size=40), max_size=6)


@given(TEXTS, st.integers(0, 3))
def test_texts_with_a_listed_character(texts: list[str], cut: int) -> None:
    column = pa.array(texts, pa.large_string())[cut:]
    expected = [any(ord(sign) in LISTED for sign in text) for text in texts[cut:]]
    assert np.array_equal(have_listed(column, listed(LISTED)), np.array(expected, bool))
