"""Counts what a run asks of its stores as a crawl grows: requests, bytes, XCom and the driver's memory.

    python benchmarks/growth.py [--files 100 1000] [--versions 1 10 100 1000] [--shards 1000 10000 100000]
                                [--partitions] [--publish 1000 65536] [--takedowns 10000 1000000] [--erase]
                                [--json]

Snapshots are simulated: each file is a WARC of a few small pages, and a version of the past is an entry of the log
that names the manifests of one that was refined. Everything is counted (`counting.py`) and nothing is timed but the
wall clock of each size, so two machines print the same. The last line is one JSON object:

- `reads_per_byte`: bytes of landed files read by `land` and `ingest`, for each byte that landed; the snapshot has a
  history, and its list of files has digests. `unpromised` is the same where no list has. `extract_reads` is what
  `extract` reads: two of three pages are new here, and half of the records are requests.
- `requests_per_file`: by number of files and step, requests to the root and to the landed files for each file.
- `xcom_kb`: what the task `land` hands to the others, in KB, with the longest history.
- `requests_per_version`: requests of `land` that each earlier version adds.
- `driver_growth`: memory of a stage's driver at the most shards, divided by that at the fewest; `driver_bytes` is what
  each shard adds.
- with `--partitions`: `partition_ms`, the processor time of planning one of 1,024 partitions of 100,000 shards, all by
  one process; `partitions_mb`, the most memory of it; `partition_days`, by number of earlier snapshots, what 1,024
  partitions ask for and read (KB) together, and the KB of the manifest of each; `seal_requests`, what sealing 10,000
  shards asks for.
- with `--publish`: by number of packed shards, what publishing them once more behind ten versions asks for, its
  processor time and the most memory of its process.
- with `--takedowns`: by number of URLs that are taken down, what one more takedown, the list of the next landing, one
  other document, and batches of 4,096 of them ask for, read (KB) and take of a processor (ms).
- with `--erase`: of a root of large pages, by what is looked for (a site that occurs nowhere, a site of one file of
  eight, and the same where no table is believed), `read`, the bytes that `refinery erase --dry-run` reads for each
  byte of the root, and `requests`.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from counting import Requests, counted
from refinery_rights.erasing.documents import Documents
from refinery_rights.erasing.survey import survey
from whole_run import Run, step_of

from pipeline_tasks.demo import warc
from pipeline_tasks.engines.local import LocalEngine
from pipeline_tasks.manifest import NAMED, Manifest, dump, identified, manifest_path, reference_of, schema_pairs
from pipeline_tasks.publish import takedowns
from pipeline_tasks.publish.datasets import building
from pipeline_tasks.publish.datasets.origin import INDEX
from pipeline_tasks.publish.exports.tokenizer import Tokenizer
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.published import PublishedFile
from pipeline_tasks.recipe import BUILD, LAND, LOCAL, Recipe, load_recipe
from pipeline_tasks.run.history import shared_history
from pipeline_tasks.run.partitions import spans
from pipeline_tasks.run.plan import plan
from pipeline_tasks.run.request import RefineRequest, Request
from pipeline_tasks.run.runner import partition_path, refine, seal
from pipeline_tasks.run.tasks.task import Outcome, Receipt, Task
from pipeline_tasks.schema import DOCUMENT, RECORD
from pipeline_tasks.sealed import sha256
from pipeline_tasks.service.handle import handle
from pipeline_tasks.service.requests.stages import HistoryRequest, LandRequest
from pipeline_tasks.service.requests.wire import Wire
from pipeline_tasks.stage import Shard
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import read_manifest
from pipeline_tasks.store.shards.name_index import NameIndex
from pipeline_tasks.store.taken_down import taken_down
from pipeline_tasks.text.base.key_filter import Hashes
from pipeline_tasks.text.urls.takedown import evidence, of_entries

STAGES = ("ingest", "extract", "dedup_exact")
"""Of the recipe `web`: what reads landed files, and one stage that groups and has history."""

MAPS = "filter_url"
"""A stage of one map, which a driver is measured with."""

PAGES = 3
"""Pages of a file."""

AT_ONCE = 1_000_000
"""URLs of a takedown of many."""

BATCH = 4096
"""Documents of a batch of a kernel."""


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
    return sum(path.stat().st_size for path in folder.glob("*.warc.gz"))


def _pages(number: int, day: int) -> Iterator[bytes]:
    for page in range(PAGES):
        written = day if page else 0  # the first page of each file never changes
        words = " ".join(sha256(f"{number} {page} {written} {word}".encode())[:8] for word in range(60))
        url = f"https://site{number % 97}.example/{number}/{page}"
        html = f"<html><head><title>Page {number}</title></head><body><p>{words}</p></body></html>".encode()
        exchange = warc.Exchange(url, f"2026-11-{day:02d}T00:00:00Z", "200 OK", (("Content-Type", "text/html"),), html)
        identifier = warc.record_id("page", str(number), str(page), str(day))
        yield warc.member(warc.request(exchange, identifier))
        yield warc.member(warc.response(exchange, identifier))


class CountedRun(Run):
    """A run whose requests to the root and to the landed files are counted by step."""

    def __init__(self, root: str, snapshot: str, recipe: Recipe, landing: str) -> None:
        super().__init__(root, snapshot, recipe, LOCAL)
        self.landing = landing
        self.requests: dict[str, Requests] = {}
        self.landed: dict[str, int] = {}

    def send(self, request: Request[Any]) -> Wire:
        """Handle a request, and count what it asks for; return the reply."""
        name, every, landed = step_of(request), Requests(), Requests(self.landing)
        with counted(every, landed):
            reply: Wire = handle(request)
        self.requests.setdefault(name, Requests()).verbs.update(every.verbs)
        self.landed[name] = self.landed.get(name, 0) + landed.read
        return reply


def short_recipe() -> Recipe:
    """Return the recipe `web`, of which `STAGES` are left."""
    recipe = load_recipe("web")
    steps = tuple(step for step in recipe.steps if step.stage in STAGES)
    return replace(recipe, steps=steps)


def measured(place: Path, files: int, *, before: int = 0, promised: bool = True) -> Size:
    """Refine a snapshot of so many files behind an earlier one, of as many or `before`; return what it asked for."""
    recipe, root = short_recipe(), str(place / "root")
    for day, count in ((1, before or files), (2, files)):
        started = time.perf_counter()
        snapshot = f"2026-11-{day:02d}"
        landing = place / "crawl" / snapshot
        landed = write_snapshot(landing, count, day, promised=promised)
        run = CountedRun(root, snapshot, recipe, str(landing))
        run.refine(str(landing))
    reads = {step: round(bytes_ / landed, 3) for step, bytes_ in run.landed.items()}
    verbs = {step: dict(requests.verbs) for step, requests in run.requests.items()}
    return Size(files, landed, verbs, reads, round(time.perf_counter() - started, 1), round(peak_mb()))


def peak_mb() -> float:
    """Return the most memory that this process has had since its program began; `getrusage` has that of its parent."""
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) / 1024


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
        handed = {"manifest": landed["manifest"], "landing": landed["landing"], "earlier": history["earlier"]}
        yield {"versions": count, "land": dict(asked.verbs), "xcom_kb": round(len(json.dumps(handed)) / 1000, 2)}


def _repeat(root: str, recipe: str, count: int) -> None:
    """Append entries of the manifests of the first, each of a snapshot of its own, until a log has `count`."""
    first = version_log.versions(root, recipe)[0]
    for number in range(len(version_log.versions(root, recipe)), count):
        fields = {**asdict(first), "snapshot": f"2026-12-{number:06d}", "files": first.files}
        for name in ("number", "at"):
            del fields[name]
        version_log.append(root, fields)


class PretendingEngine(LocalEngine):
    """An engine whose tasks store holes: their receipts name shards that nobody reads."""

    def _each(self, tasks: Sequence[partial[Any]], weight: int) -> Iterator[Any]:  # noqa: ARG002 -- as every engine
        return (self._outcome(call.args[0]) for call in tasks)

    def _outcome(self, task: Task) -> Outcome:
        digest = sha256(task.key.encode())
        stored = replace(made_up(f"{task.io.prefix}/data", digest), below=10**6)
        place = Path(task.io.root, stored.path)
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("wb") as file:
            file.truncate(stored.bytes)  # a commit looks at its shards: holes take no room
        bins = {str(octave): 9 for octave in range(20)}
        kept = {"chars": {"kind": "whole", "count": 1000, "sum": 10**6, "bins": bins}}
        columns, below = schema_pairs(DOCUMENT), task.inputs[0][0]
        return Outcome(Receipt(task.key, stored, None, None, {}, 0, columns, kept, {}, below))


def made_up(folder: str, digest: str) -> Shard:
    """Return a shard that is named and not stored."""
    return Shard(f"{folder}/{digest[:NAMED]}.parquet", 1000, 10**6, digest)


NOTHING = Manifest("", 1, "", {}, (), (), (), (), {}, (), (), 0, 0, {}, {})
"""A manifest that says nothing."""


def given(root: str, shards: int, schema: pa.Schema = DOCUMENT) -> str:
    """Commit a manifest of so many shards that are not stored; return its reference."""
    stored = tuple(made_up("given/data", sha256(str(number).encode())) for number in range(shards))
    parent = replace(
        NOTHING,
        stage="given",
        params={"shards": shards},
        schema=schema_pairs(schema),
        shards=stored,
        covers=tuple(sha256(f"covered {number}".encode()) for number in range(shards)),
        rows_in=shards * 1000,
        metrics={"kept": {}, "rejects": {}},
    )
    return committed(root, parent)


def committed(root: str, manifest: Manifest) -> str:
    """Commit a manifest, whose shards need not be stored, by its fingerprint; return its reference."""
    manifest = identified(manifest)
    path = manifest_path(manifest.stage, manifest.fingerprint)
    storage.commit(storage.connect(root), path, dump(manifest))
    return reference_of(path, manifest)


def drive(root: str, parent: str) -> None:
    """Refine a manifest by a stage that maps; print the peak of this process in MB."""
    refine(RefineRequest(root, MAPS, {}, parent), PretendingEngine)
    print(json.dumps({"peak_mb": peak_mb()}))


def driver_of(shards: int) -> float:
    """Return the MB that a process takes at most which drives a stage of so many shards."""
    with tempfile.TemporaryDirectory(prefix="refinery-driver-") as root:
        command = [sys.executable, __file__, "--driver", root, given(root, shards)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return float(json.loads(done.stdout.splitlines()[-1])["peak_mb"])


PARTITIONS, PARTITIONED = 1024, 100_000
"""Partitions of a stage, and the shards of its input."""

MAPS_BEHIND = "ingest"
"""A stage that is mapped over partitions and has history, of so many files a day."""

FILES_A_DAY = 9


def earlier_days(root: str, days: int) -> tuple[str, ...]:
    """Commit the manifests of earlier snapshots of a stage, whose history is not stored; return their references."""
    return tuple(_earlier_day(root, day) for day in range(days))


def _earlier_day(root: str, day: int) -> str:
    saved = tuple(
        replace(made_up("pages", sha256(f"{day} {file}".encode())), index_digest=sha256(b"index"))
        for file in range(FILES_A_DAY)
    )
    return committed(root, replace(NOTHING, stage=MAPS_BEHIND, params={"day": day}, history={"pages": saved}))


def plan_partitions(root: str, parent: str, days: int, partitions: int) -> None:
    """Plan each partition of a stage by a request, as tasks send it; print what that took."""
    history = earlier_days(root, days)
    cut = spans(read_manifest(root, parent).shards, partitions)
    asked, begun = Requests(), time.process_time()
    with counted(asked):
        for span in cut:
            planned = plan(RefineRequest(root, MAPS_BEHIND, {}, parent, history, span=span))
            shared_history(root, planned.card.history, planned.history)
            partition_path(planned, span)
    spent = time.process_time() - begun
    own = replace(NOTHING, stage=MAPS_BEHIND, parents=planned.parents, parent_digests=planned.parent_digests)
    named = dump(replace(own, fingerprint=planned.fingerprint, params=planned.identity))
    facts: dict[str, float] = {"requests": asked.total, "read_kb": round(asked.read / 1000, 2)}
    facts |= {"manifest_kb": round(len(named) / 1000, 2), "ms": round(1000 * spent / len(cut), 2)}
    print(json.dumps(facts | {"peak_mb": round(peak_mb())}))


def partitions_of(shards: int, partitions: int, days: int = 1) -> dict[str, float]:
    """Return what planning each partition took in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="refinery-partitions-") as root:
        named = [root, given(root, shards, RECORD), str(days), str(partitions)]
        command = [sys.executable, __file__, "--partition-driver", *named]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def sealed(place: Path, shards: int, partitions: int) -> Requests:
    """Return what sealing the partitions of so many shards asks for."""
    root, asked = str(place), Requests()
    request = RefineRequest(root, MAPS, {}, given(root, shards))
    cut = spans(read_manifest(root, request.parent).shards, partitions)
    for span in cut:
        refine(replace(request, span=span), PretendingEngine)
    with counted(asked):
        seal(request, cut)
    return asked


def partition_facts() -> dict[str, Any]:
    """Return the counts of `--partitions` by the names that the module's text has."""
    many = partitions_of(PARTITIONED, PARTITIONS)
    days = {days: partitions_of(PARTITIONS, PARTITIONS, days) for days in (1, 100, 1000)}
    with tempfile.TemporaryDirectory(prefix="refinery-seal-") as place:
        asked = sealed(Path(place), PARTITIONED // 10, 16)
    named = ("requests", "read_kb", "manifest_kb")
    return {
        "partition_ms": many["ms"],
        "partitions_mb": many["peak_mb"],
        "partition_days": {str(count): {name: row[name] for name in named} for count, row in days.items()},
        "seal_requests": dict(asked.verbs),
    }


BEHIND = 10
"""Versions of a training dataset behind which its shards are published once more."""


def packed_build(shards: int) -> tuple[Tokenizer, dict[str, Manifest]]:
    """Return a tokenizer, and the manifests by stage of a build of so many shards, none of which is stored."""
    packed, documents = (
        tuple(made_up(f"{stage}/data", sha256(f"{stage} {at}".encode())) for at in range(shards))
        for stage in ("pack", "shuffle")
    )
    begun = replace(NOTHING, stage="compose", fingerprint="c")
    shuffled = replace(NOTHING, stage="shuffle", fingerprint="s", parents=("c",), shards=documents)
    params = {"method": "concat", "length": 2048, "pad_id": 0}
    ended = replace(NOTHING, stage="pack", fingerprint="p", parents=("s",), params=params, shards=packed)
    by_stage = {each.stage: each for each in (begun, shuffled, ended)}
    return Tokenizer("hugging_face", "made up", b"{}", 50_000, 0), by_stage


def store_versions(root: str, shards: int) -> None:
    """Publish `BEHIND` versions of the same packed shards, whose files are holes."""
    tokenizer, by_stage = packed_build(shards)
    entries = [published_entry(shard.identity) for shard in building.packed_shards(root, by_stage, tokenizer)]
    for file in building.files_of(entries):
        place = Path(root, file.path)
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("wb") as stored:
            stored.truncate(file.bytes)
    about = {"recipe": "made_up", "snapshot": BUILD, "landing": "", "verdicts": {}, "tokenizer": tokenizer.digest}
    index = building.index_bytes(building.index_of("made_up", by_stage, tokenizer, entries))
    for number in range(BEHIND):
        prefix = f"publish/made_up/{number}"
        Path(root, prefix).mkdir(parents=True)
        Path(root, prefix, INDEX).write_bytes(index)
        files = (PublishedFile(f"{prefix}/{INDEX}", len(index), sha256(index)),)
        manifests = {"compose": f"compose/{number}"}
        sizes = {"documents": 1, "tokens": 1, "sequences": 1}
        version_log.append(root, {**about, **sizes, "prefix": prefix, "manifests": manifests, "files": files})


def published_entry(identity: str) -> building.Entry:
    """Return the entry of an index for a packed shard."""
    files = {ending: sha256(f"{identity} {ending}".encode()) for ending in ("bin", "ends", "lineage")}
    named = {
        ending: {"path": f"../shards/{digest[:NAMED]}.{ending}", "bytes": 10, "sha256": digest}
        for ending, digest in files.items()
    }
    return {"packed": identity, "sequences": 1, "tokens": 1, **named}


def publish_again(root: str, shards: int) -> None:
    """Publish the packed shards of `store_versions` once more; print what that took."""
    tokenizer, by_stage = packed_build(shards)
    asked, begun = Requests(), time.process_time()
    with counted(asked):
        entries = building.exported_shards(root, "made_up", by_stage, tokenizer, lambda _: [])
        building.index_bytes(building.index_of("made_up", by_stage, tokenizer, entries))
    spent = round(time.process_time() - begun, 1)
    print(json.dumps({"requests": asked.total, "seconds": spent, "peak_mb": round(peak_mb())}))


def publishing_of(shards: int) -> dict[str, float]:
    """Return what publishing so many packed shards once more took in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="refinery-publish-") as root:
        store_versions(root, shards)
        command = [sys.executable, __file__, "--publisher", root, str(shards)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def taken_down_behind(root: str, count: int) -> dict[str, dict[str, float]]:
    """Take so many URLs down, at most a million with one entry; return what the next steps ask for, read and take."""
    for start in range(0, count, AT_ONCE):
        numbers = range(start, min(count, start + AT_ONCE))
        many = [("url", f"https://site{number % 9973}.example/{number}") for number in numbers]
        takedowns.record(root, many, "a letter of many")
    urls = [f"https://site{number % 9973}.example/other/{number}" for number in range(BATCH)]
    pages = pa.record_batch({"url": urls, "id": [sha256(str(number).encode())[:32] for number in range(BATCH)]})
    steps: dict[str, Callable[[], object]] = {
        "one more": lambda: takedowns.record(root, [("site", "gone.example")], "a letter"),
        "its list": lambda: takedowns.pinned_list(root),
        "a document": lambda: evidence(taken_down(root), pages.slice(0, 1)),
        "a batch": lambda: evidence(taken_down(root), pages),
        "the next": partial(evidence, taken_down(root), pages),
    }
    return {name: _asked_by(step) for name, step in steps.items()}


def _asked_by(step: Callable[[], object]) -> dict[str, float]:
    asked, started = Requests(), time.process_time()
    with counted(asked):
        step()
    spent = (time.process_time() - started) * 1000
    return {"requests": asked.total, "read_kb": round(asked.read / 1000, 1), "ms": round(spent, 1)}


ERASED_FILES, ERASED_PAGES, ERASED_WORDS = 8, 8, 100_000
"""Files of a snapshot that is erased from, each with a site of its own, pages of each, and words of a page."""


def erase_facts() -> dict[str, Any]:
    """Return the counts of `--erase` by the names that the module's text has."""
    with tempfile.TemporaryDirectory(prefix="refinery-erase-") as place:
        root, landing = f"{place}/root", Path(place, "crawl")
        landing.mkdir()
        for file in range(ERASED_FILES):
            pages = [_large_page(file, page) for page in range(ERASED_PAGES)]
            (landing / f"part-{file:03d}.jsonl").write_text("\n".join(map(json.dumps, pages)))
        Run(root, "2026-11-01", short_recipe(), LOCAL).refine(str(landing))
        size = sum(path.stat().st_size for path in Path(root).rglob("*") if path.is_file())
        facts = {"nowhere": _looked(root, "nowhere.example", size), "one_file": _looked(root, "site3.example", size)}
        NameIndex.having = believed_by_nobody  # type: ignore[method-assign, assignment]
        return {**facts, "nowhere_unasked": _looked(root, "nowhere.example", size), "root_mb": round(size / 1e6, 1)}


def believed_by_nobody(index: NameIndex, asked: Hashes) -> frozenset[str]:
    """Return all tables, as if none had a filter."""
    del asked
    return index.paths


def _large_page(file: int, page: int) -> dict[str, str]:
    words = [sha256(f"{file} {page} {word}".encode())[:8] for word in range(ERASED_WORDS)]
    return {"text": " ".join(words), "url": f"https://www.site{file}.example/{page}"}


def _looked(root: str, site: str, size: int) -> dict[str, Any]:
    """Return what a look for a site asks of a root of so many bytes."""
    asked = Requests(root)
    with counted(asked):
        found = survey(root, Documents(of_entries([("site", site)])))
    return {"read": round(asked.read / size, 4), "requests": dict(asked.verbs), "objects": len(found.work)}


def lines(sizes: Sequence[Size], unpromised: Size, histories: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the counts as a table for a person."""
    for size in sizes:
        yield f"{size.files} files behind an earlier day: {size.seconds} s, {size.peak_mb} MB"
        for step, verbs in size.requests.items():
            counts = ", ".join(f"{count} {verb}" for verb, count in sorted(verbs.items()))
            reads = f"{size.landed_reads[step]:5.2f} of the bytes"
            yield f"  {step:12} {size.per_file()[step]:8.2f} a file  {reads}  {counts}"
    yield f"without a list that promises digests: land reads {unpromised.landed_reads[LAND]} of the bytes"
    for row in histories:
        yield f"{row['versions']:6} versions before: {row['land']} to land, {row['xcom_kb']} KB handed on"


def facts_of(sizes: Sequence[Size], unpromised: Size, histories: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the counts by the names that the module's text has."""
    largest = sizes[-1]
    facts: dict[str, Any] = {
        "reads_per_byte": _read_by_landing(largest),
        "unpromised": _read_by_landing(unpromised),
        "extract_reads": largest.landed_reads["extract"],
        "requests_per_file": {str(size.files): size.per_file() for size in sizes},
    }
    if histories:
        fewest, most = histories[0], histories[-1]
        more = sum(most["land"].values()) - sum(fewest["land"].values())
        facts["xcom_kb"] = most["xcom_kb"]
        facts["requests_per_version"] = round(more / max(most["versions"] - fewest["versions"], 1), 2)
    return facts


def _read_by_landing(size: Size) -> float:
    return round(size.landed_reads[LAND] + size.landed_reads["ingest"], 3)


def facts_alone(options: argparse.Namespace) -> dict[str, Any]:
    """Return the counts of the options that count nothing else, by the names that the module's text has."""
    if options.publish:
        return {"publish": {str(shards): publishing_of(shards) for shards in options.publish}}
    if options.takedowns:
        with tempfile.TemporaryDirectory(prefix="refinery-growth-") as name:
            behind = {str(count): taken_down_behind(str(Path(name, str(count))), count) for count in options.takedowns}
        return {"takedowns": behind}
    if options.erase:
        return erase_facts()
    return partition_facts() if options.partitions else {}


def main() -> None:
    """Count, print a table, and last one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--before", type=int, default=0, help="files of the day before (as many)")
    parser.add_argument("--versions", type=int, nargs="*", default=[1, 10, 100, 1000])
    parser.add_argument("--shards", type=int, nargs="*", default=[1000, 10_000, 100_000])
    parser.add_argument("--partitions", action="store_true", help="count partitions, and nothing else")
    parser.add_argument("--publish", type=int, nargs="*", default=[], help="count publishing, and nothing else")
    parser.add_argument("--publisher", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--takedowns", type=int, nargs="+", help="count takedowns behind so many, and nothing else")
    parser.add_argument("--erase", action="store_true", help="count erasures, and nothing else")
    parser.add_argument("--driver", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--partition-driver", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.driver:
        drive(*options.driver)
        return
    if options.partition_driver:
        root, parent, days, partitions = options.partition_driver
        plan_partitions(root, parent, int(days), int(partitions))
        return
    if options.publisher:
        publish_again(options.publisher[0], int(options.publisher[1]))
        return
    if alone := facts_alone(options):
        print(json.dumps(alone))
        return
    with tempfile.TemporaryDirectory(prefix="refinery-growth-") as name:
        sizes = [measured(Path(name, f"{files}-files"), files, before=options.before) for files in options.files]
        unpromised = measured(Path(name, "unpromised"), options.files[0], promised=False)
        histories = list(with_history(Path(name, "versions"), options.versions))
    facts = facts_of(sizes, unpromised, histories)
    print(*lines(sizes, unpromised, histories), sep="\n")
    peaks = {count: driver_of(count) for count in options.shards}
    if peaks:
        print(*(f"{count:8} shards: {peak:.0f} MB in the driver" for count, peak in peaks.items()), sep="\n")
        fewest, most = min(peaks), max(peaks)
        facts["driver_growth"] = round(peaks[most] / peaks[fewest], 2)
        facts["driver_bytes"] = round((peaks[most] - peaks[fewest]) * (1 << 20) / max(most - fewest, 1))
    if options.json:
        print(json.dumps(facts))


if __name__ == "__main__":
    main()
