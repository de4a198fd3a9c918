"""How requests and replies travel: as JSON objects, and an error as one of a reply's own kind."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

from pipeline_tasks import errors
from pipeline_tasks.binding import bind_fields, shown
from pipeline_tasks.errors import RecipeError, RefineryError
from pipeline_tasks.run.request import Request
from pipeline_tasks.service.verbs import verb_of, verbs

Wire = dict[str, Any]
"""A reply as JSON: that of its request, or `error`, the name of a class, and `message`."""

DEEPEST = 100
"""Levels of lists and objects in a request; what reads it further on may recurse."""


def parse(body: bytes, where: str) -> object:
    """Return the JSON that a request is; RecipeError for what is none, or is nested too deeply."""
    try:
        value: object = json.loads(body)
    except (ValueError, RecursionError) as error:
        message = f"{where[:500]} is not JSON ({str(error)[:200]}); a request is one JSON object"
        raise RecipeError(message) from error
    level = [value]
    for _ in range(DEEPEST):
        level = [item for holder in level if isinstance(holder, (list, dict)) for item in _items(holder)]
    if level:
        message = f"{where[:500]} is nested more than {DEEPEST} levels deep; a request is one JSON object"
        raise RecipeError(message)
    return value


def _items(holder: "list[object] | dict[str, object]") -> Iterable[object]:
    return holder.values() if isinstance(holder, dict) else holder


def refusal_of(error: RefineryError) -> Wire:
    """Return the reply of a request that is refused."""
    return {"error": type(error).__name__, "message": str(error)}


def encode(request: Request[Any]) -> dict[str, Any]:
    """Return a request as JSON: its fields, and its verb."""
    assert is_dataclass(request)
    return {"verb": request.verb, **asdict(request)}


def decode(raw: object) -> Request[Any]:
    """Return the request that JSON describes; RecipeError for an unknown verb, or a wrong or missing field."""
    if not isinstance(raw, dict):
        message = f"{json.dumps(raw)[:100]} is not a JSON object; a request is an object with a verb"
        raise RecipeError(message)
    verb = str(raw.get("verb"))
    known = verb_of(verb)
    if known is None:
        message = f"unknown verb {shown(verb)}; a request's verb is one of {', '.join(verbs())}"
        raise RecipeError(message)
    written = {name: value for name, value in raw.items() if name != "verb"}
    return bind_fields(known.request, written, f"the request to {verb}")


def raise_refusal(reply: Mapping[str, Any], unknown: type[Exception] = RefineryError) -> None:
    """Raise the error that a reply reports, as the class it was raised as; as `unknown` if that is not one of ours."""
    if "error" in reply:
        name, message = str(reply["error"]), str(reply["message"])
        kind = getattr(errors, name, None)
        raise kind(message) if kind else unknown(f"{name}: {message}")
