"""Days of nonsense are refused by the gates of `refinery run`, and a small day of prose is published.

The prose is that of installed packages; half of it is what a language
model is trained on, the rest is published or planted with words in disorder.
"""

import json
import random
import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from pipeline_tasks.cli.main import main
from pipeline_tasks.demo import prose
from pipeline_tasks.errors import GateRefused
from pipeline_tasks.ledger import Ledger, ledger_of
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.store.reading import read_manifest
from tests.commands import Refinery
from tests.dags.test_run import words

pytestmark = pytest.mark.slow

RECIPE = "planted"
DAY = "2026-11-20"
FILTERS: dict[str, object] = {
    "ingest": {},
    "extract": {"min_chars": 100},
    "filter_language": {"keep": ["en"]},
    "filter_quality": {"profiles": ["gopher_repetition", "gopher_quality"]},
    "dedup_exact": {"buckets": 1},
}


@dataclass(frozen=True, slots=True)
class Prose:
    """Documents of prose, and a language model that was trained on other ones."""

    documents: Sequence[str]
    model: Path


@pytest.fixture(scope="module")
def english(tmp_path_factory: pytest.TempPathFactory) -> Prose:
    folder = tmp_path_factory.mktemp("trusted")
    packages = prose.english()
    paragraphs = [text for package in sorted(packages) for text in packages[package][:800]]
    documents = ["\n".join(paragraphs[at : at + 8]) for at in range(0, len(paragraphs) - 8, 8)]
    trusted, model = folder / "trusted.txt", folder / "en.lm"
    trusted.write_text("\n".join(documents[::2]), "utf-8")
    assert main(["model", "lm", "--lang", "en", "--output", str(model), str(trusted)]) == 0
    return Prose(documents[1::2], model)


def gibberish(number: int) -> str:
    draw = random.Random(number)
    return " ".join("".join(draw.choices(string.ascii_lowercase, k=draw.randint(2, 10))) for _ in range(120))


def disordered(number: int, text: str) -> str:
    words = text.split()
    return " ".join(random.Random(number).sample(words, len(words)))


def landed(folder: Path, texts: Sequence[str]) -> Path:
    day = folder / "crawl" / DAY
    day.mkdir(parents=True)
    rows = [{"url": f"https://e{n % 7}.example.org/{n}", "text": text} for n, text in enumerate(texts)]
    (day / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return day


def recipe(stages: Mapping[str, object]) -> str:
    return json.dumps({"name": RECIPE, "stages": stages, "run": {"partitions": 1}})


def stages_of(root: str) -> dict[str, Manifest]:
    """The last manifest of every stage that ran, as the ledger has it."""
    with Ledger.open(ledger_of(root)) as ledger:
        rows = ledger.query("funnel", recipe=RECIPE, snapshot=DAY)
    return {row["stage"]: read_manifest(root, row["manifest"]) for row in rows}


def test_a_day_of_gibberish_is_refused_twice(tmp_path: Path, english: Prose, refinery: Refinery) -> None:
    """293 of 320 texts are random letters; 27 are good, which is more than a twentieth in a wanted language.

    A person lets the language gate pass; the gate before publishing refuses all the same. Before, both only warned.
    """
    day = landed(tmp_path, [*english.documents[:27], *map(gibberish, range(293))])
    refused = refinery(*words(tmp_path, day, recipe=recipe(FILTERS)))
    assert refused.returncode == GateRefused.exit_code == 65, refused.stderr
    assert "filter_language/" in refused.stderr
    assert re.search(r"\blanguage_score_read_p50\b\D*0\.[01]\d*\D+0\.5\b", refused.stderr)
    assert "expectations/filter_language.json" in refused.stderr
    overridden = ("--override", "filter_language=it is a test")
    again = refinery(*words(tmp_path, day, *overridden, recipe=recipe(FILTERS)))
    assert again.returncode == GateRefused.exit_code, again.stderr
    assert DAY in again.stderr
    assert re.search(r"\btext_retention\b\D*0\.0[78]\d*\D+0\.15\b", again.stderr)
    assert re.search(r"\b320 rows\b", again.stderr)
    assert "expectations/publish.json" in again.stderr
    assert version_log.versions(str(tmp_path / "root"), RECIPE) == []


def test_a_small_day_of_prose_is_published(tmp_path: Path, english: Prose, refinery: Refinery) -> None:
    """Forty documents pass the same gates that refuse nonsense."""
    done = refinery(*words(tmp_path, landed(tmp_path, english.documents[:40]), recipe=scored(english)))
    assert done.returncode == 0, done.stderr
    version = version_log.current(str(tmp_path / "root"), RECIPE)
    assert (version.number, version.snapshot) == (1, DAY)
    assert version.documents >= 30


@pytest.mark.parametrize("model", ["shipped", "own"])
def test_a_day_of_words_in_disorder_is_refused(tmp_path: Path, english: Prose, refinery: Refinery, model: str) -> None:
    """The words of 60 documents of prose, shuffled in each: languages and heuristics keep them, the model does not.

    Before, four of them were published with a warning.
    """
    texts = [disordered(number, text) for number, text in enumerate(english.documents[:60])]
    refused = refinery(*words(tmp_path, landed(tmp_path, texts), recipe=scored(english) if model == "own" else SHIPPED))
    assert refused.returncode == GateRefused.exit_code, refused.stderr
    assert "score_quality/" in refused.stderr
    assert re.search(r"\breason_share\.score_quality:low_component\b\D*0\.9", refused.stderr)
    assert "expectations/score_quality.json" in refused.stderr
    assert version_log.versions(str(tmp_path / "root"), RECIPE) == []
    judged = stages_of(str(tmp_path / "root"))["score_quality"]
    assert judged.rows_in >= 40
    assert judged.rejected["score_quality:low_component"] >= 0.9 * judged.rows_in


def scored(english: Prose) -> str:
    """The recipe with a score of quality that knows what to expect of English words."""
    minima = {"perplexity": 0.2, "redundancy": 0.2}  # a model of the texts' own kind bears more than the default
    return recipe(FILTERS | {"score_quality": {"language_models": {"en": str(english.model)}, "minima": minima}})


SHIPPED = recipe(FILTERS | {"score_quality": {}})
"""The recipe with the score as shipped."""
