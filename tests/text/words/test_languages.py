"""Each language has the rule that fits its script."""

import pyarrow as pa
import pytest

from pipeline_tasks.text.words import cutting, languages


@pytest.mark.parametrize(
    ("rule", "rules"),
    [
        (cutting.SPLIT, [cutting.SPLIT, cutting.SPLIT, cutting.PAIRS, cutting.SPLIT]),
        (cutting.UNICODE, [cutting.UNICODE, cutting.UNICODE, cutting.PAIRS, cutting.UNICODE]),
        (cutting.SPACY, [cutting.SPACY, cutting.UNICODE, cutting.PAIRS, cutting.UNICODE]),
    ],
)
def test_rules(rule: int, rules: list[int]) -> None:
    assert languages.word_rules(pa.array(["en", "de", "th", None]), rule).tolist() == rules


def test_rules_have_the_values_of_the_loops() -> None:
    assert (languages.UNICODE, languages.PAIRS, languages.SPACY) == (cutting.UNICODE, cutting.PAIRS, cutting.SPACY)


def test_a_null_is_no_language() -> None:
    assert languages.is_language(pa.array(["en", None, "ja"]), ("ja", "en")).tolist() == [True, False, True]
