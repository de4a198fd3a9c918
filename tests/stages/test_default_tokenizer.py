"""The tokenizer of the package: the released one, without loss, and good at every language that recipes keep."""

import gzip
import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline_tasks.demo.prose import english, foreign
from pipeline_tasks.errors import DigestMismatch
from pipeline_tasks.recipe import RECIPES
from pipeline_tasks.stages.tokenize.choosing import load_tokenizer
from pipeline_tasks.stages.tokenize.decoding import decoder
from pipeline_tasks.stages.tokenize.default import PATH, SHA256, default_tokenizer, read_default
from pipeline_tasks.stages.tokenize.fast import BACKENDS, fast
from pipeline_tasks.stages.tokenize.params import END_TOKENS, TOKENIZER, Params
from pipeline_tasks.stages.tokenize.references import reference
from pipeline_tasks.yaml_file import read_yaml

KIND = "tokenizers"

SOURCES = json.loads(PATH.with_name("default.sources.json").read_text("utf-8"))

FLOORS = {"en": 4.2, "de": 3.3, "es": 3.4, "fr": 3.6, "it": 3.1, "ja": 3.9, "ko": 2.8, "nl": 3.2, "pl": 2.9}
FLOORS |= {"pt": 3.2, "ru": 4.3, "tr": 3.0, "zh-CN": 2.6}
"""Bytes per token of sentences that it was not trained on: Airflow's translations and docstrings of packages."""

FREE = {"Apache-2.0", "MIT", "BSD-3-Clause", "Unicode-3.0", "public domain", "WordNet 3.0"}


def ids_of(text: str) -> list[int]:
    ids, _offsets = reference(KIND, default_tokenizer().definition)(pa.array([text], pa.large_string()))
    return [int(number) for number in ids]


def sentences(language: str) -> list[str]:
    if language == "en":
        return [text for texts in english().values() for text in texts[:40]]
    return foreign()[language]


def loaded(tmp_path: Path) -> dict[str, object]:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(default_tokenizer().definition)
    (batch,) = load_tokenizer(iter(()), params=Params(tokenizer=str(path)))
    assert batch.schema == TOKENIZER
    return dict(batch.to_pylist()[0])


def test_it_is_the_released_one() -> None:
    released = default_tokenizer()
    assert (released.name, released.sha256) == ("default", SHA256)
    assert hashlib.sha256(released.definition).hexdigest() == SHA256 == SOURCES["sha256"]


@pytest.mark.parametrize(
    "body", [None, b"", b"{}", PATH.read_bytes()[:-9], gzip.compress(b"{}"), PATH.read_bytes()[:-8] + b"\0" * 8]
)
def test_a_damaged_file_is_refused(tmp_path: Path, body: bytes | None) -> None:
    path = tmp_path / "default.json.gz"
    if body is not None:
        path.write_bytes(body)
    with pytest.raises(DigestMismatch, match=str(path)):
        read_default(path)


def test_a_recipe_can_name_its_file(tmp_path: Path) -> None:
    row = loaded(tmp_path)
    assert row["definition"] == default_tokenizer().definition  # it is in the form that the stage stores
    assert row["vocab_size"] == SOURCES["entries"] == 32768
    assert (row["eos_id"], row["bos_id"]) == (0, None)
    assert decoder(KIND, default_tokenizer().definition)([0]) == END_TOKENS[0]


@given(st.text())
@example("".join(map(chr, range(0x250))))
@example("  def f(x):\n\t\treturn x  # \u00e9\u200b\ufeff\r\n\n\n")
@example("\U0001f9a6\U0010ffff\u0000\u0378\u1e9e\ufdfa")
def test_no_text_is_lost_and_none_gives_a_special_token(text: str) -> None:
    ids = ids_of(text)
    assert decoder(KIND, default_tokenizer().definition)(ids) == text
    assert 0 not in ids


def test_the_end_token_in_a_text_is_text() -> None:
    ids = ids_of("a<|endoftext|>b")
    assert 0 not in ids
    assert decoder(KIND, default_tokenizer().definition)(ids) == "a<|endoftext|>b"


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_fast_encoders_agree_on_it(backend: str) -> None:
    texts = [text for language in FLOORS for text in sentences(language)]
    encoder = fast(backend, KIND, default_tokenizer().definition)
    assert encoder is not None
    ids, offsets = encoder(pa.array(texts, pa.large_string()))
    wanted, ends = reference(KIND, default_tokenizer().definition)(pa.array(texts, pa.large_string()))
    assert ids.tolist() == wanted.tolist()
    assert offsets.tolist() == ends.tolist()


@pytest.mark.parametrize("language", FLOORS)
def test_a_token_stands_for_several_bytes(language: str) -> None:
    text = "\n".join(sentences(language))
    assert len(text.encode()) / len(ids_of(text)) >= FLOORS[language]


def test_every_language_with_a_share_has_a_source() -> None:
    """The 23 languages that crawls are full of: those of the recipe `demo` are among them; others take more tokens."""
    kept = read_yaml(RECIPES / "demo.yaml")["stages"]["filter_language"]["keep"]
    assert set(kept) <= set(SOURCES["percent"])
    assert sum(SOURCES["percent"].values()) == pytest.approx(100)
    assert {language for source in SOURCES["sources"] for language in source["bytes"]} >= {*SOURCES["percent"]} - {
        "numbers"
    }


def test_each_source_is_pinned_and_free() -> None:
    for source in SOURCES["sources"]:
        assert len(source["sha256"]) == 64
        assert source["version"]
        assert source["licence"].split(";")[0] in FREE, source["name"]


def test_it_is_imported_without_what_tokenizes() -> None:
    code = "import sys, pipeline_tasks.stages.tokenize.default as d; d.default_tokenizer(); print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert {"tokenizers", "tiktoken", "sentencepiece", "numba"}.isdisjoint(run.stdout.split())
