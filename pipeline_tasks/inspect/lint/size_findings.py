"""Finds what of a snapshot does not fit its workers, before anything runs: memory, tasks, files, time."""

import statistics
from collections.abc import Callable, Iterator
from typing import NamedTuple

from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.recipe import LAND, MAX_PARTITIONS
from pipeline_tasks.run.history import compactions, cover, has_keys
from pipeline_tasks.run.partitions import PARTITION_SECONDS
from pipeline_tasks.run.recipe_faults import Finding
from pipeline_tasks.run.sizes import HOUR, Sizes, StageSize, hours, in_bytes
from pipeline_tasks.run.unit_costs import BUCKET_BASE, MEGABYTE, TASK_MEMORY, cost_of
from pipeline_tasks.store.reading import read_manifest

LONGEST_PARTITION = 4 * HOUR
"""Seconds of one core that a partition may take: what is lost when its worker dies."""

UNEVEN = 10
"""A task of so many times the median holds up its stage."""

DAY = 24 * HOUR
MOST_PIECES = 50_000_000
"""Pieces of a shuffle: each is a row of Spark's shuffle, and a request of the other engines."""

MOST_TASKS = 5_000
"""Tasks of one run that Airflow's scheduler and its pages handle in minutes."""

SMALL_FILES, SMALL = 10_000, MEGABYTE
"""So many files of less than `SMALL` bytes each cost more in objects than in bytes."""


MOST_SEGMENTS = 16
"""Entries of history that are looked in: a year of snapshots has 15 where `refinery keep compact` runs every day."""


class Workers(NamedTuple):
    """Cores that run tasks, and bytes of memory for each."""

    cores: int
    memory: int


def size_findings(sizes: Sizes, workers: Workers) -> Iterator[Finding]:
    """Yield what does not fit; a fault is what ends a run, a note what makes it slow or expensive."""
    for rule in RULES:
        yield from rule(sizes, workers)


def _base_memory(_: Sizes, workers: Workers) -> Iterator[Finding]:
    """Find workers with less memory than any task needs."""
    if workers.memory < TASK_MEMORY:
        message = (
            f"a task needs {in_bytes(TASK_MEMORY)} and a worker has {in_bytes(workers.memory)}; give each core more "
            "memory, or run fewer tasks at once"
        )
        yield Finding(fault=True, where="memory", message=message)


def _bucket_memory(sizes: Sizes, workers: Workers) -> Iterator[Finding]:
    """Find buckets that a worker cannot have in memory."""
    for size in sizes.stages:
        if not cost_of(size.stage).bucket or size.memory <= workers.memory or workers.memory < TASK_MEMORY:
            continue
        needed = f"a bucket of {in_bytes(size.read / size.buckets)} needs {in_bytes(size.memory)} of memory"
        way_out = _more_buckets(size, workers) if size.is_fixed else f"give a worker {in_bytes(size.memory)}"
        message = f"{needed}, and a worker has {in_bytes(workers.memory)}; {way_out}"
        yield Finding(fault=True, where=size.stage, message=message)


def _more_buckets(size: StageSize, workers: Workers) -> str:
    """Return the number of buckets that fits, as a way out."""
    room = max(workers.memory - BUCKET_BASE, MEGABYTE)
    least = -(-size.read * cost_of(size.stage).bucket // room)
    return f"leave `buckets` out of the recipe, or set at least {int(least):,} (it has {size.buckets:,})"


def _partitions(sizes: Sizes, _: Workers) -> Iterator[Finding]:
    """Find stages whose partitions take hours each, as there are too few of them or cannot be more."""
    for size in sizes.stages:
        each = size.seconds / size.partitions
        if not size.is_mapped or each <= max(LONGEST_PARTITION, size.longest):
            continue
        if size.partitions < min(MAX_PARTITIONS, size.shards):
            way_out = "leave `partitions` out of the recipe"
        else:
            way_out = f"land the snapshot in {-(-each // LONGEST_PARTITION):.0f} parts"
        message = f"each of {size.partitions:,} partitions takes {hours(each)} of one core; {way_out}"
        yield Finding(fault=False, where=size.stage, message=message)


def _uneven_files(sizes: Sizes, _: Workers) -> Iterator[Finding]:
    """Find a largest file that cannot be cut and whose task holds up a stage: one core reads it to its end."""
    median, largest = statistics.median(sizes.pieces), max(sizes.pieces)
    slowest = max((size for size in sizes.stages if size.shards == len(sizes.pieces)), key=lambda size: size.longest)
    is_uneven = largest > UNEVEN * median and slowest.longest > PARTITION_SECONDS
    if is_uneven or slowest.longest > LONGEST_PARTITION:
        message = (
            f"the largest file that cannot be cut has {in_bytes(largest)} (the median task reads "
            f"{in_bytes(median)}): in {slowest.stage} it takes {hours(slowest.longest)} of a core; write several files"
        )
        yield Finding(fault=False, where=LAND, message=message)


def _small_files(sizes: Sizes, _: Workers) -> Iterator[Finding]:
    """Find many small files: each leaves objects in every stage before the first that brings keys together."""
    if len(sizes.files) >= SMALL_FILES and statistics.median(sizes.files) < SMALL:
        objects = sum(size.objects for size in sizes.stages if size.shards == len(sizes.pieces))
        message = (
            f"{len(sizes.files):,} files of {in_bytes(statistics.median(sizes.files))} leave {objects:,} objects; "
            "concatenate them before they land (gzip members and lines can be appended to each other)"
        )
        yield Finding(fault=False, where=LAND, message=message)


def _pieces(sizes: Sizes, _: Workers) -> Iterator[Finding]:
    """Find a shuffle of too many pieces."""
    for size in sizes.stages:
        if size.pieces > MOST_PIECES:
            message = (
                f"{size.shards:,} shards in {size.buckets:,} buckets are shuffled in {size.pieces:,} pieces; land the "
                "snapshot in parts"
            )
            yield Finding(fault=False, where=size.stage, message=message)


def _tasks(sizes: Sizes, _: Workers) -> Iterator[Finding]:
    """Find a run of more tasks than Airflow handles well."""
    if sizes.tasks > MOST_TASKS:
        message = f"a run has {sizes.tasks:,} tasks in Airflow; set `run: partitions:` to a smaller number"
        yield Finding(fault=False, where="partitions", message=message)


def _landing(sizes: Sizes, _: Workers) -> Iterator[Finding]:
    """Find files that `land` would read for hours, one after the other."""
    if sizes.landing > HOUR:
        message = (
            f"digests, and where to cut large files, take {hours(sizes.landing)} or more in one task; write `sha256` "
            "of each file into the snapshot's snapshot.json, and files of a gigabyte at most"
        )
        yield Finding(fault=False, where=LAND, message=message)


def _duration(sizes: Sizes, workers: Workers) -> Iterator[Finding]:
    """Find a snapshot that takes longer than the day until the next."""
    seconds = sizes.seconds / workers.cores
    if seconds > DAY:
        needed = -(-sizes.seconds // DAY)
        message = (
            f"all stages take {hours(seconds)} of {workers.cores:,} workers; {needed:,.0f} would take a day, if they "
            "are never idle"
        )
        yield Finding(fault=False, where="workers", message=message)


def history_findings(root: str, recipe: str) -> Iterator[Finding]:
    """Find stages whose history is in more segments than compaction leaves: each is one more lookup per key."""
    versions, known = version_log.latest_by_snapshot(root, recipe), compactions(root)
    for stage in versions[-1].manifests if versions else ():
        saved = [read_manifest(root, version.manifests[stage]) for version in versions if stage in version.manifests]
        segments = len(cover([manifest for manifest in saved if has_keys(manifest)], known))
        if segments > MOST_SEGMENTS:
            message = f"looks for each key in {segments} segments of history; run `refinery keep compact {root}`"
            yield Finding(fault=False, where=stage, message=message)


RULES: tuple[Callable[[Sizes, Workers], Iterator[Finding]], ...] = (
    _base_memory,
    _bucket_memory,
    _partitions,
    _uneven_files,
    _small_files,
    _pieces,
    _tasks,
    _landing,
    _duration,
)
