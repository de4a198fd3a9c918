"""Foretells what a snapshot asks of each stage of a recipe: bytes, tasks, buckets, seconds, memory and objects.

The listing of the snapshot is read, and the beginning of some files. The rest follows from measured unit costs
(`run.unit_costs`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pipeline_tasks.binding import bind
from pipeline_tasks.cards import makes_documents, stage_card
from pipeline_tasks.counted import counted
from pipeline_tasks.facets import Grouped
from pipeline_tasks.landing import cuts
from pipeline_tasks.landing.listing import Listing
from pipeline_tasks.landing.record_counts import counted_records
from pipeline_tasks.recipe import Recipe, Step
from pipeline_tasks.run.partitions import partitions_for
from pipeline_tasks.run.shuffle import buckets_of, scatter_inputs
from pipeline_tasks.run.unit_costs import (
    BUCKET_BASE,
    CUT_SECONDS,
    LAND_SECONDS,
    MEGABYTE,
    TASK_MEMORY,
    FileCost,
    cost_of,
    file_cost,
)
from pipeline_tasks.stage import Shard, Shards, buckets_for

KILO = 1000
MINUTE, HOUR = 60, 3600
MINUTES_FROM, HOURS_FROM = 2 * MINUTE, 2 * HOUR

TASKS_OF_A_RUN = 4
"""Airflow tasks beside those of stages: `sense`, `land`, `publish_gate`, `publish`."""


@dataclass(frozen=True, slots=True)
class StageSize:
    """What one stage has to do; `buckets` is 0 for a stage that brings no keys together.

    `is_fixed`: the recipe has the number of buckets. `pieces` are one for each scatter task and bucket.

    `read` and `stored` are bytes, `memory` is of the largest task, `longest` the seconds of the largest shard on one
    core, `tasks` are those that Airflow shows.
    """

    stage: str
    read: int
    shards: int
    partitions: int
    is_mapped: bool
    buckets: int
    is_fixed: bool
    pieces: int
    seconds: float
    longest: float
    memory: int
    stored: int
    objects: int
    tasks: int


@dataclass(frozen=True, slots=True)
class Sizes:
    """What a snapshot asks of a recipe.

    `files` are the bytes of its files, `pieces` those of the pieces that a task reads: files, and parts of large ones.
    `land` spends `landing` seconds on digests and cuts.
    """

    snapshot: str
    files: tuple[int, ...]
    pieces: tuple[int, ...]
    records: int
    landing: float
    stages: tuple[StageSize, ...]

    @property
    def tasks(self) -> int:
        """Tasks that Airflow shows of one run."""
        return TASKS_OF_A_RUN + sum(size.tasks for size in self.stages)

    @property
    def seconds(self) -> float:
        """Seconds of one core."""
        return sum(size.seconds for size in self.stages)


def sizes_of(recipe: Recipe, listing: Listing, folder: str = "") -> Sizes:
    """Return what the files of a snapshot ask of each stage of a recipe.

    With the `folder` that the names are relative to, some files are read to foretell the number of records.
    """
    pieces = _pieces(listing)
    return Sizes(
        snapshot=listing.snapshot,
        files=tuple(size for _, size, _ in listing.files),
        pieces=tuple(size for _, size in pieces),
        records=_records(listing, folder),
        landing=_landing_seconds(listing),
        stages=tuple(_stage_sizes(recipe, pieces)),
    )


def _records(listing: Listing, folder: str) -> int:
    """Return about how many records the files have: as counted, else as dense as those of their kind that were counted.

    Where none of a kind was read, its records have the bytes of those that the unit costs were measured with.
    """
    sizes = {name: size for name, size, _ in listing.files}
    counts = dict(counted_records(folder, list(sizes.items()))) if folder else {}
    densities: dict[FileCost, list[int]] = {}
    for name, count in counts.items():
        known = densities.setdefault(file_cost(name), [0, 0])
        densities[file_cost(name)] = [known[0] + count, known[1] + sizes[name]]
    total = 0
    for name, size in sizes.items():
        records, read = densities.get(file_cost(name), (1, file_cost(name).record_bytes))
        total += counts.get(name, size * records // read)
    return total


def _pieces(listing: Listing) -> list[tuple[str, int]]:
    """Return name and bytes of each piece that `land` will list."""
    piece = cuts.piece_bytes(size for _, size, _ in listing.files)
    return [(name, part) for name, size, _ in listing.files for part in cuts.foretold(name, size, piece)]


def _landing_seconds(listing: Listing) -> float:
    piece = cuts.piece_bytes(size for _, size, _ in listing.files)
    rates = (
        (size, CUT_SECONDS if cuts.is_large(size, piece) else 0 if digest else LAND_SECONDS)
        for _, size, digest in listing.files
    )
    return sum(size / MEGABYTE * rate for size, rate in rates)


def stage_sizes(recipe: Recipe, files: Sequence[tuple[str, int]]) -> Iterator[StageSize]:
    """Yield what files, by name and bytes, ask of each stage of a recipe; no file is read."""
    piece = cuts.piece_bytes(size for _, size in files)
    yield from _stage_sizes(recipe, [(name, part) for name, size in files for part in cuts.foretold(name, size, piece)])


def handed_on(size: StageSize) -> int:
    """Return how many bytes a stage hands on to the next."""
    return int(size.read * cost_of(size.stage).kept)


def _stage_sizes(recipe: Recipe, pieces: Sequence[tuple[str, int]]) -> Iterator[StageSize]:
    """Follow the shards of a snapshot through the stages."""
    shards = tuple(_made_up(size) for _, size in pieces)
    for step in recipe.steps:
        size = _stage_size(step, shards, recipe.partitions)
        yield size
        kept = cost_of(step.stage).kept
        if makes_documents(step.stage):
            shards = tuple(_made_up(size * file_cost(name).text) for name, size in pieces)
        elif size.buckets:
            shards = (_made_up(size.read * kept / size.buckets, step.stage),) * size.buckets
        else:
            shards = tuple(_made_up(shard.bytes * kept, shard.path) for shard in shards)


def _made_up(size: float, origin: str = "") -> Shard:
    """Return a shard of so many bytes; its path is the stage that brought its rows into their order, if any."""
    return Shard(origin, 0, int(size), "")


def _stage_size(step: Step, shards: Shards, fixed_partitions: int) -> StageSize:
    card, cost = stage_card(step.stage), cost_of(step.stage)
    read, largest = sum(shard.bytes for shard in shards), max((shard.bytes for shard in shards), default=0)
    fixed_buckets = int(getattr(bind(card, step.params), "buckets", 0))
    buckets = fixed_buckets or _buckets(card.buckets, shards)
    partitions = min(fixed_partitions, len(shards)) or partitions_for(step.stage, shards) if card.splits else 1
    return StageSize(
        stage=step.stage,
        read=read,
        shards=len(shards),
        partitions=partitions,
        is_mapped=card.splits,
        buckets=buckets,
        is_fixed=bool(fixed_buckets),
        pieces=len(scatter_inputs(shards, buckets)) * buckets,
        seconds=read / MEGABYTE * cost.seconds,
        longest=largest / MEGABYTE * cost.seconds,
        memory=max(TASK_MEMORY, int(BUCKET_BASE + cost.bucket * read / max(buckets, 1))),
        stored=int(read * cost.stored),
        objects=int(cost.objects * max(len(shards), buckets)) + partitions,
        tasks=partitions + 2 if card.splits else 2,
    )


def _buckets(grouped: Grouped | None, shards: Shards) -> int:
    """Return how many buckets a stage takes where its recipe fixes none; 0 for a stage without buckets."""
    if not grouped:
        return 0
    placed = buckets_of(shards, shards[0].path) if shards and grouped.keeps else 0
    return placed or buckets_for(shards, grouped.least)


# --- Lines ----------------------------------------------------------------------------------------------------


def size_lines(sizes: Sizes, workers: int) -> Iterator[str]:
    """Yield what is foretold as a table for a person."""
    files, records = counted(len(sizes.files), "file"), counted(sizes.records, "record")
    yield (
        f"{sizes.snapshot}: {files}, {in_bytes(sum(sizes.files))}, about {records}; {counted(sizes.tasks, 'task')} in "
        f"Airflow; {hours(sizes.seconds)} of one core, {hours(sizes.seconds / workers)} of {workers:,}"
    )
    heads = ("reads", "shards", "partitions", "buckets", "core", "memory", "stores")
    yield f"{'stage':<18}" + "".join(f"{head:>11}" for head in heads)
    for size in sizes.stages:
        yield (
            f"{size.stage:<18}{in_bytes(size.read):>11}{size.shards:>11,}{size.partitions:>11,}"
            f"{size.buckets or '-':>11}{hours(size.seconds):>11}{in_bytes(size.memory):>11}{in_bytes(size.stored):>11}"
        )
    stored, objects = sum(size.stored for size in sizes.stages), sum(size.objects for size in sizes.stages)
    yield f"{'all':<18}{'':>66}{in_bytes(stored):>11} in {objects:,} objects"


def size_facts(sizes: Sizes) -> dict[str, Any]:
    """Return what is foretold as plain JSON values."""
    facts = {"snapshot": sizes.snapshot, "files": len(sizes.files), "bytes": sum(sizes.files)}
    totals = {"records": sizes.records, "tasks": sizes.tasks, "seconds": round(sizes.seconds, 1)}
    return {**facts, **totals, "stages": [_rounded(size) for size in sizes.stages]}


def _rounded(size: StageSize) -> dict[str, Any]:
    return {name: round(value, 1) if isinstance(value, float) else value for name, value in asdict(size).items()}


def in_bytes(size: float) -> str:
    """Return bytes in a unit that fits."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if size < KILO:
            return f"{size:.3g} {unit}"
        size /= KILO
    return f"{size:,.4g} PB"


def hours(seconds: float) -> str:
    """Return seconds, or minutes, or hours of many."""
    if seconds < MINUTES_FROM:
        return f"{seconds:.0f} s"
    return f"{seconds / MINUTE:.0f} min" if seconds < HOURS_FROM else f"{seconds / HOUR:,.0f} h"
