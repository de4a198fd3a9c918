"""Arguments and output that commands share: the root, recipe and snapshot to read, numbers, and printed lines."""

import argparse
import contextlib
import getpass
import json
import math
import os
import socket
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol

from pipeline_tasks.constraints import OptionalSnapshot, OptionalWord, Range
from pipeline_tasks.engines import early_start
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.nearest import nearest
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.recipe import DEFAULT_BUILD, MAX_PARTITIONS, engine_names, is_trial, verb_engine
from pipeline_tasks.training.named import LATEST

if TYPE_CHECKING:  # whoever mistypes a path waits for no reading of verdicts and ledgers
    from pipeline_tasks.engines.each import On
    from pipeline_tasks.engines.workers import Workers
    from pipeline_tasks.inspect.unpublished import Committed

DEFAULT_RECIPE = "web"

NEWEST, EVERY = "the one published last", "every one"
"""Which snapshot a command reads if none is named, as its help text puts it."""

OnlyRecipe = Annotated[OptionalWord, f"recipe (default: the only one in ROOT, else {DEFAULT_RECIPE})"]
"""The param of a question that `recipe_of` reads."""

NewestSnapshot = Annotated[OptionalSnapshot, f"snapshot (default: {NEWEST})"]
"""The param of a question that `version_of` reads."""


class OfRecipe(Protocol):
    """Params that name a root, and may name a recipe."""

    @property
    def root(self) -> str:
        """The root."""

    @property
    def recipe(self) -> str:
        """The recipe, "" for the usual one."""


class OfSnapshot(OfRecipe, Protocol):
    """Params that may name a snapshot, too."""

    @property
    def snapshot(self) -> str:
        """The snapshot, "" for the usual one."""


def default_root() -> str:
    """Return the root used when none is named: `REFINERY_ROOT`, else `.refinery/root` here."""
    return os.environ.get("REFINERY_ROOT") or str(Path(".refinery/root").absolute())


def add_root(parser: argparse.ArgumentParser) -> None:
    """Add the optional positional ROOT, which has to exist."""
    parser.add_argument("root", nargs="?", metavar="ROOT", default=default_root(), help="the root that a run wrote to")
    parser.set_defaults(requires_root=True)


def add_output_root(parser: argparse.ArgumentParser, meaning: str) -> None:
    """Add the optional positional ROOT, which a command writes to; it was named by `--output`, too."""
    parser.set_defaults(root=default_root())
    parser.add_argument("root", nargs="?", metavar="ROOT", default=argparse.SUPPRESS, help=meaning)
    parser.add_argument("--output", dest="root", default=argparse.SUPPRESS, help=argparse.SUPPRESS)


def add_recipe(parser: argparse.ArgumentParser) -> None:
    """Add ROOT and `--recipe`, which `recipe_of` reads."""
    add_root(parser)
    parser.add_argument("--recipe", default="", help=f"recipe (default: the only one in ROOT, else {DEFAULT_RECIPE})")


def add_snapshot(parser: argparse.ArgumentParser, default: str = NEWEST) -> None:
    """Add ROOT, `--recipe`, `--snapshot` and `--json`: what a command that reads published versions needs."""
    add_recipe(parser)
    parser.add_argument("--snapshot", default="", help=f"snapshot (default: {default})")
    add_json(parser)


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add `--json`, which `print_result` reads."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_refining(parser: argparse.ArgumentParser) -> None:
    """Add `--engine` and `--override`, for commands that refine a snapshot."""
    parser.add_argument(
        "--engine", choices=engine_names(), default="", help="run every stage there (default: the recipe's)"
    )
    parser.add_argument(
        "--override",
        action="append",
        default=[],
        metavar="GATE=WHY",
        help="let a refused gate pass",
    )


def add_engine(parser: argparse.ArgumentParser) -> None:
    """Add `--engine`, for commands that work over a whole root; `on_of` reads it."""
    parser.add_argument(
        "--engine", choices=engine_names(), default="", help="where to run (default: the recipe's, else local)"
    )


def on_of(verb: str, recipe: str, options: argparse.Namespace, workers: "Workers") -> "On":
    """Return where a verb over a root runs: as the options say, or the recipe of that name; `local` has `workers`."""
    from pipeline_tasks.engines.each import On

    engine = options.engine or verb_engine(recipe, verb)
    return On(engine, early_start.addresses().get(engine, ""), workers)


def add_partitions(parser: argparse.ArgumentParser) -> None:
    """Add `--partitions`, for commands that run a DAG."""
    parser.add_argument(
        "--partitions",
        type=number(int, 0, MAX_PARTITIONS),
        default=0,
        metavar="N",
        help=f"map stages over at most this many, up to {MAX_PARTITIONS:,} (default: the recipe's, else by bytes)",
    )


def overrides_of(options: argparse.Namespace) -> dict[str, str]:
    """Return the reason for each gate that is overridden; RecipeError if a reason is missing, or there are two."""
    overrides: dict[str, str] = {}
    for override in options.override:
        stage, _, reason = override.partition("=")
        if not stage or not reason.strip():
            message = f"--override {override!r}: write GATE=WHY; the reason is kept in the verdict"
            raise RecipeError(message)
        if stage in overrides:
            message = f"--override {override!r}: {stage} has a reason already, {overrides[stage]!r}; give it once"
            raise RecipeError(message)
        overrides[stage] = reason.strip()
    return overrides


def number(
    kind: type[int] | type[float], least: float, most: float = math.inf, *, above: bool = False
) -> Callable[[str], float]:
    """Return an argparse type for a number from `least` to `most`, without `least` itself if `above`."""
    admitted = Range(least, most, above)

    def read(text: str) -> float:
        with contextlib.suppress(ValueError):
            if admitted.admits(value := kind(text)):
                return value
        to = f"to {most:g}" if most < math.inf else "or more"
        message = f"{text!r} is no {'whole ' if kind is int else ''}number {'above' if above else 'of'} {least:g} {to}"
        raise argparse.ArgumentTypeError(message)

    return read


def recipe_of(options: OfRecipe) -> str:
    """Return the recipe that the options name, else the only one published in the root, else the default one.

    RecipeError if there are several without the default one: a guess would show, or retract, a snapshot of another.
    Trials are not counted where a recipe has published, nor are training datasets where one that refines has. Where
    nothing is published, the recipes of runs count.
    """
    every = version_log.recipes(options.root)
    if not every and not options.recipe:
        from pipeline_tasks.ledger import recorded_recipes

        every = recorded_recipes(options.root)
    published = [name for name in every if not is_trial(name)] or every
    if options.recipe or not published:
        return options.recipe or DEFAULT_RECIPE
    published = [name for name in published if not version_log.is_build(options.root, name)] or published
    if len(published) > 1 and DEFAULT_RECIPE not in published:
        message = f"{options.root} has recipes {', '.join(published)}; name one of them with --recipe"
        raise RecipeError(message)
    return published[0] if len(published) == 1 else DEFAULT_RECIPE


def add_dataset(parser: argparse.ArgumentParser) -> None:
    """Add ROOT, `--dataset` and `--json`: what a command that reads a version of a training dataset needs."""
    add_root(parser)
    parser.add_argument(
        "--dataset",
        "--recipe",
        dest="recipe",
        default="",
        metavar="NAME[@NUMBER]",
        help=f"dataset and its version (default: the only one in ROOT, else {DEFAULT_BUILD}; its newest)",
    )
    add_json(parser)


def built_version(root: str, named: str) -> Version:
    """Return the version that `NAME@NUMBER` names; without a number the newest, without a name of the only dataset.

    Of several datasets without a name it is the default one. RecipeError if there is none. A number names a superseded
    version, too.
    """
    recipe, _, number = named.partition("@")
    built = version_log.datasets(root)
    name = recipe or (built[0] if len(built) == 1 else DEFAULT_BUILD)
    if name not in built:
        others = f"it has {', '.join(built)}" if built else "it has none"
        message = (
            f"{root} has no training dataset {name!r}{nearest(name, built)} ({others}); build one with "
            f"`refinery build {root} --recipe RECIPE`"
        )
        raise RecipeError(message)
    from pipeline_tasks.inspect.chosen import chosen_version

    return chosen_version(root, name, number) if number not in ("", LATEST) else version_log.current(root, name)


def add_chosen(parser: argparse.ArgumentParser) -> None:
    """Add ROOT, `--recipe`, `--version` and `--dataset`, which `chosen_of` reads, and `--json`."""
    add_recipe(parser)
    parser.add_argument(
        "--version",
        default="",
        dest="chosen",
        metavar="V",
        help=f"a version's number or snapshot (default: {NEWEST})",
    )
    parser.add_argument("--dataset", default="", metavar="NAME[@NUMBER]", help="a training dataset instead")
    add_json(parser)


def chosen_of(options: argparse.Namespace) -> Version:
    """Return the version of a snapshot or training dataset that the options name; RecipeError if there is none."""
    if options.dataset:
        if options.recipe or options.chosen:
            message = f"--dataset {options.dataset} names a version by itself; leave --recipe and --version out"
            raise RecipeError(message)
        return built_version(options.root, options.dataset)
    if options.chosen:
        from pipeline_tasks.inspect.chosen import chosen_version

        return chosen_version(options.root, recipe_of(options), options.chosen)
    from pipeline_tasks.inspect.unpublished import current_version

    return current_version(options.root, recipe_of(options))


def outside(place: str, root: str, option: str) -> str:
    """Return an absolute place; RecipeError if it is in the root, also by a link: vacuum and verify know every file."""
    is_inside = _is_below(place, root)
    if "://" not in place:
        place, root = os.path.abspath(place), os.path.abspath(root.removeprefix("file://"))  # noqa: PTH100 -- keeps links
        is_inside = _is_below(place, root) or _is_below(str(Path(place).resolve()), str(Path(root).resolve()))
    if is_inside:
        message = f"{place} is in the root {root}, whose files are Refinery's own; name a place outside with {option}"
        raise RecipeError(message)
    return place


def _is_below(place: str, root: str) -> bool:
    return f"{place.rstrip('/')}/".startswith(f"{root.rstrip('/')}/")


def whoami() -> str:
    """Return who runs a command: the user and the machine."""
    return f"{getpass.getuser()}@{socket.gethostname()}"


def version_of(options: OfSnapshot) -> Version:
    """Return the newest version of the named snapshot, or of the recipe.

    RecipeError if there is none, which names the runs that stopped.
    """
    from pipeline_tasks.inspect.unpublished import current_version

    return current_version(options.root, recipe_of(options), options.snapshot)


def committed_of(options: argparse.Namespace) -> "Committed":
    """Return what is committed of what the options name, and say on stderr if a newer run has published nothing."""
    from pipeline_tasks.inspect.unpublished import committed, say

    known = committed(options.root, recipe_of(options), options.snapshot)
    say(known.note)
    return known


def versions_of(options: argparse.Namespace) -> list[Version]:
    """Return the newest version of the named snapshot, or of every snapshot; RecipeError if there is none."""
    if options.snapshot:
        return [version_of(options)]
    return version_log.latest_by_snapshot(options.root, recipe_of(options)) or [version_of(options)]


def print_lines(lines: Iterable[str]) -> None:
    """Print lines and flush, so that a pipe reader sees them at once."""
    for line in lines:
        sys.stdout.write(line + "\n")
    sys.stdout.flush()


def print_result(options: argparse.Namespace, facts: object, lines: Iterable[str]) -> None:
    """Print `facts` as one line of JSON with `--json`, else `lines`."""
    print_lines([json.dumps(facts)] if options.json else lines)
