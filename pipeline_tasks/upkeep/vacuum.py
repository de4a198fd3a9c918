"""Removes orphans: files that no manifest and no version names, left by killed attempts, losers, and abandoned work."""

import argparse
import contextlib
import logging
import uuid
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby

from pipeline_tasks.cards import DASHES, RESERVED, stage_names
from pipeline_tasks.counted import counted
from pipeline_tasks.errors import ContractError
from pipeline_tasks.inspect.command import add_json, add_root, number, print_lines, print_result
from pipeline_tasks.ledger import recorded_recipes
from pipeline_tasks.ledger.lost_log import require_log
from pipeline_tasks.manifest import ABANDONED, Manifest, commit_slots, is_shared, stage_prefix
from pipeline_tasks.publish.datasets.published_shards import named_files
from pipeline_tasks.publish.exported import EXPORTS, FILES, RECEIPTS
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.recipe import COMPOSE, PUBLISH
from pipeline_tasks.run.tasks.row_cache import CACHE
from pipeline_tasks.run.tasks.task import stored_receipt
from pipeline_tasks.store import storage
from pipeline_tasks.store.access_log import FOLDER as ACCESS
from pipeline_tasks.store.committing import not_stored
from pipeline_tasks.store.erasures import after_paths
from pipeline_tasks.store.protocol import DELETED_AT_ONCE, Entry, Store
from pipeline_tasks.store.reading import commit_slot, read_manifest
from pipeline_tasks.store.shards.segment import COMPACTED
from pipeline_tasks.upkeep.compact import in_use
from pipeline_tasks.upkeep.followers import follower_prefixes

log = logging.getLogger("refinery")

DAY = 86_400.0
GRACE = 7 * DAY
"""Seconds for which every file is kept: far over twice what an attempt may take, by the store's own clock."""

LIMIT = 0.1
"""A vacuum that would lose more than this share of the stored bytes is refused: then something else is wrong."""

UNNAMED = "not named by the stage's manifest"
"""Why shards next to a committed manifest go: intermediate shards of stages that group rows, and losers' shards."""

UNUSED = "a shared shard that no manifest names"
"""Why shared shards go (`stage.Engine.map`, `stage.Layer`): a run that asks for one again computes it again."""

CACHED = "kept for rows that come again, and old"
"""Why what is below `cache` goes, with `--expire` alone (`run.tasks.row_cache`): it is computed again where needed."""

UNPUBLISHED = "written to be published, and named by no version"
"""Why published files go: of a build that was refused or killed, or a report that was written again."""

UNFINISHED = "half-written"
"""Why files of killed writers go, and their uploads to a bucket: nobody can read them."""

EXPORT_DEPTH = 4
"""Parts of the path of an export's folder: `publish`, the version's prefix, `exports`, and its format."""

SHARDS = ("data", "rejects", "quarantine", "scratch")

IsOld = Callable[[Entry], bool]
Orphan = tuple[Entry, str]
"""A file, and the reason for its removal."""


@dataclass(frozen=True, slots=True)
class Orphans:
    """Files to remove, with reasons; `fenced` prefixes are closed for commits first; `kept` is the bytes that stay."""

    files: tuple[Orphan, ...]
    fenced: tuple[str, ...]
    kept: int

    @property
    def bytes(self) -> int:
        """Bytes that go."""
        return sum(entry.bytes for entry, _ in self.files)

    @property
    def lost(self) -> int:
        """Bytes that somebody may miss: all but unnamed files next to a manifest, and compactions."""
        made_again = (UNNAMED, UNUSED, CACHED, UNFINISHED)
        missed = (entry for entry, reason in self.files if reason not in made_again)
        return sum(entry.bytes for entry in missed if not entry.path.startswith(f"{COMPACTED}/"))


@dataclass(frozen=True, slots=True)
class Prefix:
    """A prefix `stage/fingerprint`, its files, and the manifests that are committed in it."""

    name: str
    entries: tuple[Entry, ...]
    manifests: tuple[Manifest, ...]

    @property
    def is_shared(self) -> bool:
        """Whether runs of several fingerprints share it."""
        return is_shared(self.name)

    @property
    def committed_at(self) -> float:
        """When the newest of its manifests was committed, by the store's clock; ValueError if none is."""
        return max(entry.modified for entry in self.entries if is_slot(entry))

    def all_are(self, is_old: IsOld) -> bool:
        """Whether every file passes a test of its age."""
        return all(is_old(entry) for entry in self.entries)


@dataclass(frozen=True, slots=True)
class _Rules:
    """Which files may go by age, and which prefixes are in use: by dataset versions, or as compactions by runs.

    `in_force` are the objects that came in the place of erased ones: the log of erasures names them.
    """

    is_old: IsOld
    is_expired: IsOld
    published: frozenset[str]
    compactions: frozenset[str]
    in_force: frozenset[str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the root, what to leave alone, and whether to remove."""
    days, share = number(float, 0), number(float, 0, 1)
    add_root(parser)
    parser.add_argument("--grace", type=days, default=7.0, metavar="DAYS", help="leave alone what is younger (7)")
    parser.add_argument("--expire", type=days, default=0.0, metavar="DAYS", help="also stages that no version names")
    parser.add_argument("--limit", type=share, default=0.1, help="refuse to remove more than this share of bytes (0.1)")
    parser.add_argument("--apply", "--delete", dest="delete", action="store_true", help="remove; without it, only list")
    add_json(parser)


def answer(options: argparse.Namespace) -> int:
    """Print the orphans; with `--apply`, remove them."""
    orphans = find_orphans(options.root, options.grace * DAY, options.expire * DAY)
    if not options.json:  # before anything is removed, as `remove` may refuse
        print_lines(orphan_lines(orphans))
    if options.delete:
        remove(options.root, orphans, options.limit)
    done = f"{'removed' if options.delete else 'to remove with --apply:'} {counted(len(orphans.files), 'object')}"
    print_result(options, {**orphan_facts(orphans), "deleted": options.delete}, [f"{done}, {orphans.bytes:,} bytes"])
    return 0


def find_orphans(root: str, grace: float = GRACE, expire: float = 0.0) -> Orphans:
    """Find the files to remove: no file younger than `grace` seconds, and no file that a committed manifest names.

    A compaction is removed when no run can use it: a larger one has its parts, or a part is no longer history.
    With `expire` above 0, a committed stage is also removed if no dataset version names it and it is older than so many
    seconds.
    """
    storage.require_root(root)
    store = storage.connect(root)
    is_old = _older_than(store, grace)
    rules = _Rules(
        is_old,
        is_expired=_older_than(store, expire) if expire else lambda _: False,
        published=_published_prefixes(root),
        compactions=in_use(root, is_old),
        in_force=after_paths(root),
    )
    files: list[Orphan] = []
    fenced, total = [], 0
    below: set[str] = set(rules.in_force)
    # A stage's shared prefix is the last of the stage: fingerprints have hex digits.
    for prefix in prefixes(store, (*stage_folders(store, rules.published), COMPACTED)):
        total += sum(entry.bytes for entry in prefix.entries)
        _require_manifest(store, prefix, rules)
        below |= _below(store, prefix)
        if prefix.is_shared:
            files += _unused(store, prefix, below, is_old)
        elif prefix.manifests:
            files += _orphans_of_committed(prefix, rules)
        elif prefix.all_are(is_old):
            abandoned = [entry for entry in prefix.entries if not is_slot(entry)]
            fenced += [prefix.name] if abandoned else []  # one without files was fenced when they were removed
            files += [(entry, "abandoned before it was committed") for entry in abandoned]
    cached, published = tuple(store.list(CACHE)), tuple(store.list(PUBLISH))
    kept = chain(store.list(ACCESS), *map(store.list, follower_prefixes()))  # who saw what, and the like
    outside = [*_orphans_outside_stages(store, is_old)]
    total += sum(entry.bytes for entry in chain(cached, published, kept, (entry for entry, _ in outside)))
    files += [(entry, CACHED) for entry in cached if rules.is_expired(entry)]
    files += [*outside, *_unpublished(root, published, is_old)]
    return Orphans(tuple(files), tuple(fenced), total - sum(entry.bytes for entry, _ in files))


def _unpublished(root: str, published: Sequence[Entry], is_old: IsOld) -> Iterator[Orphan]:
    """Yield the old files that were written to be published and are named by no version, and exports that stopped."""
    versions = every_version(root)
    named = _named(root, versions) | after_paths(root)
    exports = {f"{version.prefix}/{EXPORTS}/" for version in versions}
    complete = {entry.path.rpartition("/")[0] for entry in published if entry.path.endswith(f"/{FILES}")}
    for export, group in groupby(published, key=lambda entry: export_of(entry.path)):
        entries = list(group)
        if export.rpartition("/")[0] + "/" not in exports:
            yield from ((entry, UNPUBLISHED) for entry in entries if entry.path not in named and is_old(entry))
        elif export not in complete and all(map(is_old, entries)):
            yield from ((entry, "an export that was never completed") for entry in entries)
        elif export in complete:
            receipts = (entry for entry in entries if entry.path.startswith(f"{export}/{RECEIPTS}/"))
            yield from ((entry, UNFINISHED) for entry in receipts if is_old(entry))


def _named(root: str, versions: Iterable[version_log.Version]) -> set[str]:
    return {file.path for version in versions for file in named_files(root, version)}


def export_of(path: str) -> str:
    """Return the folder of the export that a path is in, "" for any other file."""
    parts = path.split("/")
    return "/".join(parts[:EXPORT_DEPTH]) if parts[EXPORT_DEPTH - 2 : EXPORT_DEPTH - 1] == [EXPORTS] else ""


def every_version(root: str) -> list[version_log.Version]:
    """Return all versions of a root; ContractError if a log was removed or cut: its files are no orphans."""
    recipes = {*version_log.recipes(root), *recorded_recipes(root)}
    for recipe in recipes:
        require_log(root, recipe)
    return [version for recipe in sorted(recipes) for version in version_log.versions(root, recipe)]


def _orphans_outside_stages(store: Store, is_old: IsOld) -> Iterator[Orphan]:
    yield from (
        (entry, "a cluster job's request or reply, or a receipt") for entry in store.list("requests") if is_old(entry)
    )
    yield from ((entry, "what an old run has sent") for entry in store.list("alerts") if is_old(entry))
    yield from ((entry, UNFINISHED) for entry in store.unfinished("") if is_old(entry))


def prefixes(store: Store, stages: Iterable[str]) -> Iterator[Prefix]:
    """Yield the prefixes of stages, each with its objects and the manifests that are committed there."""
    for stage in stages:
        for name, group in groupby(store.list(stage), key=lambda entry: _prefix_of(entry.path)):
            entries = tuple(group)
            yield Prefix(name, entries, tuple(_committed(store, entries)))


def stage_folders(store: Store, published: Iterable[str]) -> tuple[str, ...]:
    """Return the folders of stages: of those that are known, that dataset versions name, and of compositions."""
    named = (prefix.partition("/")[0] for prefix in sorted(published))
    there = (folder for folder in store.folders() if DASHES in folder)  # the names of those at `module:NAME`
    return tuple(dict.fromkeys((*stage_names(), *there, *named, COMPOSE)))


def _prefix_of(path: str) -> str:
    return "/".join(path.split("/")[:2])


def _committed(store: Store, entries: Iterable[Entry]) -> Iterator[Manifest]:
    for entry in entries:
        if is_slot(entry) and entry.bytes != len(ABANDONED):
            yield read_manifest(store.root, entry.path)


def _require_manifest(store: Store, prefix: Prefix, rules: _Rules) -> None:
    """Raise ContractError if a dataset version names a prefix whose manifest is gone: its shards are no orphans."""
    if prefix.name in rules.published and not prefix.manifests:
        message = (
            f"{store.root}/{prefix.name} is named by a dataset version and has no manifest; nothing was removed. "
            "Restore the manifest from a backup, or run its snapshot again"
        )
        raise ContractError(message)


def _orphans_of_committed(prefix: Prefix, rules: _Rules) -> Iterator[Orphan]:
    is_compaction = prefix.name.startswith(f"{COMPACTED}/")
    is_used = prefix.name in rules.published | rules.compactions
    if is_compaction and not is_used and prefix.all_are(rules.is_old):
        yield from _whole(prefix, "no run would choose this compaction")
    elif not is_used and prefix.all_are(rules.is_expired):
        yield from _whole(prefix, "no version names this stage")
    else:
        yield from _unnamed(prefix, rules.is_old, rules.in_force)


def _whole(prefix: Prefix, reason: str) -> Iterator[Orphan]:
    """Yield every file of a prefix, manifests first: without a manifest, no run takes the rest for finished work."""
    for entry in sorted(prefix.entries, key=lambda entry: not is_slot(entry)):
        yield entry, reason


def _unnamed(prefix: Prefix, is_old: IsOld, in_force: frozenset[str]) -> Iterator[Orphan]:
    """Yield the shards of a committed prefix that its manifest does not name: intermediate ones, or a loser's."""
    named = {shard.path for manifest in prefix.manifests for shard in manifest.stored} | in_force
    for entry in prefix.entries:
        folder = entry.path.removeprefix(f"{prefix.name}/").split("/")[0]
        if folder in SHARDS and entry.path not in named and is_old(entry):
            yield entry, UNNAMED


def _below(store: Store, prefix: Prefix) -> set[str]:
    """Return the shared shards that a prefix names, of committed manifests and of work in progress."""
    manifests = prefix.manifests or _partitions(store, prefix)
    return {shard.path for manifest in manifests for shard in manifest.stored if is_shared(shard.path)}


def _partitions(store: Store, prefix: Prefix) -> Iterator[Manifest]:
    """Yield the manifests of partitions that a run would believe; it makes any other again."""
    for entry in prefix.entries:
        if "/partitions/" in entry.path:
            with contextlib.suppress(ContractError):
                yield read_manifest(store.root, entry.path)


def _unused(store: Store, prefix: Prefix, below: Container[str], is_old: IsOld) -> Iterator[Orphan]:
    """Yield the old shared layers that no manifest rests on, and the receipts that no run would believe or miss."""
    for entry in filter(is_old, prefix.entries):
        folder, _, name = entry.path.removeprefix(f"{prefix.name}/").partition("/")
        path = entry.path
        if folder == "receipts":
            receipt = stored_receipt(store, prefix.name, name.removesuffix(".json"))
            path = receipt.shard.path if receipt else ""
        if folder in ("data", "receipts") and path not in below:
            yield entry, UNUSED


def _published_prefixes(root: str) -> frozenset[str]:
    """Return the prefixes that dataset versions name, each as `stage/fingerprint`."""
    paths = [path for version in every_version(root) for path in version.manifests.values()]
    return frozenset(stage_prefix(*path.split("/")[:2]) for path in paths)


def _older_than(store: Store, seconds: float) -> IsOld:
    """Return a test of a file's age by the store's clock."""
    now = clock(store)
    return lambda entry: entry.modified <= now - seconds


def clock(store: Store) -> float:
    """Return the time by the store's clock, in seconds since 1970: that of a new file shows it."""
    probe = f"requests/clock-{uuid.uuid4().hex}"
    store.create(probe, b"")
    now = next(entry.modified for entry in store.list("requests") if entry.path == probe)
    store.delete(probe)
    return now


def is_slot(entry: Entry) -> bool:
    """Return whether an object is at a place where a stage commits."""
    name = entry.path.split("/", 2)[-1]
    return name.startswith("manifest.") and name.endswith(".json")


# --- Removing ---------------------------------------------------------------------------------------------------


def remove(root: str, orphans: Orphans, limit: float = LIMIT) -> None:
    """Remove orphans: first fence the commit slots of abandoned work, then delete.

    A fenced attempt that still runs cannot commit any more: its slot is taken, and the work is done again in the next
    slot. ContractError if more than `limit` of the stored bytes would be lost (`Orphans.lost`).
    """
    stored = orphans.bytes + orphans.kept
    if orphans.lost > limit * max(stored, 1):
        message = (
            f"{root}: this vacuum would remove {orphans.lost:,} of {stored:,} bytes, more than {limit:.0%}; "
            "check its list, and raise --limit if it is right"
        )
        raise ContractError(message)
    store = storage.connect(root)
    for prefix in orphans.fenced:
        _fence(store, *prefix.split("/"))
    named = _named(root, every_version(root))  # also by versions since then
    unnamed = [entry for entry, reason in orphans.files if reason != UNUSED and entry.path not in named]
    slots = [entry for entry in unnamed if is_slot(entry)]
    store.delete_many([entry.path for entry in slots])  # first: without them no run takes the rest for finished work
    fenced = frozenset(orphans.fenced)
    rest = (entry.path for entry in unnamed if not is_slot(entry))
    for prefix, paths in groupby(rest, key=lambda path: _prefix_of(path) if _prefix_of(path) in fenced else ""):
        _remove_uncommitted(store, prefix, list(paths))
    _remove_unused(store, [entry for entry, reason in orphans.files if reason == UNUSED])
    _take_back(store, frozenset(entry.path for entry, _ in orphans.files))


def _remove_uncommitted(store: Store, fenced: str, paths: Sequence[str]) -> None:
    """Remove files; where they are of a fenced prefix, each request only while nobody has committed there."""
    at_once = DELETED_AT_ONCE if fenced else len(paths)
    for start in range(0, len(paths), at_once):
        if not fenced or not _is_committed(store, fenced):
            store.delete_many(paths[start : start + at_once])


def _remove_unused(store: Store, shared: Iterable[Entry]) -> None:
    """Remove shared layers but those that a run has named since they were listed; their receipts come first."""
    for stage, entries in groupby(shared, key=lambda entry: entry.path.partition("/")[0]):
        listed = list(entries)
        store.delete_many([entry.path for entry in listed if "/receipts/" in entry.path])
        below = set(after_paths(store.root)).union(*(_below(store, prefix) for prefix in prefixes(store, (stage,))))
        shards = (entry.path for entry in listed if "/receipts/" not in entry.path)
        store.delete_many([path for path in shards if path not in below])


def _take_back(store: Store, removed: frozenset[str]) -> None:
    """Remove manifests that runs committed meanwhile and whose shards were removed: they are computed again.

    Runs look at their shards behind their commit (`run.runner`), so one of the two sees the other.
    """
    touched = {_prefix_of(path) for path in removed}
    stages = {prefix.partition("/")[0] for prefix in touched}
    for stage in sorted(stage for stage in stages if stage in (COMPOSE, COMPACTED) or stage not in RESERVED):
        is_any = any(is_shared(prefix) and prefix.startswith(f"{stage}/") for prefix in touched)
        for entry in store.list(stage):
            if is_slot(entry) and entry.bytes != len(ABANDONED) and (is_any or _prefix_of(entry.path) in touched):
                named = [shard for shard in read_manifest(store.root, entry.path).stored if shard.path in removed]
                if gone := next(not_stored(store, named), None):
                    log.warning("%s is removed again: it names %s, which this vacuum removed", entry.path, gone.path)
                    store.delete(entry.path)


def _fence(store: Store, stage: str, fingerprint: str) -> None:
    store.create(commit_slot(store, stage, fingerprint), ABANDONED)


def _is_committed(store: Store, prefix: str) -> bool:
    """Return whether a prefix that was to be fenced has been committed in the meantime: then nothing of it may go."""
    return any(store.size(path) not in (None, len(ABANDONED)) for path in _taken_slots(store, prefix))


def _taken_slots(store: Store, prefix: str) -> Iterator[str]:
    """Yield the commit slots of a prefix up to and with the first free one."""
    for path in commit_slots(*prefix.split("/")):
        yield path
        if store.size(path) is None:
            return


# --- For a person or a program ----------------------------------------------------------------------------------


def orphan_lines(orphans: Orphans) -> Iterator[str]:
    """Yield bytes and objects by reason, largest first."""
    by_reason: dict[str, list[int]] = {}
    for entry, reason in orphans.files:
        by_reason.setdefault(reason, []).append(entry.bytes)
    for reason, sizes in sorted(by_reason.items(), key=lambda pair: -sum(pair[1])):
        yield f"{sum(sizes):>14,} bytes in {len(sizes):>6,} {'object' if len(sizes) == 1 else 'objects'}: {reason}"
    yield f"{orphans.kept:>14,} bytes stay"


def orphan_facts(orphans: Orphans) -> Mapping[str, object]:
    """Return the orphans as JSON values."""
    return {
        "objects": len(orphans.files),
        "bytes": orphans.bytes,
        "kept": orphans.kept,
        "fenced": list(orphans.fenced),
        "orphans": [[entry.path, entry.bytes, reason] for entry, reason in orphans.files],
    }
