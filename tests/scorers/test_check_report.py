"""A scorer whose check refuses it may not decide, unless a person says why; the manifest and the gate say that it does."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline_tasks.errors import DigestMismatch, RecipeError
from pipeline_tasks.gate.verdicts import judge
from pipeline_tasks.inspect.lint import lint
from pipeline_tasks.scorers.classifier import Classifier, computing
from pipeline_tasks.scorers.report import REFUSE, CheckReport, computing_params, digest_of_model, require_admitted
from pipeline_tasks.sealed import seal
from pipeline_tasks.stage import FilePath
from pipeline_tasks.store.reading import read_manifest
from tests.documents import documents
from tests.refining import commit_parent, refined
from tests.scorer_samples import by_source, by_text, passages

LABEL = "__label__good"


@pytest.fixture
def model(tmp_path: Path) -> FilePath:
    return FilePath(by_text(tmp_path / "text.bin"))


def report_of(model: FilePath, folder: Path, outcome: str = REFUSE) -> FilePath:
    """Write the report of a check that ended so."""
    params = computing_params(Classifier(model, label=LABEL))
    failure = {"column": "source_auc", "observed": 0.97, "bound": {"max_value": 0.85}, "severity": "critical"}
    report = CheckReport(digest_of_model(model), "fastText", params, "cpu", outcome, {}, {}, (failure,))
    path = folder / f"{outcome}.check.json"
    path.write_bytes(seal(report))
    return FilePath(str(path))


def step(model: FilePath, **params: Any) -> dict[str, Any]:
    return {"classifiers": {"good": {"model": model, "label": LABEL, "minimum": 0.01, **params}}}


def run(tmp_path: Path, params: dict[str, Any]) -> tuple[str, Any]:
    return refined(tmp_path / "root", "score_quality", commit_parent(tmp_path / "root", [table()]), params)


def table() -> Any:
    return documents(passages()[:40], language=_column(["en"] * 40), language_score=_column([0.9] * 40))


def _column(values: list[Any]) -> Any:
    import pyarrow as pa

    return pa.array(values)


def findings(tmp_path: Path, params: dict[str, Any]) -> dict[bool, str]:
    """Return the faults and the notes about a recipe's classifier, as texts."""
    stages = {"ingest": {}, "extract": {}, "filter_language": {}, "score_quality": params}
    path = tmp_path / "own.yaml"
    path.write_text(yaml.safe_dump({"stages": stages}, sort_keys=False))
    found = [finding for finding in lint(str(path)) if "classifiers.good" in finding.message]
    return {is_fault: " ".join(one.message for one in found if one.fault == is_fault) for is_fault in (True, False)}


def test_a_scorer_that_its_check_refuses_cannot_decide(tmp_path: Path, model: FilePath) -> None:
    report = report_of(model, tmp_path)
    refused = step(model, report=report)
    named = r"classifiers\.good.*source_auc 0\.97 \(max_value 0\.85\)"
    with pytest.raises(RecipeError, match=named):
        run(tmp_path, refused)
    assert "source_auc 0.97" in findings(tmp_path, refused)[True]
    with pytest.raises(RecipeError, match=named):
        require_admitted("good", Classifier(model, label=LABEL, report=report), digest_of_model)


def test_one_that_a_person_accepted_decides_and_everybody_sees_it(tmp_path: Path, model: FilePath) -> None:
    accepted = step(model, report=report_of(model, tmp_path), accepted="sorts news from recipes, as we want")
    path, manifest = run(tmp_path, accepted)
    assert manifest.params["classifiers"]["good"]["accepted"] == "sorts news from recipes, as we want"
    verdict = judge(str(tmp_path / "root"), path)
    assert verdict.facts["scorers_accepted"] == 1
    assert [(one.column, one.severity) for one in verdict.failures if one.column.startswith("scorers")] == [
        ("scorers_accepted", "warning")
    ]
    found = findings(tmp_path, accepted)
    assert not found[True]
    assert "as we want" in found[False]


def test_one_that_nobody_checked_decides_with_a_warning(tmp_path: Path, model: FilePath) -> None:
    path, _ = run(tmp_path, step(model))
    verdict = judge(str(tmp_path / "root"), path)
    assert verdict.facts["scorers_unchecked"] == 1
    assert verdict.outcome == "warn"
    strict = judge(str(tmp_path / "root"), path, bounds={"scorers_unchecked": {"critical": {"max_value": 0}}})
    assert strict.outcome == "refuse"
    assert "refinery model check" in findings(tmp_path, step(model))[False]


def test_one_that_passed_decides_silently_and_its_report_is_identity(tmp_path: Path, model: FilePath) -> None:
    passed = step(model, report=report_of(model, tmp_path, "pass"))
    path, manifest = run(tmp_path, passed)
    facts = judge(str(tmp_path / "root"), path).facts
    assert (facts["scorers_unchecked"], facts["scorers_accepted"]) == (0, 0)
    assert findings(tmp_path, passed) == {True: "", False: ""}
    _, unchecked = run(tmp_path, step(model))
    assert unchecked.fingerprint != manifest.fingerprint
    assert [shard.digest for shard in unchecked.shards] == [shard.digest for shard in manifest.shards]
    assert read_manifest(str(tmp_path / "root"), path).params["classifiers"]["good"]["report"].startswith("sha256:")


def test_a_report_is_that_of_one_model_with_its_params(tmp_path: Path, model: FilePath) -> None:
    report = report_of(model, tmp_path, "pass")
    own = Classifier(model, label=LABEL, report=report)
    require_admitted("good", own, digest_of_model)
    require_admitted("good", replace(own, minimum=0.7), digest_of_model)
    other = replace(own, model=FilePath(by_source(tmp_path / "source.bin")))
    for wrong, named in ((other, "model"), (replace(own, label="__label__bad"), "label")):
        with pytest.raises(RecipeError, match=rf"another scorer \({named}\)"):
            require_admitted("good", wrong, digest_of_model)
    with pytest.raises(RecipeError, match="nowhere"):
        require_admitted("good", replace(own, report=FilePath("nowhere")), digest_of_model)
    Path(report).write_bytes(Path(report).read_bytes().replace(b'"pass"', b'"warn"'))
    with pytest.raises(DigestMismatch):
        require_admitted("good", own, digest_of_model)


def test_a_check_decides_no_score(model: FilePath) -> None:
    """Scores that are stored are found again whatever report a recipe names."""
    plain = Classifier(model, label=LABEL)
    assert computing(replace(plain, report=FilePath("r"), accepted="why")) == computing(plain)
