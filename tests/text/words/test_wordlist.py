"""Word lists are read the same plain or compressed."""

import gzip
import re
from pathlib import Path

import pytest

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.text.words import wordlist

CONTENT = "# a comment\n one \ntwo\n\n#three\nvier größer\r\n"


def test_items_without_comments(tmp_path: Path) -> None:
    (tmp_path / "plain.txt").write_text(CONTENT, encoding="utf-8")
    (tmp_path / "packed.gz").write_bytes(gzip.compress(CONTENT.encode()))
    expected = {"one", "two", "vier größer"}
    assert wordlist.read(str(tmp_path / "plain.txt")) == wordlist.read(str(tmp_path / "packed.gz")) == expected


def test_no_path_is_an_empty_list() -> None:
    assert wordlist.read("") == frozenset()


def test_latin_1_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "latin.txt").write_bytes("größer".encode("latin-1"))
    with pytest.raises(RecipeError, match=re.escape(f"{tmp_path}/latin.txt: byte 2 ")):
        wordlist.read(str(tmp_path / "latin.txt"))
