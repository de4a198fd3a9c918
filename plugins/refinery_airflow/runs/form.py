"""The params of a run, as Airflow's form shows them: what a person decides first, the rest in a section of its own."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from airflow.sdk import Param

from pipeline_tasks.deployment import deployed
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.recipe import MAX_PARTITIONS, engine_names

ADVANCED = "Advanced"
"""Section of what has a default for every run, and of what programs set as JSON."""

AS_IN_RECIPE = "as in the recipe"
"""Choice of an engine that leaves it to the recipe."""

TEXT: Mapping[str, Any] = {"type": "string"}
OPTIONAL: Mapping[str, Any] = {"type": ["string", "null"]}
"""Types of a field that must, and that need not, be filled in."""


def labeled(params: Mapping[str, Param]) -> dict[str, Param]:
    """Return the params of a DAG as every form shows them: words as the label, the name that JSON has below it.

    The words are the title of a param, else those of its name.
    """
    return {name: _labeled(name, param) for name, param in params.items()}


def _labeled(name: str, param: Param) -> Param:
    shown = copy.copy(param)
    shown.schema = {"title": name.replace("_", " ").capitalize(), **param.schema}
    shown.description = f"{param.description or shown.schema['title']} (JSON: {name})"
    return shown


def params_of_runs(gates: Sequence[str], recipe: str = "") -> dict[str, Param]:
    """Return the params that runs of every DAG of a recipe have; `gates` are the gates that a person may accept."""
    chosen = "Gates that may pass although they refuse; give the reason below"
    return {
        "engine": Param(
            AS_IN_RECIPE,
            enum=[AS_IN_RECIPE, *engine_names()],
            title="Engine",
            description="Where every stage runs",
            **TEXT,
        ),
        "accept": Param(
            None,
            type=["array", "null"],
            items={"enum": list(gates)},
            examples=list(gates),
            title="Gates to accept",
            description=chosen,
        ),
        "reason": Param(
            None, title="Reason", description="Why these gates may pass; stored in the verdict", **OPTIONAL
        ),
        "root": Param(deployed(recipe).its_root, section=ADVANCED, description="Root that keeps every output", **TEXT),
        "partitions": Param(
            0,
            section=ADVANCED,
            type="integer",
            minimum=0,
            maximum=MAX_PARTITIONS,
            description="Partitions per stage; 0: as in the recipe, else by bytes",
        ),
        "engines": Param(
            {},
            title="Engines by stage",
            section=ADVANCED,
            type="object",
            additionalProperties={"enum": list(engine_names())},
            description="stage (or *): engine, for engines that differ by stage",
        ),
        "override": Param(
            {},
            title="Reasons by gate",
            section=ADVANCED,
            type="object",
            propertyNames={"enum": list(gates)},
            additionalProperties={**TEXT, "pattern": r"\S"},
            description="gate: why it may pass, for reasons that differ by gate",
        ),
    }


def params_of_builds() -> dict[str, Param]:
    """Return the params that runs of a build have besides: snapshots and mixture in place of the recipe's."""
    return {
        "snapshots": Param(
            None,
            type=["array", "null"],
            items={"type": "string"},
            title="Snapshots",
            description="Names or patterns of snapshots, one a line; empty: as in the recipe",
        ),
        "weights": Param(
            None,
            type=["object", "null"],
            additionalProperties={"type": "number", "minimum": 0},
            title="Weights",
            description="Shares of the tokens by group, such as {en: 0.7, de: 0.3}; empty: as in the recipe",
        ),
        "budget_tokens": Param(
            None,
            type=["integer", "null"],
            minimum=0,
            title="Budget",
            description="Tokens of the dataset, 0 for no bound; empty: as in the recipe. The plan is on the Refinery "
            "page: Build, on the page of the dataset",
        ),
        "max_epochs": Param(
            None,
            type=["number", "null"],
            minimum=0,
            section=ADVANCED,
            description="Times that a document may be used; empty: as in the recipe",
        ),
        "quality": Param(
            None,
            type=["object", "null"],
            section=ADVANCED,
            description="Bands of a score within each group, such as {column: score, bands: 20, upsample: {drop: 0.4, "
            "most: 7, mean: 1}}; empty: as in the recipe",
        ),
    }


MIXTURE = ("weights", "budget_tokens", "max_epochs", "quality")
"""Params of a build that take the place of those of `mix`."""


def mixture_of(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the params of `mix` that a run chose in place of the recipe's."""
    return {name: params[name] for name in MIXTURE if params.get(name) not in (None, {})}


def engines_of(params: Mapping[str, Any]) -> dict[str, str]:
    """Return the engines that a run chose, by stage, `*` for all others."""
    engine = params.get("engine") or AS_IN_RECIPE
    chosen = {} if engine == AS_IN_RECIPE else {"*": str(engine)}
    return chosen | dict(params.get("engines") or {})


def overrides_of(params: Mapping[str, Any]) -> dict[str, str]:
    """Return the reasons why gates may pass, by gate; RecipeError for gates that were accepted without a reason."""
    accepted, reason = params.get("accept") or [], str(params.get("reason") or "").strip()
    if accepted and not reason:
        message = f"the gates {', '.join(accepted)} are accepted without a reason; fill in the param `reason`"
        raise RecipeError(message)
    if reason and not accepted:
        message = f"the reason {reason!r} is given for no gate; choose the gates in the param `accept`"
        raise RecipeError(message)
    return dict.fromkeys(accepted, reason) | dict(params.get("override") or {})
