"""Recipes: the ordered list of stages with their parameters, read from YAML and checked before anything runs."""

import importlib
import os
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pipeline_tasks.binding import bind, bind_fields, nearest, require_known, require_mapping
from pipeline_tasks.constraints import PlainWord, Range, Ratio, Weight, Word
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.stage import EngineName, Stage
from pipeline_tasks.yaml_file import read_yaml

LAND = "land"
"""The name of the landing, which precedes every stage; its card is in `landing.listing`."""

PUBLISH = "publish"
"""The name of what makes a version of a snapshot, and of the gate before it."""

STAGES = (
    "ingest",
    "extract",
    "filter_url",
    "filter_language",
    "filter_quality",
    "dedup_url",
    "dedup_exact",
    "dedup_minhash",
    "dedup_paragraphs",
    "score_quality",
    "scrub_pii",
    "decontaminate",
    "tokenize",
    "mix",
    "shuffle",
    "pack",
)
"""Every stage, in the order in which recipes use them: cheap and high-rejecting first."""

ENGINES: tuple[EngineName, ...] = typing.get_args(EngineName)
LOCAL, SPARK, RAY = ENGINES

EngineWord = Annotated[str, Word("|".join(ENGINES), ", ".join(ENGINES[:-1]) + f" or {ENGINES[-1]}")]
"""The name of an engine, as requests have it."""

MOST_NAME = 100
"""Characters of a wrong name that a message shows."""

MAX_PARTITIONS = 1024
"""Partitions of a stage: Airflow's own bound on a mapped task."""

Partitions = Annotated[int, Range(1, MAX_PARTITIONS)]

RECIPES = Path(__file__).parent.parent / "dags" / "recipes"


@dataclass(frozen=True, slots=True)
class ErrorBudget:
    """How many quarantined records a partition may have: it fails above both `share` and `rows`."""

    share: Ratio = 0.01
    rows: Weight = 20.0


@dataclass(frozen=True, slots=True)
class RunSettings:
    """The section `run` of a recipe: how to run, which is not part of identity."""

    partitions: Partitions = 4
    engines: Mapping[str, EngineName] = field(default_factory=dict)
    error_budget: ErrorBudget = field(default_factory=ErrorBudget)


@dataclass(frozen=True, slots=True)
class _Written:
    """A recipe's keys as written; stages and gates are checked by their own cards and suites."""

    stages: Mapping[str, Any]
    name: PlainWord
    title: str = ""
    run: RunSettings = field(default_factory=RunSettings)
    gates: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step:
    """One stage of a recipe, with the params as written."""

    stage: str
    params: Mapping[str, Any]
    engine: str


@dataclass(frozen=True, slots=True)
class Recipe:
    """What to do: steps in order, how many partitions a stage is mapped over, and bounds that differ for its gates.

    `partitions`, `engine`s and `error_budget` decide how to run and are not part of identity.
    """

    name: str
    title: str
    steps: tuple[Step, ...]
    partitions: Partitions = 4
    error_budget: ErrorBudget = field(default_factory=ErrorBudget)
    gates: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def step(self, stage: str) -> Step:
        """Return the step of `stage`; RecipeError if the recipe has none."""
        for step in self.steps:
            if step.stage == stage:
                return step
        message = f"recipe {self.name} has no stage {stage}; it has {', '.join(step.stage for step in self.steps)}"
        raise RecipeError(message)


def recipe_names(folder: Path = RECIPES) -> list[str]:
    """Return the names of the recipes in `folder`, sorted."""
    return sorted(path.stem for path in folder.glob("*.yaml"))


def load_recipe(name: str, folder: Path = RECIPES) -> Recipe:
    """Read a recipe by name, or by path when `name` ends in `.yaml`."""
    path = Path(name) if name.endswith((".yaml", ".yml")) else folder / f"{name}.yaml"
    if not _is_there(path):
        names = recipe_names(folder)
        way_out = "; for one of your own give the path of its YAML file" if path.parent == folder else ""
        what = _other_file(name) or nearest(name, names)
        message = f"no recipe {name[:MOST_NAME]!r}{what}; recipes are: {', '.join(names)}{way_out}"
        raise RecipeError(message)
    return parse_recipe(read_yaml(path), str(path))


def _is_there(path: Path) -> bool:
    try:
        return os.path.lexists(path)
    except ValueError:  # a NUL
        return False


def _other_file(name: str) -> str:
    """Return in brackets what is at a path that is none of a recipe, "" for nothing."""
    if os.sep not in name or not _is_there(Path(name)):
        return ""
    return f" (it is {'a folder' if Path(name).is_dir() else 'a file whose name does not end in .yaml'})"


def parse_recipe(raw: object, where: str) -> Recipe:
    """Check a recipe's YAML; unknown keys are refused with the nearest known one."""
    top = {key: value for key, value in require_mapping(raw, where).items() if value is not None or key == "stages"}
    require_known(top, ("name", "title", "stages", "run", "gates"), where)
    steps = require_mapping(top.get("stages"), f"{where}: stages")
    if not steps:
        message = f"{where} has no stages; write at least `stages: {{ingest: {{}}}}`"
        raise RecipeError(message)
    require_known(steps, STAGES, f"{where}: stages")
    written = bind_fields(_Written, {"name": Path(where).stem, **top, "run": _section(top, "run", where)}, where)
    require_known(written.run.engines, tuple(steps), f"{where}: run: engines")
    require_known(written.gates, (*steps, PUBLISH), f"{where}: gates")
    bound = tuple(_step(name, params, written.run.engines, where) for name, params in steps.items())
    _require_columns(bound, where)
    return Recipe(
        name=written.name,
        title=written.title,
        steps=bound,
        partitions=written.run.partitions,
        error_budget=written.run.error_budget,
        gates=written.gates,
    )


def _section(top: Mapping[str, Any], name: str, where: str) -> Mapping[str, Any]:
    """Return a section of a recipe without the keys whose value was left out."""
    section = require_mapping(top.get(name, {}), f"{where}: {name}")
    return {key: value for key, value in section.items() if value is not None}


def _step(name: str, params: object, engines: Mapping[str, str], where: str) -> Step:
    written = require_mapping({} if params is None else params, f"{where}: {name}")
    card = stage_card(name)
    bind(card, written, f"{where}: {name}")
    return Step(name, dict(written), engines.get(name, card.engine))


def _require_columns(steps: Iterable[Step], where: str) -> None:
    """Raise RecipeError for a column that the params of a stage name and no stage before it writes."""
    written: set[str] = set()
    for step in steps:
        card = stage_card(step.stage)
        params = bind(card, step.params, f"{where}: {step.stage}")
        missing = [column for column in (card.reads_for(params) if card.reads_for else ()) if column not in written]
        if missing:
            writers = [name for name in STAGES if missing[0] in stage_card(name).writes.names]
            way_out = f"put {' or '.join(writers)} before {step.stage}" if writers else "no stage writes it"
            message = (
                f"{where}: {step.stage} reads the column {missing[0]!r}, which no stage before it writes; {way_out}"
            )
            raise RecipeError(message)
        written |= set(card.written(params).names)


def stage_card(name: str) -> Stage[Any]:
    """Return the card of a stage by its name: the module `pipeline_tasks.stages.<name>` exports it as `STAGE`."""
    require_known((name,), STAGES, "stage")
    card: Stage[Any] = importlib.import_module(f"pipeline_tasks.stages.{name}").STAGE
    return card
