"""Normal form: composed, without controls, blanks tidy, line ends kept, in linear time."""

import re
import unicodedata

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.page import normal_form as column
from pipeline_tasks.text.page.normal_form import MARKS
from pipeline_tasks.text.page.normal_form import normalize_text as normalize


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a  b\t c \t\n", "a  b\t c"),
        ("a\r\nb\rc\u2028d", "a\nb\nc\nd"),
        ("a\n\n\n\n\nb\n\n\nc\n\nd", "a\n\n\nb\n\n\nc\n\nd"),
        ("code:\n    x  = 1  \n\ty\n", "code:\n    x  = 1\n\ty"),
        ("a\0b\x1bc\x7f\ufeff", "abc"),
        ("u\u0308", "\u00fc"),
        ("a\u00a0\u3000b  \u3000c \0 d\n \u3000\te", "a b c d\n   e"),
        ("\n\n a", " a"),
        ("Unter\u00adneh\u00admen", "Unternehmen"),
        ("exam\u200bple \u200b x\u2060y", "example xy"),
        ("คำ\u200bว่า\u200b a\u200bb", "คำ\u200bว่า ab"),
        ("a\u00ad\u0308", "\u00e4"),
        ("zero\u200cwidth\u200djoiners", "zero\u200cwidth\u200djoiners"),
        (" \n \n ", ""),
    ],
)
def test_examples(text: str, expected: str) -> None:
    assert normalize(text) == expected


def test_invisible_characters_are_kept_where_they_are_asked_for() -> None:
    text = "Unter\u00adneh\u00admen exam\u200bple x\u2060y"
    assert column.normalize(pa.array([text]), keeps_invisible=True).texts.to_pylist() == [text]
    assert column.normalize(pa.array([text])).texts.to_pylist() == ["Unternehmen example xy"]


def test_a_unicode_bomb_is_cut() -> None:
    marked = normalize("a" + "\u0301\u0316" * 100_000 + "b")
    assert sum(map(bool, map(unicodedata.combining, marked))) <= MARKS
    assert marked.endswith("b")


@pytest.mark.parametrize("evil", [" ", "\n", "a \n", "\t", "\u0301", "  \n", "<", "\u00a0x"])
def test_evil_strings_take_no_time(evil: str) -> None:
    assert len(normalize(evil * 400_000)) <= 400_000 * len(evil)


@given(st.text(st.sampled_from("ab \n\t\r\u00a0\u0301\u0316é\u3000\0\u2028")))
def test_normal_text_stays_as_it_is(text: str) -> None:
    once = normalize(text)
    assert normalize(once) == once
    assert unicodedata.is_normalized("NFC", once)
    assert once.split("\n") == [line.rstrip(" \t") for line in once.split("\n")]


SIGNS = "a Zz~ \n\t\r\u00a0\u3000\u2028\0\x7f\u0301\u0316éйи日、か\u3099한\u1100\u1161\ufffd\ufeff\U0001f600\u00ad\u2060\u200bก"
BROKEN = [
    b"\xff",
    b"\xc3",
    b"\xe2\x80",
    b"\xed\xa0\x80",
    b"\xc0\x80",
    b"\xe0\x80\x80",
    b"\xf4\x90\x80\x80",
    b"\xf0\x82\x82\xac",
]
PIECES = st.sampled_from([*map(str.encode, SIGNS), *BROKEN, b"some plain words, ", b"a line\n  indented", b"\n\n\n"])


def blanks(gap: re.Match[str]) -> str:
    """Return a row of blanks and controls in normal form."""
    kept = re.sub("[^\t \u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]", "", gap[0])
    if re.fullmatch("[\t ]*", gap[0].lstrip(NO_BLANKS)):
        return kept
    return " " * (len(kept) if gap.start() == 0 else min(len(kept), 1))


NO_BLANKS = "".join(map(chr, {*range(0x20), *range(0x7F, 0xA0), 0xFEFF, 0xFFFE, 0xFFFF} - {9}))


def plainly(text: str) -> str:
    """Return the normal form, character by character as its docstring says."""
    lines: list[str] = []
    for line in re.split("\r\n|[\n\x0b\x0c\r\x85\u2028\u2029]", text):
        line = re.sub("\u200b(?![\u0e00-\u109f\u1780-\u17ff\u1950-\u1aaf])|[\u00ad\u2060]", "\0", line)  # noqa: PLW2901
        gap = r"[\t \u00a0\u1680\u2000-\u200a\u202f\u205f\u3000\0-\x1f\x7f-\x9f\ufeff\ufffe\uffff]+"
        lines.append(re.sub(gap, blanks, line).rstrip(" \t"))
    joined = re.sub("\n{4,}", "\n\n\n", "\n".join(lines)).strip("\n")
    return unicodedata.normalize("NFC", joined)


@given(st.lists(st.lists(PIECES, max_size=30).map(b"".join), max_size=5))
def test_any_bytes_take_the_form_of_what_they_decode_to(texts: list[bytes]) -> None:
    normal = column.normalize(pa.array(texts, pa.large_binary()).view(pa.large_string()))
    decoded = [text.decode("utf-8", "replace") for text in texts]
    assert normal.texts.to_pylist() == [plainly(text) for text in decoded]
    assert normal.chars.tolist() == [len(plainly(text)) for text in decoded]
    assert normal.replaced.tolist() == [text.count("\ufffd") / max(len(text), 1) for text in decoded]
