"""Sweeps what no manifest names: leftovers of killed attempts, of losers of a race, and of work that was given up."""

import argparse
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

from pipeline_tasks.errors import ContractError
from pipeline_tasks.inspect.command import add_json, add_root, number, print_result
from pipeline_tasks.manifest import ABANDONED, Manifest, commit_slots, load, stage_prefix
from pipeline_tasks.publish import version_log
from pipeline_tasks.recipe import STAGES
from pipeline_tasks.store import storage
from pipeline_tasks.store.protocol import Entry, Store
from pipeline_tasks.store.segment import COMPACTED
from pipeline_tasks.upkeep.compact import in_use

DAY = 86_400.0
GRACE = 7 * DAY
"""Seconds for which everything is left alone: far over twice what an attempt may take, by the store's own clock."""

LIMIT = 0.1
"""A sweep in which more than this share of the stored bytes would be lost is refused: something is wrong then."""

UNNAMED = "not named by the stage's manifest"
"""Why shards beside a committed manifest go: intermediate ones, which stages that group rows leave, and losers'."""

SHARDS = ("data", "rejects", "quarantine", "scratch")


@dataclass(frozen=True, slots=True)
class Sweep:
    """What a sweep removes and why, and which homes it fences first; `kept` is the bytes that stay."""

    doomed: tuple[tuple[Entry, str], ...]
    fenced: tuple[str, ...]
    kept: int

    @property
    def bytes(self) -> int:
        """Bytes that go."""
        return sum(entry.bytes for entry, _ in self.doomed)

    @property
    def lost(self) -> int:
        """Bytes that somebody may miss: neither what stands unnamed beside a manifest, nor compactions."""
        missed = (entry for entry, why in self.doomed if why != UNNAMED and not entry.path.startswith(f"{COMPACTED}/"))
        return sum(entry.bytes for entry in missed)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the root, what to leave alone, and whether to remove."""
    days, share = number(float, 0), number(float, 0, 1)
    add_root(parser)
    parser.add_argument("--grace", type=days, default=7.0, metavar="DAYS", help="leave alone what is younger (7)")
    parser.add_argument("--expire", type=days, default=0.0, metavar="DAYS", help="also stages that no version names")
    parser.add_argument("--limit", type=share, default=0.1, help="refuse to remove more than this share of bytes (0.1)")
    parser.add_argument("--delete", action="store_true", help="remove; without it, only list")
    add_json(parser)


def answer(options: argparse.Namespace) -> int:
    """Print what no manifest names; with `--delete`, remove it."""
    found = survey(options.root, options.grace * DAY, options.expire * DAY)
    print_result(options, facts(found), told(found))
    if options.delete:
        sweep(options.root, found, options.limit)
    return 0


def survey(root: str, grace: float = GRACE, expire: float = 0.0) -> Sweep:
    """Find what can go: nothing younger than `grace` seconds, nothing that a committed manifest names.

    Of compactions those go that no run may use any more: a larger one has their parts, or a part is no more history.
    With `expire` above 0, a committed stage that no dataset version names and that is older than so many seconds goes
    as well.
    """
    store = storage.connect(root)
    old = _older(store, grace)
    live, chosen = _referenced(root), in_use(root, old)
    doomed: list[tuple[Entry, str]] = []
    fenced, total = [], 0
    for stage in (*STAGES, COMPACTED):
        for prefix, found in groupby(store.list(stage), key=lambda entry: "/".join(entry.path.split("/")[:2])):
            entries = list(found)
            total += sum(entry.bytes for entry in entries)
            manifests = _committed(store, prefix, entries)
            if manifests and stage == COMPACTED and prefix not in chosen and _all_old(entries, old):
                doomed += [(entry, "no run would choose this compaction") for entry in _manifests_first(entries)]
            elif manifests and (prefix in live | chosen or not expire or not _all_old(entries, _older(store, expire))):
                doomed += _unnamed(prefix, entries, manifests, old)
            elif manifests:
                doomed += [(entry, "no version names this stage") for entry in _manifests_first(entries)]
            elif _all_old(entries, old):
                fenced.append(prefix)
                doomed += [(entry, "given up before it was committed") for entry in entries if not _is_slot(entry.path)]
    doomed += [(entry, "a cluster job's request or reply") for entry in store.list("requests") if old(entry)]
    doomed += [(entry, "half-written") for entry in store.unfinished("") if old(entry)]
    return Sweep(tuple(doomed), tuple(fenced), total - sum(entry.bytes for entry, _ in doomed))


def sweep(root: str, found: Sweep, limit: float = LIMIT) -> None:
    """Remove what a survey found: first fence the commit slots of what was given up, then delete.

    A fenced attempt that still runs cannot commit any more: it finds its slot taken and is refined anew in the
    next one. ContractError if more than `limit` of the stored bytes would be lost (`Sweep.lost`).
    """
    if found.lost > limit * max(found.bytes + found.kept, 1):
        message = (
            f"{root}: this sweep would remove {found.lost:,} of {found.bytes + found.kept:,} bytes, more than "
            f"{limit:.0%}; look at its list, and raise --limit if it is right"
        )
        raise ContractError(message)
    store = storage.connect(root)
    for prefix in found.fenced:
        _fence(store, *prefix.split("/"))
    for entry, _ in found.doomed:
        if not _committed_since(store, found, entry):
            store.delete(entry.path)


def _fence(store: Store, stage: str, fingerprint: str) -> None:
    slot = next(path for path in commit_slots(stage, fingerprint) if store.size(path) != len(ABANDONED))
    store.create(slot, ABANDONED)


def _committed_since(store: Store, found: Sweep, entry: Entry) -> bool:
    """Tell whether a home that was to be fenced was committed in the meantime: then nothing of it may go."""
    prefix = "/".join(entry.path.split("/")[:2])
    if prefix not in found.fenced:
        return False
    return any(store.size(path) not in (None, len(ABANDONED)) for path in _slots_there(store, prefix))


def _slots_there(store: Store, prefix: str) -> Iterator[str]:
    for path in commit_slots(*prefix.split("/")):
        yield path
        if store.size(path) is None:
            return


def _older(store: Store, seconds: float) -> Callable[[Entry], bool]:
    """Return a test of age by the store's clock: a fresh object tells what time it is there."""
    probe = f"requests/clock-{uuid.uuid4().hex}"
    store.create(probe, b"")
    now = next(entry.modified for entry in store.list("requests") if entry.path == probe)
    store.delete(probe)
    return lambda entry: entry.modified < now - seconds


def _all_old(entries: Iterable[Entry], old: Callable[[Entry], bool]) -> bool:
    return all(old(entry) for entry in entries)


def _referenced(root: str) -> frozenset[str]:
    """Return the homes that dataset versions name, each as `stage/fingerprint`."""
    paths = [
        path
        for recipe in version_log.recipes(root)
        for version in version_log.versions(root, recipe)
        for path in version.manifests.values()
    ]
    return frozenset(stage_prefix(*path.split("/")[:2]) for path in paths)


def _is_slot(path: str) -> bool:
    name = path.split("/", 2)[-1]
    return name.startswith("manifest.") and name.endswith(".json")


def _committed(store: Store, prefix: str, entries: Iterable[Entry]) -> list[Manifest]:
    there = [entry.path for entry in entries if _is_slot(entry.path) and entry.bytes != len(ABANDONED)]
    return [load(store.read(path), f"{store.root}/{prefix}") for path in there]


def _unnamed(
    prefix: str, entries: Iterable[Entry], manifests: Iterable[Manifest], old: Callable[[Entry], bool]
) -> Iterator[tuple[Entry, str]]:
    """Yield the shards of a committed home that its manifest does not name: intermediate, or a loser's."""
    named = {shard.path for manifest in manifests for shard in manifest.stored}
    for entry in entries:
        folder = entry.path.removeprefix(f"{prefix}/").split("/")[0]
        if folder in SHARDS and entry.path not in named and old(entry):
            yield entry, UNNAMED


def _manifests_first(entries: Iterable[Entry]) -> list[Entry]:
    # Once the manifest is gone nobody takes the rest for finished work.
    return sorted(entries, key=lambda entry: not _is_slot(entry.path))


def told(found: Sweep) -> Iterator[str]:
    """Yield a survey as lines for a person: bytes and objects by reason, largest first."""
    by_reason: dict[str, list[int]] = {}
    for entry, why in found.doomed:
        by_reason.setdefault(why, []).append(entry.bytes)
    for why, sizes in sorted(by_reason.items(), key=lambda pair: -sum(pair[1])):
        yield f"{sum(sizes):>14,} bytes in {len(sizes):>6,} objects: {why}"
    yield f"{found.kept:>14,} bytes stay"


def facts(found: Sweep) -> Mapping[str, object]:
    """Return a survey as JSON: what goes and why."""
    return {
        "objects": len(found.doomed),
        "bytes": found.bytes,
        "kept": found.kept,
        "fenced": list(found.fenced),
        "doomed": [[entry.path, entry.bytes, why] for entry, why in found.doomed],
    }
