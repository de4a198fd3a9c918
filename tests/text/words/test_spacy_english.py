"""Exceptions are whole words, contractions with either apostrophe, and their parts spell them."""

from pipeline_tasks.text.words.spacy_english import AFTER_DIGIT, NOT_CUT, exceptions


def test_contractions() -> None:
    cuts = exceptions()
    assert cuts["can't"] == ("ca", "n't")
    assert cuts["can\u2019t"] == ("ca", "n\u2019t")
    assert cuts["couldn't've"] == ("could", "n't", "'ve")
    assert cuts["Theyve"] == ("They", "ve")
    assert cuts["e.g."] == ("e.g.",)
    assert cuts["10pm"] == ("10", "pm")
    assert not cuts.keys() & set(NOT_CUT)


def test_units_are_listed_once() -> None:
    assert len(AFTER_DIGIT) == len(set(AFTER_DIGIT))
