"""A model is trained, checked and published below a root: once, whole, and not if its check refuses it."""

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from refinery_models.scorers.publishing import (
    Sources,
    check_below,
    publish_below,
    require_admitted,
    train_below,
    uri_of,
)

from pipeline_tasks.errors import ContractError, GateRefused, RecipeError
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.model_log import published_models
from pipeline_tasks.store import storage
from pipeline_tasks.store.files import digest_of_named
from tests.chain import reply
from tests.commands import Refinery
from tests.documents import documents
from tests.refining import commit_parent, refined
from tests.scorer_samples import passages
from tests.static_embeddings import write_embeddings

MARKS = (" alpha" * 12, " beta" * 12)


def write(path: Path, texts: Sequence[str], sites: int = 20) -> str:
    rows = [
        {"text": text, "language": "en", "url": f"https://{path.stem}{at % sites}.example/{at}"}
        for at, text in enumerate(texts)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


@pytest.fixture
def texts(tmp_path: Path) -> dict[str, str]:
    """Good texts and a crawl; two sides that differ by a mark, and a sample whose sites have one or the other."""
    own = passages()
    shouted = [" ".join(f"buy {word} now" for word in text.split()[:40]) for text in own[200:400]]
    sided = [text + MARKS[at % 2] for at, text in enumerate(own[240:480])]
    return {
        "good": write(tmp_path / "good.jsonl", own[:200]),
        "crawl": write(tmp_path / "crawl.jsonl", shouted),
        "sample": write(tmp_path / "sample.jsonl", own[400:460], sites=60),
        "alpha": write(tmp_path / "alpha.jsonl", [text + MARKS[0] for text in own[:120]]),
        "beta": write(tmp_path / "beta.jsonl", [text + MARKS[1] for text in own[120:240]]),
        "sided": write(tmp_path / "sided.jsonl", sided, sites=8),
    }


def test_a_model_is_published_with_its_reports_and_found_again(any_root: str, texts: dict[str, str]) -> None:
    storage.put_file(any_root, "given/good.jsonl", Path(texts["good"]))
    sources = Sources([f"{any_root}/given/good.jsonl"], [texts["crawl"]])
    model, training, report = train_below(any_root, "quality", sources)
    assert published_models(any_root, "quality") == []
    check, found = check_below(any_root, "quality", model, report.label, [texts["sample"]])
    assert found.model == report.model == digest_of_named(uri_of(any_root, model))
    first = publish_below(any_root, "quality", model, training, check)
    assert (first.number, first.digest, first.outcome, first.accepted) == (1, report.model, "warn", "")
    again = train_below(any_root, "quality", sources)
    assert again == (model, training, report)
    assert publish_below(any_root, "quality", model, training, check) == first
    assert published_models(any_root, "quality") == [first]


def test_texts_of_the_roots_own_versions_are_named_without_the_root(tmp_path: Path) -> None:
    root, own = tmp_path / "root", passages()
    for snapshot, texts in (
        ("books", own[:200]),
        ("crawl", [" ".join(f"buy {word}" for word in text.split()) for text in own]),
    ):
        urls = [f"https://{snapshot}{at % 20}.example/{at}" for at in range(len(texts))]
        table = documents(texts, urls, language=pa.array(["en"] * len(texts)))
        path, manifest = refined(root, "dedup_exact", commit_parent(root, [table], snapshot))
        entry = {"recipe": "web", "snapshot": snapshot, "landing": "", "manifests": {"dedup_exact": path}}
        version_log.append(
            str(root),
            entry | {"verdicts": {}, "prefix": "", "documents": manifest.rows, "tokens": 0, "sequences": 0},
        )
    model, _, report = train_below(str(root), "quality", Sources(["@web:books"], ["@crawl"]))
    whole = train_below(str(root), "quality", Sources([f"{root}@web:books"], [f"{root}@web:crawl"]))
    assert whole[0] == model
    assert report.texts["good_trained"] + report.texts["good_held_out"] == 200
    check, _ = check_below(str(root), "quality", model, report.label, ["@books"], 100)
    assert (root / check).exists()


def test_another_model_is_compared_with_the_one_published_last(tmp_path: Path, texts: dict[str, str]) -> None:
    root = str(tmp_path / "root")
    digests = []
    for negatives in (["crawl"], []):
        sources = Sources([texts["good"]], [texts[name] for name in negatives])
        model, training, report = train_below(root, "quality", sources)
        check, _ = check_below(root, "quality", model, report.label, [texts["sample"]])
        publish_below(root, "quality", model, training, check, "tried")
        digests.append(report.model)
    assert report.against is not None
    assert report.against["old"] == digests[0] != digests[1]
    assert [model.digest for model in published_models(root, "quality")] == digests


def test_a_model_that_its_check_refuses_is_published_with_a_reason_alone(tmp_path: Path, texts: dict[str, str]) -> None:
    root = str(tmp_path / "root")
    model, training, report = train_below(root, "quality", Sources([texts["alpha"]], [texts["beta"]]))
    check, found = check_below(root, "quality", model, report.label, [texts["sided"]])
    with pytest.raises(GateRefused, match=r"source_auc.*check\."):
        require_admitted(root, check, found)
    with pytest.raises(GateRefused):
        publish_below(root, "quality", model, training, check)
    assert published_models(root, "quality") == []
    published = publish_below(root, "quality", model, training, check, "sorts by site, as we want")
    assert (published.outcome, published.accepted) == ("refuse", "sorts by site, as we want")
    other = train_below(root, "quality", Sources([texts["good"]], [texts["crawl"]]))
    with pytest.raises(ContractError, match="another model"):
        publish_below(root, "quality", other[0], other[1], check)


def test_a_head_is_stored_as_a_folder(tmp_path: Path, texts: dict[str, str]) -> None:
    root = str(tmp_path / "root")
    embeddings = write_embeddings(tmp_path / "embeddings", ["the", "of", "buy", "now", "is", "and"])
    sources = Sources([texts["good"]], [texts["crawl"]], embeddings=str(embeddings))
    model, training, report = train_below(root, "head", sources)
    check, found = check_below(root, "head", model, report.label, [texts["sample"]])
    assert (found.kind, report.label) == ("static embeddings", "high")
    assert publish_below(root, "head", model, training, check, "tried").model == model
    assert (tmp_path / "root" / model / "head.safetensors").exists()


def test_a_log_that_was_changed_is_named(tmp_path: Path, texts: dict[str, str]) -> None:
    root = str(tmp_path / "root")
    model, training, report = train_below(root, "quality", Sources([texts["good"]], [texts["crawl"]]))
    check, _ = check_below(root, "quality", model, report.label, [texts["sample"]])
    publish_below(root, "quality", model, training, check)
    [entry] = (tmp_path / "root" / "models" / "quality" / "log").glob("*.json")
    entry.write_bytes(entry.read_bytes().replace(b'"outcome":"warn"', b'"outcome":"pass"'))
    with pytest.raises(ContractError, match="publish the model again"):
        published_models(root, "quality")


def test_the_command_does_what_the_requests_do(tmp_path: Path, texts: dict[str, str], refinery: Refinery) -> None:
    sides = ("--positives", texts["good"], "--negatives", texts["crawl"], "--sample", texts["sample"])
    done = refinery("model", "quality", *sides, "--root", tmp_path / "root", "--json")
    assert done.returncode == 0, done.stderr
    [published] = published_models(str(tmp_path / "root"), "quality")
    assert json.loads(done.stdout)["digest"] == published.digest
    asked = {"root": str(tmp_path / "other"), "name": "quality"}
    trained = reply("train_model", **asked, positives=[texts["good"]], negatives=[texts["crawl"]])
    assert (trained["model"], trained["training"]) == (published.model, published.training)
    refused = refinery(
        "model",
        "quality",
        *("--positives", texts["alpha"], "--negatives", texts["beta"], "--sample", texts["sided"]),
        *("--root", tmp_path / "root", "--name", "site"),
    )
    assert refused.returncode == GateRefused.exit_code
    assert "source_auc" in refused.stderr
    assert published_models(str(tmp_path / "root"), "site") == []


@pytest.mark.parametrize("where", [("--output", "a.bin", "--root", "root"), ()])
def test_a_model_has_one_place(tmp_path: Path, texts: dict[str, str], refinery: Refinery, where: tuple[str]) -> None:
    done = refinery("model", "quality", "--positives", texts["good"], *where)
    assert done.returncode == RecipeError.exit_code
    assert "--root" in done.stderr
