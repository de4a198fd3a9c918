"""Tests that models and word lists are refused by their path if they are cut short, or no such files at all."""

import gzip
import os
import random
import re
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.text.base import unpacking
from pipeline_tasks.text.words import fasttext_model, wordlist
from pipeline_tasks.text.words.fasttext_prediction import Predictor
from pipeline_tasks.text.words.language_model import read_model
from tests.fasttext_file import write_model

WORDS = {"otter": "en", "Dachs": "de"}
NOISE = random.Random(1).randbytes(1 << 20)


@pytest.mark.parametrize("place", range(0, 84, 4))
def test_a_fasttext_header_that_does_not_fit_ends_no_process(place: int, tmp_path: Path) -> None:
    """Each number of the header in turn is wrong; a model that still loads answers, and all others are refused."""
    path = tmp_path / "model.bin"
    body = Path(write_model(path, WORDS)).read_bytes()
    sound = struct.unpack_from("<i", body, place)[0]
    answered = []
    for value in (sound, -1, 0, 1 << 30):
        path.write_bytes(body[:place] + struct.pack("<i", value) + body[place + 4 :])
        try:
            predictor = Predictor(str(path), "filter_language: model")
        except RecipeError as error:
            assert str(path) in str(error)  # noqa: PT017 -- it may also answer
            continue
        numbers, _ = predictor.best(np.frombuffer(b"otter", np.uint8), np.array([[0, 5]]))
        assert numbers[0] in range(-1, len(predictor.labels))
        answered.append(value)
    assert answered[0] == sound


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"# only a comment\n",
        b"a" * (1 << 21),
        NOISE[:4096],
        "a.org\n".encode("utf-16"),
        "a.org\n".encode("utf-16-le"),
        "Größe\n".encode("latin-1"),
    ],
)
def test_a_damaged_list_is_refused(body: bytes, tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_bytes(body)
    with pytest.raises(RecipeError, match=re.escape(str(path))):
        wordlist.read(str(path))


@pytest.mark.parametrize("read", [wordlist.read, read_model, partial(fasttext_model.load, key="model")])
def test_a_folder_and_a_pipe_are_refused_at_once(read: Callable[[str], object], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(RecipeError, match=re.escape(f"{tmp_path} ")):
        read(str(tmp_path))
    with pytest.raises(RecipeError, match=re.escape(f"{tmp_path}/pipe ")):
        read(f"{tmp_path}/pipe")


def test_a_list_that_unpacks_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "MOST_BYTES", 1 << 20)
    path = tmp_path / "list.txt.gz"
    path.write_bytes(gzip.compress(b"a.org\n" * (1 << 17)))
    assert wordlist.read(str(path)) == {"a.org"}
    path.write_bytes(gzip.compress(b"a.org\n" * (1 << 18)))
    with pytest.raises(RecipeError, match=re.escape(str(path))):
        wordlist.read(str(path))


def test_a_packed_list_that_is_cut_short_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "list.txt.gz"
    packed = gzip.compress(b"example.org\n" * 99)
    path.write_bytes(packed)
    assert wordlist.read(str(path)) == {"example.org"}
    path.write_bytes(packed[:-9])
    with pytest.raises(RecipeError, match=re.escape(str(path))):
        wordlist.read(str(path))
