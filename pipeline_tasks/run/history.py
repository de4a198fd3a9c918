"""Reads what earlier snapshots saved for a stage: one entry per snapshot, or per run of snapshots that were compacted.

A snapshot of many files is a run by itself, where its history is saved per file. A compaction is a cache: it has the
rows of its parts in their order and nothing else, is used only where exactly its parts, in a row, are the history of a
run, and is not part of any fingerprint. A stage writes the same bytes with and without it.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from pipeline_tasks.errors import ContractError
from pipeline_tasks.manifest import ABANDONED, Manifest, fingerprint_of, load
from pipeline_tasks.sealed import digest_of
from pipeline_tasks.stage import Section, Shards
from pipeline_tasks.store import storage
from pipeline_tasks.store.once import Once
from pipeline_tasks.store.protocol import Entry
from pipeline_tasks.store.reading import read_once
from pipeline_tasks.store.shards.segment import COMPACTED

FORMAT = 2
"""Version of a compaction's layout: part of its name."""


@dataclass(frozen=True, slots=True)
class History:
    """The sections that a stage declares, and the entries of earlier snapshots in each, oldest first."""

    sections: Mapping[str, Section] = field(default_factory=dict)
    entries: Mapping[str, tuple[Shards, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Run:
    """Snapshots in a row whose history is, or is to become, one entry: `parts` are their manifests."""

    parts: tuple[Manifest, ...]

    @property
    def name(self) -> str:
        """The name of the run's compaction: what is merged, and how it is written."""
        first = self.parts[0]
        return fingerprint_of(first.stage, first.version, first.params, self.fingerprints, self.resources)

    @property
    def resources(self) -> dict[str, str]:
        """What the compaction depends on besides its parts' fingerprints: its own format, and what the parts saved."""
        saved = {f"part {rank}": digest_of(saved_digests(part)) for rank, part in enumerate(self.parts)}
        return {"compaction": str(FORMAT), **saved}

    @property
    def fingerprints(self) -> tuple[str, ...]:
        """The fingerprints of the parts."""
        return tuple(part.fingerprint for part in self.parts)


def saved_digests(manifest: Manifest) -> list[str]:
    """Return the digests of the history that a manifest saved."""
    return [shard.digest for shard in manifest.history_shards]


def has_keys(manifest: Manifest) -> bool:
    """Return whether a manifest saved history, and all of it in sections with a key."""
    shards = manifest.history_shards
    return bool(shards) and all(shard.index_digest for shard in shards)


Compactions = Mapping[tuple[str, ...], Mapping[str, Manifest]]
"""Committed compactions by the fingerprints of their parts, and then by their own.

Those of one run differ where what writes them is of another version.
"""


def compactions(root: str, among: Callable[[Entry], bool] = lambda _: True) -> Compactions:
    """Return every committed compaction under `root`, of those whose manifest is `among`."""
    store = storage.connect(root)
    by_parts: dict[tuple[str, ...], dict[str, Manifest]] = {}
    for entry in store.list(COMPACTED):
        name = entry.path.split("/")[2]
        if name.startswith("manifest.") and entry.bytes not in (0, len(ABANDONED)) and among(entry):
            with contextlib.suppress(FileNotFoundError):  # removed since it was listed
                manifest = load(store.read(entry.path), f"{store.root}/{entry.path}")
                by_parts.setdefault(manifest.parents, {})[manifest.fingerprint] = manifest
    return by_parts


def cover(manifests: Sequence[Manifest], known: Compactions) -> list[tuple[Run, Manifest]]:
    """Cut history, oldest first, into the longest runs that are compacted, and single snapshots between them.

    A single snapshot may be compacted, too.

    Each run comes with the manifest that has its history: the compaction's, or the single snapshot's own.
    """

    def merged(span: slice, made: Mapping[str, Manifest]) -> Manifest | None:
        return made.get(Run(tuple(manifests[span])).name)  # a name takes time: it has digests of all that was saved

    cut = _cut(Run(tuple(manifests)).fingerprints, known, merged)
    runs = [(Run(tuple(manifests[span])), compaction) for span, compaction in cut]
    return [(run, compaction or run.parts[0]) for run, compaction in runs]


def _cut(
    fingerprints: tuple[str, ...],
    known: Compactions,
    merged: Callable[[slice, Mapping[str, Manifest]], Manifest | None],
) -> Iterator[tuple[slice, Manifest | None]]:
    """Yield the runs of a history with the compaction that has each, None for a snapshot by itself without one."""
    start, longest = 0, max(map(len, known), default=1)
    while start < len(fingerprints):
        for length in range(min(longest, len(fingerprints) - start), 0, -1):
            span = slice(start, start + length)
            made = known.get(fingerprints[span])
            compaction = merged(span, made) if made else None
            if compaction is not None or length == 1:
                yield span, compaction
                start += length
                break


@dataclass(frozen=True, slots=True)
class Past:
    """A manifest of an earlier snapshot, by its reference: fingerprint and digest say which rows it saved."""

    referred: str
    fingerprint: str
    digest: str


def read_history(root: str, sections: Mapping[str, Section], past: Sequence[Past]) -> History:
    """Return the history that earlier manifests saved, oldest first, in as few entries as compaction has left.

    Manifests that a compaction has merged are not read: it names them by their digests. ContractError unless each one
    that is read names exactly the sections that the stage declares: rows of others would be overlooked, and a section
    that is not named was removed. A snapshot that saved nothing names the section without shards.
    """

    def merged(span: slice, made: Mapping[str, Manifest]) -> Manifest | None:
        digests = tuple(each.digest for each in past[span])
        return next((each for each in made.values() if each.parent_digests == digests and _is_current(each)), None)

    has_order = past and all(section.key for section in sections.values())
    known = compactions(root) if has_order else {}
    saved = []
    for span, compaction in _cut(tuple(each.fingerprint for each in past), known, merged):
        manifest = compaction or read_once(root, past[span.start].referred)[0]
        _check_sections(sections, manifest)
        saved.append(manifest.history)
    entries = {name: tuple(history[name] for history in saved if history[name]) for name in sections}
    return History(sections, entries)


_SHARED: Once[History] = Once(lambda history: 1 + sum(map(len, chain.from_iterable(history.entries.values()))), 1 << 19)
"""Histories by root and what they were saved by, of as many shards as half a million (about 200 MB)."""


def shared_history(root: str, sections: Mapping[str, Section], past: tuple[Past, ...]) -> History:
    """As `read_history`, once for all partitions of a stage that a process refines."""
    if not past:  # nothing names a stage then, whose sections these are
        return History(sections, dict.fromkeys(sections, ()))
    return _SHARED.get((root, past), lambda: read_history(root, sections, past))


def forget_shared() -> None:
    """Have histories read anew: a compaction that one names was removed."""
    _SHARED.clear()


def _is_current(compaction: Manifest) -> bool:
    return compaction.resources.get("compaction") == str(FORMAT)


def _check_sections(sections: Mapping[str, Section], manifest: Manifest) -> None:
    if set(manifest.history) != set(sections):
        message = (
            f"{manifest.stage}/{manifest.fingerprint} saved the history sections "
            f"{', '.join(sorted(manifest.history)) or 'none'}, and the stage declares {', '.join(sections) or 'none'}; "
            "restore the manifest from a backup, or refine that snapshot again"
        )
        raise ContractError(message)
