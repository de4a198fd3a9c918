"""Words that are cut at sight or from memory are those that the rules of spaCy give for the whole text."""

import string
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.base.characters import classes
from pipeline_tasks.text.words import cutting, spacy_chunks
from pipeline_tasks.text.words.cutting import SPACY, SPLIT, cut_spacy
from pipeline_tasks.text.words.spacy_english import exceptions
from tests.text.texts import views

CHUNKS = (
    st.sampled_from(sorted(exceptions()))
    | st.text(string.ascii_letters, min_size=1, max_size=20)
    | st.text(st.sampled_from("aBz09.,;:'’\"()[]<>/-–—…~@#$€%+*^= \n\té中☺_!?"), max_size=20)  # noqa: RUF001 -- signs of rules
    | st.text(max_size=5)
    | st.sampled_from(["a" * 64 + ".", "?!" * 5, "a-" * 9, "e.g.", "x" * 300])
)
TEXTS = st.lists(st.lists(CHUNKS, max_size=12).map(" ".join), min_size=1, max_size=4)


@pytest.fixture(params=[8, 1 << 10])
def memory(request: pytest.FixtureRequest) -> Iterator[None]:
    """A memory of this many slots: the smaller begins anew with every fifth chunk."""
    spacy_chunks.forget()
    spacy_chunks._memory[:] = [spacy_chunks.new_memory(request.param)]
    yield
    spacy_chunks.forget()


def plain(text: str) -> tuple[list[int], list[int], list[int]]:
    """Return code points, hashes and kinds of the words of a text, cut chunk by chunk and remembered nowhere."""
    data = np.frombuffer(text.encode(), np.uint8)
    room = max(1, len(data))
    lengths, hashes, kinds = np.empty(room, np.int32), np.empty(room, np.uint64), np.empty(room, np.uint8)
    count = cut_spacy(data, 0, len(data), *classes(), lengths, hashes, kinds)
    return lengths[:count].tolist(), hashes[:count].tolist(), kinds[:count].tolist()


@pytest.mark.usefixtures("memory")
@given(batches=st.lists(TEXTS, min_size=1, max_size=3))
def test_words_are_those_of_the_rules(batches: list[list[str]]) -> None:
    for texts in batches:
        clean = [text.encode("utf-8", "ignore").decode() for text in texts]
        rules = np.full(len(clean), SPACY, np.uint8)
        words = cutting.words_of(*views(clean), rules)
        parts = [slice(begin, end) for begin, end in pairwise(words.at)]
        cut_up = [tuple(of[part].tolist() for of in (words.lengths, words.hashes, words.kinds)) for part in parts]
        assert cut_up == [plain(text) for text in clean]
        ends = [len(plain(chunk)[0]) for text in clean for chunk in text.split()]
        assert words.ends.tolist() == np.cumsum(ends).tolist()


def test_texts_of_several_rules_are_each_cut_by_their_own() -> None:
    texts = ["It's (here), e.g. now.", "It's (here), e.g. now.", "It's"]
    words = cutting.words_of(*views(texts), np.array([SPACY, SPLIT, SPACY], np.uint8))
    assert np.diff(words.at).tolist() == [9, 4, 2]
