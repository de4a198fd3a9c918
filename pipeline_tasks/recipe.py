"""Recipes: the ordered list of stages with their parameters, read from YAML and checked before anything runs."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pipeline_tasks import seams
from pipeline_tasks.binding import bind, bind_fields, require_known, require_mapping, shown
from pipeline_tasks.cards import DASHES, added_by, known_cards, stage_card
from pipeline_tasks.constraints import FieldName, Note, OptionalWord, PlainWord, Range, Ratio, Share, Weight, Word
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.nearest import nearest
from pipeline_tasks.schema import FIELDS
from pipeline_tasks.shipped import shipped
from pipeline_tasks.stage import Stage
from pipeline_tasks.yaml_file import read_yaml

T = TypeVar("T")

LAND = "land"
"""The name of the landing, which precedes every stage; its card is in `landing.listing`."""

COMPOSE = "compose"
"""The name of what begins a build: the documents of a selection of versions (`publish.datasets.composing`)."""

BUILD = "build"
"""The name that versions of a training dataset have in the place of a snapshot's."""

PUBLISH = "publish"
"""The name of what makes a version of a snapshot, and of the gate before it."""

VERDICT = "verdict"
"""The name of the gate before the first stage of a recipe that requires a verdict of trained models."""

EVERY = "every_stage"
"""The name of bounds that hold for the gate of every stage: a suite's, and under `gates:` a recipe's."""

TRIAL = ".trial"
"""The end of the name under which a recipe's trials are kept: versions of a dataset of their own."""

LOCAL = "local"
"""The engine that is this process: the core has no other."""

ENGINES = "refinery.engines"
"""The seam of engines: each of its parts is an `engines.card.EngineCard`."""

NO_STAGES = " has no stages; write at least `stages: {ingest: {}}`"
"""How the message ends that is of a recipe without stages."""

VERIFY = "verify"
"""The verb that works over a root whatever is in it, on any engine."""

WHOLE_ROOT = "refinery.whole_root"
"""The seam of such verbs: each part is the `WholeRoot` of one."""

MOST_NAME = 100
"""Characters of a wrong name that a message shows."""

MAX_PARTITIONS = 1024
"""Partitions of a stage: Airflow's own bound on a mapped task (`max_map_length`)."""

Partitions = Annotated[int, Range(0, MAX_PARTITIONS)]
"""Partitions of a stage; 0: as many as the bytes of its input ask for."""

RECIPES = shipped("dags") / "recipes"
BUILDS = RECIPES / "build"
"""The folder of recipes that build a training dataset from versions; those beside it refine snapshots."""

OWN_RECIPES = "REFINERY_RECIPES"
"""The variable that names a folder of recipes of one's own, laid out as `RECIPES`: known by name, and each a DAG."""

DEFAULT_BUILD = "corpus"
"""The recipe that builds from versions of the default recipe, `web`."""

TAKEDOWN = "takedown"
"""The stage that compares a build with the list of what was taken down, as it is then; recipes do not name it."""

PLACES = (1, 2, -2, -1)
"""Where a recipe that builds has stages with a place of their own (`facets.Wiring`): what they write is looked for.

Tokens come first, so that every build finds those that an earlier one made; what the last two write is published.
"""


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


MOST_SHARD_BYTES = 2 << 30
"""Most bytes of an exported shard: a process has a few times as many in memory, and MDS counts bytes with 32 bits."""

ShardBytes = Annotated[int, Range(0, MOST_SHARD_BYTES)]


@dataclass(frozen=True, slots=True)
class ExportSettings:
    """How a build is exported in one format: `shard_bytes` of ids or text per shard, 0 for those of the format."""

    shard_bytes: ShardBytes = 0


@dataclass(frozen=True, slots=True)
class RunSettings:
    """The section `run` of a recipe: how to run, and the `catalog` of its tables; it is not part of identity.

    `model_hours` are the most hours that the model of a stage may have for one input, over all partitions, machines and
    tries: the stage stops there, and a later run with more goes on. Without any there is no bound.
    """

    partitions: Partitions = 0
    engines: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, Resources] = field(default_factory=dict)
    error_budget: ErrorBudget = field(default_factory=ErrorBudget)
    catalog: Note = ""
    model_hours: Mapping[str, Weight] = field(default_factory=dict)


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
    model_hours: Weight = 0.0


@dataclass(frozen=True, slots=True)
class Recipe:
    """What to do: steps in order, how many partitions a stage is mapped over, and bounds that differ for its gates.

    `partitions`, `engine`s, `resources` and `error_budget` decide how to run and are not part of identity, nor are
    `alerts`, the limits from which on alerts are sent. `versions` are the input of a recipe that builds a training
    dataset; one that refines a snapshot has none. `exports` are the formats of other trainers in which what was built
    is exported, with the bytes of a shard. `fields` are the names of some of `schema.FIELDS` in landed records.
    `accept_partial` is the share of the promised files of a snapshot that has to have landed whole. `rollout` are the
    growing shares of a snapshot that are refined one after the other, each when a person approves; empty: all at once.
    `requires` is the verdict of trained models without which it does not run; None: it needs none. `engines` are those
    of verbs over a whole root, by verb. `catalog` is where versions are registered as tables, "" for the deployment's.
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
    engines: Mapping[str, str] = field(default_factory=dict)
    catalog: str = ""

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


def engine_names() -> tuple[str, ...]:
    """Return the names of engines: `local`, those of our extensions, and those that other distributions bring."""
    return (LOCAL, *seams.all_parts(ENGINES, (LOCAL,)))


@dataclass(frozen=True, slots=True)
class WholeRoot:
    """Which recipes may name a verb over a whole root in `run: engines:`: those that refine, and those that build."""

    refining: bool = True
    building: bool = True


_WHOLE_ROOT = {VERIFY: WholeRoot(), PUBLISH: WholeRoot(refining=False)}


def whole_root_verbs() -> tuple[str, ...]:
    """Return the verbs over a whole root that run on any engine: the core's, and those that packages bring."""
    return (*_WHOLE_ROOT, *seams.all_parts(WHOLE_ROOT, _WHOLE_ROOT))


def _require_place(verb: str, where: str, *, builds: bool) -> None:
    """Raise RecipeError if a verb over a whole root is not of recipes that build, or of those that refine."""
    card = _WHOLE_ROOT.get(verb) or seams.all_parts(WHOLE_ROOT, _WHOLE_ROOT)[verb].load(WholeRoot)
    if not (card.building if builds else card.refining):
        kind = "refine a snapshot" if builds else "build a training dataset (those with `versions`)"
        message = f"{where}: {verb} is of recipes that {kind}; say in one of these where it runs"
        raise RecipeError(message)


def verb_engine(recipe: str, verb: str) -> str:
    """Return where a verb over a root runs by a recipe that is here; `local` if there is none, or it says nothing."""
    for folder in (RECIPES, BUILDS):
        with suppress(RecipeError):
            return load_recipe(recipe, folder).engines.get(verb, LOCAL)
    return LOCAL


def _require_engines(engines: Mapping[str, str], where: str) -> None:
    """Raise RecipeError for an engine that nobody brings."""
    known = engine_names()
    for stage, engine in engines.items():
        if engine not in known:
            named = " or ".join(f"`{name}`" for name in known)
            message = f"{where}: {stage} must be {named}, not {shown(engine)}{nearest(engine, known)}"
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


def recipe_files(folder: Path = RECIPES) -> dict[str, Path]:
    """Return the files of the recipes in `folder`, and in that of `OWN_RECIPES` for it, by name, sorted.

    RecipeError if both have a name, or the variable names no folder.
    """
    files = {path.stem: path for path in folder.glob("*.yaml")}
    if (named := os.environ.get(OWN_RECIPES)) and folder.is_relative_to(RECIPES):
        if not Path(named).is_dir():
            message = f"{OWN_RECIPES} names {named!r}, which is no folder of this machine; correct it, or unset it"
            raise RecipeError(message)
        own = {path.stem: path for path in (Path(named) / folder.relative_to(RECIPES)).glob("*.yaml")}
        if twice := sorted(files.keys() & own.keys()):
            message = f"{own[twice[0]]} has the name of a recipe that ships with Refinery; give it another"
            raise RecipeError(message)
        files |= own
    return dict(sorted(files.items()))


def recipe_names(folder: Path = RECIPES) -> list[str]:
    """Return the names of the recipes of `recipe_files`, sorted."""
    return [*recipe_files(folder)]


def load_recipe(name: str, folder: Path = RECIPES) -> Recipe:
    """Read a recipe by name, or by path when `name` ends in `.yaml`; RecipeError if its file has another name."""
    path = recipe_path(name, folder)
    recipe = parse_recipe(read_yaml(path), str(path))
    if path.stem == name != recipe.name:  # known by its name, and not by a path
        message = f"{path}: it is named {recipe.name!r} inside; a recipe that is known by name has that of its file"
        raise RecipeError(message)
    return recipe


def recipe_path(name: str, folder: Path = RECIPES) -> Path:
    """Return the file of a recipe by name, or by path when `name` ends in `.yaml`; RecipeError if there is none."""
    is_path = name.endswith((".yaml", ".yml"))
    path = Path(name) if is_path else recipe_files(folder).get(name)
    if path is None or not _is_there(path):
        raise RecipeError(_unknown(name, recipe_names(folder), is_file=is_path or os.sep in name))
    return path


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
    with suppress(ValueError):  # a NUL
        return os.path.lexists(path)
    return False


def _other_file(name: str) -> str:
    """Return in brackets what is at a path that is none of a recipe, "" for nothing."""
    if os.sep not in name or not _is_there(Path(name)):
        return ""
    return f" (it is {'a folder' if Path(name).is_dir() else 'a file whose name does not end in .yaml'})"


def parse_recipe(raw: object, where: str) -> Recipe:
    """Check a recipe's YAML; unknown keys are refused with the nearest known one."""
    top = {key: value for key, value in require_mapping(raw, where).items() if value is not None}
    of_landings = ("fields", "accept_partial", "rollout")
    known = ("name", "title", *of_landings, "versions", "stages", "exports", "run", "gates", "alerts", "requires")
    require_known(top, known, where)
    steps = require_mapping(_by_name(top.get("stages", {})), f"{where}: stages")
    if not steps:
        message = f"{where}{NO_STAGES}"
        raise RecipeError(message)
    _require_stages(steps, where)
    written = bind_fields(_Written, {"name": Path(where).stem, **top, "stages": steps, **_sections(top, where)}, where)
    if is_trial(written.name):
        message = f"{where}: names that end in {TRIAL} are of trials; give the recipe another name"
        raise RecipeError(message)
    require_known(written.run.engines, (*steps, *whole_root_verbs()), f"{where}: run: engines")
    for verb in (name for name in written.run.engines if name not in steps):
        _require_place(verb, f"{where}: run: engines", builds=bool(written.versions))
    _require_engines(written.run.engines, f"{where}: run: engines")
    require_known(written.run.resources, tuple(steps), f"{where}: run: resources")
    require_known(written.run.model_hours, tuple(steps), f"{where}: run: model_hours")
    require_known(written.gates, (EVERY, *gates_of(steps, written.versions)), f"{where}: gates")
    require_known(written.exports, export_names(written.exports), f"{where}: exports")
    require_known(written.fields, FIELDS, f"{where}: fields")
    _require_input(written, steps, where)
    _require_rollout(written.rollout, where)
    _require_served(steps, where)
    wired = {name: params for step, params in _with_params(steps).items() for name, params in _brought(step, params)}
    bound = tuple(_step(name, params, written.run, where) for name, params in wired.items())
    bounds = {**{name: {} for name in wired if EVERY in written.gates}, **written.gates}
    every = bounds.pop(EVERY, {})
    _require_columns(bound, where)
    _require_places(written, tuple(steps), where)
    return Recipe(
        name=written.name,
        title=written.title,
        steps=bound,
        partitions=written.run.partitions,
        error_budget=written.run.error_budget,
        gates={name: {**(every if name in wired else {}), **own} for name, own in bounds.items()},
        versions=written.versions,
        exports={name: settings.shard_bytes for name, settings in written.exports.items()},
        alerts=written.alerts,
        fields=written.fields,
        accept_partial=written.accept_partial,
        rollout=written.rollout,
        requires=written.requires,
        engines={name: engine for name, engine in written.run.engines.items() if name not in steps},
        catalog=written.run.catalog,
    )


def _by_name(section: object) -> object:
    """Return a section by names of stages: `module:NAME` is the stage `module--NAME`, as task groups have no points."""
    if not isinstance(section, Mapping):
        return section
    named: dict[object, object] = {}
    for key, value in section.items():
        name = stage_name(key) if isinstance(key, str) else key
        if name in named:
            message = f"the stage {name} is there twice, by its name and by its place; leave one out"
            raise RecipeError(message)
        named[name] = value
    return named


def _require_stages(steps: Iterable[str], where: str) -> None:
    """Raise RecipeError for an unknown stage, and for one that another of the recipe brings."""
    for step in steps:
        for brought in stage_card(step, f"{where}: stages").wiring.brings:
            if brought in steps:
                message = f"{where}: stages: {brought} comes with {step}, and no recipe names it; remove it"
                raise RecipeError(message)


_OF_STAGES = ("engines", "resources", "model_hours")
"""Keys of the section `run` whose values are by stage."""


def _sections(top: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the sections that may be written in more than one way; `exports` may be a list of formats."""
    exports = top.get("exports", {})
    if isinstance(exports, list) and all(isinstance(name, str) for name in exports):
        exports = {name: {} for name in exports}
    named = require_mapping(exports, f"{where}: exports")
    run = _section(top, "run", where)
    return {
        "gates": _by_name(top.get("gates", {})),
        "run": {key: _by_name(value) if key in _OF_STAGES else value for key, value in run.items()},
        "alerts": _section(top, "alerts", where),
        "exports": {name: {} if settings is None else settings for name, settings in named.items()},
    }


def _require_rollout(rollout: Sequence[float], where: str) -> None:
    """Raise RecipeError unless the shares of a rollout grow, and end with all of the snapshot."""
    if rollout and (list(rollout) != sorted(set(rollout)) or rollout[-1] != 1):
        message = f"{where}: rollout has to be shares that grow and end with 1, as [0.01, 0.1, 1]"
        raise RecipeError(message)


def _with_params(steps: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return steps with the params that others of the recipe set (`facets.Wiring`); what is written goes before."""
    wired = dict(steps)
    for step, given in steps.items():
        wiring, own = stage_card(step).wiring, given if isinstance(given, Mapping) else {}
        passed = {stage: {name: own[name] for name in {*names} & {*own}} for stage, names in wiring.passes.items()}
        judged = steps.get(wiring.twin_of)
        twin = {step: judged} if isinstance(judged, Mapping) else {}
        for stage, params in (*wiring.sets.items(), *passed.items(), *twin.items()):
            if stage in wired and isinstance(wired[stage] or {}, Mapping):
                wired[stage] = {**params, **(wired[stage] or {})}
    return wired


def _require_served(steps: Mapping[str, Any], where: str) -> None:
    """Raise RecipeError for a param that is for a stage which the recipe lacks."""
    for step, params in steps.items():
        for param, stage in stage_card(step).wiring.serves.items():
            if isinstance(params, Mapping) and params.get(param) and stage not in steps:
                message = f"{where}: {step}: {param} is for {stage} alone; add that stage behind it"
                raise RecipeError(message)


def _require_input(written: _Written, steps: Mapping[str, Any], where: str) -> None:
    """Raise RecipeError for what a recipe says of an input that it has not: landed files, or versions."""
    if written.versions is None and written.exports:
        message = f"{where} refines snapshots, and `exports` are of a training dataset; move them to a recipe of one"
        raise RecipeError(message)
    names = ("fields", "accept_partial", "rollout")
    of_landings = [name for name in names if getattr(written, name) not in ({}, 1.0, ())]
    if written.versions is not None and of_landings:
        key = of_landings[0]
        message = f"{where} builds from versions, and `{key}` is of landed files; move it to a recipe that refines"
        raise RecipeError(message)
    building = [stage for stage in steps if stage_card(stage).wiring.builds]
    if written.versions is None and building:
        message = (
            f"{where} refines snapshots, which ends with documents, and {', '.join(building)} make a training dataset "
            f"of them; move {'them' if len(building) > 1 else 'it'} to a recipe that builds, with "
            f"`versions: {{recipe: {written.name}}}` (dags/recipes/build/corpus.yaml is one)"
        )
        raise RecipeError(message)


def _brought(name: str, params: object) -> Iterator[tuple[str, object]]:
    """Yield a step behind those that it brings (`facets.Wiring`)."""
    for before in stage_card(name).wiring.brings:
        yield before, {}
    yield name, params


def _require_places(written: _Written, stages: tuple[str, ...], where: str) -> None:
    """Raise RecipeError for a recipe that builds without the stages that have a place of their own, or of itself."""
    if written.versions is None:
        return
    for first, end in ((True, "first"), (False, "last")):
        places = [place for place in PLACES if (place > 0) == first]
        given = stages[: len(places)] if first else stages[-len(places) :]
        if [stage_card(stage).wiring.place for stage in given] != places:
            wanted = " and ".join(" or ".join(_placed(place)) for place in places)
            message = (
                f"{where} has `versions`, so it builds a training dataset; its {end} stages must be {wanted}, "
                f"and they are {', '.join(given)}"
            )
            raise RecipeError(message)
    if written.versions.recipe == written.name:
        message = f"{where}: recipe {written.name} is built from versions of its own name; give the dataset another"
        raise RecipeError(message)


def _placed(place: int) -> list[str]:
    """Return the stages that have a place of a recipe."""
    return [card.name for card in known_cards() if card.wiring.place == place]


def gates_of(stages: Iterable[str], versions: Versions | None) -> tuple[str, ...]:
    """Return the names of a recipe's gates: its stages, and `publish` if it refines a snapshot."""
    gates = dict.fromkeys(name for stage in stages for name, _ in _brought(stage, {}))
    return (*gates, PUBLISH) if versions is None else (*gates,)


def _section(top: Mapping[str, Any], name: str, where: str) -> Mapping[str, Any]:
    """Return a section of a recipe without the keys whose value was left out."""
    section = require_mapping(top.get(name, {}), f"{where}: {name}")
    return {key: value for key, value in section.items() if value is not None}


def _step(name: str, params: object, run: RunSettings, where: str) -> Step:
    written = require_mapping({} if params is None else params, f"{where}: {name}")
    card = stage_card(name)
    bind(card, written, f"{where}: {name}")
    usual = card.engine if card.engine in engine_names() else LOCAL
    how = run.engines.get(name, usual), run.resources.get(name, Resources()), run.model_hours.get(name, 0.0)
    return Step(name, dict(written), *how)


def _require_columns(steps: Iterable[Step], where: str) -> None:
    """Raise RecipeError for a column that the params of a stage name and no stage before it writes."""
    written: set[str] = set()
    for step in steps:
        card = stage_card(step.stage)
        params = bind(card, step.params, f"{where}: {step.stage}")
        missing = [column for column in (card.reads_for(params) if card.reads_for else ()) if column not in written]
        if missing:
            writers = writers_of(missing[0])
            way_out = f"put {' or '.join(writers)} before {step.stage}" if writers else "no stage writes it"
            needed = f"{where}: {step.stage} reads the column {missing[0]!r}"
            message = f"{needed}, which no stage before it writes; {way_out}"
            raise RecipeError(message)
        written |= set(card.written(params).names)


def require_params(stage: str, params: Mapping[str, object], where: str) -> None:
    """Raise RecipeError unless a stage takes these params."""
    bind(stage_card(stage), params, where)


def export_names(asked: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the formats in which a build may be exported: those of packages, and places in `asked`."""
    return seams.known(seams.EXPORTS, asked)


def kept_languages(recipe: Recipe) -> frozenset[str]:
    """Return the languages that a recipe keeps; none if no stage of it says which."""
    cards = ((stage_card(step.stage), step.params) for step in recipe.steps)
    kept = [card.languages(asdict(bind(card, params))).kept for card, params in cards if card.languages]
    return frozenset[str]().union(*kept)


def stage_name(written: str) -> str:
    """Return the name of a stage as it is written: `module:NAME` is `module--NAME`."""
    return written.replace(":", DASHES).replace(".", DASHES) if ":" in written else written


def writers_of(column: str) -> list[str]:
    """Return the stages that always write a column which they do not need."""
    return [card.name for card in known_cards() if column in added_by(card)]


def stage_of_key(key: str) -> Stage[Any] | None:
    """Return the card of the stage whose params take a key, as a filter's name is with its limits; None for another."""
    taking = (card for card in known_cards() for part in fields(card.params) if key in part.metadata.get("keys", ()))
    return next(taking, None)
