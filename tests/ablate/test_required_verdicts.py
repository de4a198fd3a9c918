"""A recipe that requires a verdict: what counts as one, the gate before its first stage, lint, and the commands named."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from refinery_ablate.comparison import Wanted, prepare
from refinery_ablate.job import read_plan
from refinery_ablate.statistics import BETTER, SAME, UNDECIDED, WORSE

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.gate.checks import gate_names
from pipeline_tasks.gate.verdicts import read_verdict
from pipeline_tasks.inspect.lint import lint
from pipeline_tasks.inspect.recipe.choices import choices_of
from pipeline_tasks.inspect.recipe.recipe_verdicts import Judged, Standing, standing
from pipeline_tasks.publish.logs.ablation_log import (
    ATTRIBUTION,
    MIXTURE,
    Ablation,
    RateDifference,
    ablations,
    record_ablation,
)
from pipeline_tasks.recipe import Requirement, load_recipe
from tests.ablate import planted
from tests.ablated_root import build_of, given_verdict, made, recipe_file
from tests.chain import reply

REQUIRES = "requires: {verdict: not-worse, beside: base}"


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Ablation:
    """An ablation of the recipes `base` and `mine`, which differ in a bound of `extract`."""
    folder = tmp_path_factory.mktemp("compared")
    given_verdict(folder, made(folder), -0.05)
    return ablations(str(folder / "root"))[0]


@pytest.fixture
def asked(compared: Ablation, tmp_path: Path) -> Callable[..., Standing]:
    """Records ablations that differ from `compared` in a new root; returns what they say of a recipe."""

    def ask(*changes: dict[str, Any], least: int = 2, beside: str = "base", verdict: str = "not-worse") -> Standing:
        root = tmp_path / "root"
        root.mkdir(exist_ok=True)
        for at, change in enumerate(changes):
            record_ablation(str(root), replace(compared, **{"tokens": at, **change}))
        own = load_recipe(recipe_file(tmp_path, "mine", least))
        requires = Requirement(verdict, beside)
        return standing(str(root), Judged(own.name, choices_of(own.steps), requires, builds=False))

    return ask


# --- What counts ------------------------------------------------------------------------------------------------------


def test_an_arm_has_the_choices_of_its_recipes_whoever_made_it(compared: Ablation, tmp_path: Path) -> None:
    """What a recipe chooses before it runs is what its manifests say afterwards."""
    first, second = compared.arms
    for arm, name, least in ((first, "base", 1), (second, "mine", 2)):
        own = load_recipe(recipe_file(tmp_path, "another_name", least))
        assert arm.choices[name] == choices_of(own.steps)
        built_by = build_of("another_name", name, Path(compared.arms[0].dataset).parents[1])
        assert arm.choices[f"{name}_set"] == choices_of(built_by.steps)
    assert {
        stage for stage in first.choices["base"] if first.choices["base"][stage] != second.choices["mine"][stage]
    } == {"extract"}


def saying(outcome: str, low: float, high: float, **changes: Any) -> dict[str, Any]:
    """Return the fields of an ablation with an outcome and an interval."""
    return {"outcome": outcome, "differences": (RateDifference(2e-3, (low + high) / 2, low, high),), **changes}


LOSS = saying(WORSE, 0.02, 0.04)


@pytest.mark.parametrize(
    ("outcome", "low", "high", "passes"),
    [
        (BETTER, -0.05, -0.01, True),
        (SAME, -0.01, 0.009, True),
        (SAME, -0.06, 0.04, False),
        (WORSE, 0.001, 0.009, True),
        (WORSE, 0.02, 0.04, False),
        (UNDECIDED, -0.05, -0.01, False),
    ],
)
def test_a_verdict_passes_if_it_is_worse_by_less_than_the_margin(
    asked: Callable[..., Standing], outcome: str, low: float, high: float, passes: bool
) -> None:
    stands = asked(saying(outcome, low, high))
    assert stands.passes == passes
    assert (len(stands.verdicts), stands.facts()["ablation"]) == (1, 1.0)
    assert any(outcome in line for line in stands.lines())
    assert any("refinery ablate" in line for line in stands.lines()) != stands.passes


def test_the_verdict_that_sees_most_counts_and_of_equals_one_that_refuses(asked: Callable[..., Standing]) -> None:
    def of(seeds: int, documents: int, tokens: int) -> dict[str, Any]:
        return {"seeds": seeds, "documents": documents, "tokens": tokens}

    assert not asked(of(3, 60, 1), LOSS | of(3, 60, 2)).passes
    assert not asked(of(3, 60, 3)).passes, "ten comparisons of an arm that is worse by the margin: one passes in 13 %"
    assert asked(of(3, 61, 3)).passes
    assert not asked(LOSS | of(6, 60, 4)).passes
    assert not asked(of(2, 20, 5)).passes, "a newer one that sees less"
    assert asked(of(3, 600, 6)).passes, "documents of few seeds show more than seeds of few documents"


def test_the_margin_is_the_recipes(asked: Callable[..., Standing]) -> None:
    assert not asked(saying(SAME, -0.02, 0.02)).passes
    assert asked(saying(SAME, -0.02, 0.02), verdict="not-worse:0.03").passes
    assert not asked(saying(SAME, -0.02, 0.0), verdict="not-worse:0").passes


@pytest.mark.parametrize(
    ("change", "beside"),
    [({"size": "smoke"}, "base"), ({}, "another"), ({"outcome": WORSE, "size": "smoke"}, "")],
)
def test_a_verdict_by_the_smallest_models_or_beside_another_recipe_is_none(
    asked: Callable[..., Standing], change: dict[str, Any], beside: str
) -> None:
    stands = asked(change, beside=beside)
    assert (stands.strongest, stands.passes) == (None, False)
    assert stands.facts() == {"verdicts": 0.0, "not_worse": None, "ablation": None}


def test_what_an_attribution_says_is_none(asked: Callable[..., Standing]) -> None:
    assert asked({"kind": ATTRIBUTION}).strongest is None
    assert asked({"kind": MIXTURE}).strongest is None


def test_the_first_arm_is_not_judged_and_neither_is_what_made_both(
    asked: Callable[..., Standing], compared: Ablation
) -> None:
    second = compared.arms[1]
    assert asked({"arms": compared.arms[::-1]}, {"arms": (second, second)}, beside="").strongest is None
    assert len(asked({"arms": (second, second)}, {}, beside="").verdicts) == 1


def test_a_changed_recipe_needs_a_verdict_of_its_own(asked: Callable[..., Standing]) -> None:
    stands = asked({}, least=3)
    assert not stands.passes
    assert stands.other is not None
    assert (stands.other.number, stands.differing) == (1, ("extract",))
    assert any("extract" in line for line in stands.lines())


def test_an_entry_of_an_earlier_release_has_no_choices(asked: Callable[..., Standing], compared: Ablation) -> None:
    first, second = (replace(arm, choices={}) for arm in compared.arms)
    assert asked({"arms": (first, second)}).strongest is None


# --- The gate ---------------------------------------------------------------------------------------------------------


def test_the_gate_refuses_until_there_is_a_verdict_and_a_person_may_let_it_pass(
    compared: Ablation, tmp_path: Path
) -> None:
    landing, root = tmp_path / "landing", str(tmp_path / "root")
    landing.mkdir()
    (landing / "a.jsonl").write_text('{"text": "w1 w2", "url": "https://a.example/"}\n')
    landed = reply("land", root=root, input=str(landing), recipe="mine")["manifest"]
    own = load_recipe(recipe_file(tmp_path, "mine", 2, REQUIRES))
    asked = {
        "root": root,
        "recipe": "mine",
        "snapshot": "landing",
        "manifest": landed,
        "steps": [{"stage": step.stage, "params": dict(step.params)} for step in own.steps],
        "requires": {"verdict": "not-worse", "beside": "base"},
    }
    refused = reply("judge_recipe", **asked)
    assert refused["outcome"] == "refuse"
    assert any("refinery ablate --recipes base,mine --input LANDED" in line for line in refused["lines"])
    passed = reply("judge_recipe", **asked, override="Ada: the license ends")
    assert (passed["outcome"], read_verdict(root, passed["verdict"]).override) == ("warn", "Ada: the license ends")
    assert reply("judge_recipe", **asked) == refused
    record_ablation(root, replace(compared, outcome=UNDECIDED))
    undecided = reply("judge_recipe", **asked)
    assert [failure["column"] for failure in undecided["failures"]] == ["not_worse"]
    record_ablation(root, compared)
    assert reply("judge_recipe", **asked)["outcome"] == "refuse", "it has measured no more"
    record_ablation(root, replace(compared, seeds=compared.seeds + 1))
    assert reply("judge_recipe", **asked)["outcome"] == "pass"
    changed = [{**step, "params": {"min_chars": 5}} if step["stage"] == "extract" else step for step in asked["steps"]]
    assert reply("judge_recipe", **{**asked, "steps": changed})["outcome"] == "refuse"


def test_a_build_names_the_commands_that_compare_its_dataset(tmp_path: Path) -> None:
    judged = Judged("corpus", {}, Requirement("not-worse", "corpus"), builds=True)
    root = tmp_path / "root"
    root.mkdir()
    lines = list(standing(str(root), judged).lines())
    assert any(f"refinery build {root}" in line for line in lines)
    assert any(f"--datasets {root}/corpus@latest,{root}/corpus_next@latest" in line for line in lines)


def test_a_requirement_is_a_gate_that_may_be_overridden(tmp_path: Path) -> None:
    assert gate_names(load_recipe(recipe_file(tmp_path, "mine", 2, REQUIRES)))[0] == "verdict"
    assert "verdict" not in gate_names(load_recipe(recipe_file(tmp_path, "mine", 2)))
    with pytest.raises(RecipeError, match="not-worse"):
        load_recipe(recipe_file(tmp_path, "mine", 2, "requires: {verdict: best}"))
    with pytest.raises(RecipeError, match="besides"):
        load_recipe(recipe_file(tmp_path, "mine", 2, "requires: {verdict: not-worse, besides: web}"))


def test_lint_says_what_a_recipe_needs(compared: Ablation, tmp_path: Path) -> None:
    def noted(requires: str, root: str = "") -> list[str]:
        found = lint(recipe_file(tmp_path, "mine", 2, requires), root)
        assert not any(finding.fault for finding in found)
        return [finding.message for finding in found if finding.where == "requires"]

    root = tmp_path / "root"
    root.mkdir()
    assert noted("") == noted("", str(root)) == []
    assert "beside base" in noted(REQUIRES)[0]
    assert "refinery ablate" in noted(REQUIRES, str(root))[0]
    record_ablation(str(root), compared)
    assert noted(REQUIRES, str(root)) == []


def test_a_verdict_is_recorded_in_the_root_that_a_person_names(own: tuple[str, str], sets: str, tmp_path: Path) -> None:
    folder, root = tmp_path / "to", tmp_path / "root"
    prepare(Wanted(own, (sets,), "15m"), folder)
    planted.put_results(folder, read_plan(folder), -0.05)
    command = ["ablate", "--datasets", ",".join(own), "--held-out", sets, "--size", "15m", "--to", str(folder)]
    assert main([*command, "--record", str(root)]) == RecipeError.exit_code  # it is not there
    root.mkdir()
    assert main([*command, "--record", str(root)]) == 0
    (recorded,) = ablations(str(root))
    assert [arm.dataset for arm in recorded.arms] == list(own)
    assert recorded.arms[1].choices
