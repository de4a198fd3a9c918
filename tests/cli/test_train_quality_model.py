"""`refinery model quality` holds whole sites out, matches languages, and says what a model tells apart."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refinery_models.scorers.training import LEAST, gather

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.store.files import digest_of_named
from tests.commands import Refinery
from tests.scorer_samples import GOOD, passages
from tests.static_embeddings import write_embeddings


def write(path: Path, texts: Sequence[str], sites: int = 20, languages: Sequence[str] = ("en",)) -> str:
    rows = [
        {
            "text": text,
            "url": f"https://{path.stem}{at % sites}.example/{at}",
            "language": languages[at % len(languages)],
        }
        for at, text in enumerate(texts)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def shouted(text: str) -> str:
    return " ".join(f"buy {word} now" for word in text.split()[:40])


@pytest.fixture
def sides(tmp_path: Path) -> tuple[str, str]:
    """Passages of a manual, and others in the words of a shop."""
    own = passages()
    return write(tmp_path / "good.jsonl", own[:200]), write(
        tmp_path / "crawl.jsonl", [shouted(text) for text in own[200:440]]
    )


def trained(refinery: Refinery, output: Path, *arguments: object) -> dict[str, Any]:
    done = refinery("model", "quality", *arguments, "--output", output, "--json")
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def test_a_model_tells_texts_of_sites_apart_that_it_has_not_seen(
    tmp_path: Path, refinery: Refinery, sides: tuple[str, str]
) -> None:
    sources = ("--positives", sides[0], "--negatives", sides[1])
    report = trained(refinery, tmp_path / "a.bin", *sources)
    assert report["held_out"][1] > 0.85
    assert report["model"] == digest_of_named(str(tmp_path / "a.bin"))
    assert report["inputs"].keys() == {"good.jsonl", "crawl.jsonl"}
    assert report["texts"]["good_trained"] + report["texts"]["good_held_out"] == 200
    assert (tmp_path / "a.bin.training.json").exists()
    again = trained(refinery, tmp_path / "b.bin", *sources, "--against", tmp_path / "a.bin")
    assert again["model"] == report["model"]
    assert (again["against"]["agreement"], again["against"]["moved_share"]) == (1.0, 0.0)
    check = ("model", "check", tmp_path / "a.bin", "--label", report["label"], "--sample", sides[0], "--json")
    assert json.loads(refinery(*check).stdout)["model"] == report["model"]


def test_a_head_is_trained_over_embeddings_and_compared(
    tmp_path: Path, refinery: Refinery, sides: tuple[str, str]
) -> None:
    embeddings = write_embeddings(tmp_path / "embeddings", [*GOOD, "buy", "now"])
    sources = ("--positives", sides[0], "--negatives", sides[1])
    trained(refinery, tmp_path / "a.bin", *sources)
    report = trained(refinery, tmp_path / "head", *sources, "--embeddings", embeddings, "--against", tmp_path / "a.bin")
    assert (report["kind"], report["label"]) == ("static embeddings", "high")
    assert report["held_out"][1] > 0.85
    assert report["against"]["documents"] == report["texts"]["good_held_out"] + report["texts"]["other_held_out"]
    assert len(report["against"]["moved"]) == 10
    assert report["against"]["held_out"][0] > 0.9


def test_without_a_crawl_the_others_are_nonsense(tmp_path: Path, refinery: Refinery, sides: tuple[str, str]) -> None:
    report = trained(refinery, tmp_path / "a.bin", "--positives", sides[0])
    assert report["texts"]["other_trained"] == report["texts"]["good_trained"]
    assert report["held_out"][0] > 0.6


def test_no_site_and_no_text_is_on_both_sides(tmp_path: Path) -> None:
    own = passages()
    good = write(tmp_path / "good.jsonl", own[:200])
    crawl = write(tmp_path / "crawl.jsonl", [*own[:50], *own[200:400]])
    examples = gather([good], [crawl], 1000, 1)
    ids, sites = examples.texts.column("id").to_pylist(), np.array(examples.texts.column("source").to_pylist())
    assert len(set(ids)) == len(ids)
    assert not set(sites[examples.held_out]) & set(sites[~examples.held_out])
    assert examples.targets.sum() == len(examples.targets) / 2


def test_nonsense_is_held_out_with_the_site_of_its_text(tmp_path: Path) -> None:
    examples = gather([write(tmp_path / "good.jsonl", passages()[:200])], [], 1000, 1)
    sites = np.array(examples.texts.column("source").to_pylist())
    assert not set(sites[examples.held_out]) & set(sites[~examples.held_out])
    assert set(sites[examples.targets]) == set(sites[~examples.targets])


def test_languages_are_matched(tmp_path: Path) -> None:
    """A model of English texts and a crawl of many languages would have learned English."""
    own = passages()
    good = write(tmp_path / "good.jsonl", own[:200], languages=("en", "de"))
    crawl = write(tmp_path / "crawl.jsonl", own[200:500], languages=("en", "de", "fr"))
    examples = gather([good], [crawl], 1000, 1)
    languages = np.array(examples.texts.column("language").to_pylist())
    counts = [
        {code: int((languages[examples.targets == target] == code).sum()) for code in ("en", "de", "fr")}
        for target in (True, False)
    ]
    assert counts[0] == counts[1] == {"en": 100, "de": 100, "fr": 0}


def test_texts_of_one_site_train_no_model(tmp_path: Path, refinery: Refinery) -> None:
    """Half of such a model's worth would be the name of the site."""
    own = passages()
    good = write(tmp_path / "good.jsonl", own[:200], sites=1)
    crawl = write(tmp_path / "crawl.jsonl", own[200:400])
    done = refinery("model", "quality", "--positives", good, "--negatives", crawl, "--output", tmp_path / "a.bin")
    assert done.returncode == RecipeError.exit_code
    assert f"a model needs {LEAST}" in done.stderr
    assert not (tmp_path / "a.bin").exists()


def test_a_model_that_is_there_is_not_replaced(tmp_path: Path, refinery: Refinery, sides: tuple[str, str]) -> None:
    (tmp_path / "a.bin").write_bytes(b"in use")
    done = refinery("model", "quality", "--positives", sides[0], "--output", tmp_path / "a.bin")
    assert done.returncode == RecipeError.exit_code
    assert (tmp_path / "a.bin").read_bytes() == b"in use"


def test_a_model_is_there_whole_with_its_report_or_not_at_all(
    tmp_path: Path, refinery: Refinery, sides: tuple[str, str]
) -> None:
    """What ends behind the training, here another report in the way, leaves no model, and nothing half-written."""
    embeddings = write_embeddings(tmp_path / "embeddings", [*GOOD, "buy", "now"])
    sources = ("--positives", sides[0], "--negatives", sides[1])
    for name, more in (("a.bin", ()), ("head", ("--embeddings", embeddings))):
        (tmp_path / f"{name}.training.json").write_bytes(b"another")
        before = sorted(tmp_path.iterdir())
        done = refinery("model", "quality", *sources, *more, "--output", tmp_path / name)
        assert done.returncode == RecipeError.exit_code
        assert f"{name}.training.json" in done.stderr
        assert sorted(tmp_path.iterdir()) == before
