"""Counts what a run asks of its stores as a crawl grows: requests, bytes, XCom and the driver's memory.

    python benchmarks/growth.py [--files 100 1000] [--versions 1 10 100] [--shards 1000 10000] [--json]

Snapshots are simulated: each file is a WARC of a few small pages, and a version of the past is an entry of the log
that names the manifests of one that was refined. Everything is counted (`counting.py`) and nothing is timed but the
wall clock of each size, so two machines print the same. The last line is one JSON object:

- `reads_per_byte`: bytes of landed files read by `land` and `ingest`, for each byte that landed; the snapshot has a
  history, and its list of files has digests. `unpromised` is the same where no list has. `extract_reads` is what
  `extract` reads, for each landed byte of the pages that `ingest` keeps.
- `requests_per_file`: by step, requests to the root and to the landed files for each file, at the largest size.
- `xcom_kb`: what the task `land` hands to the others, in KB, with the longest history.
- `requests_per_version`: requests of `land` and `publish` that each earlier version adds.
- `driver_growth`: memory of a stage's driver at the most shards, divided by that at the fewest; `driver_bytes` is what
  each shard adds.
"""

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from counting import Requests, counted
from whole_run import Run

from pipeline_tasks.demo import warc
from pipeline_tasks.publish import version_log
from pipeline_tasks.recipe import LOCAL, Recipe, load_recipe
from pipeline_tasks.sealed import sha256
from pipeline_tasks.service.handle import handle
from pipeline_tasks.service.requests import HistoryRequest, LandRequest

STAGES = ("ingest", "extract", "dedup_exact")
"""Of the recipe `web`: what reads landed files, and one stage that groups and has history."""

PAGES = 3
"""Pages of a file."""


@dataclass(frozen=True, slots=True)
class Size:
    """What a snapshot of so many files took: requests and landed bytes by step, and seconds of wall clock."""

    files: int
    landed: int
    requests: Mapping[str, Mapping[str, int]]
    landed_reads: Mapping[str, float]
    seconds: float
    peak_mb: float

    def per_file(self) -> dict[str, float]:
        """Return requests for each file, by step."""
        return {step: round(sum(verbs.values()) / self.files, 2) for step, verbs in self.requests.items()}


def write_snapshot(folder: Path, files: int, day: int, *, promised: bool = True) -> int:
    """Write a snapshot of small WARC files; return its bytes. A third of its pages were in the snapshot before."""
    folder.mkdir(parents=True)
    listed = []
    for number in range(files):
        body = b"".join(_pages(number, day))
        name = f"part-{number:06d}.warc.gz"
        (folder / name).write_bytes(body)
        listed.append({"path": name, "bytes": len(body), "sha256": sha256(body)})
    if promised:
        (folder / "snapshot.json").write_text(json.dumps({"snapshot": folder.name, "files": listed}))
    return sum(int(file["bytes"]) for file in listed)


def _pages(number: int, day: int) -> Iterator[bytes]:
    for page in range(PAGES):
        written = day if page else 0  # the first page of each file never changes
        words = " ".join(sha256(f"{number} {page} {written} {word}".encode())[:8] for word in range(60))
        url = f"https://site{number % 97}.example/{number}/{page}"
        html = f"<html><head><title>Page {number}</title></head><body><p>{words}</p></body></html>".encode()
        exchange = warc.Exchange(url, f"2026-11-{day:02d}T00:00:00Z", "200 OK", (("Content-Type", "text/html"),), html)
        identifier = warc.record_id("page", str(number), str(page), str(day))
        yield warc.request(exchange, identifier)
        yield warc.response(exchange, identifier)


class CountedRun(Run):
    """A run whose requests to the root and to the landed files are counted by step."""

    def __init__(self, root: str, snapshot: str, recipe: Recipe, landing: str) -> None:
        super().__init__(root, snapshot, recipe, LOCAL)
        self.landing, self.requests, self.landed = landing, {}, {}

    def send(self, name: str, request: Any) -> Any:  # noqa: ANN401 -- as `Run.send`
        every, landed = Requests(), Requests(self.landing)
        with counted(every, landed):
            reply = handle(request)
        self.requests.setdefault(name, Requests()).verbs.update(every.verbs)
        self.landed[name] = self.landed.get(name, 0) + landed.read
        return reply


def short_recipe() -> Recipe:
    """Return the recipe `web`, of which `STAGES` are left."""
    recipe = load_recipe("web")
    steps = tuple(step for step in recipe.steps if step.stage in STAGES)
    return replace(recipe, steps=steps)


def measured(place: Path, files: int, *, promised: bool = True) -> Size:
    """Refine a snapshot of so many files behind an earlier one; return what it asked for."""
    recipe, root = short_recipe(), str(place / "root")
    started = time.perf_counter()
    for day in (1, 2):
        snapshot = f"2026-11-{day:02d}"
        landing = place / "crawl" / snapshot
        landed = write_snapshot(landing, files, day, promised=promised)
        run = CountedRun(root, snapshot, recipe, str(landing))
        run.refine(str(landing))
    reads = {step: round(bytes_ / landed, 3) for step, bytes_ in run.landed.items()}
    verbs = {step: dict(requests.verbs) for step, requests in run.requests.items()}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Size(files, landed, verbs, reads, round(time.perf_counter() - started, 1), round(peak))


def with_history(place: Path, versions: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Yield what `land` asks for and hands on, and `publish` asks for, behind so many earlier versions."""
    recipe, root = short_recipe(), str(place / "root")
    landing = place / "crawl" / "2026-11-01"
    write_snapshot(landing, 2, 1)
    CountedRun(root, "2026-11-01", recipe, str(landing)).refine(str(landing))
    newest = place / "crawl" / "2027-11-01"
    write_snapshot(newest, 2, 2)
    for count in versions:
        _repeat(root, recipe.name, count)
        about: dict[str, Any] = {"root": root, "recipe": recipe.name, "snapshot": "2027-11-01"}
        asked = Requests()
        with counted(asked):
            landed = handle(LandRequest(input=str(newest), **about))
            history = handle(HistoryRequest(**about))
        handed = {"manifest": landed["manifest"], "landing": landed["landing"], **history}
        yield {"versions": count, "land": dict(asked.verbs), "xcom_kb": round(len(json.dumps(handed)) / 1000, 2)}


def _repeat(root: str, recipe: str, count: int) -> None:
    """Append entries to a log, each of a snapshot of its own with the manifests of the first, until there are `count`."""
    first = version_log.versions(root, recipe)[0]
    for number in range(len(version_log.versions(root, recipe)), count):
        fields = {**asdict(first), "snapshot": f"2026-12-{number:06d}", "files": first.files}
        del fields["number"], fields["at"]
        version_log.append(root, fields)


def driver_of(shards: int) -> dict[str, float]:
    """Return the memory of a process that drives a stage of so many shards, measured in one of its own."""
    command = [sys.executable, __file__, "--driver", str(shards)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Measure, print a table, and last one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, nargs="*", default=[100, 1000])
    parser.add_argument("--versions", type=int, nargs="*", default=[1, 10, 100])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    facts: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="refinery-growth-") as name:
        for files in options.files:
            size = measured(Path(name, str(files)), files)
            print(f"{files} files: {size.seconds} s, {size.peak_mb} MB")
            for step, verbs in size.requests.items():
                print(
                    f"  {step:12} {size.per_file()[step]:8.2f} requests a file  {verbs}  landed bytes {size.landed_reads[step]}"
                )
            shutil.rmtree(Path(name, str(files)))
        for row in with_history(Path(name, "versions"), options.versions):
            print(row)
    if options.json:
        print(json.dumps(facts))


if __name__ == "__main__":
    main()
