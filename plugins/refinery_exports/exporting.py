"""Runs the jobs of an export in many processes, stores what they write, and lists all files when all are stored."""

import multiprocessing
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pipeline_tasks.errors import JobLost, RowsVanished
from pipeline_tasks.publish.exported import FILES
from pipeline_tasks.sealed import seal, sha256
from pipeline_tasks.store import storage
from pipeline_tasks.training.index import StoredFile
from refinery_exports.format import Written
from refinery_exports.place import CLAIM, Facts, claim, encoded

Job = Callable[[Path], Mapping[str, int]]
"""Writes the files of one shard below a local folder, and returns what it has; processes get it as bytes."""


@dataclass(frozen=True, slots=True)
class Export:
    """What is exported: its identity, a job per shard, the files about all shards by their names, and what all have."""

    facts: Facts
    jobs: Sequence[Job]
    beside: Callable[[Sequence[Written]], Mapping[str, bytes]]
    expected: Mapping[str, int]


def run(export: Export, to: str, workers: int) -> dict[str, Any]:
    """Store an export at a place, by so many processes; return its list of files.

    The bytes are the same for any number of processes. The same export again returns what is there. RowsVanished if
    the shards together do not have what is expected of them.
    """
    there = claim(to, export.facts)
    if there is not None:
        return there
    shards = list(_run_jobs([partial(_stored, job, to) for job in export.jobs], workers))
    totals = _totals(export, shards, to)
    bodies = {**export.beside(shards), CLAIM: encoded(export.facts)}
    beside = [_put(to, name, body) for name, body in sorted(bodies.items())]
    files = sorted([*beside, *(file for shard in shards for file in shard.files)], key=lambda file: file.path)
    listed = {
        "format": 1,
        **export.facts,
        **totals,
        "shards": [{**shard.counts, "files": [file.path for file in shard.files]} for shard in shards],
        "files": [asdict(file) for file in files],
    }
    storage.commit(storage.connect(to), FILES, seal(listed))
    return listed


def _totals(export: Export, shards: Sequence[Written], to: str) -> Mapping[str, int]:
    totals: Counter[str] = Counter()
    for shard in shards:
        totals.update(shard.counts)
    for name, count in export.expected.items():
        if totals[name] != count:
            message = f"{to}: the shards have {totals[name]} {name}, and the version has {count}; verify its root"
            raise RowsVanished(message)
    return totals


def _run_jobs(jobs: Sequence[Callable[[], Written]], workers: int) -> Iterator[Written]:
    """Yield the results of jobs in their order; the first error ends those that have not begun."""
    if min(workers, len(jobs)) <= 1 or multiprocessing.current_process().daemon:  # which may have no children
        yield from (job() for job in jobs)
        return
    context = multiprocessing.get_context("spawn")  # threads of Arrow do not survive a fork
    with ProcessPoolExecutor(min(workers, len(jobs)), mp_context=context) as pool:
        futures = [pool.submit(job) for job in jobs]
        try:
            yield from (future.result() for future in futures)
        except BrokenProcessPool as error:
            message = (
                "a process of the export was killed, as Linux does when memory is short; run it again with fewer "
                "--workers or a smaller --shard-size: it goes on at the same place"
            )
            raise JobLost(message) from error
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _stored(job: Job, to: str) -> Written:
    """Write the files of a shard, and store them at the place."""
    with tempfile.TemporaryDirectory(prefix="refinery-export-") as place:
        folder = Path(place)
        counts = job(folder)
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        return Written(counts, tuple(_put_file(to, str(path.relative_to(folder)), path) for path in paths))


def _put_file(to: str, path: str, local: Path) -> StoredFile:
    size, digest = storage.digest_of_file(str(local))
    storage.connect(to).put_file(path, local, digest)
    return StoredFile(path, size, digest)


def _put(to: str, path: str, body: bytes) -> StoredFile:
    with tempfile.NamedTemporaryFile(prefix="refinery-") as local:
        local.write(body)
        local.flush()
        storage.connect(to).put_file(path, Path(local.name), sha256(body))
    return StoredFile(path, len(body), sha256(body))
