"""Stop words are counted by the list of each text."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.signals.stop_words import DISTINCT, OCCURRENCES, count_stop_words
from pipeline_tasks.text.words.cutting import SPLIT
from tests.text.texts import rules

LISTS = (("the", "of", "and"), ("der", "die"), ())
TEXT = st.lists(st.sampled_from(["the", "of", "and", "der", "die", "The", "other", "dié"]), max_size=12).map(" ".join)


@given(st.lists(st.tuples(TEXT, st.sampled_from(range(len(LISTS)))), max_size=5))
def test_counts(rows: list[tuple[str, int]]) -> None:
    texts, lists = [text for text, _ in rows], np.array([number for _, number in rows], np.int64)
    counts = count_stop_words(pa.array(texts, pa.large_string()), rules(texts, SPLIT), lists, LISTS)
    stops = [[word for word in text.split() if word in LISTS[number]] for text, number in rows]
    assert counts[:, DISTINCT].tolist() == [len(set(words)) for words in stops]
    assert counts[:, OCCURRENCES].tolist() == [len(words) for words in stops]
