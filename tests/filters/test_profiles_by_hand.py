"""The same text under each profile: rules of one name are functions of their own; counted by hand."""

import pyarrow as pa
import pytest

from pipeline_tasks.filters import Filter, cc_net, dclm, dolma, gopher_quality, gopher_repetition, nemo, seeds


def signals(card: Filter, text: str, language: str = "en") -> dict[str, float]:
    computed = card.compute_signals(pa.array([text], pa.large_string()), pa.array([language]), 0, card.limits())
    return dict(zip(card.signals, computed.signals[0].tolist(), strict=True))


def test_a_line_said_twice_in_four_is_a_quarter_or_a_half() -> None:
    text = "one line\nand one\nand two\none line"
    assert signals(gopher_repetition.FILTER, text)["dup_line_frac"] == pytest.approx(1 / 4)
    assert signals(dclm.FILTER, text)["line_frac"] == pytest.approx(2 / 4)
    assert signals(dolma.FILTER, text)["dup_line_frac"] == pytest.approx(2 / 4)
    assert signals(nemo.FILTER, text)["unique_lines"] == pytest.approx(3 / 4)


def test_word_length_is_a_mean_or_a_median() -> None:
    text = "a bb ccccccc --"
    assert signals(gopher_quality.FILTER, text)["word_length"] == pytest.approx((1 + 2 + 7) / 3)
    assert signals(dclm.FILTER, text)["word_length"] == pytest.approx((1 + 2 + 7 + 2) / 4)
    assert signals(dolma.FILTER, text)["median_word_length"] == 2
    assert signals(nemo.FILTER, text)["word_length"] == pytest.approx(3)


def test_symbols() -> None:
    text = "#a ##b c… d... . . . # […]"  # ten words
    assert signals(gopher_quality.FILTER, text)["hash_ratio"] == pytest.approx(4 / 9)
    assert signals(gopher_quality.FILTER, text)["ellipsis_ratio"] == pytest.approx(3 / 9)
    assert signals(dclm.FILTER, text)["symbol_ratio"] == pytest.approx((4 + 1 + 1 + 2) / 9)
    assert signals(dolma.FILTER, text)["symbol_ratio"] == pytest.approx(5 / 9)
    assert signals(nemo.FILTER, text)["symbol_ratio"] == pytest.approx(2 / 9)


def test_bullets() -> None:
    text = "- dash\n* star\n• dot\n ● ball\n  - indented\n◦ ring"
    assert signals(gopher_quality.FILTER, text)["bullet_line_ratio"] == pytest.approx(3 / 6)
    assert signals(dclm.FILTER, text)["bullet_line_ratio"] == pytest.approx(5 / 6)
    assert signals(dolma.FILTER, text)["bullet_line_ratio"] == pytest.approx(2 / 6)
    assert signals(nemo.FILTER, text)["bullet_line_ratio"] == pytest.approx(3 / 6)


def test_lines_that_trail_off() -> None:
    text = "so...\nthen…\nand . . .\ngo on [...]\nRead More\nend."
    assert signals(gopher_quality.FILTER, text)["ellipsis_line_ratio"] == pytest.approx(2 / 6)
    assert signals(dclm.FILTER, text)["ellipsis_line_ratio"] == pytest.approx(3 / 6)
    assert signals(dolma.FILTER, text)["ellipsis_line_ratio"] == pytest.approx(1 / 6)
    assert signals(nemo.FILTER, text)["ellipsis_line_ratio"] == pytest.approx(4 / 6)


def test_stop_words() -> None:
    text = "The the the THE cat"
    assert signals(gopher_quality.FILTER, text)["stop_words"] == 1
    assert signals(dclm.FILTER, text)["stop_words"] == 4
    assert signals(dolma.FILTER, text)["required_words"] == 2
    assert signals(nemo.FILTER, text)["common_words"] == 2


def test_top_and_repeated_n_grams() -> None:
    words = "a b c d e a b c d e f g h i j"
    assert signals(gopher_repetition.FILTER, words)["top_2_gram"] == pytest.approx(2 * 3 / 29)
    assert signals(dclm.FILTER, words)["top_2_gram"] == pytest.approx(2 * 2 / 15)
    assert signals(dolma.FILTER, words)["top_2_gram"] == pytest.approx(2 * 2 / 15)
    assert signals(nemo.FILTER, words)["top_2_gram"] == pytest.approx(2 * 3 / 29)
    assert signals(gopher_repetition.FILTER, words)["duplicated_5_n_grams"] == pytest.approx(5 / 29)
    assert signals(dclm.FILTER, words)["dup_5_gram"] == pytest.approx(10 / 15)
    assert signals(dolma.FILTER, words)["dup_5_gram"] == pytest.approx(2 / 11)
    assert signals(nemo.FILTER, words)["dup_5_gram"] == pytest.approx((5 + 4) / 29)


def test_dclm_takes_the_longest_of_equally_frequent_n_grams() -> None:
    words = "to be xxxx yyyy to be xxxx yyyy"
    assert signals(dclm.FILTER, words)["top_2_gram"] == pytest.approx(2 * 8 / 24)
    assert signals(dolma.FILTER, words)["top_2_gram"] == pytest.approx(2 * 4 / 24)


def test_nemo_replaces_inside_words_too() -> None:
    text = "the c the cat breathe calmly"
    assert signals(nemo.FILTER, text)["top_2_gram"] == pytest.approx(3 * len("the c") / len(text))
    assert signals(nemo.FILTER, "one")["top_2_gram"] == 1


def test_dolma_counts_empty_lines_and_may_exceed_one() -> None:
    values = signals(dolma.FILTER, "a a a a\n\na a a a\n")
    assert values["dup_line_frac"] == 1
    assert values["dup_line_char_frac"] == pytest.approx(14 / 8)


def test_a_text_of_one_line_repeats_nothing_to_dclm() -> None:
    assert signals(dclm.FILTER, "again and again")["line_frac"] == 0


def test_dclm_counts_words_that_begin_with_a_letter_or_digit() -> None:
    assert signals(dclm.FILTER, '"Yes" we (can) -- 3 x')["words"] == 3


def test_dclm_removes_lines_and_counts_their_words() -> None:
    text = "This line of prose is kept as it is.\nMENU AND MORE\n1234\n1.2K likes\nHome\n3 items in cart\nSign-in here"
    computed = dclm.compute_signals(pa.array([text], pa.large_string()), pa.array(["en"]), 0, dclm.Limits())
    values = dict(zip(dclm.SIGNALS, computed.signals[0].tolist(), strict=True))
    assert computed.texts.to_pylist() == ["This line of prose is kept as it is.\n3\nhere"]
    assert [values[f"{why}_lines"] for why in ("uppercase", "numeric", "counter", "short")] == [1, 1, 1, 1]
    assert [values[f"{why}_lines"] for why in ("cart", "more", "sign_in")] == [1, 0, 1]
    assert values["removed_ratio"] == pytest.approx((22 - 11) / 22)


def test_dclm_removes_urls_before_it_counts() -> None:
    text = "This line has 9 words and http://a.com/b two addresses.\nSee 10.0.0.1 here"
    texts, languages = pa.array([text], pa.large_string()), pa.array(["en"])
    computed = dclm.compute_signals(texts, languages, 0, dclm.Limits())
    values = dict(zip(dclm.SIGNALS, computed.signals[0].tolist(), strict=True))
    assert computed.texts.to_pylist() == ["This line has 9 words and two addresses.\nSee here"]
    assert (values["words"], values["urls"], values["addresses"]) == (10, 1, 1)
    left = dclm.compute_signals(texts, languages, 0, dclm.Limits(remove_urls=0))
    assert left.texts.to_pylist() == [text]


def test_nemo_counts_characters_of_its_own_kinds() -> None:
    text = "See http://a.b/c (1)\n[x]"
    values = signals(nemo.FILTER, text)
    assert values["url_ratio"] == pytest.approx(len("http://a.b/c") / len(text))
    assert values["parentheses_ratio"] == pytest.approx(4 / len(text))
    assert values["number_ratio"] == pytest.approx(1 / len(text))
    assert values["white_space_ratio"] == pytest.approx(3 / len(text))
    assert values["non_alpha_numeric"] == pytest.approx(len(":// /()[] ") / len(text) - 0 / len(text))


@pytest.mark.parametrize(
    ("text", "digits", "in_urls"),
    [
        ("\u0663 \uff15 \u0967 3", 1, 0),  # Arabic, fullwidth and Devanagari digits are none to NeMo
        ("http://a.b/c#d~e", 0, 16),
        ("<a href='http://a.b/c'>see</a>", 0, 12),
        ("[http://a.b/c];", 0, 12),
        ("http://a.b/%C3%a9%2", 3, 17),
        ("http://", 0, 0),
    ],
)
def test_nemo_digits_and_urls_are_ascii(text: str, digits: int, in_urls: int) -> None:
    values = signals(nemo.FILTER, text)
    assert values["number_ratio"] == pytest.approx(digits / len(text))
    assert values["url_ratio"] == pytest.approx(in_urls / len(text))


def test_nemo_boilerplate_is_a_share_of_paragraphs() -> None:
    text = "One.\n\nSee our Privacy Policy.\n\nThis site uses cookies.\n\nEnd."
    assert signals(nemo.FILTER, text)["boilerplate_ratio"] == pytest.approx(2 / 4)
    assert signals(nemo.FILTER, text + "\n\nLorem ipsum")["boilerplate_ratio"] == 1


def test_cc_net_keeps_the_first_of_equal_paragraphs() -> None:
    text = "_Hello\n_World\n\nI'm original, 12。\n_world\ni'm Original, 34\nend"
    computed = cc_net.compute_signals(pa.array([text], pa.large_string()), pa.array(["en"]), 0, cc_net.Limits())
    assert computed.texts.to_pylist() == ["_Hello\n_World\n\nI'm original, 12。\nend"]
    length = len(text.replace("\n\n", "\n"))
    assert computed.signals[0].tolist() == [6, length, 2]


@pytest.mark.parametrize("other", ["\x85 one", "one\x1c", "\u3000ONE\u2028", "\x0bone"])
def test_cc_net_takes_off_what_str_strip_takes_off(other: str) -> None:
    texts = cc_net.compute_signals(
        pa.array([f"one\n{other}"], pa.large_string()), pa.array(["en"]), 0, cc_net.Limits()
    ).texts
    assert texts.to_pylist() == ["one"]


def test_cc_net_compares_lines_in_the_lower_case_of_python() -> None:
    text = "δλς\nΔΛΣ\nδλ\u03c3\nİ\ni"
    texts = cc_net.compute_signals(pa.array([text], pa.large_string()), pa.array(["el"]), 0, cc_net.Limits()).texts
    assert texts.to_pylist() == ["δλς\nδλ\u03c3\nİ\ni"]


def test_cc_net_may_write_punctuation_in_ascii_and_leave_repeats() -> None:
    limits = cc_net.Limits(remove_repeats=0, ascii_punctuation=1)
    texts = cc_net.compute_signals(pa.array(["“a”—b…\n“a”—b…"], pa.large_string()), pa.array(["en"]), 0, limits).texts
    assert texts.to_pylist() == ['"a" - b...\n"a" - b...']


def test_seeds() -> None:
    text = "def f(x): return x; x x (const)"
    values = signals(seeds.FILTER, text)
    assert (values["chars"], values["words"], values["code_keywords"]) == (len(text), 7, 3)
    assert values["punctuation"] == pytest.approx(6 / len(text))
    assert values["distinct_words"] == pytest.approx(6 / 7)
    assert values["code_symbols"] == pytest.approx(1 / len(text))
    assert values["signal_density"] == pytest.approx(19 / len(text))


def test_a_text_of_nothing_is_empty_to_gopher_and_the_worst_to_dclm() -> None:
    def failed(card: Filter, text: str) -> set[str]:
        values, limits = signals(card, text), card.limits()
        return {
            rule.why
            for rule in card.rules
            if (values[rule.signal] - getattr(limits, rule.limit)) * (1 if rule.side == "max" else -1) > 0
        }

    assert failed(gopher_repetition.FILTER, "") == {"empty"}
    assert failed(gopher_repetition.FILTER, " ") == set()
    assert {"symbols", "non_alpha", "line_frac", "para_char_frac", "removed_words"} < failed(dclm.FILTER, " \n ")
    assert {"top_2_gram", "dup_10_gram"} < failed(dclm.FILTER, "")
    assert not {"top_2_gram", "line_frac"} & failed(dclm.FILTER, "one")
