"""Repeated n-grams of DCLM, Dolma and NeMo Curator equal a plain reading of each definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.signals import ngrams, repeated_ngrams
from tests.text import plain_profiles
from tests.text.texts import PROFILE_BATCHES, views


@given(PROFILE_BATCHES)
def test_dolma_and_nemo_grams(texts: list[str]) -> None:
    dolma, nemo = (
        repeated_ngrams.ngram_shares(*views(texts), style) for style in (repeated_ngrams.DOLMA, repeated_ngrams.NEMO)
    )
    shape = (len(texts), len(ngrams.SIZES))
    expected = [[plain_profiles.dolma_grams(text.split(), n) for n in ngrams.SIZES] for text in texts]
    assert dolma == pytest.approx(np.reshape(expected, shape))
    expected = [[plain_profiles.nemo_grams(text, n) for n in ngrams.SIZES] for text in texts]
    assert nemo == pytest.approx(np.reshape(expected, shape))


@given(st.lists(st.sampled_from(["a", "bb", "ccc"]), max_size=80))
def test_grams_of_few_words(words: list[str]) -> None:
    text = " ".join(words)
    for style, plainly in (
        (repeated_ngrams.DCLM, plain_profiles.dclm_grams),
        (repeated_ngrams.DOLMA, plain_profiles.dolma_grams),
    ):
        shares = repeated_ngrams.ngram_shares(*views([text]), style)[0]
        assert shares.tolist() == pytest.approx([plainly(words, n) for n in ngrams.SIZES])
    shares = repeated_ngrams.ngram_shares(*views([text]), repeated_ngrams.NEMO)[0]
    assert shares.tolist() == pytest.approx([plain_profiles.nemo_grams(text, n) for n in ngrams.SIZES])
