"""Recipes: the ordered list of stages with their parameters, read from YAML and checked before anything runs."""

import difflib
import importlib
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import yaml

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.stage import EngineName, Stage

LAND = "land"
"""The name of the landing, which precedes every stage; its card is in `landing.listing`."""

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

MAX_PARTITIONS = 1024
"""Partitions of a stage: Airflow's own bound on a mapped task."""

T = TypeVar("T")

RECIPES = Path(__file__).parent.parent / "dags" / "recipes"


@dataclass(frozen=True, slots=True)
class ErrorBudget:
    """How many quarantined records a partition may have: it fails above both `share` and `rows`."""

    share: float = 0.01
    rows: float = 20.0


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
    partitions: int = 4
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
    if not path.is_file():
        names = recipe_names(folder)
        way_out = "; for one of your own give the path of its YAML file" if path.parent == folder else ""
        message = f"no recipe {name!r}{_nearest(name, names)}; recipes are: {', '.join(names)}{way_out}"
        raise RecipeError(message)
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        message = f"{path} is not YAML: {error}"
        raise RecipeError(message) from error
    return parse_recipe(raw, str(path))


def parse_recipe(raw: object, where: str) -> Recipe:
    """Check a recipe's YAML; unknown keys are refused with the nearest known one."""
    top = _mapping(raw, where)
    _known(top, ("name", "title", "stages", "run", "gates"), where)
    stages = _mapping(top.get("stages"), f"{where}: stages")
    run = _mapping(top.get("run") or {}, f"{where}: run")
    _known(run, ("partitions", "engines", "error_budget"), f"{where}: run")
    engines = _mapping(run.get("engines") or {}, f"{where}: run: engines")
    budget = _mapping(run.get("error_budget") or {}, f"{where}: run: error_budget")
    _known(engines, tuple(stages), f"{where}: run: engines")
    gates = _mapping(top.get("gates") or {}, f"{where}: gates")
    for name, bounds in gates.items():
        _mapping(bounds, f"{where}: gates: {name}")
    _known(gates, (*stages, "publish"), f"{where}: gates")
    if not stages:
        message = f"{where} has no stages; write at least `stages: {{ingest: {{}}}}`"
        raise RecipeError(message)
    steps = tuple(_step(name, params, engines, where) for name, params in stages.items())
    _require_columns(steps, where)
    return Recipe(
        name=str(top.get("name") or Path(where).stem),
        title=str(top.get("title") or ""),
        steps=steps,
        partitions=_positive(run.get("partitions", 4), f"{where}: run: partitions"),
        error_budget=bind_fields(ErrorBudget, budget, f"{where}: run: error_budget"),
        gates=dict(gates),
    )


def _step(name: str, params: object, engines: Mapping[str, Any], where: str) -> Step:
    _known({name: None}, STAGES, f"{where}: stages")
    written = _mapping(params or {}, f"{where}: {name}")
    card = stage_card(name)
    bind(card, written, f"{where}: {name}")
    engine = str(engines.get(name, card.engine))
    _known({engine: None}, ENGINES, f"{where}: run: engines: {name}")
    return Step(name, dict(written), engine)


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


def _mapping(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        message = f"{where} must be a mapping of keys to values, not {value!r}"
        raise RecipeError(message)
    return value


def _positive(value: object, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        message = f"{where} must be a whole number of at least 1, not {value!r}"
        raise RecipeError(message)
    return value


def _known(given: Iterable[str], known: Iterable[str], where: str) -> None:
    names = tuple(known)
    for key in given:
        if key not in names:
            message = f"{where}: unknown key {key!r}{_nearest(str(key), names)}; known keys are: {', '.join(names)}"
            raise RecipeError(message)


def _nearest(key: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(key, list(known), n=1, cutoff=0.5)
    return f" (did you mean {close[0]!r}?)" if close else ""


def stage_card(name: str) -> Stage[Any]:
    """Return the card of a stage by its name: the module `pipeline_tasks.stages.<name>` exports it as `STAGE`."""
    _known((name,), STAGES, "stage")
    card: Stage[Any] = importlib.import_module(f"pipeline_tasks.stages.{name}").STAGE
    return card


# --- Params ---------------------------------------------------------------------------------------------------


def bind(card: Stage[Any], written: Mapping[str, Any], where: str = "") -> Any:  # noqa: ANN401 -- the card's Params
    """Return the stage's frozen params from a recipe's keys; RecipeError names a wrong key or type, and `where`."""
    where = where or card.name
    return bind_fields(card.params, _collected(card.params, written, where), where)


def bind_fields(kind: type[T], written: Mapping[str, Any], where: str) -> T:
    """Return an instance of the frozen dataclass `kind`; RecipeError for an unknown, missing or mistyped field."""
    declared = fields(typing.cast("Any", kind))
    _known(written, tuple(entry.name for entry in declared), where)
    hints = typing.get_type_hints(kind)
    for entry in declared:
        if entry.name not in written and entry.default is MISSING and entry.default_factory is MISSING:
            message = f"{where}: {entry.name} is required"
            raise RecipeError(message)
    values = {key: _as(hints[key], value, f"{where}: {key}") for key, value in written.items()}
    try:
        return kind(**values)
    except (ValueError, TypeError) as error:
        if isinstance(error, RecipeError):
            raise
        message = f"{where}: {error}"
        raise RecipeError(message) from error


def _collected(params: type, written: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """Move the keys that one field collects (its metadata `keys`: key -> dataclass) into that field, checked."""
    collecting = next((declared for declared in fields(params) if "keys" in declared.metadata), None)
    if collecting is None:
        return written
    keys: Mapping[str, type] = collecting.metadata["keys"]
    _known(written, (*(declared.name for declared in fields(params)), *keys), where)
    groups = {**_mapping(written.get(collecting.name, {}), f"{where}: {collecting.name}")}
    groups |= {key: value for key, value in written.items() if key in keys}
    _known(groups, keys, f"{where}: {collecting.name}")
    checked = {key: _checked(keys[key], group, f"{where}: {key}") for key, group in groups.items()}
    return {key: value for key, value in written.items() if key not in keys} | {collecting.name: checked}


def _checked(group: type, written: object, where: str) -> Mapping[str, Any]:
    """Return the fields of the dataclass `group` that are written, with their types checked."""
    values = _mapping(written, where)
    _known(values, tuple(declared.name for declared in fields(group)), where)
    hints = typing.get_type_hints(group)
    return {key: _as(hints[key], value, f"{where}: {key}") for key, value in values.items()}


def _as(hint: Any, value: Any, where: str) -> Any:  # noqa: ANN401 -- any parameter's value
    """Return `value` as the type of the annotation `hint` (lists become tuples, whole numbers become floats)."""
    hint = getattr(hint, "__supertype__", hint)
    if hint is Any:
        return value
    if typing.get_origin(hint) is not None:
        return _as_generic(hint, value, where)
    if is_dataclass(hint) and isinstance(value, Mapping):
        return bind_fields(typing.cast("type", hint), value, where)
    return _as_scalar(hint, value, where)


def _as_generic(hint: Any, value: Any, where: str) -> Any:  # noqa: ANN401 -- any parameter's value
    """Return `value` as a union, a Literal, a tuple or a Mapping."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return _as_any(args, value, where)
    if origin is Literal:
        _known((value,), [str(choice) for choice in args], where)
        return value
    if origin is tuple:
        return _as_tuple(args[0] if args else Any, value, where)
    return _as_mapping(args[1] if len(args) > 1 else Any, value, where)


def _as_tuple(inner: Any, value: object, where: str) -> tuple[Any, ...]:  # noqa: ANN401 -- an annotation
    if not isinstance(value, (list, tuple)):
        raise _wrong(where, "a list", value)
    return tuple(_as(inner, item, where) for item in value)


def _as_mapping(inner: Any, value: object, where: str) -> dict[str, Any]:  # noqa: ANN401 -- an annotation
    return {str(key): _as(inner, item, f"{where}: {key}") for key, item in _mapping(value, where).items()}


def _as_scalar(kind: Any, value: Any, where: str) -> Any:  # noqa: ANN401 -- any parameter's value
    """Return `value`, whose type must be `kind`; a bool is no number."""
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(kind, type) and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
        raise _wrong(where, f"a {kind.__name__}", value)
    return value


def _as_any(hints: Iterable[Any], value: Any, where: str) -> Any:  # noqa: ANN401 -- any parameter's value
    choices = list(hints)
    for hint in choices:
        if hint is type(None):
            if value is None:
                return None
            continue
        try:
            return _as(hint, value, where)
        except RecipeError:
            continue
    raise _wrong(where, " or ".join(getattr(choice, "__name__", str(choice)) for choice in choices), value)


def _wrong(where: str, wanted: str, value: object) -> RecipeError:
    return RecipeError(f"{where} must be {wanted}, not {value!r}")
