"""Which stage of a recipe pays for itself: the recipe is compared with itself without each of its stages.

All arms are made in one root, so that stages which they have in common are computed once, and the runs of the whole
recipe are trained once for all comparisons. Intervals are as wide as lets those of all stages hold together.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from pipeline_tasks.binding import require_mapping
from pipeline_tasks.cards import copies_of, makes_documents, reads_records
from pipeline_tasks.counted import counted
from pipeline_tasks.errors import RecipeError, RefineryError
from pipeline_tasks.recipe import Recipe, load_recipe, parse_recipe, recipe_path
from pipeline_tasks.run.recipe_faults import order_faults
from pipeline_tasks.yaml_file import read_yaml
from refinery_ablate.comparison import SHARED, bits_of_arm, noise_of, require_finished, tests_of
from refinery_ablate.held_out import HeldOut, load_held_out
from refinery_ablate.held_out_sets import LEAST_DOCUMENTS
from refinery_ablate.job import HELD_OUT, Plan, jobs_of, read_plan, read_result
from refinery_ablate.sizes import SMOKE
from refinery_ablate.statistics import (
    BETTER,
    SAME,
    WORSE,
    Difference,
    Floats,
    Outcome,
    bits_per_byte,
    difference,
    outcome,
)
from refinery_ablate.verdict import Noise, Verdict, hours_of

ATTRIBUTION = "attribution.json"

MOST_STAGES = 25
"""Arms are named by letters, and the whole recipe is the first."""

PAYS, COSTS = "pays", "costs"
"""What a stage does if models are worse, or better, without it."""

WORDS: dict[str, str] = {WORSE: PAYS, BETTER: COSTS}


# --- Arms -------------------------------------------------------------------------------------------------------------


def stages_without(recipe: str, named: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
    """Return, by stage, the recipe without it as YAML has it: of all stages that can be left out, or of those `named`.

    `recipe` is a name or a path. RecipeError for a stage that others need, or that the recipe does not have.
    """
    own, raw = load_recipe(recipe), _written(recipe)
    if own.versions is not None:
        message = f"recipe {own.name} builds a training dataset; attribution is of a recipe that refines snapshots"
        raise RecipeError(message)
    stages = [own.step(stage).stage for stage in named] or [step.stage for step in own.steps]
    left = {stage: _without(own.name, raw, stage) for stage in stages}
    faults = {stage: _why_needed(stage, written) for stage, written in left.items()}
    needed = {stage: why for stage, why in faults.items() if why}
    if named and needed:
        stage, why = next(iter(needed.items()))
        message = f"recipe {own.name} cannot be refined without {stage}: {why}; leave it out of --stages"
        raise RecipeError(message)
    possible = {stage: written for stage, written in left.items() if stage not in needed}
    if not 0 < len(possible) <= MOST_STAGES:
        message = f"{counted(len(possible), 'stage')} of recipe {own.name} can be left out; name 1 to {MOST_STAGES}"
        raise RecipeError(message)
    return possible


def _written(recipe: str) -> dict[str, Any]:
    path = recipe_path(recipe)
    return dict(require_mapping(read_yaml(path), str(path)))


def _without(name: str, raw: dict[str, Any], stage: str) -> dict[str, Any]:
    """Return a recipe without a stage, and without what it says of its gate, its engine and its resources."""
    kept = {key: value for key, value in raw.items() if key not in ("requires", "rollout")}
    for section in ("stages", "gates"):
        if isinstance(kept.get(section), dict):
            kept[section] = {key: value for key, value in kept[section].items() if key != stage}
    if isinstance(kept.get("run"), dict):
        kept["run"] = {key: _less(value, stage) for key, value in kept["run"].items()}
    return {**kept, "name": f"{name}_without_{stage}"}


def _less(value: object, stage: str) -> object:
    return {key: each for key, each in value.items() if key != stage} if isinstance(value, dict) else value


def _why_needed(stage: str, written: dict[str, Any]) -> str:
    """Return why a recipe cannot be refined without a stage, "" if it can."""
    if copies_of(stage).equal or reads_records(stage) or makes_documents(stage):
        return "every training dataset needs it"
    try:
        recipe: Recipe = parse_recipe(written, f"the recipe without {stage}")
    except RefineryError as error:
        return str(error)
    return next((fault.message for fault in order_faults(recipe) if fault.fault), "")


def write_recipes(recipe: str, named: Sequence[str], folder: Path) -> dict[str, str]:
    """Write the recipe without each stage into a folder; return the paths by stage."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = {}
    for stage, written in stages_without(recipe, named).items():
        path = folder / f"without_{stage}.yaml"
        path.write_text(yaml.safe_dump(written, sort_keys=False))
        paths[stage] = str(path)
    return paths


# --- What stages do ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Attributed:
    """What models say of a stage: those trained on data without it, beside those of the whole recipe.

    `outcome` is of the recipe without it: `worse` means that the stage pays. `differences` are by rate, `languages` at
    the larger one. `tokens` are those that the recipe has without the stage.
    """

    stage: str
    outcome: Outcome
    differences: dict[float, Difference]
    languages: dict[str, Difference]
    tokens: int

    @property
    def says(self) -> str:
        """What the stage does, in a word or some."""
        return WORDS.get(self.outcome, self.outcome)

    @property
    def decisive(self) -> Difference:
        """The difference at the larger rate."""
        return self.differences[max(self.differences)]


@dataclass(frozen=True, slots=True)
class Attribution:
    """What models say of the stages of a recipe; `mean` are the bits per byte of the whole recipe."""

    stages: tuple[Attributed, ...]
    mean: float
    tokens: int
    noise: Noise
    plan: Plan

    def facts(self) -> dict[str, Any]:
        """Return it as JSON."""
        raw = asdict(self)
        for written, own in zip(raw["stages"], self.stages, strict=True):
            written["differences"] = {f"{rate:g}": asdict(compared) for rate, compared in own.differences.items()}
            written["says"] = own.says
        return raw


def attribute(folder: Path, stages: Sequence[str]) -> Attribution:
    """Judge an attribution whose runs have all ended, `stages` in the order of its arms; store it.

    RecipeError while runs are missing.
    """
    plan, held_out = read_plan(folder), load_held_out(folder / HELD_OUT)
    require_finished(folder, plan)
    whole = {rate: bits_of_arm(folder, plan, 0, rate) for rate in plan.rates}
    attributed = tuple(_attributed(folder, plan, held_out, whole, arm, stage) for arm, stage in enumerate(stages, 1))
    mean = float(bits_per_byte(whole[max(plan.rates)], held_out.sizes).mean())
    found = Attribution(attributed, mean, plan.arms[0].tokens, noise_of(folder, plan), plan)
    (folder / ATTRIBUTION).write_text(json.dumps(found.facts(), indent=1, sort_keys=True) + "\n")
    return found


def _attributed(
    folder: Path, plan: Plan, held_out: HeldOut, whole: dict[float, Floats], arm: int, stage: str
) -> Attributed:
    without = {rate: bits_of_arm(folder, plan, arm, rate) for rate in plan.rates}
    differences = {
        rate: difference(whole[rate], without[rate], held_out.sizes, tests=tests_of(plan)) for rate in plan.rates
    }
    rate = max(plan.rates)
    languages = dict(_by_language(whole[rate], without[rate], held_out, len(plan.arms) - 1))
    return Attributed(stage, outcome(differences), differences, languages, plan.arms[arm].tokens)


def _by_language(whole: Floats, without: Floats, held_out: HeldOut, stages: int) -> Iterator[tuple[str, Difference]]:
    """Yield the difference in each language with enough documents; intervals hold for all stages together."""
    names = np.array(held_out.languages)
    large = [name for name in sorted(set(held_out.languages)) if (names == name).sum() >= LEAST_DOCUMENTS]
    for name in large:
        at = np.flatnonzero(names == name)
        yield name, difference(whole[:, at], without[:, at], held_out.sizes[at], tests=len(large) * stages)


def verdict_without(folder: Path, found: Attribution, arm: int) -> Verdict:
    """Return what an attribution says of the arm without a stage, by its number, beside the whole recipe.

    Its intervals hold for all stages together, and those of languages for all languages of all stages.
    """
    plan, own, held_out = found.plan, found.stages[arm - 1], load_held_out(folder / HELD_OUT)
    rate, both = max(plan.rates), (0, arm)
    means = (float(bits_per_byte(bits_of_arm(folder, plan, each, rate), held_out.sizes).mean()) for each in both)
    jobs = [job for job in jobs_of(plan) if job.arm in both]
    shared = json.loads((folder / SHARED).read_bytes())
    return Verdict(
        own.outcome,
        own.differences,
        {f"language {name}": compared for name, compared in own.languages.items()},
        tuple(means),
        found.noise.deviation,
        found.noise.detectable,
        float(np.mean([read_result(folder, job)["seconds"] for job in jobs])),
        replace(plan, arms=tuple(plan.arms[each] for each in both)),
        {**shared, "in": [shared["in"][each] for each in both]},
    )


# --- Lines ------------------------------------------------------------------------------------------------------------


def cost_lines(noise: Noise, plan: Plan, usd_per_hour: float) -> Iterator[str]:
    """Yield what the comparisons can see together, and what is left to pay."""
    runs = len(list(jobs_of(plan)))
    own = len(plan.seeds) * len(plan.rates)
    yield (
        f"noise of seeds: {noise.deviation:.4f} bits per byte; {len(plan.seeds)} seeds show differences from "
        f"{noise.detectable:.4f} on, of {counted(len(plan.arms) - 1, 'stage')} together"
    )
    yield (
        f"{counted(runs, 'run')}, {own} of them of the whole recipe: {hours_of(noise.seconds * runs, usd_per_hour)}; "
        f"{hours_of(noise.seconds * (runs - own), usd_per_hour)} are left if none of a stage has ended"
    )


HEAD = ("stage", "it", "without it", "interval", "tokens without it")


def attribution_lines(found: Attribution) -> Iterator[str]:
    """Yield an attribution for a person: a line for each stage, and below it its languages."""
    yield (
        f"bits per byte without a stage less those of the whole recipe ({found.mean:.4f}): above 0 the stage pays; "
        "95 % intervals hold for all stages together"
    )
    yield f"{HEAD[0]:<22}{HEAD[1]:<20}{HEAD[2]:>12}{HEAD[3]:>22}{HEAD[4]:>22}"
    for each in sorted(found.stages, key=lambda each: -each.decisive.value):
        share = f"{each.tokens:,} ({(each.tokens - found.tokens) / found.tokens:+.1%})"
        yield f"{each.stage:<22}{each.says:<20}{_numbers(each.decisive)}{share:>22}"
        for name, compared in each.languages.items():
            says = WORDS[WORSE if compared.value > 0 else BETTER] if compared.excludes_zero else SAME
            yield f"  {name or '(none)':<20}{says:<20}{_numbers(compared)}"
    yield f"smallest difference that {len(found.plan.seeds)} seeds show: {found.noise.detectable:.4f}"
    if found.plan.size == SMOKE:
        yield "models of this size show that the comparison works; what they say holds for no larger ones"


def _numbers(compared: Difference) -> str:
    interval = f"{compared.low:+.4f} to {compared.high:+.4f}"
    return f"{compared.value:>+12.4f}{interval:>22}"
