"""Recipes: the ordered list of stages with their parameters, read from YAML and checked before anything runs."""

import importlib
import os
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from pipeline_tasks import seams
from pipeline_tasks.binding import bind, bind_fields, nearest, require_known, require_mapping
from pipeline_tasks.constraints import FieldName, OptionalWord, PlainWord, Range, Ratio, Share, Weight, Word
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.schema import FIELDS
from pipeline_tasks.shipped import shipped
from pipeline_tasks.stage import EngineName, Stage
from pipeline_tasks.yaml_file import read_yaml

LAND = "land"
"""The name of the landing, which precedes every stage; its card is in `landing.listing`."""

COMPOSE = "compose"
"""The name of what begins a build: the documents of a selection of versions (`publish.datasets.composing`)."""

BUILD = "build"
"""The name that versions of a training dataset have in the place of a snapshot's."""

EMBED = "embed"
"""The stage that gives documents vectors: its recipes have a store of these (`publish.vectors`)."""

PUBLISH = "publish"
"""The name of what makes a version of a snapshot, and of the gate before it."""

VERDICT = "verdict"
"""The name of the gate before the first stage of a recipe that requires a verdict of trained models."""

TRIAL = ".trial"
"""The end of the name under which a recipe's trials are kept: versions of a dataset of their own."""

REFINING = (
    "ingest",
    "check_rights",
    "extract",
    "filter_url",
    "filter_language",
    "filter_quality",
    "dedup_url",
    "dedup_exact",
    "cut_templates",
    "dedup_minhash",
    "dedup_paragraphs",
    "score_quality",
    "filter_toxicity",
    "scrub_pii",
    "decontaminate",
    "enrich",
    "embed",
    "dedup_semantic",
    "topics",
)
"""Stages of recipes that refine a snapshot: cheap and high-rejecting first."""

BUILDING = (
    "tokenize",
    "select",
    "mix",
    "shuffle",
    "takedown",
    "pack",
)
"""Stages of recipes that build a training dataset."""

STAGES = (*REFINING, *BUILDING)
"""Every stage that is known, in the order of the docs; what came before what is in manifests and versions alone."""

ENGINES: tuple[EngineName, ...] = typing.get_args(EngineName)
LOCAL, SPARK, RAY = ENGINES

EngineWord = Annotated[str, Word("|".join(ENGINES), ", ".join(ENGINES[:-1]) + f" or {ENGINES[-1]}")]
"""The name of an engine, as requests have it."""

MOST_NAME = 100
"""Characters of a wrong name that a message shows."""

MAX_PARTITIONS = 1024
"""Partitions of a stage: Airflow's own bound on a mapped task (`max_map_length`)."""

Partitions = Annotated[int, Range(0, MAX_PARTITIONS)]
"""Partitions of a stage; 0: as many as the bytes of its input ask for."""

RECIPES = shipped("dags") / "recipes"
BUILDS = RECIPES / "build"
"""The folder of recipes that build a training dataset from versions; those beside it refine snapshots."""

DEFAULT_BUILD = "corpus"
"""The recipe that builds from versions of the default recipe, `web`."""

TOKENIZE, SELECT, MIX = "tokenize", "select", "mix"

INGEST, CHECK_RIGHTS = "ingest", "check_rights"

FIRST = (TOKENIZE, SELECT)
"""The first stages of a recipe that builds. Tokens come first: every build finds those that an earlier one made."""

PACKED = ("shuffle", "pack")
"""The last stages of a recipe that builds: what they write is published."""

TAKEDOWN = "takedown"
"""The stage that every build has before `pack`, and that no recipe names."""


@dataclass(frozen=True, slots=True)
class ErrorBudget:
    """How many quarantined records a partition may have: it fails above both `share` and `rows`."""

    share: Ratio = 0.01
    rows: Weight = 20.0


@dataclass(frozen=True, slots=True)
class Resources:
    """What one task of a stage is given on Spark and Ray: CPU cores, GiB of memory, GPUs. 0: as the engine does it.

    GPUs are given to kernels with a model alone; on Ray these run in at most `actors` processes that keep the model (0:
    as many as the cluster has room for).
    """

    cores: Annotated[int, Range(0, 1024)] = 0
    memory: Annotated[float, Range(0, 1 << 16)] = 0.0
    gpus: Annotated[float, Range(0, 64)] = 0.0
    actors: Annotated[int, Range(0, 1024)] = 0

    def __post_init__(self) -> None:
        """Raise ValueError for parts of several GPUs, which neither Spark nor Ray gives."""
        if self.gpus > 1 and not float(self.gpus).is_integer():
            message = f"gpus is {self.gpus:g}; a task is given a part of one GPU, or a whole number of them"
            raise ValueError(message)


@dataclass(frozen=True, slots=True)
class Versions:
    """Which published versions a training dataset is built from: the newest of each selected snapshot of a recipe.

    `snapshots` are names or patterns (`CC-MAIN-2026-*`); `since` and `until` bound names as text, both included. All
    snapshots that are published when the build starts are selected if nothing is said. With `cluster_sizes`, documents
    get the column `cluster_size`: how many records of the selected snapshots they stand for, themselves included.
    """

    recipe: PlainWord
    snapshots: tuple[str, ...] = ()
    since: str = ""
    until: str = ""
    cluster_sizes: bool = False


EXPORTS = ("parquet", "mds", "webdataset", "numpy", "megatron", "text-jsonl", "text-parquet")
"""Formats of other trainers in which a build may be exported: those of `publish.trainers`."""

MOST_SHARD_BYTES = 2 << 30
"""Most bytes of an exported shard: a process has a few times as many in memory, and MDS counts bytes with 32 bits."""

ShardBytes = Annotated[int, Range(0, MOST_SHARD_BYTES)]


@dataclass(frozen=True, slots=True)
class ExportSettings:
    """How a build is exported in one format: `shard_bytes` of ids or text per shard, 0 for those of the format."""

    shard_bytes: ShardBytes = 0


@dataclass(frozen=True, slots=True)
class RunSettings:
    """The section `run` of a recipe: how to run, which is not part of identity."""

    partitions: Partitions = 0
    engines: Mapping[str, EngineName] = field(default_factory=dict)
    resources: Mapping[str, Resources] = field(default_factory=dict)
    error_budget: ErrorBudget = field(default_factory=ErrorBudget)


@dataclass(frozen=True, slots=True)
class AlertLimits:
    """The section `alerts` of a recipe: from which on alerts are sent; no part of identity.

    `error_rate` is the share of a stage's rows that could not be processed. `slow` is how many times the median of
    its stage the 99th percentile of partition times takes, and how many times its usual time per row a stage takes.
    `budget` is US dollars of a run, `backlog` hours for which a snapshot is not published. 0 turns the last three off.
    """

    error_rate: Ratio = 0.01
    slow: Weight = 4.0
    budget: Weight = 0.0
    backlog: Weight = 48.0


NOT_WORSE = "not-worse"
"""What a verdict has to say: that models of the recipe's data are worse by less than a margin, beyond chance."""

MARGIN = 0.01
"""Bits per byte that are no loss where no margin is named: about 1 % of what a small model needs for a byte of text."""

REQUIRED = Word(rf"{NOT_WORSE}(: ?\d*\.?\d+)?", f"{NOT_WORSE}, or with a margin in bits per byte {NOT_WORSE}:{MARGIN}")


def margin_of(required: str) -> float:
    """Return the bits per byte by which a verdict that is `REQUIRED` may be worse."""
    return float(required.partition(":")[2] or MARGIN)


@dataclass(frozen=True, slots=True)
class Requirement:
    """The section `requires` of a recipe: what `refinery ablate` has to say of it before it runs; no part of identity.

    `verdict` is `not-worse`, with a margin in bits per byte `not-worse:0.01`. `beside` is the name of the recipe or
    training dataset that it is compared with, "" for any.
    """

    verdict: Annotated[str, REQUIRED]
    beside: OptionalWord = ""


@dataclass(frozen=True, slots=True)
class _Written:
    """A recipe's keys as written; stages and gates are checked by their own cards and suites."""

    stages: Mapping[str, Any]
    name: PlainWord
    title: str = ""
    fields: Mapping[str, FieldName] = field(default_factory=dict)
    accept_partial: Share = 1.0
    rollout: tuple[Share, ...] = ()
    versions: Versions | None = None
    exports: Mapping[str, ExportSettings] = field(default_factory=dict)
    run: RunSettings = field(default_factory=RunSettings)
    gates: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    alerts: AlertLimits = field(default_factory=AlertLimits)
    requires: Requirement | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One stage of a recipe, with the params as written."""

    stage: str
    params: Mapping[str, Any]
    engine: str
    resources: Resources = Resources()


@dataclass(frozen=True, slots=True)
class Recipe:
    """What to do: steps in order, how many partitions a stage is mapped over, and bounds that differ for its gates.

    `partitions`, `engine`s, `resources` and `error_budget` decide how to run and are not part of identity, nor are
    `alerts`, the limits from which on alerts are sent. `versions` are the input of a recipe that builds a training
    dataset; one that refines a snapshot has none. `exports` are the formats of other trainers in which what was built
    is exported, with the bytes of a shard. `fields` are the names of some of `schema.FIELDS` in landed records.
    `accept_partial` is the share of the promised files of a snapshot that has to have landed whole. `rollout` are the
    growing shares of a snapshot that are refined one after the other, each when a person approves; empty: all at once.
    `requires` is the verdict of trained models without which it does not run; None: it needs none.
    """

    name: str
    title: str
    steps: tuple[Step, ...]
    partitions: Partitions = 0
    error_budget: ErrorBudget = field(default_factory=ErrorBudget)
    gates: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    versions: Versions | None = None
    exports: Mapping[str, ShardBytes] = field(default_factory=dict)
    alerts: AlertLimits = field(default_factory=AlertLimits)
    fields: Mapping[str, FieldName] = field(default_factory=dict)
    accept_partial: Share = 1.0
    rollout: tuple[Share, ...] = ()
    requires: Requirement | None = None

    @property
    def gates_before(self) -> tuple[str, ...]:
        """The names of the gates before the first stage."""
        return (VERDICT,) if self.requires else ()

    def step(self, stage: str) -> Step:
        """Return the step of `stage`; RecipeError if the recipe has none."""
        for step in self.steps:
            if step.stage == stage:
                return step
        message = f"recipe {self.name} has no stage {stage}; it has {', '.join(step.stage for step in self.steps)}"
        raise RecipeError(message)


def engine_of(stage: str, default: str, engines: Mapping[str, str]) -> str:
    """Return where a stage runs: a run's `engines` by stage, `*` for all others, go before the recipe's `default`."""
    return engines.get(stage, engines.get("*", default))


def fields_of(fields: Mapping[str, str], text_field: str) -> dict[str, str]:
    """Return the names of fields of a run: those of its recipe, and a text field of its own, if it names one."""
    return {**fields, **({"text": text_field} if text_field else {})}


def trial_of(recipe: str) -> str:
    """Return the name under which trials of a recipe are kept."""
    return recipe + TRIAL


def is_trial(name: str) -> bool:
    """Return whether a name is of a recipe's trials."""
    return name.endswith(TRIAL)


def untried(name: str) -> str:
    """Return the name of the recipe that trials are of; another name as it is."""
    return name.removesuffix(TRIAL)


def recipe_names(folder: Path = RECIPES) -> list[str]:
    """Return the names of the recipes in `folder`, sorted."""
    return sorted(path.stem for path in folder.glob("*.yaml"))


def load_recipe(name: str, folder: Path = RECIPES) -> Recipe:
    """Read a recipe by name, or by path when `name` ends in `.yaml`."""
    path = Path(name) if name.endswith((".yaml", ".yml")) else folder / f"{name}.yaml"
    if not _is_there(path):
        raise RecipeError(_unknown(name, recipe_names(folder), is_file=path.parent != folder))
    return parse_recipe(read_yaml(path), str(path))


def _unknown(name: str, names: list[str], *, is_file: bool) -> str:
    """Return the message for a name of no recipe, or of no file."""
    other = _other_file(name)
    if is_file and not other:
        return f"there is no file {name[:MOST_NAME]!r} of a recipe; name another, or one of {', '.join(names)}"
    way_out = "" if is_file else "; for one of your own give the path of its YAML file"
    return f"no recipe {name[:MOST_NAME]!r}{other or nearest(name, names)}; recipes are: {', '.join(names)}{way_out}"


def load_build(name: str) -> Recipe:
    """Read a recipe that builds a training dataset, by name or path; RecipeError for one that refines a snapshot."""
    recipe = load_recipe(name, BUILDS)
    if recipe.versions is None:
        message = f"recipe {recipe.name} refines a snapshot: `refinery run` takes it; a build has `versions`"
        raise RecipeError(message)
    return recipe


def default_build(recipe: str) -> Recipe:
    """Return the recipe that builds from versions of a recipe: the first of `BUILDS` that does, else `corpus` of these.

    The latter's dataset has the name of the recipe with `_corpus`.
    """
    for name in recipe_names(BUILDS):
        build = load_build(name)
        if build.versions and build.versions.recipe == recipe:
            return build
    corpus = load_build(DEFAULT_BUILD)
    return replace(corpus, name=f"{recipe}_{corpus.name}", versions=Versions(recipe))


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
    of_landings = ("fields", "accept_partial", "rollout")
    known = ("name", "title", *of_landings, "versions", "stages", "exports", "run", "gates", "alerts", "requires")
    require_known(top, known, where)
    steps = require_mapping(top.get("stages"), f"{where}: stages")
    if not steps:
        message = f"{where} has no stages; write at least `stages: {{ingest: {{}}}}`"
        raise RecipeError(message)
    require_known(steps, tuple(stage for stage in STAGES if stage != TAKEDOWN), f"{where}: stages")
    written = bind_fields(_Written, {"name": Path(where).stem, **top, **_sections(top, where)}, where)
    if is_trial(written.name):
        message = f"{where}: names that end in {TRIAL} are of trials; give the recipe another name"
        raise RecipeError(message)
    require_known(written.run.engines, tuple(steps), f"{where}: run: engines")
    require_known(written.run.resources, tuple(steps), f"{where}: run: resources")
    require_known(written.gates, gates_of(steps, written.versions), f"{where}: gates")
    require_known(written.exports, export_names(written.exports), f"{where}: exports")
    require_known(written.fields, FIELDS, f"{where}: fields")
    _require_input(written, steps, where)
    _require_rollout(written.rollout, where)
    steps = _with_rights(steps, where)
    stages = tuple(steps)
    if written.versions is not None:
        steps = {name: params for step, params in steps.items() for name, params in _with_takedown(step, params)}
    bound = tuple(_step(name, params, written.run, where) for name, params in steps.items())
    _require_columns(bound, where)
    _require_packed(written, stages, where)
    return Recipe(
        name=written.name,
        title=written.title,
        steps=bound,
        partitions=written.run.partitions,
        error_budget=written.run.error_budget,
        gates=written.gates,
        versions=written.versions,
        exports={name: settings.shard_bytes for name, settings in written.exports.items()},
        alerts=written.alerts,
        fields=written.fields,
        accept_partial=written.accept_partial,
        rollout=written.rollout,
        requires=written.requires,
    )


def _sections(top: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the sections that may be written in more than one way; `exports` may be a list of formats."""
    exports = top.get("exports", {})
    if isinstance(exports, list) and all(isinstance(name, str) for name in exports):
        exports = {name: {} for name in exports}
    named = require_mapping(exports, f"{where}: exports")
    return {
        "run": _section(top, "run", where),
        "alerts": _section(top, "alerts", where),
        "exports": {name: {} if settings is None else settings for name, settings in named.items()},
    }


def _require_rollout(rollout: Sequence[float], where: str) -> None:
    """Raise RecipeError unless the shares of a rollout grow, and end with all of the snapshot."""
    if rollout and (list(rollout) != sorted(set(rollout)) or rollout[-1] != 1):
        message = f"{where}: rollout has to be shares that grow and end with 1, as [0.01, 0.1, 1]"
        raise RecipeError(message)


def _with_rights(steps: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """Return steps whose `ingest` lets through what `check_rights` reads; RecipeError if it is to do so for nothing."""
    ingest = steps.get(INGEST) or {}
    if CHECK_RIGHTS in steps:
        return (
            {**steps, INGEST: {"rights": True, **ingest}} if isinstance(ingest, Mapping) and INGEST in steps else steps
        )
    if isinstance(ingest, Mapping) and ingest.get("rights"):
        message = f"{where}: ingest: rights lets robots.txt files through for {CHECK_RIGHTS}; add that stage behind it"
        raise RecipeError(message)
    return steps


def _require_input(written: _Written, steps: Mapping[str, Any], where: str) -> None:
    """Raise RecipeError unless a recipe has `versions` and the stages of a build, or neither: it refines a snapshot."""
    if written.versions is not None and tuple(steps)[: len(FIRST)] != FIRST:
        message = (
            f"{where} has `versions`, so it builds a training dataset; its first stages must be {' and '.join(FIRST)}, "
            f"and they are {', '.join(tuple(steps)[: len(FIRST)])}"
        )
        raise RecipeError(message)
    if written.versions is None and written.exports:
        message = f"{where} refines snapshots, and `exports` are of a training dataset; move them to a recipe of one"
        raise RecipeError(message)
    names = ("fields", "accept_partial", "rollout")
    of_landings = [name for name in names if getattr(written, name) not in ({}, 1.0, ())]
    if written.versions is not None and of_landings:
        key = of_landings[0]
        message = f"{where} builds from versions, and `{key}` is of landed files; move it to a recipe that refines"
        raise RecipeError(message)
    building = [stage for stage in steps if stage in BUILDING]
    if written.versions is None and building:
        message = (
            f"{where} refines snapshots, which ends with documents, and {', '.join(building)} make a training dataset "
            f"of them; move {'them' if len(building) > 1 else 'it'} to a recipe that builds, with "
            f"`versions: {{recipe: {written.name}}}` (dags/recipes/build/corpus.yaml is one)"
        )
        raise RecipeError(message)


def _with_takedown(name: str, params: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 -- as written
    """Yield a step of a build, behind the takedown if it packs."""
    if name == PACKED[-1]:
        yield TAKEDOWN, {}
    yield name, params


def _require_packed(written: _Written, stages: tuple[str, ...], where: str) -> None:
    """Raise RecipeError for a recipe that builds and does not end with the stages whose output is published."""
    if written.versions is not None and stages[-len(PACKED) :] != PACKED:
        message = (
            f"{where} has `versions`, so it builds a training dataset; its last stages must be {' and '.join(PACKED)}, "
            f"and they are {', '.join(stages[-len(PACKED) :])}"
        )
        raise RecipeError(message)
    if written.versions is not None and written.versions.recipe == written.name:
        message = (
            f"{where}: recipe {written.name} is built from versions of its own name; give the dataset another name"
        )
        raise RecipeError(message)


def gates_of(stages: Iterable[str], versions: Versions | None) -> tuple[str, ...]:
    """Return the names of a recipe's gates: its stages, and `publish` if it refines a snapshot."""
    if versions is None:
        return (*stages, PUBLISH)
    return tuple(name for stage in stages if stage != TAKEDOWN for name, _ in _with_takedown(stage, {}))


def _section(top: Mapping[str, Any], name: str, where: str) -> Mapping[str, Any]:
    """Return a section of a recipe without the keys whose value was left out."""
    section = require_mapping(top.get(name, {}), f"{where}: {name}")
    return {key: value for key, value in section.items() if value is not None}


def _step(name: str, params: object, run: RunSettings, where: str) -> Step:
    written = require_mapping({} if params is None else params, f"{where}: {name}")
    card = stage_card(name)
    bind(card, written, f"{where}: {name}")
    return Step(name, dict(written), run.engines.get(name, card.engine), run.resources.get(name, Resources()))


def _require_columns(steps: Iterable[Step], where: str) -> None:
    """Raise RecipeError for a column that the params of a stage name and no stage before it writes."""
    written: set[str] = set()
    for step in steps:
        card = stage_card(step.stage)
        params = bind(card, step.params, f"{where}: {step.stage}")
        missing = [column for column in (card.reads_for(params) if card.reads_for else ()) if column not in written]
        if missing:
            writers = [name for name in STAGES if missing[0] in added_by(stage_card(name))]
            way_out = f"put {' or '.join(writers)} before {step.stage}" if writers else "no stage writes it"
            message = (
                f"{where}: {step.stage} reads the column {missing[0]!r}, which no stage before it writes; {way_out}"
            )
            raise RecipeError(message)
        written |= set(card.written(params).names)


def added_by(card: Stage[Any]) -> set[str]:
    """Return the columns that a stage always writes and does not need."""
    return set(card.writes.names) - set(card.reads.names)


def require_params(stage: str, params: Mapping[str, object], where: str) -> None:
    """Raise RecipeError unless a stage takes these params."""
    bind(stage_card(stage), params, where)


def known_card(name: str) -> Stage[Any] | None:
    """Return the card of a stage, None where this release has none of the name: manifests may be of another one."""
    return stage_card(name) if name in STAGES else None


def has_sequences(stage: str) -> bool:
    """Return whether the rows of a stage are sequences of tokens, and no documents."""
    card = known_card(stage)
    return card is not None and card.conserves == "tokens"


def stage_card(name: str) -> Stage[Any]:
    """Return the card of a stage by its name: the module `pipeline_tasks.stages.<name>` exports it as `STAGE`."""
    require_known((name,), STAGES, "stage")
    card: Stage[Any] = importlib.import_module(f"pipeline_tasks.stages.{name}").STAGE
    return card


def export_names(asked: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the formats in which a build may be exported: ours, those that others bring, and places in `asked`."""
    return seams.known(seams.EXPORTS, EXPORTS, asked)
