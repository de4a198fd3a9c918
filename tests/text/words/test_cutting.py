"""Words and their counts equal a plain reading of each rule, for any text."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.base import buffers
from pipeline_tasks.text.words import cutting
from tests.text import plain
from tests.text.texts import BATCHES, STOPS, rules, views


@given(BATCHES, st.sampled_from([cutting.SPLIT, cutting.UNICODE, cutting.PAIRS]))
def test_words(texts: list[str], rule: int) -> None:
    cut = plain.CUTS[rule]
    measured = cutting.word_signals(*views(texts), rules(texts, rule), cutting.hash_words(STOPS))
    assert measured.tolist() == [plain.word_signals(cut(text), STOPS) for text in texts]


def test_texts_that_come_to_lie_where_others_lay_are_read_anew() -> None:
    counts = []
    for at in range(200):
        texts = [f"{'word ' * (at % 7)}{at}"]
        counts.append(cutting.word_signals(*views(texts), rules(texts, cutting.SPLIT), cutting.hash_words(()))[0, 1])
    assert counts == [at % 7 + 1 for at in range(200)]


def test_unicode_words_by_hand() -> None:
    assert plain.unicode_words("Don't stop—now_1! 我们的网站 x") == [
        "Don", "'", "t", "stop", "—", "now_1", "!", "我们", "的网", "站", "x",
    ]  # fmt: skip


def test_pair_words_by_hand() -> None:
    assert plain.pair_words("「我们的网站。」 Unicode网 a-b") == ["「我", "们的", "网站。」", "Unicode", "网", "a-b"]


def test_nulls_count_as_empty_texts() -> None:
    offsets, data = buffers.views(pa.array([None, "a b", None], pa.large_string()))
    assert cutting.word_signals(offsets, data, np.zeros(3, np.uint8), cutting.hash_words(()))[:, 1].tolist() == [
        0,
        2,
        0,
    ]


def test_broken_utf8_does_not_read_past_the_end() -> None:
    data = np.frombuffer(b"ok \xf0\x9f", np.uint8)
    measured = cutting.word_signals(np.array([0, 5]), data, np.zeros(1, np.uint8), cutting.hash_words(()))
    assert measured[0].tolist() == [2, 2, 4, 1, 0]
