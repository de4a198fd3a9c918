"""Signals of small texts, counted by hand."""

import pyarrow as pa
import pytest

from pipeline_tasks.filters import Filter, c4, fineweb, gopher_quality, gopher_repetition


def signals(card: Filter, text: str, language: str = "en", words: int = 0) -> dict[str, float]:
    computed = card.compute_signals(pa.array([text], pa.large_string()), pa.array([language]), words, card.limits())
    return dict(zip(card.signals, computed.signals[0].tolist(), strict=True))


def test_gopher_quality() -> None:
    # all words: the, fox..., #1, --, and, …, dog; `--` and `…` are all punctuation; `#1` has no letter
    text = "the fox... #1 --\n- and …\n  • dog ..."
    values = signals(gopher_quality.FILTER, text)
    assert values["words"] == 6  # the, fox..., #1, and, •, dog: a bullet is no punctuation to the source
    assert values["word_length"] == pytest.approx((3 + 6 + 2 + 3 + 1 + 3) / 6)
    assert values["hash_ratio"] == pytest.approx(1 / 10)
    assert values["ellipsis_ratio"] == pytest.approx(3 / 10)
    assert values["bullet_line_ratio"] == pytest.approx(2 / 3)
    assert values["ellipsis_line_ratio"] == pytest.approx(2 / 3)
    assert values["alpha_word_ratio"] == pytest.approx(4 / 10)
    assert values["stop_words"] == 2


def test_unicode_words_count_punctuation() -> None:
    split, unicode = (signals(gopher_quality.FILTER, "Yes, we can.", words=rule) for rule in (0, 1))
    assert (split["words"], split["alpha_word_ratio"]) == (3, 1)
    assert (unicode["words"], unicode["alpha_word_ratio"]) == (3, pytest.approx(3 / 5))


def test_gopher_repetition() -> None:
    text = "one two\nx\none two\n\n\none two\nx\none two\n\nend"
    values = signals(gopher_repetition.FILTER, text)
    first = len("one two\nx\none two")
    assert values["dup_para_frac"] == pytest.approx(1 / 3)
    assert values["dup_para_char_frac"] == pytest.approx(first / len(text))
    assert values["dup_line_frac"] == pytest.approx(4 / 7)
    assert values["dup_line_char_frac"] == pytest.approx((7 * 3 + 1) / len(text))
    assert values["top_2_gram"] == pytest.approx(4 * len("one two") / len(text))
    assert values["duplicated_5_n_grams"] == pytest.approx(len("onetwoxonetwo") / len(text))
    assert values["duplicated_6_n_grams"] == 0


def test_c4_removes_lines_in_the_order_of_the_source() -> None:
    lines = [
        "A sentence that stays.[1] And more.",
        "Too short",
        "Please enable JavaScript to see { this",
        "We use cookies on this site.",
        "x" * 1001 + " is a long word",
        "  Another line,   kept as it is  ",
    ]
    card = c4.FILTER
    computed = card.compute_signals(
        pa.array(["\r\n".join(lines)], pa.large_string()), pa.array(["en"]), 0, card.limits()
    )
    values = dict(zip(card.signals, computed.signals[0].tolist(), strict=True))
    assert computed.texts.to_pylist() == ["A sentence that stays. And more.\nAnother line,   kept as it is"]
    assert values == {
        "lines": 6,
        "long_word_lines": 1,
        "no_terminal_lines": 0,
        "few_words_lines": 1,
        "javascript_lines": 1,
        "policy_lines": 1,
        "citations": 1,
        "lorem_ipsum": 0,
        "curly_brackets": 0,  # hidden by the line that JavaScript drops before
        "sentences": 3,
    }


def test_c4_with_terminal_punctuation_is_the_paper() -> None:
    texts = pa.array(["It ends here.\nIt does not end\nIt trails off..."], pa.large_string())
    limits = c4.Limits(require_terminal_punctuation=True)
    assert c4.compute_signals(texts, pa.array(["en"]), 0, limits).texts.to_pylist() == ["It ends here."]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ('Is it?! (No.) "Yes"', 3),
        ("He left. )", 1),
        ("He left.  )", 2),  # white space that is more than a blank is a word, and no punctuation
        ("It is so.\xa0\u00bb He", 2),
        (". \t . \t .", 3),
        ("It is so. [1]", 1),
        ("It is so. [1] [2]", 2),  # and so is what citations leave at the end of a line
        ("It is so. [1] \xa0[2]\nIt is. So", 4),
        ("[1] [2] [3]", 1),  # and a line of which nothing is left
        ("[1] [2] [3]\nIt is so.\n[4] [5] [6]", 3),
        ("one two \u3002 three", 2),
        ("one two \u17d5 three", 1),  # the sentencizer knows fewer ends than FineWeb's filter
    ],
)
def test_c4_counts_sentences_of_spacy_words(text: str, sentences: int) -> None:
    assert signals(c4.FILTER, text, words=3)["sentences"] == sentences


def test_fineweb() -> None:
    values = signals(fineweb.FILTER, "short.\n\nthis line has more than thirty characters\nshort.\n")
    assert values["prose_lines"] == 3
    assert values["line_punct_ratio"] == pytest.approx(2 / 3)
    assert values["short_line_ratio"] == pytest.approx(2 / 3)
    assert values["char_duplicates_ratio"] == pytest.approx(6 / (6 + 41 + 6))
    assert values["new_line_ratio"] == pytest.approx(4 / 9)


def test_words_of_unspaced_scripts_are_pairs() -> None:
    assert signals(gopher_quality.FILTER, "我们的网站。", "zh")["words"] == 3
    assert signals(gopher_quality.FILTER, "我们的网站。", "en")["words"] == 1


def test_minus_one_turns_line_rules_of_c4_off() -> None:
    text = f"{'x' * 1001}\nTwo words."
    off = c4.Limits(max_word_length=-1, min_words_per_line=-1, min_num_sentences=-1)
    texts = pa.array([text], pa.large_string())
    assert c4.compute_signals(texts, pa.array(["en"]), 0, off).texts.to_pylist() == [text]
    assert c4.compute_signals(texts, pa.array(["en"]), 0, c4.Limits()).texts.to_pylist() == [""]
