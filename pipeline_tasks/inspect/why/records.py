"""Finds the records of what is sought in every snapshot: where each was kept, or which stage did not keep it, and why.

A record is in one place: what the last stage kept, or what one stage rejected or quarantined. So one column of those
rows is read, addresses or ids, and of the shards that have what is sought the columns that tell of it; texts are not.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.cards import is_stage
from pipeline_tasks.inspect.document import KEPT, PARTS, in_buckets
from pipeline_tasks.inspect.evidence import evidence_text
from pipeline_tasks.inspect.unpublished import readable_runs
from pipeline_tasks.inspect.why.sought import Sought
from pipeline_tasks.ledger import recorded_recipes
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Retraction, Version
from pipeline_tasks.run.shuffle import bucket_of
from pipeline_tasks.schema import KNOWN_BY, PARENT
from pipeline_tasks.stage import Shard
from pipeline_tasks.store.reading import read_in_order, read_shards

pc: Any = pyarrow.compute

TOLD = (*KNOWN_BY, "crawled_at", "file", "offset", "reason", "evidence")
"""Columns that tell of a record, and of a generated document which document it was made of."""

PUBLISHED, RETRACTED = "published", "retracted"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot of a recipe: its newest version, one that is retracted, or a run that published nothing.

    `note` says when and why it was retracted, or where and why the run stopped: at `stage`.
    """

    recipe: str
    name: str
    state: str
    manifests: Mapping[str, str]
    version: Version | None = None
    note: str = ""
    stage: str = ""

    @property
    def unread(self) -> str:
        """Return why nothing of it can be looked at: its run stopped too early."""
        if self.state == "unfinished":
            return f"{self.name} landed and its run has come to {self.stage}: its records are not known yet"
        if not is_stage(self.stage):
            return f"{self.name}, whose run stopped at {self.stage}: its records are not known yet"
        return f"{self.name} landed and its run stopped at {self.stage}: its records are not known yet"


@dataclass(frozen=True, slots=True)
class Record:
    """A record that was found: its snapshot, and what `stage` did with it, for which reason.

    `parent` is the document that a generated one was made of, "" of any other.
    """

    of: Snapshot
    stage: str
    outcome: str
    id: str
    url: str
    crawled_at: str
    file: str
    offset: int
    reason: str = ""
    evidence: str = ""
    parent: str = ""

    @property
    def ids(self) -> tuple[str, ...]:
        """The documents whose takedown or end is one of it, too: itself, and of a generated one its source."""
        return tuple(filter(None, (self.id, self.parent)))

    @property
    def is_published(self) -> bool:
        """Return whether a version that counts has it."""
        return self.outcome == KEPT and self.of.state == PUBLISHED

    @property
    def is_generated(self) -> bool:
        """Return whether it is a text that was generated of a document of that record."""
        return bool(self.parent)

    @property
    def facts(self) -> dict[str, object]:
        """It as JSON has it."""
        names = ("outcome", "stage", "reason", "evidence", "id", "parent", "url", "crawled_at", "file", "offset")
        of = {"recipe": self.of.recipe, "snapshot": self.of.name, "state": self.of.state}
        version = self.of.version.number if self.of.version else None
        own = {name: getattr(self, name) for name in names}
        return {**of, "version": version, **own, "because": evidence_text(self.evidence), "note": self.of.note}


IS_GENERATED = attrgetter("is_generated")


@dataclass(slots=True)
class Reading:
    """What was read so far, of at most `most` bytes (0: all); `hosted` are addresses of the host that is sought.

    `records` are those that have what is looked at, an address or an id. Without it are `nameless`, which are damaged,
    and `pageless`, which are sound: of no page (warcinfo), or a text alone. `known` are the manifests of snapshots,
    which the lookups of an answer share.
    """

    most: int = 0
    shards: int = 0
    bytes: int = 0
    unread: int = 0
    records: int = 0
    nameless: int = 0
    pageless: int = 0
    hosted: dict[str, str] = field(default_factory=dict)
    known: dict[tuple[str, str], dict[str, Manifest]] = field(default_factory=dict)

    @property
    def is_full(self) -> bool:
        """Return whether nothing more may be read."""
        return bool(self.most) and self.bytes >= self.most

    def count(self, outcome: str, named: int, others: int) -> None:
        """Count records with one outcome that have what is looked at, and others."""
        self.records += named
        if outcome == PARTS["quarantine"]:
            self.nameless += others
        else:
            self.pageless += others

    def manifests(self, root: str, of: Snapshot) -> dict[str, Manifest]:
        """Return the manifests of a snapshot, in order; they are read once."""
        if (of.recipe, of.name) not in self.known:
            self.known[of.recipe, of.name] = read_in_order(root, of.manifests)
        return self.known[of.recipe, of.name]


def snapshots_of(root: str) -> list[Snapshot]:
    """Return every snapshot of a root, the newest of each recipe first."""
    published = [name for name in version_log.recipes(root) if not version_log.is_build(root, name)]
    names = sorted({*published, *recorded_recipes(root)} - set(version_log.datasets(root)))
    return [each for name in names for each in sorted(_of_recipe(root, name), key=lambda one: one.name, reverse=True)]


def _of_recipe(root: str, recipe: str) -> Iterator[Snapshot]:
    last: dict[str, Version] = {}
    retracted: dict[str, Retraction] = {}
    for entry in version_log.log(root, recipe):
        if isinstance(entry, Retraction):
            retracted[entry.snapshot] = entry
        else:
            last[entry.snapshot] = entry
            retracted.pop(entry.snapshot, None)
    for name, version in last.items():
        state, note = (RETRACTED, retracted[name].account) if name in retracted else (PUBLISHED, "")
        yield Snapshot(recipe, name, state, version.manifests, version, note)
    for name, run in readable_runs(root, recipe)[0].items():
        yield Snapshot(recipe, name, run.state, run.manifests, None, f"{run.account}; {run.next_step}", run.stage)


class Place(NamedTuple):
    """A shard of the rows with one outcome at a stage."""

    stage: str
    outcome: str
    shard: Shard


def places_of(manifests: Mapping[str, Manifest], wanted: Sought, *, kept_only: bool = False) -> list[Place]:
    """Return the shards in which a record may be: of a whole id one of those that were kept, if ids are in buckets."""
    places = list(_kept(manifests, wanted))
    if not kept_only:
        for stage, manifest in [*manifests.items()][::-1]:
            for part, outcome in PARTS.items():
                if outcome != KEPT:
                    places += [Place(stage, outcome, shard) for shard in getattr(manifest, part)]
    return places


def unknown_of(root: str, every: Iterable[Snapshot], wanted: Sought, reading: Reading) -> list[Snapshot]:
    """Return the snapshots of which nothing can be looked at: runs that stopped before a stage wrote what is sought."""
    stopped = [each for each in every if each.version is None]
    return [each for each in stopped if wanted.kind == "text" or not _manifests(root, each, wanted, reading)]


def _manifests(root: str, of: Snapshot, wanted: Sought, reading: Reading) -> dict[str, Manifest]:
    """Return the manifests of a snapshot whose rows have the column that is looked at."""
    read = reading.manifests(root, of).items()
    return {stage: each for stage, each in read if wanted.column in dict(each.schema) and not each.landed}


def _kept(manifests: Mapping[str, Manifest], wanted: Sought) -> Iterator[Place]:
    if not manifests:
        return
    stage, manifest = [*manifests.items()][-1]
    shards: Sequence[Shard] = manifest.shards
    has_offspring = PARENT in dict(manifest.schema)  # a document's may be in any bucket
    if wanted.is_whole_id and stage in in_buckets(manifests) and not has_offspring:
        shards = [shards[int(bucket_of(pa.array([wanted.value]), len(shards))[0])]]
    yield from (Place(stage, KEPT, shard) for shard in shards)


def records_of(
    root: str, of: Iterable[Snapshot], wanted: Sought, reading: Reading, *, kept_only: bool = False, host: str = ""
) -> Iterator[Record]:
    """Yield the records of what is sought; of addresses those of a `host` are noted in `reading.hosted`.

    With `kept_only` nothing is read of what stages did not keep.
    """
    for snapshot in of:
        for place in places_of(_manifests(root, snapshot, wanted, reading), wanted, kept_only=kept_only):
            if reading.is_full:
                reading.unread += 1
                continue
            reading.shards += 1
            rows = _rows(root, place, wanted, reading, host)
            yield from (_record(snapshot, place, row) for row in rows)


def _rows(root: str, place: Place, wanted: Sought, reading: Reading, host: str) -> list[dict[str, Any]]:
    masks = []
    for batch in read_shards(root, [place.shard], (wanted.column, *((PARENT,) if wanted.kind == "document" else ()))):
        values = batch.column(wanted.column)
        reading.bytes += values.nbytes
        named = pc.sum(pc.fill_null(pc.not_equal(values, ""), fill_value=False)).as_py() or 0
        reading.count(place.outcome, named, len(values) - named)
        found = wanted.is_wanted(values)
        masks.append(pc.or_(found, wanted.is_wanted(batch.column(PARENT))) if PARENT in batch.schema.names else found)
        if host:
            same = values.filter(pc.fill_null(pc.match_substring(values, host, ignore_case=True), fill_value=False))
            became = dict.fromkeys(same.to_pylist(), f"{place.outcome} by {place.stage}")
            reading.hosted = became | reading.hosted  # what is kept is read first
    mask = pa.concat_arrays(masks) if masks else pa.array([], pa.bool_())
    if not pc.any(mask, min_count=0).as_py():
        return []
    told = pa.Table.from_batches(read_shards(root, [place.shard], TOLD))
    rows: list[dict[str, Any]] = told.filter(mask).to_pylist()
    return rows


def _record(of: Snapshot, place: Place, row: Mapping[str, Any]) -> Record:
    words = {name: str(row.get(name) or "") for name in TOLD if name != "offset"}
    return Record(of, place.stage, place.outcome, **words, offset=int(row.get("offset") or 0))
