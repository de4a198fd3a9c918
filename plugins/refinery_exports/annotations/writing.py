"""Plans and writes the annotations of versions: a job for so many records, which writes a file per crawl and subset."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from pipeline_tasks.errors import RecipeError, RowsVanished
from pipeline_tasks.inspect.chosen import document_manifest, ordered_manifests
from pipeline_tasks.inspect.views.rows import Hidden, Part, Rows
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.profiles.origins import generated_kept, generated_removed
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.schema import OF_GENERATOR, ORIGIN
from pipeline_tasks.sealed import digest_of
from pipeline_tasks.stage import Shard
from pipeline_tasks.store.reading import read_shards
from pipeline_tasks.store.taken_down import takedowns, taken_down
from refinery_exports.annotations.card import card
from refinery_exports.annotations.columns import (
    CRAWL,
    KEPT,
    QUARANTINED,
    READ,
    REJECTED,
    SUBSET,
    Decision,
    annotated,
    schema_of,
    score_columns,
)
from refinery_exports.annotations.places import Listed, read_places
from refinery_exports.exporting import Export, Shards

pc = pyarrow.compute

ORDER = ("url_surtkey", "warc_filename", "warc_record_offset")
"""How each file is sorted: no two records are at one place."""

MOST_ROWS = 500_000
"""Records of a job, unless a shard alone has more: 0.8 GB in memory (482,000 rows of shards of the demo)."""

GROUP_ROWS = 100_000
"""Rows of a row group: a join by key reads those alone that may have it."""

DECISIONS = (KEPT, REJECTED, QUARANTINED)

LEFT_OUT, ROWS = "left_out", "rows"
"""Counts: records of documents that are taken down, and the rows that are written."""


@dataclass(frozen=True, slots=True)
class Decided:
    """Shards of rows, what a version decided on them, and how many rows of them are generated: those are no records."""

    by: Decision
    shards: tuple[Shard, ...]
    generated: int = 0

    @property
    def records(self) -> int:
        return sum(shard.rows for shard in self.shards) - self.generated


@dataclass(frozen=True, slots=True)
class Job:
    """Records that are written together; its number is in the names of files."""

    number: int
    parts: tuple[Decided, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """Where the rows are, what is taken down of them (as so many takedowns say), their scores, and their places."""

    root: str
    takedowns: int
    scores: tuple[str, ...]
    places: tuple[Listed, ...]


def export_of(root: str, versions: Sequence[Version], places: Sequence[Listed]) -> Export:
    """Return the export of the annotations of some versions of a recipe, without what is taken down now.

    RecipeError for a version without documents; RowsVanished for one whose stages do not have all records.
    """
    manifests = {version.number: ordered_manifests(root, version) for version in versions}
    decided = [part for version in versions for part in _decided(root, version, manifests[version.number])]
    columns = [column for own in manifests.values() for manifest in own.values() for column in manifest.schema]
    source = Source(root, len(takedowns(root)), tuple(score_columns(columns)), tuple(places))
    read_places(source.places)
    counts: Counter[str] = Counter()
    for part in decided:
        counts[part.by.decision] += part.records
    facts = {
        "export": "annotations",
        "recipe": versions[0].recipe,
        "versions": [version.number for version in versions],
        "dataset": digest_of({str(version.number): version.manifests for version in versions}),
        "takedowns": source.takedowns,
        "places": [each.digest for each in places],
    }
    written = card(versions, source.scores)
    expected = {decision: counts[decision] for decision in DECISIONS}
    return Export(facts, Shards(partial(write, source), _jobs(decided), _weight), lambda _: written, expected)


def _decided(root: str, version: Version, manifests: Mapping[str, Manifest]) -> Iterator[Decided]:
    """Yield what a version decided, each record once: kept by its last stage, or left by one of all.

    A generated document is no record: that of its source has the decision on the source.
    """
    documents = document_manifest(manifests)
    if documents is None:
        message = f"{root}: version {version.number} of {version.recipe} has no documents; name one of a snapshot"
        raise RecipeError(message)
    parts = [Decided(Decision(version.number, KEPT, ""), documents.shards, generated_kept(documents))]
    for stage, manifest in manifests.items():
        removed = sum(rows for reason, rows in generated_removed(manifest).items() if reason in manifest.rejected)
        parts.append(Decided(Decision(version.number, REJECTED, stage), manifest.rejects, removed))
        damaged = _generated(root, manifest.quarantine)  # nothing of a partition is profiled
        parts.append(Decided(Decision(version.number, QUARANTINED, stage), manifest.quarantine, damaged))
    seen = next((manifest.rows_in for manifest in manifests.values() if manifest.rows_in), 0)
    if (rows := sum(part.records for part in parts)) != seen:
        message = (
            f"{root}: version {version.number} of {version.recipe} has {seen:,} records, and its stages have {rows:,} "
            f"that they kept or not; run `refinery verify {root}`"
        )
        raise RowsVanished(message)
    yield from (part for part in parts if part.shards)


def _generated(root: str, shards: tuple[Shard, ...]) -> int:
    """Return how many rows of shards are generated documents."""
    return sum(batch.num_rows - _records(batch).num_rows for batch in read_shards(root, shards, _ORIGINS))


def _records(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows that are no generated documents."""
    return batch.filter(pc.fill_null(pc.not_equal(batch[ORIGIN], OF_GENERATOR), fill_value=True))


_ORIGINS = pa.schema([pa.field(ORIGIN, pa.string())])


def _jobs(decided: Sequence[Decided]) -> list[Job]:
    """Return jobs of at most `MOST_ROWS` records, of one version each, in the order of shards."""
    jobs: list[list[Decided]] = []
    rows, version = 0, 0
    for part in decided:
        for shard in part.shards:
            rows += shard.rows
            if part.by.version != version or rows > MOST_ROWS:
                jobs.append([])
                rows, version = shard.rows, part.by.version
            if jobs[-1] and jobs[-1][-1].by == part.by:
                jobs[-1][-1] = Decided(part.by, (*jobs[-1][-1].shards, shard))
            else:
                jobs[-1].append(Decided(part.by, (shard,)))
    return [Job(number, tuple(parts)) for number, parts in enumerate(jobs)]


def _weight(job: Job) -> int:
    return sum(shard.weight for part in job.parts for shard in part.shards)


def write(source: Source, job: Job, folder: Path) -> Mapping[str, int]:
    """Write the annotations of a job's records, a file for each crawl and subset; return what they are."""
    places, hidden = read_places(source.places), Hidden(taken_down(source.root, source.takedowns))
    schema = pa.schema([*READ, *_ORIGINS, *((name, pa.float64()) for name in source.scores)])
    counts = {**dict.fromkeys(DECISIONS, 0), LEFT_OUT: 0}
    tables = []
    for part in job.parts:
        hid, unseen = hidden.rows, _generated(source.root, part.shards)
        for batch in Rows(source.root, (Part("", part.shards),), schema, hidden).batches(schema.names):
            records = _records(batch)
            unseen -= batch.num_rows - records.num_rows
            tables.append(annotated(records, part.by, source.scores, places, hidden.taken))
            counts[part.by.decision] += records.num_rows
        left_out = hidden.rows - hid - unseen
        counts[part.by.decision] += left_out
        counts[LEFT_OUT] += left_out
    table = pa.concat_tables(tables).sort_by([(name, "ascending") for name in ORDER])
    folders = table.group_by([CRAWL, SUBSET]).aggregate([]).to_pylist()
    for crawl, subset in sorted((each[CRAWL], each[SUBSET]) for each in folders):
        own = table.filter(pc.and_(pc.equal(table[CRAWL], crawl), pc.equal(table[SUBSET], subset)))
        place = folder / f"{CRAWL}={crawl}" / f"{SUBSET}={subset}"
        place.mkdir(parents=True, exist_ok=True)
        name = f"part-{job.parts[0].by.version:05}-{job.number:05}.parquet"
        columns = own.select(schema_of(source.scores).names)
        pq.write_table(columns, place / name, compression="zstd", row_group_size=GROUP_ROWS)
    return {**counts, ROWS: table.num_rows}
