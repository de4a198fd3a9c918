"""The Gopher n-grams equal a plain reading of their definition, for any text."""

from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.signals import ngrams
from pipeline_tasks.text.words import cutting
from tests.text import plain
from tests.text.texts import BATCHES, rules, views


@given(BATCHES, st.sampled_from([cutting.SPLIT, cutting.UNICODE, cutting.PAIRS]))
def test_ngrams(texts: list[str], rule: int) -> None:
    measured = ngrams.gopher_ngrams(*views(texts), rules(texts, rule))
    cut_up = [plain.CUTS[rule](text) for text in texts]
    assert measured[:, :3].tolist() == [[plain.top_gram(words, n) for n in (2, 3, 4)] for words in cut_up]
    assert measured[:, 3:].tolist() == [[plain.repeated_grams(words, n) for n in range(5, 11)] for words in cut_up]


@given(st.lists(st.sampled_from("ab"), max_size=200))
def test_ngrams_of_two_words_repeat_at_every_length(letters: list[str]) -> None:
    row = ngrams.gopher_ngrams(*views([" ".join(letters)]), rules([""], cutting.SPLIT))[0]
    assert row[:3].tolist() == [plain.top_gram(letters, n) for n in (2, 3, 4)]
    assert row[3:].tolist() == [plain.repeated_grams(letters, n) for n in range(5, 11)]
