"""Finds what a policy of retention asks for: which objects expire, and which go to a colder storage class."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import NamedTuple

import pyarrow.parquet as pq

from pipeline_tasks.cards import tokenizes
from pipeline_tasks.constraints import is_bucket
from pipeline_tasks.manifest import Manifest, fingerprint_in
from pipeline_tasks.publish.datasets.published_shards import named_files
from pipeline_tasks.publish.exported import FILES
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.recipe import COMPOSE, LAND, PUBLISH, TAKEDOWN
from pipeline_tasks.run.tasks.row_cache import CACHE as CACHE_FOLDER
from pipeline_tasks.sealed import path_of
from pipeline_tasks.stage import Shard
from pipeline_tasks.store import storage
from pipeline_tasks.store.erasures import current, expired
from pipeline_tasks.store.protocol import Entry, Store
from pipeline_tasks.store.reading import read_manifest
from pipeline_tasks.store.s3.store import STANDARD
from pipeline_tasks.store.shards.rows import facts_of
from pipeline_tasks.upkeep.retention.policy import (
    CACHE,
    EXPORTS,
    INTERMEDIATE,
    QUARANTINE,
    RECEIPTS,
    REJECTS,
    REPORTS,
    VERSIONS,
    Policy,
)
from pipeline_tasks.upkeep.retention.rows import content_bytes, says
from pipeline_tasks.upkeep.vacuum import DAY, Prefix, clock, every_version, export_of, prefixes, stage_folders

BLANK, REMOVE, DELETE, COLD = "blank", "remove", "delete", "cold"
"""What is done: rows are blanked, a named object is removed, one that nothing names is, or the class changes."""

NOTHING = {
    REJECTS: "no rows that old say more than where they came from and why",
    QUARANTINE: "no rows that old say more than where they came from and why",
    REPORTS: "none that old but of the newest version of a recipe",
    EXPORTS: "none that old but of versions that count",
    RECEIPTS: "no stage that is committed has any that old",
    CACHE: "nothing is that old",
    INTERMEDIATE: "nothing that old is large enough to cost less in another class",
    VERSIONS: "nothing that old is large enough to cost less in another class",
}
"""Why a kind has nothing to do."""

DATA_DOCS = "/docs/index.html"


@dataclass(frozen=True, slots=True)
class Step:
    """What a policy does with an object: its kind, the path that names it, what is stored there, and the bytes freed.

    `path` is where its bytes are now. `saving` is by the policy's prices, a month; `fee` is what the change to
    `storage_class` costs once.
    """

    kind: str
    action: str
    path: str
    bytes: int
    freed: int
    saving: float
    storage_class: str = ""
    fee: float = 0.0
    rows: int = 0


@dataclass(slots=True)
class Plan:
    """The steps of a policy in order, and by kind why something of it has nothing to do.

    `texts_stay` counts expiring rows whose texts are those of a shard that other rows need.
    """

    root: str
    policy: Policy
    steps: list[Step] = field(default_factory=list)
    idle: dict[str, str] = field(default_factory=dict)
    texts_stay: int = 0


class _Dated(NamedTuple):
    """A shard that manifests name, and the newest commit of one."""

    shard: Shard
    modified: float


@dataclass(slots=True)
class _Root:
    """What a root has: its objects by path, committed stages, versions, and the time by the store's clock.

    `live` are the versions that datasets consist of: the newest of each snapshot that is not retracted.
    """

    root: str
    store: Store
    entries: dict[str, Entry]
    stages: list[Prefix]
    versions: list[Version]
    live: list[Version]
    now: float

    def is_older(self, modified: float, days: int) -> bool:
        return modified < self.now - days * DAY

    @property
    def newest(self) -> list[Version]:
        """The newest version of each recipe that is not retracted."""
        by_recipe: dict[str, Version] = {}
        for version in self.live:
            known = by_recipe.get(version.recipe)
            if known is None or known.number < version.number:
                by_recipe[version.recipe] = version
        return list(by_recipe.values())


def find_steps(root: str, policy: Policy) -> Plan:
    """Return what a policy asks for, in the order in which it is done; nothing is changed.

    ContractError if a log of versions was removed or cut, as it says what is needed.
    """
    storage.require_root(root)
    held = _look(root)
    plan = Plan(root, policy)
    expiring: dict[str, Callable[[Plan, _Root, int], None]] = {
        REJECTS: partial(_plan_rows, kind=REJECTS),
        QUARANTINE: partial(_plan_rows, kind=QUARANTINE),
        REPORTS: _plan_reports,
        EXPORTS: _plan_exports,
        RECEIPTS: _plan_receipts,
        CACHE: _plan_cache,
    }
    for kind, add in expiring.items():
        if (days := policy.expire_days(kind)) is not None:
            add(plan, held, days)
    _plan_cold(plan, held)
    planned = {step.kind for step in plan.steps}
    for kind in policy.rules:
        if kind not in planned:
            plan.idle.setdefault(kind, NOTHING[kind])
    return plan


def _look(root: str) -> _Root:
    store = storage.connect(root)
    versions = every_version(root)
    recipes = dict.fromkeys(version.recipe for version in versions)
    live = [version for recipe in recipes for version in version_log.latest_by_snapshot(root, recipe)]
    published = [path for version in versions for path in version.manifests.values()]
    stages = [prefix for prefix in prefixes(store, stage_folders(store, published)) if prefix.manifests]
    return _Root(root, store, {entry.path: entry for entry in store.list("")}, stages, versions, live, clock(store))


# --- Rows that manifests name -----------------------------------------------------------------------------------


def _plan_rows(plan: Plan, held: _Root, days: int, kind: str) -> None:
    """Plan to blank the old shards of rejected or quarantined rows that nothing needs as something else."""
    done = expired(held.root)
    for path, dated in sorted(_rejected(held, kind).items()):
        if not held.is_older(dated.modified, days):
            continue
        entry, named = held.entries.get(current(held.root, path)), held.entries.get(path)
        if path in done:
            if entry is not None and named is not None and entry is not named:  # a kill left it, or it was made again
                _add(plan, kind, DELETE, named, named.bytes)
        elif entry is not None and dated.shard.rows and says(held.root, entry.path):
            _add(plan, kind, BLANK, entry, content_bytes(held.root, entry.path), dated.shard.rows)
        if dated.shard.below and (path in done or entry is not None):
            plan.texts_stay += dated.shard.rows


def _rejected(held: _Root, kind: str) -> dict[str, _Dated]:
    """Return the shards of rejected or quarantined rows by path, each with the newest commit that names it."""
    dated: dict[str, _Dated] = {}
    needed: set[str] = set()
    for prefix in held.stages:
        committed = prefix.committed_at
        for manifest in prefix.manifests:
            if manifest.stage == TAKEDOWN:  # an undone takedown brings them back
                continue
            needed |= {shard.path for shard in (*manifest.shards, *manifest.history_shards, *manifest.below)}
            for shard in manifest.rejects if kind == REJECTS else manifest.quarantine:
                before = dated.get(shard.path)
                newest = max(committed, before.modified if before else committed)
                dated[shard.path] = _Dated(shard, newest)
    return {path: each for path, each in dated.items() if path not in needed}


def _below(root: str, path: str) -> Shard | None:
    """Return the shard that a layer rests on, by its footer; None for one with all of its columns, or that is gone."""
    try:
        with storage.connect(root).open(current(root, path)) as stream:
            facts = facts_of(pq.read_schema(stream))
    except FileNotFoundError:
        return None
    return facts.below if facts else None


# --- What can be made again -------------------------------------------------------------------------------------


def _plan_reports(plan: Plan, held: _Root, days: int) -> None:
    """Plan to remove old reports and pages of Data Docs, but those of the newest version of each recipe."""
    needed = {version.report for version in held.newest}
    needed |= {
        _page_of(path_of(verdict)) for version in held.newest for verdict in version.verdicts.values() if verdict
    }
    for path, entry in held.entries.items():
        if _is_report(path) and path not in needed and held.is_older(entry.modified, days):
            _add(plan, REPORTS, DELETE if path in expired(held.root) else REMOVE, entry, entry.bytes)


def _page_of(verdict: str) -> str:
    return verdict.rpartition("/")[0] + DATA_DOCS


def _is_report(path: str) -> bool:
    name = path.rpartition("/")[2]
    return ("/gate/" in path and path.endswith(DATA_DOCS)) or (
        path.startswith(f"{PUBLISH}/") and name.startswith("report-") and name.endswith(".html") and not export_of(path)
    )


def _plan_exports(plan: Plan, held: _Root, days: int) -> None:
    """Plan to remove old exports in the root as a whole, but those of live versions: the list of files first."""
    for files, _ in _old_exports(held, days):
        for entry in sorted(files, key=lambda entry: (not entry.path.endswith(f"/{FILES}"), entry.path)):
            _add(plan, EXPORTS, DELETE, entry, entry.bytes)


def _old_exports(held: _Root, days: int) -> Iterator[tuple[list[Entry], float]]:
    """Yield the files of each export that is older, but those of live versions, and when it was completed.

    That is the time of its list of files, as a change of class makes the others newer; without a list, of all.
    """
    live = {version.prefix for version in held.live}
    published = sorted(path for path in held.entries if export_of(path))
    for export, paths in groupby(published, key=export_of):
        files = [held.entries[path] for path in paths]
        listed = [entry for entry in files if entry.path == f"{export}/{FILES}"]
        completed = max(entry.modified for entry in listed or files)
        if "/".join(export.split("/")[:2]) not in live and held.is_older(completed, days):
            yield files, completed


def _plan_receipts(plan: Plan, held: _Root, days: int) -> None:
    """Plan to remove old receipts of stages that are committed whole: only a retry reads them."""
    for prefix in held.stages:
        if any(not manifest.poison for manifest in prefix.manifests):
            receipts = (entry for entry in prefix.entries if entry.path.startswith(f"{prefix.name}/receipts/"))
            for entry in receipts:
                if held.is_older(entry.modified, days):
                    _add(plan, RECEIPTS, DELETE, entry, entry.bytes)


def _plan_cache(plan: Plan, held: _Root, days: int) -> None:
    """Plan to remove what is old in caches of rows: what names a segment goes before it."""
    cached = [entry for path, entry in held.entries.items() if path.startswith(f"{CACHE_FOLDER}/")]
    for entry in sorted(cached, key=lambda entry: (not entry.path.endswith(".json"), entry.path)):
        if held.is_older(entry.modified, days):
            _add(plan, CACHE, DELETE, entry, entry.bytes)


# --- Colder classes ---------------------------------------------------------------------------------------------


def _plan_cold(plan: Plan, held: _Root) -> None:
    """Plan changes of class, of what no step takes away and what costs less there."""
    rules = {kind: rule for kind, rule in plan.policy.rules.items() if rule.cold_days is not None}
    if rules and not held.root.startswith("s3://"):
        kind = "from here, gs:// and az:// have" if is_bucket(held.root) else "a local disk has"
        reason = f"cold_days does nothing: {kind} no storage classes"
        plan.idle |= dict.fromkeys(rules, reason)
        return
    going = {step.path for step in plan.steps}
    manifests = _by_version(held) if {INTERMEDIATE, VERSIONS} & rules.keys() else {}
    for kind, rule in rules.items():
        for path, modified in sorted(_cooling(held, kind, manifests)):
            entry = held.entries.get(current(held.root, path))
            if entry is None or entry.path in going or not held.is_older(modified, rule.cold_days or 0):
                continue
            if entry.storage_class in ("", STANDARD):
                going.add(entry.path)
                _add_cold(plan, kind, entry, rule.storage_class)


def _cooling(held: _Root, kind: str, manifests: Mapping[int, Sequence[Manifest]]) -> Iterator[tuple[str, float]]:
    """Yield the paths that name objects of a kind, each with the newest commit of what it is for."""
    if kind in (REJECTS, QUARANTINE):
        yield from ((path, dated.modified) for path, dated in _rejected(held, kind).items())
    elif kind == EXPORTS:
        for files, completed in _old_exports(held, 0):
            yield from ((entry.path, completed) for entry in files)
    elif kind == INTERMEDIATE:
        hot = _hot(held, manifests)
        yield from ((path, at) for path, at in _shards(held.stages).items() if path not in hot)
    elif kind == VERSIONS:
        yield from _older_versions(held, manifests)


def _shards(stages: Iterable[Prefix]) -> dict[str, float]:
    """Return the shards of kept rows that manifests name, each with the newest commit."""
    commits: dict[str, float] = {}
    for prefix in stages:
        committed = prefix.committed_at
        for manifest in prefix.manifests:
            for shard in (*manifest.shards, *manifest.below):
                if not shard.is_landed:
                    commits[shard.path] = max(committed, commits.get(shard.path, committed))
    return commits


def _by_version(held: _Root) -> dict[int, list[Manifest]]:
    """Return the manifests of the stages of each version, by its place in the list of versions."""
    known = {(each.stage, each.fingerprint): each for prefix in held.stages for each in prefix.manifests}

    def manifest(stage: str, referred: str) -> Manifest:
        return known.get((stage, fingerprint_in(path_of(referred)))) or read_manifest(held.root, referred)

    return {
        at: [manifest(*named) for named in version.manifests.items() if named[0] != LAND]
        for at, version in enumerate(held.versions)
    }


def _hot(held: _Root, manifests: Mapping[int, Sequence[Manifest]]) -> set[str]:
    """Return the shards that are read day by day: documents of versions, with all that they rest on; tokens; history.

    So are those of stages that no version names: a run may be on its way.
    """
    hot: set[str] = set()
    named = {manifest.fingerprint for read in manifests.values() for manifest in read}
    for prefix in held.stages:
        for manifest in prefix.manifests:
            hot |= {shard.path for shard in manifest.history_shards}
            if manifest.fingerprint not in named or tokenizes(manifest.stage):
                hot |= _resting(held.root, manifest.shards)
    for at, version in enumerate(held.versions):
        if COMPOSE not in version.manifests:
            refined = version.refined
            last = next(each for each in manifests[at] if path_of(refined).startswith(f"{each.stage}/"))
            hot |= _resting(held.root, last.shards)
    return hot


def _resting(root: str, shards: Iterable[Shard]) -> set[str]:
    """Return the paths of shards, and of those below them that their rows are read from."""
    paths: set[str] = set()
    store, level = storage.connect(root), list(shards)
    while level := [shard for shard in level if not shard.is_landed and shard.path not in paths]:
        paths |= {shard.path for shard in level}
        layers = [shard.path for shard in level if shard.below]
        level = [below for below in storage.each(store, lambda path: _below(root, path), layers) if below is not None]
    return paths


def _older_versions(held: _Root, manifests: Mapping[int, Sequence[Manifest]]) -> Iterator[tuple[str, float]]:
    """Yield what only versions name that no dataset consists of any more: published files, and shards of stages."""
    live = {(version.recipe, version.number) for version in held.live}
    is_live = [(version.recipe, version.number) in live for version in held.versions]
    named: tuple[dict[str, float], dict[str, float]] = ({}, {})
    for at, version in enumerate(held.versions):
        entry = held.entries[version_log.version_path(version.recipe, version.number)]
        paths = {file.path for file in named_files(held.root, version)}
        paths |= {shard.path for manifest in manifests[at] for shard in manifest.shards if not shard.is_landed}
        paths |= _resting(held.root, (shard for manifest in manifests[at] for shard in manifest.shards))
        for path in paths:
            known = named[is_live[at]]
            known[path] = max(entry.modified, known.get(path, entry.modified))
    yield from ((path, modified) for path, modified in named[False].items() if path not in named[True])


# --- Steps ------------------------------------------------------------------------------------------------------


def _add(plan: Plan, kind: str, action: str, entry: Entry, freed: int, rows: int = 0) -> None:
    price = plan.policy.prices.classes.get(entry.storage_class or STANDARD, plan.policy.prices.classes[STANDARD])
    saving = price.month(entry.bytes) - (price.month(entry.bytes - freed) if freed < entry.bytes else 0.0)
    plan.steps.append(Step(kind, action, entry.path, entry.bytes, freed, saving, rows=rows))


def _add_cold(plan: Plan, kind: str, entry: Entry, storage_class: str) -> None:
    """Add a change of class, unless the object is so small that it would cost more."""
    prices = plan.policy.prices.classes
    saving = prices[STANDARD].month(entry.bytes) - prices[storage_class].month(entry.bytes)
    if saving > 0 and entry.bytes >= prices[storage_class].least_bytes:
        fee = prices[storage_class].per_1000 / 1000
        plan.steps.append(Step(kind, COLD, entry.path, entry.bytes, 0, saving, storage_class, fee))
