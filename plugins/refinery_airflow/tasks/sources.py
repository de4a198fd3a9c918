"""Pulls what the recipe of a source asks for below the landing, by the params of a run, and heeds what it deleted."""

import json
import logging
import types
import typing
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass, replace
from datetime import UTC, datetime
from typing import Any

from airflow.sdk import Asset, Context, Param
from airflow.sdk.exceptions import AirflowSkipException
from refinery_sources.budget import SLOWEST, Rate
from refinery_sources.recipe import MOST_WORKERS, TAKEDOWN, SourceRecipe, form_of, kind_of
from refinery_sources.source import Source

from pipeline_tasks.binding import bind_fields, may_name_places
from pipeline_tasks.constraints import Range
from refinery_airflow.runs.credentials import adopt_connection, adopt_credentials, adopt_store
from refinery_airflow.runs.form import ADVANCED, TEXT
from refinery_airflow.runs.places import require_query
from refinery_airflow.runs.run import recipe_of_dag

log = logging.getLogger("refinery")

JSON_TYPES: Mapping[Any, str] = {str: "string", bool: "boolean", int: "integer", float: "number"}

OF_PULLS = ("landing", "rate", "workers", "again", "root")
"""Params that every pull has; a field of a query that has such a name is set in the recipe."""


AUTH = "auth"
"""The field of a query that names a secret of the worker."""

STORE = "store"
"""The field of a query that names another store, and whose keys its requests have."""

HEADERS = "headers"
"""The field of a query that requests have besides."""

LANDED = "landed"
"""Key of the XCom of a pull, also of one that found nothing new: where its snapshot is, and its amounts."""


def params_of_pull(recipe: SourceRecipe, landing: str, root: str) -> dict[str, Param]:
    """Return the params of a pull: the fields of its query with their types, and where to and how fast.

    `root` is where deletions are taken down, for a recipe that asks for it.
    """
    form, hints = form_of(recipe.kind), typing.get_type_hints(kind_of(recipe.kind), include_extras=True)
    query = {
        name: _param(getattr(recipe.source, name), hints[name], form.get(name, {})) for name in asked_fields(recipe)
    }
    where = {"root": Param(root, section=ADVANCED, description="Root in which deletions are taken down", **TEXT)}
    return {
        **query,
        "landing": Param(landing, section=ADVANCED, description="Where the folder of the snapshot is made", **TEXT),
        "rate": Param(
            recipe.rate.requests, type="number", minimum=SLOWEST, section=ADVANCED, description="Requests per second"
        ),
        "workers": Param(
            recipe.workers,
            type="integer",
            minimum=1,
            maximum=MOST_WORKERS,
            section=ADVANCED,
            description="Files at once",
        ),
        "again": Param(
            default=False,
            type="boolean",
            section=ADVANCED,
            description="Send requests although the source has refused them",
        ),
        **(where if recipe.deletions == TAKEDOWN else {}),
    }


def asked_fields(recipe: SourceRecipe) -> list[str]:
    """Return the fields of a query that a run may change: where a secret follows, none that says where it goes."""
    hints = typing.get_type_hints(type(recipe.source), include_extras=True)
    names = [entry.name for entry in fields(typing.cast("Any", recipe.source)) if entry.init]
    is_secret = AUTH in names or bool(getattr(recipe.source, STORE, ""))
    kept = {AUTH, STORE, *OF_PULLS}
    kept |= {HEADERS, *(name for name in names if may_name_places(hints[name]))} if is_secret else set()
    return [name for name in names if name not in kept]


def _param(value: object, hint: object, form: Mapping[str, Any]) -> Param:
    """Return a field of a query as the form shows it."""
    return Param(_json(value), **{**json_type(hint), **form})


def _json(value: object) -> Any:  # noqa: ANN401 -- any field of a query
    """Return a value as JSON has it: tuples are lists, dataclasses objects."""
    return json.loads(json.dumps(asdict(value) if is_dataclass(value) and not isinstance(value, type) else value))


def json_type(hint: object) -> dict[str, Any]:
    """Return the JSON schema of an annotation; an empty one where it says nothing that a schema can."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        ranges = [extra for extra in args[1:] if isinstance(extra, Range)]
        return {**json_type(args[0]), **(_bounds(ranges[0]) if ranges else {})}
    if origin is typing.Literal:
        return {"enum": list(args), **TEXT}
    if origin in (types.UnionType, typing.Union):
        kinds = [json_type(choice).get("type") for choice in args if choice is not type(None)]
        has_null = len(kinds) < len(args)
        return {"type": [*kinds, "null"] if has_null else kinds} if None not in kinds and _are_names(kinds) else {}
    if origin is tuple:
        return {"type": "array", **({"items": json_type(args[0])} if Ellipsis in args else {})}
    if is_dataclass(hint) or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return {"type": "object"}
    hint = getattr(hint, "__supertype__", hint)
    return {"type": JSON_TYPES[hint]} if hint in JSON_TYPES else {}


def _are_names(kinds: list[Any]) -> bool:
    return all(isinstance(kind, str) for kind in kinds)


def _bounds(admitted: Range) -> dict[str, float]:
    """Return the bounds of a number as JSON schema has them."""
    least = "exclusiveMinimum" if admitted.above else "minimum"
    return {least: admitted.least, **({"maximum": admitted.most} if admitted.most < float(2**53) else {})}


def asked(recipe: SourceRecipe, params: Mapping[str, Any]) -> SourceRecipe:
    """Return a recipe with the query and the rate that the params of a run name; RecipeError for what is wrong.

    A place or an address is wrong that neither the recipe nor the operator names.
    """
    kind = kind_of(recipe.kind)
    own = {entry.name: getattr(recipe.source, entry.name) for entry in fields(typing.cast("Any", kind)) if entry.init}
    query = {name: _json(value) for name, value in own.items()}
    query |= {name: params[name] for name in asked_fields(recipe) if name in params}
    query |= {"address": query["address"].rstrip("/")} if "address" in query else {}
    checked = bind_fields(kind, query, recipe.kind)
    rate = Rate(float(params["rate"]), recipe.rate.bytes)
    within = require_query(checked, recipe.source, recipe.name)
    return replace(recipe, source=checked, rate=rate, workers=int(params["workers"]), within=within)


def pull_source(recipe: SourceRecipe, context: Context, outlets: tuple[Asset, ...] = ()) -> dict[str, Any]:
    """Pull what a recipe asks for by the params of a run; return where it has landed, and its amounts.

    The task is skipped, and its assets have no event, if the snapshot had landed before the run began. What the run
    itself has landed, in a try that was lost behind its last file, is new.
    """
    from refinery_sources.recipe import pull_recipe, reopen_hosts
    from refinery_sources.web import web

    from pipeline_tasks.shipped import state_folder

    params = context["params"]
    adopt_credentials(params["landing"], recipe=recipe.name)
    now = asked(recipe, params)
    adopt_connections(now.source)
    with web(now.rate, now.workers) as on:
        if params.get("again"):
            reopen_hosts(now.source, on)
        place, landed = pull_recipe(now, params["landing"], state_folder() / "pulls", on, datetime.now(UTC))
    facts = {"snapshot": landed.snapshot, "input": place, "files": landed.files, "bytes": landed.bytes}
    facts |= {"rows": rows} if (rows := _block(place).get("rows")) is not None else {}
    context["ti"].xcom_push(key=LANDED, value=facts)
    if not landed.files:
        message = f"nothing is new: the source has no new record for {landed.snapshot}"
        raise AirflowSkipException(message)
    if not landed.is_new and not _is_of(place, context["dag_run"].start_date):
        message = f"nothing is new: {landed.snapshot} has landed in {place} before"
        raise AirflowSkipException(message)
    for outlet in outlets:
        context["outlet_events"][outlet].extra = facts
    log.info("%s has landed whole in %s: %d files, %d bytes", landed.snapshot, place, landed.files, landed.bytes)
    return facts


def adopt_connections(source: Source) -> None:
    """Let this process find the connection that a query names, and that of its store."""
    adopt_connection(getattr(getattr(source, AUTH, None), "connection", ""))
    adopt_store(getattr(source, STORE, ""))


def _block(place: str) -> dict[str, Any]:
    """Return what `snapshot.json` says of its source, nothing where nothing has landed."""
    from pipeline_tasks.landing.listing import PROMISE
    from pipeline_tasks.store import storage

    try:
        return dict(json.loads(storage.connect(place).read(PROMISE)).get("source", {}))
    except FileNotFoundError:
        return {}


def _is_of(place: str, start: datetime) -> bool:
    """Return whether a snapshot has landed since a run began."""
    return datetime.fromisoformat(_block(place)["pulled"]) >= start.replace(microsecond=0)


def take_deletions_down(context: Context, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Record what the source of a landed snapshot says it has deleted as a takedown; the same twice is one entry."""
    from refinery_rights.taking_down import deletions_taken_down

    root = context["params"]["root"]
    adopt_credentials(facts["input"], root, recipe=recipe_of_dag(context["ti"].dag_id))
    if not _block(facts["input"]):
        log.info("nothing has landed in %s, and nothing was deleted", facts["input"])
        return {"takedown": None, "entries": 0, "unknown": 0}
    takedown, unknown = deletions_taken_down(root, facts["input"])
    if unknown:
        log.warning("%d deleted records of %s are of no published document of its source", unknown, facts["input"])
    if takedown is None:
        log.info("%s names nothing that is not taken down already", facts["input"])
        return {"takedown": None, "entries": 0, "unknown": unknown}
    log.info("takedown %d: %s. Snapshots and builds follow it from now on", takedown.number, takedown.reason)
    return {"takedown": takedown.number, "entries": takedown.count, "unknown": unknown}
