"""Which stage pays: recipes without each stage, what their models say together, and what is shared and resumed."""

import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from refinery_ablate.attribution import (
    COSTS,
    PAYS,
    attribute,
    attribution_lines,
    cost_lines,
    stages_without,
    write_recipes,
)
from refinery_ablate.comparison import Wanted, noise_of, prepare
from refinery_ablate.evidence import read_evidence
from refinery_ablate.held_out import load_held_out
from refinery_ablate.job import HELD_OUT, RESULT, Plan, jobs_of, unfinished
from refinery_ablate.recording import record_attribution
from refinery_ablate.statistics import SAME, difference

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.ledger import Ledger, ledger_of
from pipeline_tasks.publish.logs.ablation_log import ATTRIBUTION, ablations
from pipeline_tasks.recipe import load_recipe

RECIPE = """
name: own
requires: {verdict: not-worse}
stages:
  ingest: {}
  extract: {min_chars: 1}
  filter_language: {keep: [en]}
  filter_quality: {profiles: [gopher_quality]}
  dedup_exact: {buckets: 1}
  dedup_minhash: {}
run: {engines: {filter_quality: local}}
gates: {filter_quality: {retention: {min_value: 0.1}}}
"""


@pytest.fixture
def recipe(tmp_path: Path) -> str:
    path = tmp_path / "own.yaml"
    path.write_text(RECIPE)
    return str(path)


def test_each_stage_that_can_be_left_out_has_a_recipe_without_it(recipe: str, tmp_path: Path) -> None:
    paths = write_recipes(recipe, (), tmp_path / "recipes")
    whole = load_recipe(recipe)
    assert list(paths) == ["filter_quality", "dedup_minhash"]  # `filter_quality` reads the language
    for stage, path in paths.items():
        without = load_recipe(path)
        assert without.name == f"own_without_{stage}"
        assert [step for step in whole.steps if step.stage != stage] == list(without.steps)
        assert without.requires is None
        assert stage not in without.gates
    assert write_recipes(recipe, ["dedup_minhash"], tmp_path / "recipes") == {"dedup_minhash": paths["dedup_minhash"]}


def test_a_stage_that_others_read_from_is_not_left_out(tmp_path: Path) -> None:
    stages = {"ingest": {}, "extract": {}, "dedup_exact": {}, "embed": {"model": "m"}, "dedup_semantic": {}}
    path = tmp_path / "own.yaml"
    path.write_text(yaml.safe_dump({"name": "own", "stages": stages}, sort_keys=False))
    assert list(stages_without(str(path))) == ["dedup_semantic"]
    for named in ("embed", "extract", "filter_url"):
        with pytest.raises(RecipeError, match=named):
            stages_without(str(path), [named])


def test_a_shipped_recipe_is_attributed_by_its_name() -> None:
    assert {"filter_quality", "dedup_minhash"} <= set(stages_without("web"))
    with pytest.raises(RecipeError, match="corpus"):
        stages_without("dags/recipes/build/corpus.yaml")


# --- What stages do ---------------------------------------------------------------------------------------------------


@pytest.fixture
def plan(arms: tuple[str, str], sets: str, tmp_path: Path) -> Plan:
    """An attribution of three stages; the arms are datasets that are there already."""
    return prepare(Wanted((arms[0], arms[1], arms[0], arms[1]), (sets,), "15m"), tmp_path / "to")


def end(folder: Path, plan: Plan, shifts: tuple[float, ...], arms: tuple[int, ...] = (0, 1, 2, 3)) -> None:
    """End runs of some arms as models would whose bits per byte differ by `shifts`; without, of no language."""
    sizes = load_held_out(folder / HELD_OUT).sizes
    for job in jobs_of(plan):
        if job.arm in arms:
            draws = np.random.default_rng([job.arm, job.seed, int(job.rate * 1e6)])
            bits = sizes * (1.0 + shifts[job.arm] + draws.normal(0, 0.001))
            (folder / job.name).mkdir(parents=True)
            result = {"steps": 10, "bits": bits.tolist(), "losses": [[1, 1.0]], "seconds": 36.0}
            (folder / job.name / RESULT).write_text(json.dumps(result))


STAGES = ["filter_language", "filter_quality", "dedup_minhash"]


def test_a_stage_pays_if_models_are_worse_without_it(plan: Plan, tmp_path: Path) -> None:
    folder = tmp_path / "to"
    end(folder, plan, (0.0, 0.05, -0.05, 0.0))
    found = attribute(folder, STAGES)
    assert [(each.stage, each.says) for each in found.stages] == list(zip(STAGES, (PAYS, COSTS, SAME), strict=True))
    assert [list(each.languages) for each in found.stages] == [["made-up"]] * 3
    assert found.stages[0].languages["made-up"].low > 0
    lines = list(attribution_lines(found))
    assert [line.split()[0] for line in lines if line.startswith(tuple(STAGES))] == [STAGES[0], STAGES[2], STAGES[1]]
    stored = json.loads((folder / "attribution.json").read_bytes())
    assert [each["says"] for each in stored["stages"]] == [PAYS, COSTS, SAME]
    assert [each["tokens"] for each in stored["stages"]] == [plan.arms[at].tokens for at in (1, 2, 3)]


def test_each_stage_is_an_entry_of_the_log_of_ablations(own: tuple[str, str], sets: str, tmp_path: Path) -> None:
    folder, root = tmp_path / "to", own[0].rpartition("/")[0]
    end(folder, prepare(Wanted((own[0], own[1], own[0]), (sets,), "15m"), folder), (0.0, 0.05, 0.0))
    found = attribute(folder, STAGES[:2])
    recorded = record_attribution(found, folder)
    assert record_attribution(found, folder) == recorded
    entries = ablations(root)
    assert [(entry.kind, entry.outcome) for entry in entries] == [(ATTRIBUTION, "worse"), (ATTRIBUTION, SAME)]
    assert [entry.arms[1].dataset for entry in entries] == [own[1], own[0]]
    for entry, stage in zip(entries, found.stages, strict=True):
        assert [(each.rate, each.low) for each in entry.differences] == [
            (rate, each.low) for rate, each in sorted(stage.differences.items(), reverse=True)
        ]
        evidence = read_evidence(root, entry)
        assert evidence is not None
        assert evidence.groups == {"language made-up": stage.languages["made-up"]}
        assert evidence.means[1] == pytest.approx(found.mean + stage.decisive.value)
    with Ledger.open(ledger_of(root)) as ledger:
        assert {row["kind"] for row in ledger.query("ablations")} == {ATTRIBUTION}


def test_intervals_hold_for_all_stages_together(plan: Plan, tmp_path: Path) -> None:
    folder = tmp_path / "to"
    end(folder, plan, (0.0, 0.01, 0.0, 0.0))
    found, sizes = attribute(folder, STAGES), load_held_out(folder / HELD_OUT).sizes
    rate = max(plan.rates)
    first, second = (
        np.array(
            [
                json.loads((folder / job.name / RESULT).read_bytes())["bits"]
                for job in jobs_of(plan)
                if (job.arm, job.rate) == (arm, rate)
            ]
        )
        for arm in (0, 1)
    )
    assert found.stages[0].decisive == difference(first, second, sizes, tests=2 * 3)
    alone = difference(first, second, sizes, tests=2)
    assert found.stages[0].decisive.low < alone.low < alone.high < found.stages[0].decisive.high


def test_equal_stages_are_seen_to_differ_in_at_most_one_of_twenty_attributions() -> None:
    """By the whole of an attribution: six stages at two rates, of which none does anything."""
    draws, sizes, wrong = np.random.default_rng(7), np.full(40, 1_000.0), 0
    for _ in range(200):
        whole, *without = ((1.0 + draws.normal(0, 0.01, (2, 3, 1))) * sizes for _ in range(7))
        tests = 2 * len(without)
        wrong += any(
            difference(whole[rate], arm[rate], sizes, tests=tests).excludes_zero for arm in without for rate in (0, 1)
        )
    assert wrong <= 200 * 0.07


def test_the_cost_is_known_from_the_runs_of_the_whole_recipe(plan: Plan, tmp_path: Path) -> None:
    folder = tmp_path / "to"
    assert len(unfinished(folder, plan)) == 4 * 2 * 3
    end(folder, plan, (0.0,) * 4, arms=(0,))
    assert {job.arm for job in unfinished(folder, plan)} == {1, 2, 3}
    noise = noise_of(folder, plan)
    said = "\n".join(cost_lines(noise, plan, 100.0))
    assert "24 runs, 6 of them of the whole recipe: 0.24 hours of one device, 24.00 US dollars" in said
    assert "0.18 hours" in said
    with pytest.raises(RecipeError, match="18 of 24"):
        attribute(folder, STAGES)


@pytest.mark.parametrize(
    "options",
    [
        ["--attribute", "web", "--require", "not-worse", "--size", "15m"],
        ["--attribute", "web", "--stages", "extract"],
        ["--attribute", "web"],
        ["--datasets", "r/a@1,r/b@1", "--stages", "filter_url"],
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, options: list[str]) -> None:
    command = ["ablate", *options, "--held-out", "none.jsonl", "--to", str(tmp_path / "to"), "--prepare"]
    assert main(command) == RecipeError.exit_code
