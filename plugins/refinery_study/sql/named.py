"""Says which views a query names, and refuses one that is more than one question about them."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from pipeline_tasks.errors import RecipeError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

FUNCTIONS = frozenset({"generate_series", "json_each", "json_tree", "range", "unnest"})
"""Functions that a query may read rows from: any other reads files, runs text as SQL, or shows the process."""


class View(NamedTuple):
    """A view as a query names it: `v3.kept` has the schema `v3`, and `kept` has none."""

    schema: str
    name: str


class Named(NamedTuple):
    """The views that a query names, in order, and whether it names all that there are, as `SHOW TABLES` does."""

    views: tuple[View, ...]
    all_views: bool


def named_in(connection: "DuckDBPyConnection", query: str) -> Named:
    """Return what a query names.

    RecipeError for what is no SQL, for several statements, for one that is no SELECT, and for a function of tables that
    is none of `FUNCTIONS`.
    """
    [(text,)] = connection.execute("SELECT json_serialize_sql(?::VARCHAR)::VARCHAR", [query]).fetchall()
    parsed = orjson.loads(text)
    if parsed["error"]:
        raise RecipeError(_no_query(str(parsed["error_message"])))
    if len(parsed["statements"]) != 1:
        message = f"the query has {len(parsed['statements'])} statements; write one at a time"
        raise RecipeError(message)
    nodes = list(_nodes(parsed))
    _require_known(nodes)
    tables = [node for node in nodes if node.get("type") == "BASE_TABLE"]
    shown = [node for node in nodes if node.get("type") == "SHOW_REF"]
    views = [View(node["schema_name"], node["table_name"]) for node in (*tables, *shown) if node["table_name"]]
    return Named(tuple(dict.fromkeys(views)), any(node["show_type"] == "SHOW_SPECIAL" for node in shown))


def _no_query(message: str) -> str:
    if message.startswith("Only SELECT"):
        return "the query is no SELECT; views are read, and nothing else is done"
    return f"the query is no SQL: {message}; write one SELECT"


def _require_known(nodes: list[Mapping[str, Any]]) -> None:
    for node in nodes:
        if node.get("type") == "TABLE_FUNCTION":
            name = str(node["function"]["function_name"]).lower()
            if name not in FUNCTIONS:
                known = ", ".join(sorted(FUNCTIONS))
                message = f"the query reads rows from {name[:40]}(), which is not allowed; it may use {known}"
                raise RecipeError(message)


def _nodes(parsed: object) -> Iterator[Mapping[str, Any]]:
    """Yield each part of a query, as DuckDB parsed it."""
    if isinstance(parsed, dict):
        yield parsed
    for part in parsed.values() if isinstance(parsed, dict) else parsed if isinstance(parsed, list) else ():
        yield from _nodes(part)
