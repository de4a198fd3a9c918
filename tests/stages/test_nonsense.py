"""With a model trained on half of some real prose, `score_quality` tells the other half from planted nonsense.

The nonsense is made of the words of the texts that it is compared with: their words in disorder, lists of keywords,
menus, price lists, and a sentence again and again.
"""

import gzip
import json
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pipeline_tasks.cli.main import main
from pipeline_tasks.demo import prose
from pipeline_tasks.stage import FilePath
from pipeline_tasks.stages.score_quality import LOW_COMPONENT, Params, score

AREA = 0.95
"""What the area under the ROC curve must be at least: the share of pairs (text, nonsense) that scores order rightly."""

LISTS = 60
Make = Callable[[random.Random, Sequence[str]], str]


def keywords(draw: random.Random, words: Sequence[str]) -> str:
    return ", ".join(draw.choice(words) for _ in range(draw.randint(30, 150)))


def menu(draw: random.Random, words: Sequence[str]) -> str:
    return "\n".join(" ".join(_name(draw, words)) for _ in range(draw.randint(20, 60)))


def prices(draw: random.Random, words: Sequence[str]) -> str:
    entries = ((_name(draw, words), draw.randint(1, 400), draw.randint(0, 99)) for _ in range(draw.randint(20, 60)))
    return "\n".join(f"{' '.join(name)} {whole}.{part:02} €" for name, whole, part in entries)


def _name(draw: random.Random, words: Sequence[str]) -> list[str]:
    return [draw.choice(words).capitalize() for _ in range(draw.randint(1, 3))]


def planted(texts: Sequence[str]) -> dict[str, list[str]]:
    """Return nonsense of each kind."""
    draw = random.Random(9)
    words = [word for text in texts for word in re.findall(r"[^\W\d_]{4,}", text)]
    makers: dict[str, Make] = {"keywords": keywords, "menu": menu, "prices": prices}
    lists = {name: [make(draw, words) for _ in range(LISTS)] for name, make in makers.items()}
    return {
        "disorder": [" ".join(draw.sample(text.split(), len(text.split()))) for text in texts],
        "lines in disorder": ["\n".join(_disordered(draw, line) for line in text.split("\n")) for text in texts],
        "repetition": [(text[:150] + " ") * 15 for text in texts],
        **lists,
    }


def _disordered(draw: random.Random, line: str) -> str:
    words = line.split()
    return " ".join(draw.sample(words, len(words)))


def area(texts: np.ndarray, nonsense: np.ndarray) -> float:
    differences = texts[:, None] - nonsense[None, :]
    return float(np.mean(differences > 0) + np.mean(differences == 0) / 2)


def scored(texts: Sequence[str], language: str, params: Params) -> tuple[np.ndarray, list[str | None]]:
    batch = pa.record_batch(
        {
            "text": pa.array(texts, pa.large_string()),
            "chars": pa.array([len(text) for text in texts], pa.int64()),
            "language": [language] * len(texts),
            "language_score": [0.95] * len(texts),
        }
    )
    (out,) = score(iter([batch]), params=params)
    return np.array(out["score"].to_pylist()), out["reason"].to_pylist()


def check(folder: Path, trusted: Sequence[str], texts: Sequence[str], language: str) -> None:
    """Train on `trusted`, and require that `texts` score above all nonsense that is made of them."""
    (folder / "trusted.txt").write_text("\n".join(trusted), "utf-8")
    model = str(folder / f"{language}.lm")
    assert main(["model", "lm", "--lang", language, "--output", model, str(folder / "trusted.txt")]) == 0
    minima = {"perplexity": 0.2, "redundancy": 0.2}
    params = Params(language_models={language: FilePath(model)}, minima=minima)
    scores, reasons = scored(texts, language, params)
    assert np.mean([reason is not None for reason in reasons]) <= 0.05
    blind, _ = scored(texts, language, Params(shipped_models=False))
    for kind, nonsense in planted(texts).items():
        low, why = scored(nonsense, language, params)
        assert area(scores, low) >= AREA, kind
        if kind in ("disorder", "repetition", "keywords"):
            assert why.count(LOW_COMPONENT) >= 0.5 * len(why), kind
        if kind == "disorder":
            assert (
                area(blind, scored(nonsense, language, Params(shipped_models=False))[0]) < 0.6
            )  # nothing else sees it


@pytest.mark.slow
def test_nonsense_falls_below_the_prose_of_packages(tmp_path: Path) -> None:
    english = prose.english()
    paragraphs = [text for package in sorted(english) for text in english[package][:800]]
    documents = ["\n".join(paragraphs[at : at + 8]) for at in range(0, len(paragraphs) - 8, 8)]
    check(tmp_path, documents[::2], documents[1::2][:200], "en")


@pytest.mark.slow
@pytest.mark.parametrize("language", ["de", "fr"])
def test_nonsense_falls_below_real_pages(shared_data: Path, tmp_path: Path, language: str) -> None:
    pages = pages_in(shared_data, language)
    check(tmp_path, pages[::2], pages[1::2], language)


@pytest.mark.slow
def test_real_pages_of_another_kind_than_the_trusted_text_stand(shared_data: Path, tmp_path: Path) -> None:
    speeches = shared_data / "text" / "nltk-state-union-inaugural.jsonl.gz"
    with gzip.open(speeches) as lines:
        trusted = [json.loads(line)["text"] for line in lines]
    check(tmp_path, trusted, pages_in(shared_data, "en")[:150], "en")


def pages_in(shared_data: Path, language: str) -> list[str]:
    """Return the long lines of each page in a language, in the order of URLs."""
    from fastwarc.warc import ArchiveIterator

    pages = {}
    for day in ("dev-2026-45", "dev-2026-46"):
        with gzip.open(shared_data / "snapshots" / day / "manifest.jsonl.gz") as lines:
            urls = {row["url"] for row in map(json.loads, lines) if row.get("detected_lang") == language}
        with (shared_data / "wet" / f"{day}-all.warc.wet.gz").open("rb") as stream:
            for record in ArchiveIterator(stream):
                url = record.headers.get("WARC-Target-URI")
                if url in urls:
                    text = record.reader.read().decode("utf-8", "replace")
                    pages[url] = "\n".join(line for line in text.split("\n") if len(line.strip()) >= 60)[:4000]
    return [pages[url] for url in sorted(pages) if len(pages[url]) >= 600]
