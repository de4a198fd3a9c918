"""Brings the tables of a catalog in line with what a recipe has published: a snapshot of a table for each version.

The root decides: what a catalog has follows from the versions that count now and from what is taken down. So a
registration that was killed goes on, a lost catalog is made again, and two writers leave the same.
"""

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from pipeline_tasks.constraints import is_bucket
from pipeline_tasks.counted import counted
from pipeline_tasks.engines.each import On
from pipeline_tasks.errors import ContractError, RecipeError, StorageBusy
from pipeline_tasks.inspect.views.named import KEPT
from pipeline_tasks.ledger.lost_log import require_log, require_takedowns
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.recipe import COMPOSE, is_trial
from pipeline_tasks.store.log_chain import dataset_log, read_chain
from pipeline_tasks.store.storage import absolute
from pipeline_tasks.store.taken_down import LOG
from refinery_exports.tables.catalog import (
    HEAD,
    MANIFEST,
    RECIPE,
    ROOT,
    SNAPSHOT,
    TAKEDOWNS,
    VERSION,
    Catalog,
    Changed,
    DataFile,
    State,
    Table,
)
from refinery_exports.tables.layout import DATASETS
from refinery_exports.tables.table_files import Held, address_of, tables_of

REPAIR = "`refinery register --repair` brings it in line with the root"

TRIES = 8
"""Times that a change is tried against other writers."""


@dataclass(slots=True)
class Registered:
    """What was done to a table: its commits, files that came and left, and the rows and files that it has now."""

    namespace: str
    name: str
    commits: int = 0
    added: int = 0
    removed: int = 0
    expired: int = 0
    rows: int = 0
    files: int = 0


@dataclass(frozen=True, slots=True)
class Change:
    """One new snapshot of a table."""

    table: Table
    add: tuple[DataFile, ...] = ()
    remove: tuple[str, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Logs:
    """What the logs of a root say: digests of the entries of a recipe's log, and of the last takedown, "" for none."""

    heads: Mapping[int, str]
    takedowns: str


@dataclass(frozen=True, slots=True)
class Registration:
    """What versions of a recipe have as tables: all that count now, or one alone, if it is not `is_whole`.

    `logs` are what follows was read behind: what is taken down by them is in no file of `held`. `snapshots` are the
    snapshot of each prefix of files that a version has, or had.
    """

    root: str
    recipe: str
    held: tuple[Held, ...]
    logs: Logs
    snapshots: Mapping[str, str]
    is_whole: bool = True

    @property
    def alone(self) -> str:
        """The snapshot whose files are looked at alone, "" for all: rows of a build are of other snapshots."""
        if self.is_whole or COMPOSE in self.held[0].version.manifests:
            return ""
        return self.held[0].version.snapshot

    @property
    def names(self) -> list[str]:
        """The names of the tables; the one with the documents is last, as readers join others to it."""
        names = {name for held in self.held for name in held.tables}
        return sorted(names, key=lambda name: (name in (KEPT, DATASETS), name))

    def wanted(self, name: str) -> dict[str, DataFile]:
        """Return the files that a table is to have, by address."""
        return {file.address: file for held in self.held for file in held.tables.get(name, (None, ()))[1]}

    def changes(self, name: str, state: State | None) -> Iterator[Change]:
        """Yield what makes a table what it is to be, from the state that it has: a change for each version, and a last.

        A version's change brings its files, and takes those of the same snapshot that no version has any more.
        """
        present = {} if state is None else state.files
        wanted = self.wanted(name)
        extra: dict[str, list[str]] = defaultdict(list)
        for address in present:
            if address not in wanted:
                extra[self._snapshot_of(address)].append(address)
        for held in self.held:
            table, files = held.tables.get(name, (None, ()))
            add = tuple(file for file in files if file.address not in present)
            remove = extra.pop(held.version.snapshot, []) if table is not None else []
            if table is not None and (add or remove or state is None):
                facts = self.facts(held.version) | self._without(state, is_last=not extra)
                yield Change(table, add, tuple(remove), facts)
        left = tuple(address for addresses in extra.values() for address in addresses)
        if left and self.is_whole:
            newest = max(self.logs.heads)
            facts = {ROOT: self.root, RECIPE: self.recipe, HEAD: self.logs.heads[newest]}
            facts |= self._without(state, is_last=True)
            yield Change(Table(self.recipe, name, pa.schema([])), (), left, facts)

    def _without(self, state: State | None, *, is_last: bool) -> dict[str, str]:
        """Return of which takedowns a table has no rows after a change, which may be the last to take files away.

        Nothing is said where other files of the table are of other takedowns: these rows may be there.
        """
        own = self.logs.takedowns
        is_known = state is None or (self.is_whole and is_last) or state.last.get(TAKEDOWNS, "") == own
        return {TAKEDOWNS: own} if own and is_known else {}

    def forgets(self, state: State | None) -> bool:
        """Return whether readers can ask for what a table was before documents were taken down, or may have been."""
        return state is not None and any(facts.get(TAKEDOWNS, "") != self.logs.takedowns for facts in state.past)

    def lags(self, state: State | None) -> bool:
        """Return whether a table may have rows of what was taken down since it was brought in line."""
        own = self.logs.takedowns
        return state is not None and own != "" and state.last.get(TAKEDOWNS, "") != own

    def lies(self, last: Mapping[str, str]) -> Iterator[str]:
        """Yield what the properties of a last commit say that the log does not; one without a version names none."""
        head = last.get(HEAD, "")
        number = next((each for each, digest in self.logs.heads.items() if digest == head), None)
        if number is None:
            yield f"says that its head is {head or 'nothing'}, which is no entry of the log"
            return
        for version in version_log.versions(self.root, self.recipe):
            for key, value in self.facts(version).items() if version.number == number else ():
                if last.get(key, value) != value:
                    yield f"says that its {key} is {last[key]}, and that of its head is {value}"

    def foreign(self, state: State) -> list[str]:
        """Return the files of a table that no version of the root has, or had."""
        return [address for address in state.files if not self._snapshot_of(address)]

    def _snapshot_of(self, address: str) -> str:
        below = address_of(self.root, "")
        prefix = "/".join(address.removeprefix(below).split("/")[:2]) if address.startswith(below) else ""
        return self.snapshots.get(prefix, "")

    def facts(self, version: Version) -> dict[str, str]:
        """Return the properties of a commit that brings a version."""
        return {
            ROOT: self.root,
            RECIPE: self.recipe,
            SNAPSHOT: version.snapshot,
            VERSION: str(version.number),
            MANIFEST: version.manifests[version_log.stages_of(self.root, version)[-1]],
            HEAD: self.logs.heads[version.number],
        }


def register(root: str, recipe: str, catalog: Catalog, on: On, *, repair: bool = False) -> list[Registered]:
    """Make the tables of a recipe in a catalog what is published; return what was done to each.

    A table of which no version that counts has anything left is empty then. What a table was before documents were
    taken down, readers cannot ask for any more. With `repair` a table that cannot be read is made again, and one of
    another root, or with files that no version has, is brought in line. ContractError for such tables without it;
    StorageBusy if other writers do not let go.
    """
    done: dict[str, Registered] = {}
    for _ in range(TRIES):
        registration = _registration_of(root, recipe, on)
        others = [name for name in catalog.names(recipe) if name not in registration.names]
        ours = [name for name in others if _is_ours(registration, catalog, name)]
        for name in (*ours, *registration.names):
            _bring(registration, name, catalog, done.setdefault(name, Registered(recipe, name)), repair=repair)
        if logs_of(root, recipe) == registration.logs:
            return list(done.values())
    message = f"{root}: what recipe {recipe} has published changes again and again; register when that is done"
    raise StorageBusy(message)


def register_version(root: str, version: Version, catalog: Catalog, on: On) -> list[Registered]:
    """Bring a version that was published into the tables of its recipe, in the place of the one of its snapshot before.

    Other versions are not looked at, unless documents were taken down since the tables were brought in line, or
    something leaves the root meanwhile. Nothing is done if the version does not count any more.
    """
    require_takedowns(root)
    logs = logs_of(root, version.recipe)
    if not _counts(root, version):
        return []
    registration = registered_as(root, version.recipe, logs, [tables_of(root, version, on)], is_whole=False)
    if any(registration.lags(_state(registration, name, catalog, repair=False)) for name in registration.names):
        return register(root, version.recipe, catalog, on)
    done = [Registered(version.recipe, name) for name in registration.names]
    for each in done:
        _bring(registration, each.name, catalog, each, repair=False)
    if not _counts(root, version) or logs_of(root, version.recipe).takedowns != logs.takedowns:
        return register(root, version.recipe, catalog, on)
    return done


def _counts(root: str, version: Version) -> bool:
    """Return whether a version is what its recipe has now, and of no trial: tables of trials would follow nothing."""
    numbers = {each.number for each in version_log.latest_by_snapshot(root, version.recipe)}
    return version.number in numbers and not is_trial(version.recipe)


def _registration_of(root: str, recipe: str, on: On) -> Registration:
    """Return the tables of a recipe; files that are not in the root are written, where `on` says."""
    require_takedowns(root)
    require_log(root, recipe)
    logs = logs_of(root, recipe)
    held = [tables_of(root, version, on) for version in counting_versions(root, recipe)]
    return registered_as(root, recipe, logs, held)


def logs_of(root: str, recipe: str) -> Logs:
    """Return what the logs of a root say now; what is done by them is right as long as they say the same."""
    heads = {entry.number: entry.digest for entry in read_chain(root, dataset_log(recipe))}
    takedowns = read_chain(root, LOG)
    return Logs(heads, takedowns[-1].digest if takedowns else "")


def registered_recipes(root: str) -> list[str]:
    """Return the recipes whose versions are registered: all that have published, but trials."""
    return [recipe for recipe in version_log.recipes(root) if not is_trial(recipe)]


def plain_root(root: str) -> str:
    """Return a root as tables name it: a folder without its scheme, by the one path that no link is in."""
    whole = absolute(root).removeprefix("file://")
    return whole if is_bucket(whole) else os.path.realpath(whole)


def counting_versions(root: str, recipe: str) -> list[Version]:
    """Return the versions of a recipe that count now, in the order of their numbers."""
    return sorted(version_log.latest_by_snapshot(root, recipe), key=lambda version: version.number)


def registered_as(root: str, recipe: str, logs: Logs, held: Sequence[Held], *, is_whole: bool = True) -> Registration:
    """Return what tables a recipe has, of versions whose files are there; `logs` were read before them."""
    snapshots = {version.prefix: version.snapshot for version in version_log.versions(root, recipe)}
    return Registration(root, recipe, tuple(held), logs, snapshots, is_whole)


def _bring(registration: Registration, name: str, catalog: Catalog, done: Registered, *, repair: bool) -> None:
    """Bring a table in line, one commit after the other; a writer who comes between is looked at anew."""
    for _ in range(TRIES):
        try:
            _commit_all(registration, name, catalog, done, repair=repair)
        except Changed:
            continue
        return
    message = f"table {registration.recipe}.{name} is changed by others again and again; register when they are done"
    raise StorageBusy(message)


def _commit_all(registration: Registration, name: str, catalog: Catalog, done: Registered, *, repair: bool) -> None:
    state = _state(registration, name, catalog, repair=repair)
    while (change := next(registration.changes(name, state), None)) is not None:
        catalog.commit(change.table, state, change.add, change.remove, change.facts)
        done.commits += 1
        done.added += len(change.add)
        done.removed += len(change.remove)
        state = catalog.state(registration.recipe, name, registration.alone)
    done.rows, done.files = (0, 0) if state is None else (sum(state.files.values()), len(state.files))
    if registration.is_whole and registration.forgets(state):
        done.expired += catalog.expire(registration.recipe, name)


def _state(registration: Registration, name: str, catalog: Catalog, *, repair: bool) -> State | None:
    """Return the state of a table that is ours; with `repair` one that cannot be read, or is not, is dropped."""
    try:
        state = catalog.state(registration.recipe, name, registration.alone)
        if state is not None:
            _require_ours(registration, name, state, repair=repair)
    except (ContractError, RecipeError):
        if not repair:
            raise
        catalog.drop(registration.recipe, name)
        return None
    return state


def _require_ours(registration: Registration, name: str, state: State, *, repair: bool) -> None:
    """Raise RecipeError for a table of another root, ContractError for files of others, unless they are to leave.

    To repair a table whose last commit says what the log does not is to make it again.
    """
    where, root = f"table {registration.recipe}.{name}", state.properties.get(ROOT, "")
    if root != registration.root:
        message = (
            f"{where} is of {root or 'nothing that Refinery has registered'}, and not of {registration.root}; name "
            f"another catalog, or, if the root was moved, {REPAIR}"
        )
        raise RecipeError(message)
    lie = next(registration.lies(state.last), "") if repair else ""
    if lie:
        message = f"{where} {lie}; {REPAIR}"
        raise ContractError(message)
    foreign = registration.foreign(state)
    if foreign and not repair:
        message = f"{where} has files that no version of {registration.root} has, {foreign[0]} is one; {REPAIR}"
        raise ContractError(message)


def _is_ours(registration: Registration, catalog: Catalog, name: str) -> bool:
    state = catalog.state(registration.recipe, name)
    return state is not None and state.properties.get(ROOT) == registration.root


def registered_line(done: Registered) -> str:
    """Return what was done to a table, for a person."""
    changes = [
        counted(count, noun, nouns)
        for count, noun, nouns in (
            (done.commits, "new snapshot", ""),
            (done.added, "file added", "files added"),
            (done.removed, "file left", "files left"),
            (done.expired, "old snapshot expired", "old snapshots expired"),
        )
        if count
    ]
    return (
        f"{done.namespace}.{done.name}: {counted(done.rows, 'row')} in {counted(done.files, 'file')}"
        f" ({', '.join(changes) or 'unchanged'})"
    )
