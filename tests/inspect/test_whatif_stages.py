"""Other bounds of stages are predicted from what they store: the same counts as a run with these bounds."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.compute as pc
import pytest
import yaml

from pipeline_tasks import stages
from pipeline_tasks.binding import bind
from pipeline_tasks.cards import stage_card
from pipeline_tasks.cli.main import main
from pipeline_tasks.constraints import Ratio
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.facets import Bound
from pipeline_tasks.inspect.whatif.bounds import stage_recipe_lines
from pipeline_tasks.inspect.whatif.stages import stage_bounds, stage_forecasts
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.stage import Batches, Engine, Shards, Stage, reject
from pipeline_tasks.stages import NAMES
from pipeline_tasks.stages.filter_toxicity import BOUNDS
from pipeline_tasks.stages.score_quality import LOW_COMPONENT, LOW_QUALITY
from tests.documents import documents
from tests.fasttext_file import write_model
from tests.refining import commit_parent, refined
from tests.scorer_samples import passages
from tests.small_root import DAYS, RECIPE, SmallRoot
from tests.stages.test_filter_quality import PROSE
from tests.text.toxicity.examples import harmless, toxic
from tests.toys import ROWS, table

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


MINIMA = {"clean": 0.3, "perplexity": 0.3, "redundancy": 0.2}
Run = Callable[[float, dict[str, float], float], tuple[str, Manifest]]


def mixed(count: int) -> list[str]:
    """Return passages with words that two models know in all proportions, some in disorder, some that repeat."""
    texts = []
    for at, passage in enumerate(passages()[:count]):
        words = passage.split()
        body = " ".join(sorted(words) if at % 11 == 0 else words)
        signs = "cat " * (8 + at % 4) + "dog " * (8 + at % 3) + "owl " * (8 + at % 5) + "fox " * (8 + at % 2)
        texts.append(f"{body} {signs}" if at % 7 else f"{signs} {' '.join(words[:9])} " * 6)
    return texts


@pytest.fixture(scope="module")
def scoring(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Run, Version]:
    """A root, what scores its documents with a minimum, minima and `edu`'s own, and a version of it."""
    root = tmp_path_factory.mktemp("scores")
    edu = {"model": write_model(root / "edu.bin", {"cat": "high", "dog": "low"}), "label": "__label__high"}
    clean = {"model": write_model(root / "clean.bin", {"owl": "high", "fox": "low"}), "label": "__label__high"}
    texts = mixed(80)
    columns = {"language": pa.array(["en"] * len(texts)), "language_score": pa.array([0.9] * len(texts))}
    parent = commit_parent(root, [documents(texts, **columns)])

    def run(minimum: float, minima: dict[str, float], own: float) -> tuple[str, Manifest]:
        classifiers = {"edu": {**edu, "minimum": own}, "clean": clean}
        weights = {"edu": 0.5, "length": 1.0}
        params = {"classifiers": classifiers, "minimum": minimum, "minima": minima, "weights": weights}
        return refined(root, "score_quality", parent, params)

    return str(root), run, published(root, {"score_quality": run(0.7, MINIMA, 0.4)[0]})


@pytest.mark.parametrize(
    ("changes", "minimum", "minima", "own"),
    [
        ({"classifiers.edu.minimum": 0.1}, 0.7, {}, 0.1),
        ({"minima.edu": 0.8}, 0.7, {}, 0.8),
        ({"minima.clean": 0.05}, 0.7, {"clean": 0.05}, 0.4),
        ({"minima.clean": 0.9}, 0.7, {"clean": 0.9}, 0.4),
        ({"minima.perplexity": 0.6}, 0.7, {"perplexity": 0.6}, 0.4),
        ({"minima.perplexity": 0.0}, 0.7, {"perplexity": 0.0}, 0.4),
        ({"minima.redundancy": 0.0}, 0.7, {"redundancy": 0.0}, 0.4),
        ({"minimum": 0.8}, 0.8, {}, 0.4),
        ({"minimum": 0.8, "minima.edu": 0.2, "minima.redundancy": 0.0}, 0.8, {"redundancy": 0.0}, 0.2),
    ],
)
def test_a_bound_of_a_component_is_predicted_as_a_run_with_it_decides(
    scoring: tuple[str, Run, Version],
    changes: dict[str, float],
    minimum: float,
    minima: dict[str, float],
    own: float,
) -> None:
    root, run, version = scoring
    before, after = run(0.7, MINIMA, 0.4)[1], run(minimum, MINIMA | minima, own)[1]
    written = [f"score_quality.{key}={value}" for key, value in changes.items()]
    *alone, last = stage_forecasts(root, version, written)
    assert (last.kept, last.is_exact) == ((before.rows, after.rows), True)
    assert (before.rows, before.rejected) != (after.rows, after.rejected), "the bound decides something"
    if not alone:
        reason = LOW_QUALITY if "minimum" in changes else LOW_COMPONENT
        assert last.rejected == (before.rejected.get(reason, 0), after.rejected.get(reason, 0))
    else:
        assert [each.key.removeprefix("score_quality.") for each in alone] == list(changes)
        assert last.bound is None


def test_bounds_of_components_are_those_that_rows_or_evidence_can_decide(scoring: tuple[str, Run, Version]) -> None:
    root, _, version = scoring
    bounds = {each.bound.param: (each.bound.now, each.bound.side) for each in stage_bounds(root, version)}
    assert bounds == {
        "minimum": (0.7, "both"),
        "minima.clean": (0.3, "both"),
        "minima.edu": (0.4, "both"),
        "minima.perplexity": (0.3, "both"),
        "minima.redundancy": (0.2, "lower"),
    }
    for change in ("score_quality.minima.redundancy=0.9", "score_quality.minima.length=0.1"):
        with pytest.raises(RecipeError, match="run it as a trial"):
            stage_forecasts(root, version, [change])
    with pytest.raises(RecipeError, match="minima: clean must be a number from 0 to 1"):
        stage_forecasts(root, version, ["score_quality.minima.clean=2"])


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
            [forecast] = stage_forecasts(str(tmp_path), version, [f"filter_toxicity.bounds.{label}={then}"])
            bounds = {label: then} if action == "annotate" else {**BOUNDS, label: then}
            _, manifest = refined(tmp_path, "filter_toxicity", parent, {"action": "drop", "bounds": bounds})
            assert forecast.kept == (kept, manifest.rows), (label, then)
            assert forecast.is_exact
            seen.add(forecast.kept[1])
    assert len(seen) > 3
    changes = ["filter_toxicity.bounds.threat=3", "filter_toxicity.bounds.adult=1e9"]
    now = {each.key: each.bound.now for each in stage_bounds(str(tmp_path), version)}
    forecasts = stage_forecasts(str(tmp_path), version, changes)
    (line,) = stage_recipe_lines(now, {forecast.key: forecast.bound for forecast in forecasts if forecast.bound})
    written = yaml.safe_load(line)["filter_toxicity"]["bounds"]
    assert written == {**(BOUNDS if action == "drop" else {}), "threat": 3, "adult": 10**9}


def test_a_stored_similarity_lets_rows_back_and_no_lower_one_is_guessed(tmp_path: Path) -> None:
    words = PROSE.split()
    near = [" ".join([*words[:at], "otter", *words[at + 1 :]]) for at in (20, 60, 100)]
    path, manifest = refined(tmp_path, "dedup_minhash", commit_parent(tmp_path, [documents([PROSE, *near])]))
    removed = manifest.rejected["dedup_minhash:near_duplicate"]
    version = published(tmp_path, {"dedup_minhash": path})
    [bound] = stage_bounds(str(tmp_path), version)
    assert (bound.key, bound.bound.now, bound.bound.side) == ("dedup_minhash.threshold", 0.8, "higher")
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
        ("extract.min_chars=inf", "min_chars must be a whole number"),
        ("extract.min_chars=nan", "min_chars must be a whole number"),
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


@dataclass(frozen=True, slots=True)
class JudgeParams:
    """The least and the most share that a row may have."""

    least: Ratio = 0.3
    most: Ratio = 0.8


def judge(batches: Batches, params: JudgeParams) -> Batches:
    for batch in batches:
        share = batch.column("share")
        dear = pc.if_else(pc.greater(share, params.most), "toy_judge:dear", pa.scalar(None, pa.string()))
        why = pc.if_else(pc.less(share, params.least), "toy_judge:cheap", dear)
        yield reject(batch, why, pc.if_else(pc.is_valid(why), "{}", pa.scalar(None, pa.string())))


def run_judge(shards: Shards, params: JudgeParams, on: Engine) -> Shards:
    return on.map(partial(judge, params=params), shards)


@pytest.fixture
def stranger(monkeypatch: pytest.MonkeyPatch) -> str:
    """A stage of somebody else, whose card says what its bounds are."""
    card = Stage(
        "toy_judge",
        run_judge,
        JudgeParams,
        ROWS,
        ROWS,
        1,
        splits=True,
        engine="local",
        reasons=("toy_judge:cheap", "toy_judge:dear"),
        bounds=lambda params: (
            Bound("least", params.least, "toy_judge:cheap", ("share",)),
            Bound("most", params.most, "toy_judge:dear", ("share",), rejects="above"),
        ),
    )
    monkeypatch.setattr(stages, "NAMES", (*stages.NAMES, card.name))
    monkeypatch.setitem(sys.modules, f"pipeline_tasks.stages.{card.name}", SimpleNamespace(STAGE=card))
    return card.name


def test_bounds_of_a_strangers_stage_are_predicted_by_its_card_alone(
    stranger: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parent = commit_parent(tmp_path, [table(0, 100), table(100, 70)])

    def run(**params: float) -> tuple[str, int]:
        path, manifest = refined(tmp_path, stranger, parent, params)
        return path, manifest.rows

    path, kept = run()
    version = published(tmp_path, {stranger: path})
    assert [bound.key for bound in stage_bounds(str(tmp_path), version)] == ["toy_judge.least", "toy_judge.most"]
    seen = set()
    for param in ("least", "most"):
        for then in (0.0, 0.2, 0.4, 0.7, 0.9):
            [forecast] = stage_forecasts(str(tmp_path), version, [f"{stranger}.{param}={then}"])
            assert (forecast.kept, forecast.is_exact) == ((kept, run(**{param: then})[1]), True), (param, then)
            seen.add(forecast.kept[1])
    assert len(seen) > 3
    assert main(["whatif", str(tmp_path), "--set", f"{stranger}.least=0.9"]) == 0
    assert "toy_judge.least: 0.3 -> 0.9" in capsys.readouterr().out


@pytest.mark.parametrize("stage", [stage for stage in NAMES if stage_card(stage).bounds])
def test_what_a_card_calls_a_bound_is_a_param_and_its_columns_are_written(stage: str) -> None:
    card = stage_card(stage)
    params = bind(card, {})
    bounds = card.bounds(params) if card.bounds else ()
    assert len({bound.param for bound in bounds}) == len(bounds) > 0
    for bound in bounds:
        assert hasattr(params, bound.param.partition(".")[0])
        assert bound.reason in card.reasons
        assert set(bound.columns) <= set(card.written(params).names)
        assert bound.columns or (bound.side != "both" and (bound.measured or card.redecide))
