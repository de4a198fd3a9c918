"""What a model's card says of languages is read as its hub does, and anything else is unknown."""

from pathlib import Path

import pytest

from pipeline_tasks.scorers.model_card import languages_of, license_of

LIST = "---\ntags: [a]\nlanguage:\n- multilingual\n- no\n- zh-TW\n  \n- deu\nlicense: mit\n---\n# Card\nlanguage: fr\n"


@pytest.mark.parametrize(
    ("card", "languages"),
    [
        ("---\nlanguage: en\nlicense: apache-2.0\n---\n# all-MiniLM\n", ("en",)),
        ("---\r\nlanguage: [en, pt-BR]\r\n---\r\n", ("en", "pt")),
        (LIST, ("de", "no", "zh")),
        ("---\nlanguage: multilingual\n---\n", ()),
        ("---\nlanguage:\n---\n", ()),
        ("---\nlanguage: {en\n---\n", ()),
        ("---\nlicense: mit\n---\nlanguage: en\n", ()),
        ("# A card\nlanguage: en\n", ()),
        ("\0\udcff", ()),
    ],
)
def test_the_languages_of_a_card(card: str, languages: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "README.md").write_bytes(card.encode("utf-8", "surrogateescape"))
    assert languages_of(tmp_path) == languages


@pytest.mark.parametrize(
    ("card", "license_"),
    [
        ("---\nlanguage: en\nlicense: apache-2.0\n---\n# A card\n", "apache-2.0"),
        ("---\r\nlicense: 'mit'\r\n---\r\n", "mit"),
        ("---\nlicense: other\nlicense_name: llama3.2\nlicense_link: x\n---\n", "llama3.2"),
        ("---\nlicense: other\n---\n", "other"),
        ("---\nlicense: [a, b]\n---\n", ""),
        ("# A card\nlicense: mit\n", ""),
    ],
)
def test_the_license_of_a_card(card: str, license_: str, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_bytes(card.encode())
    assert license_of(tmp_path) == license_


def test_a_model_without_a_card(tmp_path: Path) -> None:
    assert languages_of(tmp_path) == ()
