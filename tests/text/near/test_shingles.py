"""Words and characters: case, width and spacing do not matter, and a plain scan of code points finds the same."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.near import shingles


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("Hello, World!", "hello world"),
        ("\uff46\uff55\uff4c\uff4c width", "FULL WIDTH"),
        ("so\u00adft\u200b hyphen", "soft hyphen"),
        ("naïve ÉCOLE", "NAÏVE école"),
        ("tab\tand\nline", "tab and line"),
    ],
)
def test_case_width_and_spacing_do_not_matter(left: str, right: str) -> None:
    assert [word for word, _ in shingles.words(left)] == [word for word, _ in shingles.words(right)]
    assert shingles.characters(left) == shingles.characters(right)


def test_scripts_without_spaces_have_a_word_per_character() -> None:
    assert [text for _, text in shingles.words("日本語です。Python 3")] == ["日", "本", "語", "で", "す", "Python", "3"]
    assert len(shingles.words("ภาษาไทย")) == 7
    assert [text for _, text in shingles.words("한국어 문서")] == ["한국어", "문서"]
    assert [text for _, text in shingles.words("हिन्दी में")] == ["हिन्दी", "में"]


@given(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=0x17F), max_size=60))
def test_latin_words_are_the_runs_of_letters_and_digits(text: str) -> None:
    text = text.replace("\u00ad", "")
    assert [word for _, word in shingles.words(text)] == re.findall(r"[^\W_]+", text)


def test_characters_are_folded_with_one_space_between_words() -> None:
    assert shingles.characters("  Héllo,\n Wörld! 日本 語x so\u00adft ") == "héllo wörld 日本 語x soft"
    assert shingles.characters("-- !") == ""


@given(
    st.lists(
        st.sampled_from(["a", "Z", "0", "é", "\uff21", "日", "𐐀", "𠀀", "\u0301", "\u00ad", " ", "-", "\x00"]),
        max_size=40,
    )
)
def test_words_hash_alike_wherever_they_are(parts: list[str]) -> None:
    text = "".join(parts)
    words = shingles.words(text)
    hashes = {piece: hash_ for hash_, piece in words}
    assert [hash_ for hash_, _ in words] == [hashes[piece] for _, piece in words]
    for hash_, piece in words:
        assert shingles.words(piece) == [(hash_, piece)]
        assert shingles.words(f"{piece} and what follows")[0] == (hash_, piece)
    folded = {hash_: shingles.characters(piece) for hash_, piece in words}
    assert len(set(folded.values())) == len(folded)


UNSPACED = ("THAI", "LAO", "TIBETAN", "MYANMAR", "KHMER", "CJK", "HIRAGANA", "KATAKANA")


def plain_words(text: str) -> list[str]:
    """The words of a text, one code point after the other."""
    words: list[str] = []
    word, end = "", 0
    for letter in text:
        category = unicodedata.category(letter)
        if category == "Cf":  # inside a word, but never its end
            word += letter if word else ""
            continue
        alone = unicodedata.name(letter, "").startswith(UNSPACED) and category[0] == "L"
        if word and (alone or category[0] not in "LNM"):
            words.append(word[:end])
            word = ""
        if alone:
            words.append(letter)
        elif category[0] in "LN" or (category[0] == "M" and word):
            word += letter
            end = len(word)
    return [*words, word[:end]] if word else words


@given(st.text(st.sampled_from("aZ09éÀßк 日本ไทยかナ한글\u0301\u00ad\u200b-_.\n𐐀"), max_size=60))
def test_words_are_those_of_a_plain_scan(text: str) -> None:
    assert [word for _, word in shingles.words(text)] == plain_words(text)
