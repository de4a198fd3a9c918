"""A question: typed params, the function that answers, and the role that may ask.

A module that exports one as `QUESTION`, and has its line in the table of `known`, is a command, a page and a call from
Python by that alone. Params are a frozen dataclass. Each field has its help, and a word for its value, beside its type:
`since: Annotated[str, "looks of this day and later", "DAY"] = ""`; a tuple beside them has values that a page suggests.
A field without a default is named first; bounds are those of `constraints`. `root` is where the question is asked, and
a field of the type `Role` is who asks: both are filled in. A field `recipe` says that the answer tells of that recipe
alone: then whoever has the role for it may ask.
"""

import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from enum import StrEnum
from importlib import import_module
from typing import Annotated, Any, Generic, Literal, TypeVar, cast

from pipeline_tasks.ask.answer import Answer
from pipeline_tasks.ask.known import Entry
from pipeline_tasks.binding import bound
from pipeline_tasks.errors import RecipeError

P = TypeVar("P")

ROOT = "root"
"""The field of params that has the root."""


class Role(StrEnum):
    """What a user may see: counts; texts and pages that were kept; all texts, and what was found in them."""

    VIEWER = "viewer"
    CURATOR = "curator"
    STEWARD = "steward"


@dataclass(frozen=True, slots=True)
class Question(Generic[P]):
    """What is asked by params, and by whom.

    `bounds` are params that a page gives, as a request reads so much. `was` are names that options had, to which they
    still answer, by the param. Of the params in `one_of` just one has to be given.
    """

    params: type[P]
    answer: Callable[[P], Answer]
    role: Role = Role.VIEWER
    bounds: Mapping[str, object] = field(default_factory=dict)
    was: Mapping[str, Sequence[str]] = field(default_factory=dict)
    one_of: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Param:
    """A param that a person gives: its name, type with constraints, help, the word for its value, and default.

    `kind` is str, int, float or bool; of a `repeated` one each value is of it.
    """

    name: str
    hint: Any
    kind: type
    help: str
    word: str
    default: object
    is_required: bool
    is_repeated: bool
    choices: tuple[str, ...]
    suggested: tuple[str, ...]

    @property
    def flag(self) -> str:
        """Its option of a command."""
        return f"--{self.name.replace('_', '-')}"

    def read(self, text: str) -> object:
        """Return a value that is written as text; RecipeError for one that is not of its type or within its bounds."""
        value: object = text
        if self.kind in (int, float):
            try:
                value = self.kind(text)
            except ValueError:
                value = text
        return bound(self.hint, value, self.name.replace("_", " "))


def question_of(entry: Entry) -> Question[Any]:
    """Return the question of an entry whose module has one."""
    return cast("Question[Any]", import_module(entry.module).QUESTION)


def params_of(question: Question[Any]) -> Iterator[Param]:
    """Yield the params that a person gives, those first that have to be given."""
    hints = typing.get_type_hints(question.params, include_extras=True)
    declared = [each for each in fields(question.params) if each.name != ROOT and _bare(hints[each.name]) is not Role]
    yield from sorted((_param(each, hints[each.name]) for each in declared), key=lambda param: not param.is_required)


def _param(declared: Field[Any], hint: object) -> Param:
    said = typing.get_args(hint)[1:] if _is_annotated(hint) else ()
    notes = [note for note in said if isinstance(note, str)]
    of_one = _value_hint(hint)
    is_repeated = typing.get_origin(of_one) is tuple
    of_one = typing.get_args(of_one)[0] if is_repeated else of_one
    bare = _bare(of_one)
    choices = typing.get_args(bare) if typing.get_origin(bare) is Literal else ()
    is_required = declared.default is MISSING and declared.default_factory is MISSING
    return Param(
        name=declared.name,
        hint=of_one,
        kind=bare if isinstance(bare, type) else str,
        help=notes[0] if notes else "",
        word=notes[1] if len(notes) > 1 else declared.name.upper().replace("_", " "),
        default=None if is_required else declared.default,
        is_required=is_required,
        is_repeated=is_repeated,
        choices=choices,
        suggested=next((note for note in said if isinstance(note, tuple)), ()),
    )


def _is_annotated(hint: object) -> bool:
    return typing.get_origin(hint) is Annotated


def _bare(hint: object) -> object:
    return typing.get_args(hint)[0] if _is_annotated(hint) else hint


def _value_hint(hint: object) -> object:
    """Return an annotation without what is said of it in words: the type, with its constraints."""
    if not _is_annotated(hint):
        return hint
    kind, *notes = typing.get_args(hint)
    constraints = [note for note in notes if not isinstance(note, str | tuple)]
    return Annotated[(kind, *constraints)] if constraints else kind


def read_params(question: Question[P], given: Mapping[str, object], root: str, role: Role) -> P:
    """Return the params of who asks at a root; RecipeError for one that is not known, missing, or not of its type.

    Texts are read as a command line has them; other values have to be of the type.
    """
    known = {param.name: param for param in params_of(question)}
    for name in given:
        if name not in known:
            message = f"there is no param {name!r}; params are: {', '.join(known) or 'none'}"
            raise RecipeError(message)
    values = {name: _read(param, given[name]) for name, param in known.items() if name in given}
    for name, param in known.items():
        if param.is_required and not values.get(name):
            message = f"name what is asked for: {param.help}"
            raise RecipeError(message)
    if question.one_of and sum(bool(values.get(name)) for name in question.one_of) != 1:
        message = f"name one of {', '.join(question.one_of)}, and no more of them"
        raise RecipeError(message)
    hints = typing.get_type_hints(question.params, include_extras=True)
    asker = {each: role for each, hint in hints.items() if _bare(hint) is Role}
    at = {ROOT: root} if ROOT in hints else {}
    return question.params(**at, **asker, **values)


def _read(param: Param, value: object) -> object:
    if param.is_repeated:
        texts = [value] if isinstance(value, str) else cast("Sequence[object]", value)
        return tuple(param.read(each) if isinstance(each, str) else each for each in texts)
    if param.kind is bool:
        return bool(value)
    return param.read(value) if isinstance(value, str) else bound(param.hint, value, param.name)
