"""No place is taken from the params of a run that the operator has not named, for every request and kind of source."""

import re
import typing
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from refinery_sources.recipe import SEAM, SourceRecipe, kind_of

from pipeline_tasks.binding import may_name_places
from pipeline_tasks.constraints import Range, Word
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.seams import own_parts
from pipeline_tasks.service.verbs import verbs
from tests.sources.test_admission import QUERIES, source_of

WORDS = ("a", "1", "/own/a", "a.json", "", "2026-01-01", "stages/a", "local", "not-worse")


@pytest.fixture(autouse=True)
def places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFINERY_PLACES", "/own s3://own https://own.example")
    monkeypatch.setenv("REFINERY_ROOT", "/own/root")
    monkeypatch.delenv("REFINERY_LANDING", raising=False)
    monkeypatch.delenv("REFINERY_DEPLOYMENT", raising=False)


def example(hint: Any, place: str) -> Any:
    """Return a value of a type, in which every text that is a place is this one."""
    hint = getattr(hint, "__supertype__", hint)
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return _constrained(args, place)
    if origin is tuple:
        return tuple(example(each, place) for each in args if each is not Ellipsis)
    if origin is Literal:
        return args[0]
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {}
    return example(args[0], place) if args else _plain(hint)


def _constrained(args: tuple[Any, ...], place: str) -> Any:
    if args[0] is str and any(map(may_name_places, args[1:])):
        return place
    admitted = next((extra for extra in args[1:] if isinstance(extra, Range | Word)), None)
    values = WORDS if args[0] is str else (1, 0, 2, 0.5)
    return next(value for value in values if admitted is None or admitted.admits(value))


def _plain(hint: Any) -> Any:
    return made(hint, "/own/a") if is_dataclass(hint) else {int: 1, float: 1.0, bool: False}.get(hint, "a")


def made(kind: Any, place: str, **given: Any) -> Any:
    """Return an instance of a dataclass, by the types of the fields that it needs."""
    hints = typing.get_type_hints(kind, include_extras=True)
    needed = [each.name for each in fields(kind) if each.default is MISSING and each.default_factory is MISSING]
    return kind(**{name: example(hints[name], place) for name in needed} | given)


def place_fields(kind: Any) -> list[str]:
    hints = typing.get_type_hints(kind, include_extras=True)
    return [each.name for each in fields(kind) if each.init and may_name_places(hints[each.name])]


def foreign(kind: Any, name: str, place: str) -> Any:
    """Return what a field has that names a place: the place, several, or an object with it."""
    hint = typing.get_type_hints(kind, include_extras=True)[name]
    inner = next(
        (each for each in (hint, *typing.get_args(hint)) if isinstance(each, type) and is_dataclass(each)), None
    )
    return made(inner, place, **{place_fields(inner)[0]: place}) if inner else example(hint, place)


REQUESTS = {verb: known.request for verb, known in verbs().items()}
CASES = [(verb, name) for verb, kind in REQUESTS.items() for name in place_fields(kind)]


@pytest.mark.parametrize(("verb", "name"), CASES)
@pytest.mark.parametrize("place", ["/etc/passwd", "s3://private/a", "/own/../etc/a.yaml"])
def test_no_request_of_a_task_names_a_foreign_place(verb: str, name: str, place: str) -> None:
    from refinery_airflow.runs.places import require_admitted
    from refinery_airflow.tasks.launch import prepared, uris_of

    kind = REQUESTS[verb]
    own = made(kind, "/own/a")
    assert "/own/a" in uris_of(own)
    require_admitted(*uris_of(own))
    with pytest.raises(RecipeError, match="no place that a run may name"):
        prepared(made(kind, "/own/a", **{name: foreign(kind, name, place)}))


def test_every_request_has_a_root_that_is_asked_for() -> None:
    assert len(REQUESTS) > 20
    assert {verb for verb, _ in CASES} == set(REQUESTS)


PLAIN = re.compile(
    r"(.*_)?(root|folder|input|inputs|landing|store|policy|recipes|datasets|held_out|file|uri|url|place)"
)


@pytest.mark.parametrize("verb", REQUESTS)
def test_a_field_of_a_request_that_could_be_a_place_has_the_type_of_one(verb: str) -> None:
    """Names of fields that places had so far: one of another type would be asked for by nobody."""
    named = {each.name for each in fields(REQUESTS[verb]) if PLAIN.fullmatch(each.name)}  # type: ignore[arg-type]
    assert named <= set(place_fields(REQUESTS[verb]))


QUERY_FIELDS = [(kind, name) for kind in own_parts(SEAM) for name in place_fields(kind_of(kind))]


@pytest.mark.parametrize(("kind", "name"), QUERY_FIELDS)
@pytest.mark.parametrize("place", ["/etc", "s3://private/a", "https://evil.example", "https://own.example.evil/a"])
def test_no_pull_goes_to_a_place_that_neither_its_recipe_nor_the_operator_names(
    kind: str, name: str, place: str
) -> None:
    from refinery_airflow.tasks.sources import asked, asked_fields

    recipe = SourceRecipe("own", kind, source_of(kind))
    bounds = {"rate": 1, "workers": 1}
    before = asked(recipe, bounds)
    assert (before.source, before.within is not None) == (recipe.source, True)
    params = {**bounds, name: foreign(kind_of(kind), name, place)}
    if name not in asked_fields(recipe):  # a secret follows it
        assert asked(recipe, params).source == recipe.source
        return
    with pytest.raises(RecipeError, match=r"no place that a run may name|must be"):
        asked(recipe, params)


@pytest.mark.parametrize("kind", own_parts(SEAM))
def test_a_pull_may_be_changed_within_what_is_named(kind: str, tmp_path: Path) -> None:
    from refinery_airflow.tasks.sources import asked, asked_fields

    recipe = SourceRecipe("own", kind, source_of(kind))
    for name in QUERIES[kind].keys() & set(asked_fields(recipe)) & set(place_fields(kind_of(kind))):
        there = getattr(recipe.source, name)
        below = f"{there}/below"
        now = asked(recipe, {"rate": 1, "workers": 1, name: below})
        assert getattr(now.source, name) == below
