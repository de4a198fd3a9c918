"""Languages have one name, whatever a model calls them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.words.language_codes import MEMBERS, SHORT, Language, parse_language


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("en", "en"),
        ("eng", "en"),
        ("eng_Latn", "en-Latn"),
        ("ko-Hang", "ko-Hang"),
        ("zho_Hans", "zh-Hans"),
        ("cmn_Hani", "zh-Hani"),
        ("yue_Hant", "yue-Hant"),
        ("ekk_Latn", "et-Latn"),
        ("nob_Latn", "no-Latn"),
        ("nb", "no"),
        ("als", "als"),
        ("als_Latn", "sq-Latn"),
        ("ceb", "ceb"),
        ("pt-BR", "pt"),
        ("zh-Hant-TW", "zh-Hant"),
        ("SR_CYRL", "sr-Cyrl"),
        ("code", "code"),
        ("high quality", "high quality"),
        ("", ""),
    ],
)
def test_forms(label: str, name: str) -> None:
    assert str(parse_language(label)) == name


def test_names_name_themselves() -> None:
    names = sorted({*SHORT.values(), *MEMBERS.values()})
    assert len(names) > 100
    assert [parse_language(name) for name in names] == [Language(name) for name in names]


@given(st.text(max_size=12))
def test_any_label_has_a_name_and_keeps_it(label: str) -> None:
    assert parse_language(str(parse_language(label))) == parse_language(label)
