"""Binds what was written (a recipe's YAML, a request's JSON) to the fields of a frozen dataclass, and checks it."""

import re
import types
import typing
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Literal, TypeVar

from pipeline_tasks.constraints import LARGEST, Place, Range, Word
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.nearest import OR_INSTALL, nearest
from pipeline_tasks.stage import VARIABLE, FilePath, P, Stage

T = TypeVar("T")

SECRET = re.compile("(.*_)?(key|secret|password|token)", re.IGNORECASE)
"""Names of params whose value no message shows."""

MOST_SHOWN = 80
"""Characters of a value that a message shows."""


def bind(card: Stage[P], written: Mapping[str, Any], where: str = "") -> P:
    """Return the stage's frozen params from a recipe's keys; RecipeError names a wrong key or type, and `where`."""
    return bind_fields(card.params, _collected(card.params, written, where or card.name), where or card.name)


def bind_fields(kind: type[T], written: Mapping[str, Any], where: str) -> T:
    """Return an instance of the frozen dataclass `kind`; RecipeError for an unknown, missing or wrong field."""
    hints = typing.get_type_hints(kind, include_extras=True)
    _require_fields(written, hints, where)
    for entry in fields(typing.cast("Any", kind)):
        if VARIABLE in entry.metadata and entry.name in written:
            raise _written_secret(where, entry.name, entry.metadata[VARIABLE])
        if entry.name not in written and entry.default is MISSING and entry.default_factory is MISSING:
            message = f"{where}: {entry.name} is required"
            raise RecipeError(message)
    values = {key: bound(hints[key], value, f"{where}: {key}") for key, value in written.items()}
    try:
        return kind(**values)
    except (ValueError, TypeError) as error:
        if isinstance(error, RecipeError) and str(error).startswith(tuple(where.split(": "))):  # it names its place
            raise
        message = f"{where}: {error}"
        raise RecipeError(message) from error


def _written_secret(where: str, name: str, variable: str) -> RecipeError:
    """Return the refusal of a secret in a recipe; it does not repeat the secret, which logs would keep."""
    return RecipeError(
        f"{where}: {name} is a secret, and recipes are stored and shown; remove it, choose another, and set it as the "
        f"environment variable {variable} or as the password of the Airflow connection refinery_pii"
    )


def _require_fields(written: Mapping[str, Any], hints: Mapping[str, Any], where: str) -> None:
    """Raise RecipeError for an unknown field; where its value is a choice of another field, that one is meant."""
    for key, value in written.items():
        meant = [name for name, hint in hints.items() if isinstance(value, str) and value in _choices(hint)]
        if key not in hints and meant:
            message = f"{where}: unknown key {shown(key)}; {value!r} is a value of {meant[0]!r}"
            raise RecipeError(message)
    require_known(written, tuple(hints), where)


def _choices(hint: object) -> tuple[str, ...]:
    return typing.get_args(hint) if typing.get_origin(hint) is Literal else ()


def _collected(params: type, written: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """Move the keys that one field collects (its metadata `keys`: key -> dataclass) into that field, checked."""
    collecting = next((declared for declared in fields(params) if "keys" in declared.metadata), None)
    if collecting is None:
        return written
    keys: Mapping[str, type] = collecting.metadata["keys"]
    require_known(written, (*(declared.name for declared in fields(params)), *keys), where, OR_INSTALL)
    groups = {**require_mapping(written.get(collecting.name, {}), f"{where}: {collecting.name}")}
    groups |= {key: value for key, value in written.items() if key in keys}
    require_known(groups, keys, f"{where}: {collecting.name}", OR_INSTALL)
    checked = {key: written_fields(keys[key], group, f"{where}: {key}") for key, group in groups.items()}
    return {key: value for key, value in written.items() if key not in keys} | {collecting.name: checked}


def written_fields(group: type, written: object, where: str) -> dict[str, Any]:
    """Return the fields of the dataclass `group` that are written, checked; defaults are left out."""
    values = require_mapping(written, where)
    require_known(values, tuple(declared.name for declared in fields(group)), where)
    hints = typing.get_type_hints(group, include_extras=True)
    return {key: bound(hints[key], value, f"{where}: {key}") for key, value in values.items()}


# --- Values ---------------------------------------------------------------------------------------------------


def bound(hint: object, value: object, where: str) -> object:
    """Return `value` as the type of the annotation `hint` (lists become tuples, whole numbers become floats).

    RecipeError names `where` a wrong one is.
    """
    hint = getattr(hint, "__supertype__", hint)
    if hint is Any:
        return value
    if typing.get_origin(hint) is typing.Annotated:
        return _as_constrained(hint, value, where)
    if typing.get_origin(hint) is not None:
        return _as_generic(hint, value, where)
    if is_dataclass(hint):
        return bind_fields(typing.cast("type", hint), require_mapping(value, where), where)
    return _as_scalar(hint, value, where)


def _as_constrained(hint: object, value: object, where: str) -> object:
    """Return `value` if it has the type and meets the constraints of an `Annotated`."""
    kind, *constraints = typing.get_args(hint)
    admitted = all(constraint.admits(value) for constraint in constraints if isinstance(constraint, Range | Word))
    if not admitted or isinstance(value, bool):
        raise _wrong(where, hint, value)
    return bound(kind, value, where)


def _as_generic(hint: object, value: object, where: str) -> object:
    """Return `value` as a union, a Literal, a tuple or a Mapping."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return _as_any(hint, value, where)
    if origin is Literal:
        if not isinstance(value, str) or value not in args:
            raise _wrong(where, hint, value)
        return value
    if origin is tuple:
        return _as_tuple(hint, value, where)
    return _as_mapping(args[1] if len(args) > 1 else Any, value, where)


def _as_tuple(hint: object, value: object, where: str) -> tuple[object, ...]:
    args = typing.get_args(hint)
    if not isinstance(value, (list, tuple)) or (Ellipsis not in args and len(value) != len(args)):
        raise _wrong(where, hint, value)
    inner = [args[0]] * len(value) if Ellipsis in args else args
    return tuple(bound(kind, item, where) for kind, item in zip(inner, value, strict=True))


def _as_mapping(inner: object, value: object, where: str) -> dict[str, object]:
    pairs: Iterable[tuple[object, Any]] = require_mapping(value, where).items()
    # YAML 1.1 reads the unquoted code of Norwegian, `no`, as a boolean
    return {"no" if key is False else str(key): bound(inner, item, f"{where}: {key}") for key, item in pairs}


def _as_scalar(kind: object, value: object, where: str) -> object:
    """Return `value`, whose type must be `kind`; a bool is no number."""
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        if abs(value) > LARGEST:  # no float has it
            raise _wrong(where, kind, value)
        return float(value)
    if isinstance(kind, type) and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
        raise _wrong(where, kind, value)
    return value


def _as_any(hint: object, value: object, where: str) -> object:
    """Return `value` as the first type of a union that it is."""
    choices = [choice for choice in typing.get_args(hint) if choice is not type(None)]
    if value is None and len(choices) < len(typing.get_args(hint)):
        return None
    if len(choices) == 1:
        return bound(choices[0], value, where)
    for choice in choices:
        try:
            return bound(choice, value, where)
        except RecipeError:
            continue
    raise _wrong(where, hint, value)


def places_in(value: object, hint: object = None, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield the places that a dataclass names, each with the field that has it: those whose types say that they are."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if is_dataclass(value) and not isinstance(value, type):
        hints = typing.get_type_hints(type(value), include_extras=True)
        for entry in fields(value):
            yield from places_in(getattr(value, entry.name), hints[entry.name], f"{name}.{entry.name}".lstrip("."))
    elif origin is typing.Annotated and (places := [extra for extra in args if isinstance(extra, Place)]):
        yield from [(name, value)] if isinstance(value, str) and places[0].names(value) else []
    elif origin in (types.UnionType, typing.Union, typing.Annotated):
        for choice in args:
            yield from places_in(value, choice, name)
    elif origin is tuple and isinstance(value, tuple):
        for at, item in enumerate(value):
            yield from places_in(item, args[0] if Ellipsis in args else args[at], name)
    elif isinstance(value, Mapping) and args[1:]:  # of keys and of values
        for key, item in value.items():
            yield from places_in(item, args[1], f"{name}.{key}")


def may_name_places(hint: object) -> bool:
    """Return whether a field of a type may name a place."""
    if isinstance(hint, Place):
        return True
    if is_dataclass(hint) and isinstance(hint, type):
        return any(map(may_name_places, typing.get_type_hints(hint, include_extras=True).values()))
    return any(map(may_name_places, typing.get_args(hint)))


# --- Words ----------------------------------------------------------------------------------------------------

KINDS: dict[object, str] = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}
KINDS[type(None)] = "null"


def described(hint: object) -> str:
    """Return in words what an annotation admits."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is None:
        path_or_name = "a path" if hint is FilePath else str(getattr(hint, "__name__", hint))
        return KINDS.get(hint, "a mapping" if is_dataclass(hint) else path_or_name)
    if origin is typing.Annotated:
        constraint = next(extra for extra in args[1:] if isinstance(extra, Range | Word))
        return f"{described(args[0])} {constraint}" if isinstance(constraint, Range) else str(constraint)
    if origin is Literal:
        return " or ".join(f"`{choice}`" for choice in args)
    if origin in (types.UnionType, typing.Union):
        return " or ".join(map(described, args))
    if origin is tuple:
        return f"a list of {described(args[0])}" if Ellipsis in args else f"a list of {len(args)} numbers"
    return f"a mapping to {described(args[1])}"


def shown(value: object, where: str = "") -> str:
    """Return a value as messages show it: cut to a length, and hidden if `where` has the name of a secret."""
    if any(map(SECRET.fullmatch, where.split(": "))):
        return "a value that is not shown"
    if isinstance(value, int) and value.bit_length() > MOST_SHOWN:
        return f"a number of {value.bit_length()} bits"
    text = repr(value[:MOST_SHOWN] if isinstance(value, str | bytes | list | tuple) else value)
    return text if len(text) <= MOST_SHOWN + 2 else f"{text[:MOST_SHOWN]}..."


def _wrong(where: str, hint: object, value: object) -> RecipeError:
    meant = nearest(value, _choices(hint)) if isinstance(value, str) else ""
    message = f"{where} must be {described(hint)}, not {shown(value, where)}{meant}"
    if hint is str and isinstance(value, bool):
        message += "; YAML reads no, off, yes and on without quotes as true or false: quote the word"
    return RecipeError(message)


def require_mapping(value: object, where: str) -> Mapping[str, Any]:
    """Return `value`; RecipeError unless it is a mapping."""
    if not isinstance(value, Mapping):
        listed = "; a dash makes an item of a list: write `KEY:` for `- KEY`" if isinstance(value, list) else ""
        message = f"{where} must be a mapping of keys to values, not {shown(value, where)}{listed}"
        raise RecipeError(message)
    return value


def require_known(given: Iterable[object], known: Collection[str], where: str, hint: str = "") -> None:
    """Raise RecipeError for the first key of `given` that is not `known`, with the nearest that is."""
    for key in given:
        if key not in known:
            raise unknown_key(key, known, where, hint)


def unknown_key(key: object, known: Collection[str], where: str, hint: str = "") -> RecipeError:
    """Return the error of a key that is not `known`, with the nearest that is."""
    message = f"{where}: unknown key {shown(key)}{nearest(str(key), known)}{hint}; known keys are: {', '.join(known)}"
    return RecipeError(message)
