"""A calibrated classifier decides by what its check found that scores mean; its scores stay, and are not made again."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from refinery_models.scorers.check import check
from refinery_models.scorers.judges import of_classifier
from refinery_models.scorers.texts import read_texts

from pipeline_tasks.engines.choose import engine
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.whatif.stages import stage_forecasts
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.recipe import parse_recipe
from pipeline_tasks.run.recipe_faults import recipe_faults
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.run.runner import refine
from pipeline_tasks.scorers import encoder
from pipeline_tasks.scorers.calibration import read_calibration
from pipeline_tasks.scorers.classifier import Classifier, card_names, computing
from pipeline_tasks.scorers.report import CheckReport, computing_params, digest_of_model
from pipeline_tasks.sealed import canonical, seal
from pipeline_tasks.stage import FilePath
from pipeline_tasks.stages.score_quality import LOW_COMPONENT, LOW_QUALITY, STAGE
from tests.documents import documents
from tests.refining import commit_parent, rows
from tests.scorer_samples import by_text, write_sample
from tests.scorers.networks import WORDS, onnx_folder

TEXTS = [" ".join(WORDS[(row * 3 + at * at) % 10] for at in range(20 + row)) for row in range(40)]
LANGUAGES = ["en", "de", "fr", None]

STARTS, VALUES = [0.0, 0.45, 0.5, 0.55], [0.1, 0.3, 0.6, 0.9]
RISING = {"starts": STARTS, "values": VALUES, "documents": 100}
FLAT = {"starts": [0.2], "values": [0.25], "documents": 60}
FRENCH = [0.2, 0.2, 0.2, 0.8]
GROUPS = {"*": RISING, "/de": FLAT, "*/fr": {**RISING, "values": FRENCH}}


def table(texts: list[str]) -> pa.Table:
    languages = (LANGUAGES * len(texts))[: len(texts)]
    return documents(texts, language=pa.array(languages, pa.string()), language_score=pa.array([0.9] * len(texts)))


@pytest.fixture
def word(tmp_path: Path) -> Classifier:
    return Classifier(FilePath(onnx_folder(tmp_path / "model")), lowest=-10, highest=10, length=32)


def reported(classifier: Classifier, folder: Path, groups: Mapping[str, Any]) -> FilePath:
    """Write the report of a check of a classifier that found this calibration."""
    digest, params = digest_of_model(classifier.model), computing_params(classifier)
    report = CheckReport(digest, "ONNX", params, "cpu", "pass", {}, {}, calibration=groups)
    path = folder / "word.check.json"
    path.write_bytes(seal(report))
    return FilePath(str(path))


def params(classifier: Classifier, **more: object) -> dict[str, Any]:
    """Return params by which the classifier alone decides."""
    written = {"model": classifier.model, "lowest": -10, "highest": 10, "length": 32, **more}
    return {"classifiers": {"word": written}, "weights": {"word": 1.0}, "minima": {}, "minimum": 0.28}


def run(root: Path, written: dict[str, Any], on: tuple[str, str] = ("local", ""), **how: Any) -> tuple[str, Any]:
    parent = commit_parent(root, [table(TEXTS[:25]), table(TEXTS[25:])])
    path, manifest, _ = refine(RefineRequest(str(root), STAGE.name, written, parent, **how), engine(*on))
    return path, manifest


def judged(root: Path, manifest: Any) -> dict[str, dict[str, Any]]:
    """Return all rows by their text, with `kept`."""
    parts = {part: rows(root, manifest, part).to_pylist() for part in ("shards", "rejects")}
    return {row["text"]: {**row, "kept": part == "shards"} for part, found in parts.items() for row in found}


def meant(score: float, language: str | None) -> float:
    values = FRENCH if language == "fr" else VALUES
    return 0.25 if language == "de" else values[max(sum(score >= start for start in STARTS) - 1, 0)]


def test_documents_are_decided_by_what_scores_mean_in_their_language(tmp_path: Path, word: Classifier) -> None:
    report = reported(word, tmp_path, GROUPS)
    plain = judged(tmp_path / "root", run(tmp_path / "root", params(word))[1])
    _, manifest = run(tmp_path / "root", params(word, calibrated=True, report=report))
    found = judged(tmp_path / "root", manifest)
    assert {text: row["score_word"] for text, row in found.items()} == {
        text: row["score_word"] for text, row in plain.items()
    }
    for row in found.values():
        assert row["calibrated_word"] == row["score"] == meant(row["score_word"], row["language"])
        assert row["kept"] == (row["score"] >= 0.28)
    assert len({row["calibrated_word"] for row in found.values()}) > 3
    assert "calibrated_word" not in next(iter(plain.values()))


def test_calibration_scores_nothing_again(tmp_path: Path, word: Classifier, monkeypatch: pytest.MonkeyPatch) -> None:
    read, scores = Counter[str](), encoder.EncoderScorer.scores

    def noted(self: Any, texts: Any) -> Any:
        read.update(texts.to_pylist())
        return scores(self, texts)

    monkeypatch.setattr(encoder.EncoderScorer, "scores", noted)
    run(tmp_path / "root", params(word))
    assert read == Counter(TEXTS)
    run(tmp_path / "root", params(word, calibrated=True, report=reported(word, tmp_path, GROUPS)))
    run(tmp_path / "root", params(word, calibrated=True, report=reported(word, tmp_path, {"*": FLAT})))
    assert read == Counter(TEXTS)
    assert computing(replace(word, report=FilePath("r"), calibrated=True)) == computing(word)


def test_a_bound_is_of_what_scores_mean_and_its_whatif_is_that_of_a_run(tmp_path: Path, word: Classifier) -> None:
    report, root = reported(word, tmp_path, GROUPS), tmp_path / "root"
    own = {**params(word, calibrated=True, report=report, minimum=0.22), "minimum": 0.0}
    path, before = run(root, own)
    entry = {"recipe": "web", "snapshot": "s", "landing": "", "manifests": {"score_quality": path}, "verdicts": {}}
    version = version_log.append(str(root), entry | {"prefix": "", "documents": 0, "tokens": 0, "sequences": 0})
    counts = set()
    for bound in (0.15, 0.26, 0.7):
        _, after = run(root, {**own, "minima": {"word": bound}})
        [forecast] = stage_forecasts(str(root), version, [f"score_quality.classifiers.word.minimum={bound}"])
        assert forecast.kept == (before.rows, after.rows)
        assert forecast.rejected == tuple(each.rejected.get(LOW_COMPONENT, 0) for each in (before, after))
        counts.add(after.rows)
    assert len(counts) == 3
    assert LOW_QUALITY not in before.rejected


@pytest.mark.slow
@pytest.mark.parametrize("name", ["spark", pytest.param("ray", marks=pytest.mark.nightly)])
def test_every_engine_and_batch_decides_the_same(
    name: str, request: pytest.FixtureRequest, tmp_path: Path, word: Classifier
) -> None:
    written = params(word, calibrated=True, report=reported(word, tmp_path, GROUPS))
    calm = run(tmp_path / "local", written)[1]
    there = (name, request.getfixturevalue(name))
    for batch in (1, 7):
        assert run(tmp_path / f"{name}-{batch}", written, there, batch_rows=batch)[1] == calm


def test_a_check_with_labels_calibrates(tmp_path: Path) -> None:
    """The steps of a real check, among them one per language over all types, are those that documents get."""
    lines = Path(write_sample(tmp_path / "sample.jsonl", labels=True)).read_text().splitlines()
    typed = [
        line.replace('{"text"', f'{{"type": "{"news" if at % 2 else "blog"}", "text"') for at, line in enumerate(lines)
    ]
    (tmp_path / "typed.jsonl").write_text("\n".join(typed))
    classifier = Classifier(FilePath(by_text(tmp_path / "text.bin")), label="__label__good")
    texts, inputs = read_texts([str(tmp_path / "typed.jsonl")], 2000)
    report = check(of_classifier(classifier), texts, inputs)
    assert report.calibration.keys() == {"*", "*/en", "news/en", "blog/en"}
    path = tmp_path / "check.json"
    path.write_bytes(seal(report))
    calibration = read_calibration("good", replace(classifier, report=FilePath(str(path)), calibrated=True))
    scores = of_classifier(classifier).scores(texts).values
    values = calibration.values(scores, ["en"] * len(scores))
    order = np.argsort(scores)
    assert (np.diff(values[order]) >= 0).all()
    labels = texts.column("label").to_numpy()
    assert values.mean() == pytest.approx(labels.mean(), abs=1e-4), "isotonic regression keeps the mean"
    assert len(set(values.tolist())) > 2
    assert np.isnan(calibration.values(np.array([np.nan, 0.5]), [None, "xx"])).tolist() == [True, False]


@pytest.mark.parametrize(
    ("groups", "named"),
    [
        ({}, "no calibration"),
        ({"/en": RISING}, "no calibration"),
        ({"*": {**RISING, "values": [1, 2, 4, 5]}}, "1 to 5"),
    ],
)
def test_a_report_that_cannot_calibrate_is_refused_before_anything_is_scored(
    tmp_path: Path, word: Classifier, groups: dict[str, Any], named: str
) -> None:
    written = params(word, calibrated=True, report=reported(word, tmp_path, groups))
    with pytest.raises(RecipeError, match=named):
        run(tmp_path / "root", written)
    recipe = parse_recipe({"name": "web", "stages": {"ingest": {}, "extract": {}, "score_quality": written}}, "recipe")
    assert any(named in str(fault) for fault in recipe_faults(recipe))


def test_a_classifier_that_is_not_calibrated_has_the_identity_that_it_had() -> None:
    """Roots that were refined before know no such param, and are not refined again for it."""
    plain = Classifier(FilePath("m.bin"), report=FilePath("r"))
    assert b"calibrated" not in canonical(plain)
    assert canonical(replace(plain, calibrated=True)) != canonical(plain)


def test_calibration_needs_a_report_and_takes_no_bound_of_a_card() -> None:
    with pytest.raises(RecipeError, match="needs `report`"):
        Classifier(FilePath("m.bin"), calibrated=True)
    bounds = {name: Classifier(FilePath("m"), card=name).minimum for name in card_names()}
    named = next(name for name, bound in bounds.items() if bound)
    assert Classifier(FilePath("m"), card=named, report=FilePath("r"), calibrated=True).minimum == 0.0


def test_steps_of_networks_begin_where_they_were_fitted(tmp_path: Path, word: Classifier) -> None:
    """A score of 1/1,024 has more digits than the start of a step, and is no less than it."""
    from refinery_models.measures import calibrated

    scores = np.arange(1025) / 1024
    steps = calibrated(scores, scores)
    assert steps is not None
    report = reported(word, tmp_path, {"*": steps._asdict()})
    fitted = read_calibration("word", replace(word, report=report, calibrated=True))
    assert fitted.values(scores, [None] * len(scores)).tolist() == pytest.approx(scores.tolist(), abs=5.1e-7)
