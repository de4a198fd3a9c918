"""Other bounds of stages are predicted from what they store: the same counts as a run with these bounds."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.whatif_bounds import stage_recipe_lines
from pipeline_tasks.inspect.whatif_stages import BY_KEY, stage_bounds, stage_forecasts
from pipeline_tasks.publish import version_log
from pipeline_tasks.publish.version_log import Version
from pipeline_tasks.recipe import STAGES
from pipeline_tasks.stages.filter_toxicity import BOUNDS
from tests.documents import documents
from tests.refining import commit_parent, refined
from tests.small_root import DAYS, RECIPE, SmallRoot
from tests.stages.test_filter_quality import PROSE
from tests.text.toxicity.examples import harmless, toxic

GERMAN = "Der Hund und die Katze gehen heute nicht in den Garten, weil es regnet und der Weg zu nass ist."
ENGLISH = "The dog and the cat do not go into the garden today because it rains and the path is too wet."
TEXTS = [" ".join([*ENGLISH.split()[:at], *GERMAN.split()[at:]]) for at in range(20)] + [PROSE] * 2


def published(root: Path, manifests: dict[str, str]) -> Version:
    entry = {"recipe": "web", "snapshot": "s", "landing": "", "manifests": manifests, "verdicts": {}, "prefix": ""}
    return version_log.append(str(root), entry | {"documents": 0, "tokens": 0, "sequences": 0})


@pytest.mark.parametrize("thresholds", [{}, {"de": 0.4}])
def test_thresholds_of_languages_are_predicted_exactly_in_both_directions(
    tmp_path: Path, thresholds: dict[str, float]
) -> None:
    parent = commit_parent(tmp_path, [documents(TEXTS)])

    def run(threshold: float) -> tuple[str, int]:
        params = {"keep": ["en", "de"], "threshold": threshold, "thresholds": thresholds}
        path, manifest = refined(tmp_path, "filter_language", parent, params)
        return path, manifest.rows

    path, kept = run(0.6)
    version = published(tmp_path, {"filter_language": path})
    seen = set()
    for then in (0.1, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99):
        [forecast] = stage_forecasts(str(tmp_path), version, [f"filter_language.threshold={then}"])
        assert forecast.kept == (kept, run(then)[1]), then
        assert forecast.is_exact
        seen.add(forecast.kept[1])
    assert len(seen) > 2, "the bounds that were tried keep different rows"


def test_a_higher_score_is_predicted_exactly(tmp_path: Path) -> None:
    columns = {
        "language": pa.array(["en"] * len(TEXTS)),
        "language_score": pa.array([0.5 + at / 50 for at in range(len(TEXTS))]),
    }
    parent = commit_parent(tmp_path, [documents(TEXTS, **columns)])

    def run(minimum: float) -> tuple[str, int]:
        path, manifest = refined(tmp_path, "score_quality", parent, {"minimum": minimum, "minima": {}})
        return path, manifest.rows

    path, kept = run(0.7)
    version = published(tmp_path, {"score_quality": path})
    counts = [run(then)[1] for then in (0.0, 0.6, 0.75, 0.8, 0.85)]
    changes = [f"score_quality.minimum={then}" for then in (0.0, 0.6, 0.75, 0.8, 0.85)]
    assert [forecast.kept for forecast in stage_forecasts(str(tmp_path), version, changes)] == [
        (kept, count) for count in counts
    ]
    assert len(set(counts)) > 1


@pytest.mark.parametrize("action", ["drop", "annotate"])
def test_rates_of_words_that_offend_are_predicted_exactly_in_both_directions(tmp_path: Path, action: str) -> None:
    """With `annotate` nothing is rejected: what a bound would reject is predicted as well."""
    texts = [example.text for example in (*toxic(), *harmless()) if example.language == "en"]
    texts += [f"{texts[0]} {'and so on ' * at}" for at in range(0, 300, 10)]
    parent = commit_parent(tmp_path, [documents(texts, language=pa.array(["en"] * len(texts)))])

    def run(**params: object) -> tuple[str, int]:
        path, manifest = refined(tmp_path, "filter_toxicity", parent, {"action": action, **params})
        return path, manifest.rows

    path, kept = run()
    version = published(tmp_path, {"filter_toxicity": path})
    seen = set()
    for label in ("obscene", "toxic"):
        for then in (0.5, 10.0, 12.0, 30.0, 1000.0):
            [forecast] = stage_forecasts(str(tmp_path), version, [f"filter_toxicity.{label}={then}"])
            bounds = {label: then} if action == "annotate" else {**BOUNDS, label: then}
            _, manifest = refined(tmp_path, "filter_toxicity", parent, {"action": "drop", "bounds": bounds})
            assert forecast.kept == (kept, manifest.rows), (label, then)
            assert forecast.is_exact
            seen.add(forecast.kept[1])
    assert len(seen) > 3
    changes = ["filter_toxicity.threat=3", "filter_toxicity.adult=1e9"]
    (line,) = stage_recipe_lines(stage_forecasts(str(tmp_path), version, changes))
    assert line == (
        "filter_toxicity: {bounds: {adult: 1000000000, identity_hate: 5, insult: 10, obscene: 10, severe_toxic: 5, "
        "threat: 3, toxic: 10}}"
    )


def test_a_stored_similarity_lets_rows_back_and_no_lower_one_is_guessed(tmp_path: Path) -> None:
    words = PROSE.split()
    near = [" ".join([*words[:at], "otter", *words[at + 1 :]]) for at in (20, 60, 100)]
    path, manifest = refined(tmp_path, "dedup_minhash", commit_parent(tmp_path, [documents([PROSE, *near])]))
    removed = manifest.rejected["dedup_minhash:near_duplicate"]
    version = published(tmp_path, {"dedup_minhash": path})
    [bound] = stage_bounds(str(tmp_path), version)
    assert (bound.measure.key, bound.now, bound.is_both) == ("dedup_minhash.threshold", 0.8, False)
    [same, back] = stage_forecasts(
        str(tmp_path), version, ["dedup_minhash.threshold=0.81", "dedup_minhash.threshold=1"]
    )
    assert same.rejected == (removed, removed)
    assert back.rejected == (removed, 0)
    assert back.kept == (manifest.rows, manifest.rows + removed)
    assert (back.is_exact, bool(back.note)) == (False, True)
    with pytest.raises(RecipeError, match="run it as a trial"):
        stage_forecasts(str(tmp_path), version, ["dedup_minhash.threshold=0.1"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("extract.min_chars=many", "must be a number"),
        ("extract.min_chars=-1", "min_chars"),
        ("dedup_minhash.threshold=2", "threshold"),
        ("score_quality.minimum=0.1", "has no score_quality"),
    ],
)
def test_a_wrong_bound_is_refused(small_root: SmallRoot, change: str, message: str) -> None:
    version = version_log.latest_by_snapshot(small_root.root, RECIPE)[0]
    with pytest.raises(RecipeError, match=message):
        stage_forecasts(small_root.root, version, [change])


def test_the_command_predicts_stages_beside_each_other(
    small_root: SmallRoot, capsys: pytest.CaptureFixture[str]
) -> None:
    named = ["whatif", small_root.root, "--recipe", RECIPE, "--snapshot", DAYS[0], "--json"]
    sets = ["--set", "extract.min_chars=100000", "--set", "dedup_minhash.threshold=1"]
    assert main([*named, *sets]) == 0
    stages = json.loads(capsys.readouterr().out)["stages"]
    assert [stage["key"] for stage in stages] == ["extract.min_chars", "dedup_minhash.threshold"]
    assert stages[0]["kept"][1] == 0


def test_every_measure_is_of_a_stage() -> None:
    assert {measure.stage for measure in BY_KEY.values()} <= set(STAGES)
