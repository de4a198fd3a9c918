"""Says which parts other installed distributions bring: by the entry points of a seam, or by `module:NAME`."""

import logging
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import (
    EntryPoint,
    PackageNotFoundError,
    distribution,
    entry_points,
    packages_distributions,
    version,
)
from types import MappingProxyType
from typing import TypeVar, cast

from pipeline_tasks.errors import RecipeError

T = TypeVar("T")

log = logging.getLogger("refinery")

PLACE = re.compile(r"[^\W\d][\w.]*:[^\W\d]\w*")
"""Where a part is: `module:NAME`."""

REFINERY = "refinery-tokens"
"""The name of our own distribution."""

EXPORTS = "refinery.exports"
"""The seam of formats of exports, which recipes and exports ask for."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a seam: its name, its place `module:NAME`, and the distribution that brings it, "" for one of ours.

    `refused` says who else brings one of that name: which of them is meant, nobody knows.
    """

    name: str
    place: str
    distribution: str = ""
    version: str = ""
    refused: str = ""

    def load(self, *kinds: type[T]) -> T:
        """Import the part; RecipeError names the distribution of one that cannot be had, or is none of `kinds`."""
        if self.refused:
            raise RecipeError(self.refused)
        try:
            loaded = EntryPoint(self.name, self.place, "").load()
        except (Exception, SystemExit) as error:  # whatever the module of somebody else raises
            if not self.distribution:
                raise
            message = f"{self}, which cannot be imported: {type(error).__name__}: {error}; repair or uninstall it"
            raise RecipeError(message) from error
        if kinds and not isinstance(loaded, kinds):
            wanted = " or ".join(kind.__name__ for kind in kinds)
            message = f"{self}, which is a {type(loaded).__name__} and no {wanted}; repair or uninstall it"
            raise RecipeError(message)
        return cast("T", loaded)

    def __str__(self) -> str:
        """Return it as messages name it."""
        return f"{self.name!r} is {self.place} of the package {f'{self.distribution} {self.version}'.strip()}"


def parts(seam: str, own: Collection[str] = ()) -> Mapping[str, Part]:
    """Return the parts of a seam (`refinery.filters`) that other distributions bring, by name, sorted.

    One of the name of an `own` part, which stays, is left out with a warning. Of two of one name none can be loaded.
    """
    return _brought(seam, tuple(own))


@cache
def _brought(seam: str, own: tuple[str, ...]) -> Mapping[str, Part]:
    found: dict[str, Part] = {}
    for point in sorted(entry_points(group=seam), key=lambda point: point.name):
        if point.dist is None or point.dist.name == REFINERY:
            continue
        part = Part(point.name, point.value, point.dist.name, point.dist.version)
        if part.name in own:
            log.warning("%s: %s, and Refinery has a part of that name; rename it or uninstall it", seam, part)
        elif other := found.get(part.name):
            found[part.name] = replace(other, refused=f"{seam}: {other}, and {part}; uninstall one of the two")
        else:
            found[part.name] = part
    return MappingProxyType(found)


@cache
def own_parts(seam: str) -> Mapping[str, Part]:
    """Return the parts of a seam that our own extensions bring, by name, sorted: they are in our distribution."""
    points = [point for point in entry_points(group=seam) if point.dist is not None and point.dist.name == REFINERY]
    if not points:
        _require_installed()
    return MappingProxyType({each.name: Part(each.name, each.value) for each in sorted(points)})


@cache
def own_packages() -> tuple[str, ...]:
    """Return the names of our own extensions, sorted: the packages that bring something to a seam."""
    try:
        points = distribution(REFINERY).entry_points
    except PackageNotFoundError:
        return ()
    return tuple(sorted({point.module.partition(".")[0] for point in points if point.group.startswith("refinery.")}))


def entries(seam: str, own: Mapping[str, T], *kinds: type[T]) -> dict[str, T]:
    """Return what the core has of a seam whose parts are dicts, and what each part brings, by name.

    What a package of somebody else brings under a name that is taken, or cannot give, is left out with a warning that
    names the package: nobody may have asked for it.
    """
    return {**own, **{name: entry for name, (entry, _) in brought_entries(seam, own, *kinds).items()}}


def brought_entries(seam: str, own: Collection[str], *kinds: type[T]) -> dict[str, tuple[T, Part]]:
    """Return what each part brings of a seam whose parts are dicts, and the part, by names other than our `own`.

    It leaves out what `entries` does.
    """
    found: dict[str, tuple[T, Part]] = {}
    for part in all_parts(seam).values():
        try:
            for name, entry in part.load(dict).items():
                _require_free(seam, part, name, entry, {*own, *found}, kinds)
                found[name] = entry, part
        except RecipeError as error:
            if not part.distribution:
                raise
            log.warning("%s", error)
    return found


def _require_free(
    seam: str, part: Part, name: object, entry: object, taken: Collection[object], kinds: tuple[type, ...]
) -> None:
    """Raise RecipeError for an entry of a name that is taken, or of another kind."""
    if name in taken:
        message = f"{seam}: {part}, and brings {name!r}, which there is already; rename it or uninstall it"
        raise RecipeError(message)
    if not isinstance(name, str) or not isinstance(entry, kinds):
        message = f"{seam}: {part}, and brings {name!r}, which is a {type(entry).__name__}; repair or uninstall it"
        raise RecipeError(message)


@cache
def part_at(place: str) -> Part:
    """Return the part at `module:NAME`; RecipeError if no installed distribution has the module: no version says it."""
    module = place.partition(":")[0]
    if not PLACE.fullmatch(place):
        message = f"{place[:100]!r} is no place of a part; write module:NAME"
        raise RecipeError(message)
    names = sorted({*packages_distributions().get(module.partition(".")[0], ())})
    owners = [each for each in names if len(names) == 1 or _has_module(each, module)]
    if not owners:
        message = f"{place!r}: no installed package has that module, and its version is identity; install one"
        raise RecipeError(message)
    if owners[0] == REFINERY:
        message = f"{place!r} is ours; a recipe has it by its name"
        raise RecipeError(message)
    return Part(place, place, owners[0], version(owners[0]))


def _has_module(name: str, module: str) -> bool:
    """Return whether a distribution has the files of a module: several may share the package that it is in."""
    place = module.replace(".", "/")
    wanted = {f"{place}.py", f"{place}/__init__.py"}
    return any(file.as_posix() in wanted for file in distribution(name).files or ())


def _require_installed() -> None:
    """Raise RecipeError unless our distribution is installed: without its metadata, parts are missing in silence."""
    try:
        distribution(REFINERY)
    except PackageNotFoundError as error:
        message = (
            f"{REFINERY} is not installed here, and what its extensions bring is found by its metadata; install it "
            "(`make demo` does, or `pip install -e .` in a checkout)"
        )
        raise RecipeError(message) from error


def all_parts(seam: str, core: Collection[str] = ()) -> Mapping[str, Part]:
    """Return the parts of a seam that our own extensions bring, then those of others by names that no `core` has."""
    own = own_parts(seam)
    return {**own, **parts(seam, (*core, *own))}


def known(seam: str, asked: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the names of all parts of a seam, and the places `module:NAME` in `asked`."""
    return (*all_parts(seam), *(part_at(name).name for name in asked if ":" in name))


def part_of(seam: str, name: str) -> Part:
    """Return the part of a name; RecipeError if no package that is installed here brings it."""
    part = part_at(name) if ":" in name else all_parts(seam).get(name)
    if part is None:
        message = f"{seam}: no package that is installed here brings {name!r}; install it as on other machines"
        raise RecipeError(message)
    return part
