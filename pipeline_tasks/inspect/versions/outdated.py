"""Finds what the installed release would refine again: stages of published versions that have another identity in it.

A stage is outdated if its version, its libraries, the writer of shards, the package's own files or the params that its
code knows have changed since, or if it reads the rows of an outdated one. What is published stays as it is.
"""

import contextlib
import json
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

from pipeline_tasks.binding import bind
from pipeline_tasks.cards import known_card
from pipeline_tasks.counted import counted
from pipeline_tasks.errors import RecipeError, RefineryError
from pipeline_tasks.ledger import recorded_seconds
from pipeline_tasks.libraries import differences, installed, present
from pipeline_tasks.manifest import FORMAT, WRITER, Manifest, in_order, rows_by
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.recipe import COMPOSE
from pipeline_tasks.sealed import canonical
from pipeline_tasks.stage import VARIABLE, P, Stage
from pipeline_tasks.store import storage
from pipeline_tasks.store.files import digest_of_named
from pipeline_tasks.store.reading import read_manifest

DIGEST = "sha256:"
"""What begins a param that named a file, as manifests have it."""

SAID = 2
"""Stages that a note names with their reasons."""


@dataclass(frozen=True, slots=True)
class Outdated:
    """A stage of a version that this release would refine again, and why: its own reasons, or the stage it `follows`.

    `reads` and `stores` are bytes of the run that is published, `seconds` those of one core that it took; None where
    the ledger does not have them.
    """

    stage: str
    reasons: tuple[str, ...]
    follows: str
    reads: int
    stores: int
    seconds: float | None

    @property
    def why(self) -> str:
        """The reasons as people read them."""
        return "; ".join(self.reasons) or f"reads {self.follows}"


@dataclass(frozen=True, slots=True)
class OutdatedVersion:
    """A version with its outdated stages in order, and the stages whose results this release takes as they are.

    `unreadable` says why its manifests cannot be read by this release, "" if they can.
    """

    version: Version
    stages: tuple[Outdated, ...] = ()
    current: tuple[str, ...] = ()
    unreadable: str = ""

    @property
    def seconds(self) -> float | None:
        """Seconds of one core that the outdated stages took; None where none of them is known."""
        known = [stage.seconds for stage in self.stages if stage.seconds is not None]
        return sum(known) if known else None

    @property
    def stores(self) -> int:
        """Bytes that the outdated stages stored."""
        return sum(stage.stores for stage in self.stages)

    @property
    def reasons(self) -> list[str]:
        """The stages that are outdated by themselves, with why."""
        return [f"{stage.stage} ({stage.why})" for stage in self.stages if stage.reasons]

    @property
    def account(self) -> str:
        """In one line, what is refined again, why, and what it took; for a version with outdated stages."""
        first, rest = self.reasons[:SAID], len(self.reasons) - SAID
        why = ", ".join([*first, *([f"{rest} more"] if rest > 0 else [])])
        took = f", which took {self.seconds:,.0f} core seconds" if self.seconds and self.seconds >= 1 else ""
        return (
            f"snapshot {self.version.snapshot} was published by other code or libraries than are installed: a run "
            f"refines {counted(len(self.stages), 'stage')} of recipe {self.version.recipe} again{took}: {why}"
        )


def outdated_snapshot(root: str, recipe: str, snapshot: str) -> OutdatedVersion | None:
    """Return what is outdated of the newest version of a snapshot; None if it has none, or was retracted."""
    latest = {version.snapshot: version for version in version_log.latest_by_snapshot(root, recipe)}
    return outdated(root, latest[snapshot]) if snapshot in latest else None


def outdated(root: str, version: Version) -> OutdatedVersion:
    """Return what of a version this release would refine again from the same landed files by the same recipe."""
    try:
        read = storage.each(storage.connect(root), partial(read_manifest, root), version.manifests.values())
        manifests = in_order(dict(zip(version.manifests, read, strict=True)))
    except RefineryError as error:
        return OutdatedVersion(version, unreadable=str(error))
    seconds: Mapping[str, float] = {}
    with contextlib.suppress(RefineryError):  # a ledger that cannot be opened says nothing of the root
        seconds = recorded_seconds(root, version)
    by_fingerprint = {manifest.fingerprint: manifest for manifest in manifests.values()}
    stages: dict[str, Outdated] = {}
    for stage, manifest in manifests.items():
        parent = by_fingerprint.get(next(iter(manifest.parents), ""))
        reasons = tuple(_reasons(manifest))
        follows = parent.stage if parent and parent.stage in stages else ""
        if reasons or follows:
            reads = sum(shard.weight for shard in parent.shards) if parent else 0
            stores = sum(shard.bytes for shard in manifest.stored if not shard.is_landed)
            stages[stage] = Outdated(stage, reasons, follows, reads, stores, seconds.get(stage))
    current = tuple(stage for stage in manifests if stage not in stages)
    return OutdatedVersion(version, tuple(stages.values()), current)


def _reasons(manifest: Manifest) -> Iterator[str]:
    """Yield what has changed for a stage by itself."""
    if manifest.format != FORMAT:
        yield f"format of manifests {manifest.format} → {FORMAT}"
    if rows_by(manifest.writer) != rows_by(WRITER):
        yield f"{rows_by(manifest.writer)} → {rows_by(WRITER)}"
    if card := known_card(manifest.stage):
        yield from _reasons_of_card(card, manifest)
    elif manifest.landed:  # what reads its files may come from other distributions
        yield from differences(manifest.libraries, present(manifest.libraries))
    elif manifest.stage != COMPOSE:
        yield "no such stage is installed here"


def _reasons_of_card(card: Stage[Any], manifest: Manifest) -> Iterator[str]:
    if manifest.version != card.version:
        yield f"version of the stage {manifest.version} → {card.version}"
    secrets = {declared.name for declared in fields(card.params) if VARIABLE in declared.metadata}
    try:
        params = bind(card, {name: value for name, value in manifest.params.items() if name not in secrets})
    except RecipeError as error:
        yield f"its settings are not those of this release: {error}"
        return
    known = {**json.loads(canonical(params)), **{name: manifest.params.get(name) for name in secrets}}
    if changed := sorted(name for name in {*known, *manifest.params} if known.get(name) != manifest.params.get(name)):
        yield f"its code has other settings: {', '.join(changed)}"
    yield from differences(manifest.libraries, installed(card.libraries_of(params)))
    yield from (f"{name} is another file" for name in _other_files(card, params, {*manifest.resources.values()}))


def _other_files(card: Stage[P], params: P, before: AbstractSet[str]) -> list[str]:
    """Return the names of the package's own files that a stage would read, and did not read `before`."""
    try:
        own = [path for path in (card.resources(params) if card.resources else ()) if not path.startswith(DIGEST)]
        return [path.rpartition("/")[2] for path in own if digest_of_named(path) not in before]
    except (OSError, RefineryError):  # which ones it reads may follow from files that params name
        return []
