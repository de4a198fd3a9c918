"""Letters of all scripts with two cases are folded, and phrases are found in any case."""

import numpy as np
import pytest

from pipeline_tasks.text.base.small_letters import FOLDED_CODES, fold
from pipeline_tasks.text.kinds.phrases import FREE, phrase_table, slot_of, word_at

WORDS = ["Überschrift", "ŽLUŤOUČKÝ", "ŁÓDŹ", "ĐURĐEVAC", "ΆΝΘΡΩΠΟΣ", "ЩЁКА", "ҚАЗАҚ", "ՀԱՅԵՐԵՆ", "NGUYỄN", "ȘTIINȚĂ"]


@pytest.mark.parametrize("word", WORDS)
def test_a_word_is_the_same_in_any_case(word: str) -> None:
    keys = phrase_table([word.casefold()]).keys
    for form in (word, word.lower(), word.upper(), word.title()):
        data = np.frombuffer(form.encode(), np.uint8)
        value, end = word_at(data, 0, len(data))
        assert (keys[slot_of(keys, np.uint64(value))] != FREE, end) == (True, len(data))


def test_letters_that_fold_to_several_stay() -> None:
    assert [chr(fold(ord(letter))) for letter in "İßŉ潮𝐀é"] == list("İßŉ潮𝐀é")
    assert {fold(fold(code)) for code in range(FOLDED_CODES)} == {fold(code) for code in range(FOLDED_CODES)}
