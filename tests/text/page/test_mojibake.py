"""Mojibake is undone where it shows, and nothing else is touched."""

# ruff: noqa: RUF001 -- signs that look alike are the subject

import itertools

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pipeline_tasks.text.page.mojibake import CYRILLIC, SHOWN, WESTERN, repair
from pipeline_tasks.text.page.mojibake_suspects import suspects

TEXTS = (
    "Schöne Grüße aus Köln – „naß“ sind die Straßen.",
    "L’été dernier, à Besançon, l’hôtel était « complet ».",
    "El año pasado cenó en el café más pequeño.",
    "It’s the editor’s “first” draft — really…",
    "Это обычное предложение на русском языке.",
    "日本語の文章です。",
    "Helemaal lekker 😊 dank je wel",
)


def misread(text: str, encoding: str, times: int = 1) -> str:
    """Read UTF-8 as `encoding`, bytes that it lacks as Latin-1, as browsers do."""
    for _ in range(times):
        text = "".join(bytes([byte]).decode(encoding, "ignore") or chr(byte) for byte in text.encode())
    return text


WRONG = [
    *itertools.product(TEXTS, [("cp1252", 1), ("latin-1", 1), ("cp1252", 2)]),
    *((text, ("cp1251", 1)) for text in TEXTS[3:5]),
]


@pytest.mark.parametrize(("text", "how"), WRONG)
def test_what_was_misread_is_read_again(text: str, how: tuple[str, int]) -> None:
    wrong = misread(text, *how)
    assert suspects(pa.array([wrong, "plain"])).tolist() == [True, False]
    assert repair(f"{text}\n{wrong}\nplain") == (f"{text}\n{text}\nplain", 1)


INNOCENT = (
    "CAFÉ» et «ÉTÉ» à ©",
    "Ça va? Où ça? Là-bas… Noël",
    "ESPAÑA® PIÑÓN™ GARÇON’S",
    "Їжак і Євген: «СССР» – Рівне, Сєвєродонецьк",
    "vĩ đại, Tiếng Việt, Đặng Thị Ngọc Thịnh",
    "naïve façade, coöperate, ångström, Øresund, þorn",
    "price: 5€ ± 3 °C, ½ µm, ¿qué?, £3·50, §2",
)


@pytest.mark.parametrize("text", [*TEXTS, *INNOCENT])
def test_innocent_texts_stay_as_they_are(text: str) -> None:
    assert repair(text) == (text, 0)


@given(st.text(st.characters(codec="utf-8")))
def test_a_text_that_shows_nothing_stays_as_it_is(text: str) -> None:
    assume(not SHOWN.search(text))
    assert repair(text) == (text, 0)


LETTERS = "".join(letters[:4] for letters in (*WESTERN, *CYRILLIC)) + "ax \n€漢😀ЂвРС°™"


@given(
    st.lists(
        st.text(st.sampled_from(LETTERS), max_size=30).flatmap(
            lambda text: st.integers(0, 90).map(lambda at: "x" * at + text)
        ),
        min_size=1,
    )
)
def test_the_compiled_look_finds_what_the_expression_finds(texts: list[str]) -> None:
    wanted = [bool(SHOWN.search(text)) for text in texts]
    column = pa.array(["é", None, *texts], pa.large_string())
    assert suspects(column).tolist() == [False, False, *wanted]
    assert suspects(column.slice(2)).tolist() == wanted
