"""The supported Python API: stages over rows, recipes over snapshots, and what is published, without Airflow.

Names that are not here may change with any release. `docs/reference/python.md` has an example of each. Imports no
Airflow, Spark, Ray, Great Expectations, torch or DuckDB; `refine`, `build` and `sql` load what they need.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from pipeline_tasks.api.applying import Applied, apply
from pipeline_tasks.api.applying import filter_rows as filter  # noqa: A004 -- said with its module: `api.filter`
from pipeline_tasks.api.rows import Rows
from pipeline_tasks.ask.answer import Answer
from pipeline_tasks.errors import ContractError, GateRefused, LookRefused, RecipeError, RefineryError, Transient
from pipeline_tasks.ledger import Ledger, ledger_of
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version, recipes
from pipeline_tasks.recipe import DEFAULT_BUILD, LOCAL, Recipe, load_build, load_recipe, parse_recipe
from pipeline_tasks.stage import Shard
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import read_manifest, read_shards
from pipeline_tasks.training.dataset import TokenDataset
from pipeline_tasks.training.share import Passes, Split

__all__ = [
    "Answer",
    "Applied",
    "ContractError",
    "GateRefused",
    "Ledger",
    "LookRefused",
    "Manifest",
    "Passes",
    "Recipe",
    "RecipeError",
    "RefineryError",
    "Rows",
    "Shard",
    "Split",
    "Steps",
    "TokenDataset",
    "Transient",
    "Version",
    "apply",
    "ask",
    "build",
    "filter",
    "ledger_of",
    "load_recipe",
    "read_manifest",
    "read_shards",
    "recipe",
    "recipes",
    "refine",
    "sql",
    "versions",
]

Steps = Sequence[str | tuple[str, Mapping[str, object]]]
"""Stages in order, by name or with their params."""


def recipe(stages: Steps, /, name: str = "custom", **sections: object) -> Recipe:
    """Return a recipe as its YAML gives it: `stages` in order, and other sections (`versions`, `gates`, ...) by name.

    Its dataset has its `name`. RecipeError for what no file of a recipe may say.
    """
    written: dict[str, Mapping[str, object]] = {}
    for stage, params in ((entry, {}) if isinstance(entry, str) else entry for entry in stages):
        if stage in written:
            message = f"recipe {name}: the stage {stage} is there twice; a recipe has each of its stages once"
            raise RecipeError(message)
        written[stage] = params
    return parse_recipe({"name": name, "stages": written, **sections}, f"recipe {name}")


def refine(
    input: str | Path,  # noqa: A002 -- what everything of Refinery calls it
    root: str | Path,
    recipe: str | Recipe = "web",
    *,
    snapshot: str = "",
    engine: str = LOCAL,
    override: Mapping[str, str] | None = None,
) -> Version:
    """Land the snapshot at `input`, refine it by every stage and gate of a recipe, and publish; return the version.

    `recipe` is one of the package by name, the path of a YAML file, or a recipe. What is done already is found. A gate
    that refuses raises GateRefused, unless `override` has a reason by its name, which the verdict keeps.
    """
    from pipeline_tasks.api.running import refined

    chosen = load_recipe(recipe) if isinstance(recipe, str) else recipe
    return refined(chosen, _place(input), _place(root), snapshot, engine, override or {})


def build(
    root: str | Path,
    recipe: str | Recipe = DEFAULT_BUILD,
    *,
    engine: str = LOCAL,
    override: Mapping[str, str] | None = None,
) -> Version:
    """Build a training dataset from versions of `root` by a recipe that has `versions`; return its version.

    All else is as for `refine`.
    """
    from pipeline_tasks.api.running import built

    return built(load_build(recipe) if isinstance(recipe, str) else recipe, _place(root), engine, override or {})


def _place(path: str | Path) -> str:
    return str(path) if storage.is_absolute(str(path)) else str(Path(path).absolute())


def versions(root: str | Path, recipe: str = "") -> list[Version]:
    """Return the versions of a recipe or dataset, oldest first; without one those of all, by name."""
    names = [recipe] if recipe else recipes(str(root))
    return [each for name in names for each in version_log.versions(str(root), name)]


def sql(
    root: str | Path,
    query: str,
    *,
    recipe: str = "",
    version: int | str = "",
    dataset: str = "",
    purpose: str = "",
    **limits: float,
) -> pa.Table:
    """Return the rows of a query over the views of a version, as `refinery sql` does: checked, and logged as a look.

    `version` is a number or a snapshot (default: the one published last), or `dataset` is `NAME` or `NAME@NUMBER`.
    `limits` are those of the command: `seconds`, and `memory` in gigabytes.
    RecipeError for a query that is none, ContractError for a shard that is damaged, LookRefused without a purpose where
    one is needed.
    """
    from argparse import Namespace

    from pipeline_tasks.ask.known import module_of
    from pipeline_tasks.inspect.command import chosen_of

    options = Namespace(root=str(root), recipe=recipe, chosen=str(version), dataset=dataset)
    answered: pa.Table = module_of("sql").table(str(root), chosen_of(options), query, purpose, **limits)
    return answered


def ask(name: str, root: str | Path, /, *values: object, purpose: str = "", **params: object) -> Answer:
    """Return the answer to a question, such as `ask("why", root, "https://example.org/page")`.

    It is what the command of that name prints, as data, as lines (`str`), and as a notebook shows it. `values` are what
    the command takes first, `params` its options. Texts are looked at for a `purpose`, where one is needed.
    """
    from pipeline_tasks.api.asking import answered

    return answered(name, _place(root), values, params, purpose)
