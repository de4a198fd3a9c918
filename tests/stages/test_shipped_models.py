"""The language models of the package: the released ones, of free sources, and without them nothing is judged."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pipeline_tasks.demo.prose import english, foreign
from pipeline_tasks.errors import DigestMismatch
from pipeline_tasks.stages.score_quality import Params, check_files
from pipeline_tasks.stages.score_quality.shipped_models import FOLDER, SHA256, path_of, released, shipped_model
from tests.stages.test_default_tokenizer import FREE
from tests.stages.test_default_tokenizer import SOURCES as TOKENIZED
from tests.stages.test_nonsense import AREA, area, planted, scored

SOURCES = json.loads((FOLDER / "sources.json").read_text("utf-8"))["sources"]

BUDGET = 10_000_000
"""Bytes that all models may take in the package."""


def test_every_model_is_the_released_one_of_its_language_and_no_other_file_is_there() -> None:
    check_files(Params())
    assert {path.name for path in FOLDER.iterdir()} == {"sources.json", *(path_of(code).name for code in SHA256)}
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) <= BUDGET
    for code in SHA256:
        model = shipped_model(code)
        assert model is not None
        assert model.language == code
        assert shipped_model(code) is model  # read once in a process


def test_a_language_without_a_model_has_none() -> None:
    assert shipped_model("ko") is shipped_model("") is None


@pytest.mark.parametrize("body", [None, b"", path_of("da").read_bytes()[:-1]])
def test_a_damaged_model_is_refused(tmp_path: Path, body: bytes | None) -> None:
    path = tmp_path / "da.lm.xz"
    if body is not None:
        path.write_bytes(body)
    with pytest.raises(DigestMismatch, match=re.escape(str(path))):
        released(path, SHA256["da"])


def test_each_source_is_pinned_and_free() -> None:
    for source in SOURCES:
        assert len(source["sha256"]) == 64
        assert source["version"]
        assert source["licence"].split(";")[0] in {*FREE, "PDDL-1.0"}, source["name"]
    assert {language for source in SOURCES for language in source["bytes"]} == set(SHA256)


def test_the_languages_of_the_default_tokenizer_have_a_model_but_for_three() -> None:
    """The recipe `web` keeps more: texts in other languages have no perplexity, and `score_quality` says so."""
    assert set(TOKENIZED["percent"]) - set(SHA256) == {"ko", "ar", "hi", "code", "numbers"}


def documents(language: str) -> list[str]:
    """Return texts of eight paragraphs that no model was trained on: docstrings, and Airflow's translations."""
    prose = [text for texts in english().values() for text in texts[:120]] if language == "en" else foreign()[language]
    return ["\n".join(prose[at : at + 8]) for at in range(0, min(len(prose), 960), 8)]


@pytest.mark.slow
@pytest.mark.parametrize("language", ["en", "de", "fr", "es", "it", "pt", "nl", "ru", "pl", "tr", "ja", "zh-CN"])
def test_as_shipped_words_in_disorder_score_below_text(language: str) -> None:
    code, texts = language.partition("-")[0], documents(language)
    made = disordered(texts) if code in ("ja", "zh") else planted(texts)["disorder"]
    scores, _ = scored(texts, code, Params())
    low, _ = scored(made, code, Params())
    assert area(scores, low) >= AREA
    blind, _ = scored(texts, code, Params(shipped_models=False))
    assert area(blind, scored(made, code, Params(shipped_models=False))[0]) < 0.6  # nothing else sees it


def disordered(texts: list[str]) -> list[str]:
    """Return texts with their letters in disorder."""
    draws = np.random.default_rng(5)
    return ["".join(np.array(list(text))[draws.permutation(len(text))]) for text in texts]


def test_a_kernel_reads_the_models_of_its_languages_only() -> None:
    code = (
        "import pyarrow as pa; from pipeline_tasks.stages.score_quality import Params, score;"
        "from pipeline_tasks.stages.score_quality.shipped_models import shipped_model;"
        "rows = pa.record_batch({'text': pa.array(['a b'], pa.large_string()), 'chars': [3], 'language': ['da'],"
        " 'language_score': [.9]}); list(score(iter([rows]), params=Params())); print(shipped_model.cache_info().misses)"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout.strip() == "1"
