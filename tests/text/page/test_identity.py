"""A text's identity is frozen: stored ids depend on every digit."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.page.identity import identities, identity
from pipeline_tasks.text.page.normal_form import normalize

FROZEN = {
    "": "99aa06d3014798d86001c324468d497f",
    "a": "a96faf705af16834e6c632b61e964e1f",
    "Hello, world": "61f0632fb079b54d7386e91040cf00c3",
    "hello, world": "11c83d9c1ee368164c0abe17b55db69c",
    "Grüße aus Köln": "0dca9c57d88d3d8ee65dafb121c9f352",
    "日本語の文章": "9bfcd8da6096685d38f82e6a4b2b616a",
    "line one\nline two": "afcfccec07b53199cd44a6b10b78410d",
}


@pytest.mark.parametrize(("text", "expected"), FROZEN.items())
def test_vectors(text: str, expected: str) -> None:
    assert identity(text) == expected


def test_layout_and_composition_do_not_count_but_case_does() -> None:
    assert identity(" Gru\u0308ße\u00a0\n\n aus\tKöln ") == identity("Grüße aus Köln")
    assert identity("Hello") != identity("hello")


@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1)), st.sampled_from([" ", "\n", " \t\n", "\u3000"]))
def test_any_white_space_between_words_is_one_space(words: list[str], gap: str) -> None:
    assert identity(gap.join(words)) == identity(" ".join(words))


@given(st.text(st.sampled_from("ab \n\t\r\u00a0\u0301é\u3000\0\u2028\x1c\x85\u200b")) | st.text())
def test_a_normal_text_is_named_as_any_other(text: str) -> None:
    texts = normalize(pa.array([text, "before " + text + " after", ""], pa.large_string())).texts
    assert identities(texts) == [identity(text) for text in texts.to_pylist()]
    assert identities(texts.slice(1)) == identities(texts)[1:]
