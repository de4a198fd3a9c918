"""Reads what a model's card says in the front matter of its README.md: which languages it knows, and its license."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from pipeline_tasks.text.words.language_codes import parse_language

MOST_BYTES = 4 << 20
"""Bytes of a card that are read; results of benchmarks make some of 200 kB."""

_FRONT_MATTER = re.compile(r"\A\ufeff?---[ \t]*\n(.*?)^---[ \t]*$", re.DOTALL | re.MULTILINE)
_LANGUAGE = re.compile(r"^language:.*(?:\n(?:[ \t-].*)?)*", re.MULTILINE)
_LICENSE = re.compile(
    r"^(license|license_name):[ \t]*[\"']?([A-Za-z0-9][A-Za-z0-9.+_ -]{0,99}?)[\"']?[ \t]*$", re.MULTILINE
)
_CODE = re.compile(r"[A-Za-z]{2,3}(?:[_-][A-Za-z0-9]+)*")


def languages_of(folder: Path) -> tuple[str, ...]:
    """Return the languages that the card in a model's folder names, sorted; empty where they are unknown.

    They are written as in the column `language`, without script. What is no code, such as `multilingual`, names none.
    The key and its form are those of Hugging Face's model cards (huggingface.co/docs/hub/model-cards).
    """
    key = _LANGUAGE.search(_front_matter(folder))
    return tuple(sorted({parse_language(code).language for code in _codes(key[0])})) if key else ()


def license_of(folder: Path) -> str:
    """Return the license that the card in a model's folder names, "" if it names none.

    The key `license` has an identifier of the hub; `license_name` says which one `other` is.
    """
    said = {match[1]: match[2] for match in _LICENSE.finditer(_front_matter(folder))}
    name = said.get("license", "")
    return said.get("license_name", name) if name == "other" else name


def _front_matter(folder: Path) -> str:
    try:
        with (folder / "README.md").open("rb") as stream:
            text = stream.read(MOST_BYTES).decode("utf-8", "replace").replace("\r\n", "\n")
    except OSError:
        return ""
    front = _FRONT_MATTER.match(text)
    return front[1] if front else ""


def listed(codes: Iterable[str]) -> tuple[str, ...]:
    """Return languages in one form and order, each once."""
    return tuple(sorted({str(parse_language(code)) for code in codes}))


def _codes(key: str) -> list[str]:
    """Return the codes of the key as YAML; plain words stay words, as Norway's `no` does."""
    try:
        said: Any = yaml.load(key, yaml.BaseLoader)["language"]  # noqa: S506 -- it makes texts, lists and mappings alone
    except (yaml.YAMLError, KeyError, TypeError):
        return []
    codes = said if isinstance(said, list) else [said]
    return [code for code in codes if isinstance(code, str) and _CODE.fullmatch(code)]
