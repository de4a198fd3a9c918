"""Says which kinds of generators there are, and loads one: extensions bring them, and a recipe asks for one by name."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.generators.generator import SEAM, Generator, Model, Sampling
from pipeline_tasks.nearest import nearest
from pipeline_tasks.seams import Part, all_parts

P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Kind:
    """What a part of the seam is: how a generator of this kind is loaded, and what can be told of a model before.

    `load` is called where texts are written, `check` where a run is planned, on a machine that may have neither GPU nor
    framework. Both raise RecipeError for a model that cannot be used. `is_served`: the model is a server's, so it has a
    `name` and no file. `is_steady`: hardware of one name writes the same bytes again; else the first text that is
    committed counts.
    """

    load: Callable[[Model, Sampling], Generator]
    check: Callable[[Model], None]
    is_served: bool = False
    is_steady: bool = False


def kinds() -> tuple[str, ...]:
    """Return the names of all kinds that are brought here, ours first."""
    return tuple(all_parts(SEAM))


def kind_of(model: Model) -> Kind:
    """Return the kind of a model; RecipeError for one that nobody brings here."""
    return _part(model.kind).load(Kind)


def load(model: Model, sampling: Sampling) -> Generator:
    """Load the generator of a model; RecipeError as in `check`, and where the machine lacks what loads it."""
    return _checked(model).load(model, sampling)


def check(model: Model) -> None:
    """Raise RecipeError for a model that cannot be used, as far as every machine can tell."""
    _checked(model).check(model)


def libraries(asked: Callable[[P], str]) -> dict[str, Callable[[P], bool]]:
    """Return the distributions that bring kinds, with whether params ask for one of theirs: `Stage.libraries`.

    `asked` returns the kind that params name. Our own extensions are none: their versions are those of stages.
    """
    owned: dict[str, set[str]] = {}
    for name, part in all_parts(SEAM).items():
        if part.distribution:
            owned.setdefault(part.distribution, set()).add(name)

    def asks_for(names: set[str]) -> Callable[[P], bool]:
        return lambda params: asked(params) in names

    return {owner: asks_for(names) for owner, names in owned.items()}


def _checked(model: Model) -> Kind:
    """Return the kind of a model that names what this kind needs; RecipeError for one that does not."""
    kind = kind_of(model)
    if kind.is_served and (model.model or not model.name):
        message = f"a generator of the kind {model.kind!r} is a server's; write what it calls the model in `name`"
        raise RecipeError(f"{message}, and no `model`" if model.model else message)
    if not kind.is_served and not model.model:
        message = (
            f"a generator of the kind {model.kind!r} needs `model`: the path of its folder, or hf://owner/name@commit"
        )
        raise RecipeError(message)
    return kind


def _part(name: str) -> Part:
    part = all_parts(SEAM).get(name)
    if part is None:
        known = ", ".join(kinds()) or "none"
        message = f"no package here brings a generator of the kind {name!r}{nearest(name, kinds())}; known: {known}"
        raise RecipeError(message)
    return part
