"""Rejected rows are exported whole, by language, and can be refined again."""

import json
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.landing import listing
from pipeline_tasks.publish.logs import version_log
from tests.documents import documents
from tests.examples import few_examples
from tests.fasttext_file import write_model
from tests.refining import commit_parent, refined, rows

WORDS = {"otter": "eng_Latn", "Dachs": "deu_Latn", "видра": "srp_Cyrl", "vidra": "srp_Latn", "odd": "../odd"}
FILES = {"otter": "en", "Dachs": "de", "видра": "sr", "vidra": "sr", "odd": "..%2Fodd", "none": "und"}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_model(tmp_path_factory.mktemp("model") / "labels.bin", WORDS)


def published(root: Path, texts: list[str], model: str) -> version_log.Version:
    """Publish a snapshot that only `filter_language` has refined, for English."""
    parent = commit_parent(root, [documents(texts[:3]), documents(texts[3:])])
    path, _ = refined(root, "filter_language", parent, {"model": model})
    entry = {"recipe": "web", "snapshot": "s", "landing": "", "manifests": {"filter_language": path}, "verdicts": {}}
    return version_log.append(str(root), entry | {"prefix": "", "documents": 0, "tokens": 0, "sequences": 0})


def text(word: str) -> str:
    return " ".join([word] * 30)


@few_examples
@drawn(words=st.lists(st.sampled_from([*FILES]), max_size=10))
def test_every_rejected_document_is_in_the_file_of_its_language(
    model: str, words: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("root")
    published(root, [text(word) for word in words], model)
    to = root / "rejects"
    assert main(["rejects", str(root), "--to", str(to)]) == 0
    exported = {file.stem: pq.read_table(file)["text"].to_pylist() for file in to.iterdir()}
    expected = Counter((FILES[word], text(word)) for word in words if word != "otter")
    assert Counter((name, document) for name, texts in exported.items() for document in texts) == expected


def test_counts_are_of_the_chosen_rows(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    published(tmp_path, [text(word) for word in ("otter", "Dachs", "Dachs", "видра", "none")], model)
    assert main(["rejects", str(tmp_path), "--reason", "other", "--language", "de", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "reasons": {"filter_language:other": 2}, "languages": {"de": 2},
    }  # fmt: skip
    assert main(["rejects", str(tmp_path), "--reason", "nosuch"]) == RecipeError.exit_code
    assert "rejected no row for filter_language:nosuch" in capsys.readouterr().err


def test_counts_and_choices(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = [text(word) for word in ("otter", "Dachs", "Dachs", "видра", "none")]
    published(tmp_path, texts, model)
    assert main(["rejects", str(tmp_path), "--json"]) == 0
    reasons = {"filter_language:other": 3, "filter_language:unsure": 1}
    assert json.loads(capsys.readouterr().out) == {"reasons": reasons, "languages": {"de": 2, "sr": 1, "und": 1}}
    assert main(["rejects", str(tmp_path)]) == 0
    assert "language  de" in capsys.readouterr().out
    export = ["rejects", str(tmp_path), "--json", "--to"]
    for choice, files in (
        (["--language", "deu_Latn"], {"de": 2}),
        (["--language", "sr", "--language", "und"], {"sr": 1, "und": 1}),
        (["--reason", "other"], {"de": 2, "sr": 1}),
        (["--reason", "filter_language:unsure", "--language", "de"], {}),
    ):
        to = tmp_path / "-".join(choice)
        assert main([*export, str(to), *choice]) == 0
        assert json.loads(capsys.readouterr().out) == files
        assert sorted(file.name for file in to.iterdir()) == sorted(f"{name}.parquet" for name in files)
    assert main([*export, str(to), "--reason", "none"]) == RecipeError.exit_code
    assert main([*export, str(tmp_path)]) == RecipeError.exit_code
    assert main(["rejects", str(tmp_path), "--stage", "extract"]) == RecipeError.exit_code


def test_exported_rejects_are_a_snapshot(model: str, tmp_path: Path) -> None:
    published(tmp_path, [text("otter"), text("Dachs"), text("видра")], model)
    to = tmp_path.with_name(f"{tmp_path.name}-other")
    assert main(["rejects", str(tmp_path), "--language", "de", "--to", str(to)]) == 0
    path, _, _ = listing.land(str(tmp_path), str(to))
    landing = listing.landing_of(str(to))
    path, _ = refined(tmp_path, "ingest", path, landing=landing)
    path, _ = refined(tmp_path, "extract", path, landing=landing)
    _, manifest = refined(tmp_path, "filter_language", path, {"model": model, "keep": ["de"]})
    (kept,) = rows(tmp_path, manifest).to_pylist()
    assert kept["text"] == text("Dachs")
    assert kept["url"] == "https://example.org/1"
