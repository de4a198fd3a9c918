"""Checks what a run needs before it runs: packages, engines, the store; and what a run of some input would find."""

import argparse
import os
import sys
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from itertools import chain

from pipeline_tasks.counted import counted
from pipeline_tasks.deployment import deployment, idle_names, missing_connections
from pipeline_tasks.engines.card import EngineCard, engine_card
from pipeline_tasks.engines.early_start import maybe_clusters, place_of, variable_of
from pipeline_tasks.errors import RecipeError, RefineryError
from pipeline_tasks.inspect.command import DEFAULT_RECIPE, default_root, print_lines
from pipeline_tasks.inspect.preflight import AREAS, RECIPE, PlannedRun, findings, tried
from pipeline_tasks.recipe import BUILDS, engine_names, load_build, load_recipe, recipe_names
from pipeline_tasks.run.runners import has_connection
from pipeline_tasks.seams import all_parts
from pipeline_tasks.store import storage
from pipeline_tasks.store.protocol import Store
from pipeline_tasks.store.storage import absolute
from pipeline_tasks.upkeep.upgrade import outdated_versions

DEPLOYED = "refinery.deployed"
"""The seam of recipes of other kinds that have a DAG: each of its parts is a function that returns their names."""

WRITERS = 16
ROUNDS = 10
"""A race of 16 writers, ten times: a sequential test passes on servers that let several racing writers win."""


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check; `message` is the version or state, or what to do about a failure."""

    name: str
    ok: bool
    message: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the root, and what a run would read and do."""
    parser.add_argument(
        "root", nargs="?", metavar="ROOT", default="", help="a folder, or s3://, gs:// or az://bucket/prefix"
    )
    parser.add_argument("--input", default="", help="also look at what `refinery run` would refuse of this input")
    parser.add_argument("--recipe", default=DEFAULT_RECIPE, help="the recipe of that run")
    parser.add_argument("--engine", default="", choices=["", *engine_names()], help="the engine of all its stages")


def answer(options: argparse.Namespace) -> int:
    """Print each check as it is done; return RecipeError's exit code if one fails."""
    failed = False
    of_run = run_checks(options.root, options.input, options.recipe, options.engine) if options.input else ()
    for check in chain(checks(options.root), of_run):
        failed |= not check.ok
        print_lines([f"{'ok  ' if check.ok else 'FAIL'}  {check.name:<14}{check.message}"])
    return RecipeError.exit_code if failed else 0


def checks(root: str) -> Iterator[Check]:
    """Yield every check; those of storage only when a root is named."""
    yield Check("python", sys.version_info >= (3, 11), sys.version.split()[0])
    for engine in engine_names()[1:]:
        yield from _engine(engine, root)
    yield Check("airflow", ok=True, message=f"apache-airflow {version('apache-airflow')}")
    yield _tokenizer()
    yield from _deployment()
    if root:
        yield (stored := _guarded("storage", lambda: _storage(root)))
    if root and stored.ok:  # else each would wait for the same store, and say the same
        yield _guarded("put-if-absent", lambda: _race(root))
        yield _guarded("listing", lambda: _listing(root))
        yield _guarded("upgrade", lambda: _upgrade(root))


def run_checks(root: str, uri: str, recipe: str, engine: str) -> Iterator[Check]:
    """Yield what `refinery run` looks at before its first stage: a check of each area without a finding, else these."""
    loaded, found = tried(RECIPE, lambda: load_recipe(recipe))
    planned = PlannedRun(
        root=absolute(root or default_root()),
        recipes=(loaded,) if loaded else (),
        input=absolute(uri),
        fields=loaded.fields if loaded else None,
        engines={"*": engine} if engine else {},
        elsewhere=maybe_clusters(),
    )
    found = findings(planned, found)
    for area in AREAS:
        of_area = [finding for finding in found if finding.where == area]
        yield from (Check(area, not finding.fault, finding.message) for finding in of_area)
        if not of_area:
            yield Check(area, ok=True, message="nothing that would end the run")


def _guarded(name: str, check: Callable[[], Check]) -> Check:
    try:
        return check()
    except RefineryError as error:
        return Check(name, ok=False, message=str(error))


def _engine(name: str, root: str) -> Iterator[Check]:
    """Look at what an engine needs, and at the cluster that its connection in the environment names."""
    try:
        card = engine_card(name)
    except RecipeError as error:
        yield Check(name, ok=False, message=str(error))
        return
    place = place_of(os.environ.get(variable_of(name), ""))
    for check, look in card.checks(place, root) or [(name, partial(_is_here, card))]:
        yield _guarded(check, partial(_seen, check, look))


def _seen(name: str, look: Callable[[], str]) -> Check:
    return Check(name, ok=True, message=look())


def _is_here(card: EngineCard) -> str:
    """Return the module of an engine that this machine has what it takes for."""
    card.require_here()
    return card.module


def _tokenizer() -> Check:
    import tokenizers

    blank = tokenizers.Tokenizer(tokenizers.models.BPE())
    return Check("tokenizers", blank.get_vocab_size() == 0, f"tokenizers {version('tokenizers')}")


def _deployment() -> Iterator[Check]:
    """Look at the file of the deployment, if one is named: each entry, connection and name that is wrong is a check."""
    try:
        known = deployment()
    except RecipeError as error:
        yield Check("deployment", ok=False, message=str(error))
        return
    if not known.path:
        return
    missing = missing_connections(known, has_connection)
    faults = [*map(str, known.refused.values()), *missing, *idle_names(known, _recipes())]
    yield from (Check("deployment", ok=False, message=fault) for fault in faults)
    if not faults:
        entries = counted(len(known.lines), "entry", "entries")
        yield Check("deployment", ok=True, message=f"{known.path}: {entries}, and all connections are set")


def _recipes() -> Iterator[str]:
    """Yield the names of the recipes that have a DAG."""
    refines, builds = os.environ.get("REFINERY_RECIPE"), os.environ.get("REFINERY_BUILD")
    yield from (load_recipe(name).name for name in ([refines] if refines else recipe_names()))
    yield from (load_build(name).name for name in ([builds] if builds else recipe_names(BUILDS)))
    for part in all_parts(DEPLOYED).values():
        yield from part.load()()


def _storage(root: str) -> Check:
    storage.require_usable(root)
    store, name = storage.connect(root), f"doctor/{uuid.uuid4().hex}"
    created = store.create(name, b"refinery")
    equal = store.read(name) == b"refinery"
    store.delete_many([name])
    deleted = store.size(name) is None
    ok = created and equal and deleted
    return Check("storage", ok, f"{store.root} can{'' if ok else 'not'} be written, read and deleted")


def _upgrade(root: str) -> Check:
    """Say what of the root the installed release would refine again; that is a state, and no failure."""
    found = outdated_versions(root)
    behind = sum(bool(each.stages) for each in found)
    lost = [each for each in found if each.unreadable]
    if lost:
        return Check("upgrade", ok=False, message=lost[0].unreadable)
    of_all = f"{behind} of {counted(len(found), 'version')}"
    again = f"{of_all} would be refined again; `refinery keep upgrade {root}` lists them"
    return Check("upgrade", ok=True, message=again if behind else "no version is of other code or libraries")


def _race(root: str) -> Check:
    store = storage.connect(root)
    with ThreadPoolExecutor(WRITERS) as pool:
        winners = [_winners(store, pool) for _ in range(ROUNDS)]
    wrong = [number for number in winners if number != 1]
    if wrong:
        message = f"{wrong[-1]} of {WRITERS} racing writers won: put-if-absent is not safe here; use another server"
        return Check("put-if-absent", ok=False, message=message)
    return Check("put-if-absent", ok=True, message=f"{ROUNDS} races of {WRITERS} writers, one winner each")


def _listing(root: str) -> Check:
    """Look whether a list has at once what was put, sorted, and not what was removed: plans and vacuum rest on it."""
    store, folder = storage.connect(root), f"doctor/{uuid.uuid4().hex}"
    names = [f"{folder}/{name}" for name in ("a-b/x", "a.json", "a/x", "b")]  # sorted; a server may go by folders
    for name in names:
        store.create(name, b"refinery")
    listed = [entry.path for entry in store.list(folder)]
    store.delete_many(names)
    left = [entry.path for entry in store.list(folder)]
    if listed != names or left:
        message = "a list does not have at once what was put and removed, in order: runs would plan on it; use another"
        return Check("listing", ok=False, message=f"{message} server")
    return Check("listing", ok=True, message="a list has what was put, sorted, and not what was removed")


def _winners(store: Store, pool: ThreadPoolExecutor) -> int:
    """Let all writers create the same file at once; return how many of them succeeded."""
    name = f"doctor/{uuid.uuid4().hex}"
    created = pool.map(lambda rank: store.create(name, f"writer {rank}".encode()), range(WRITERS))
    winners = sum(created)
    store.delete(name)
    return winners
