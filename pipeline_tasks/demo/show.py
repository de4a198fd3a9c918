"""Runs the demo: writes the crawl, refines both snapshots through the DAG, and compares found with planted."""

import argparse
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pipeline_tasks.demo import truth
from pipeline_tasks.demo.crawl import write_crawl
from pipeline_tasks.embedded.dag_run import RunOptions, run
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.funnel import funnel, funnel_lines
from pipeline_tasks.publish import version_log
from pipeline_tasks.publish.decoding import decoder_of
from pipeline_tasks.publish.packed import read_published
from pipeline_tasks.store.reading import read_manifest, read_shards

RECIPE = "demo"
SNAPSHOTS = ("2026-11-19", "2026-11-20")
SHOWN = 120
"""Tokens of the decoded sequence that are shown."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the folder."""
    parser.add_argument("--folder", default=".refinery/demo", help="where the crawl and the output go")


def answer(options: argparse.Namespace) -> int:
    """Run the demo; return its exit code."""
    return show(Path(options.folder))


def show(folder: Path) -> int:
    """Make, refine and compare; returns the exit code of the first run that failed, else 0."""
    started = time.perf_counter()
    crawl, root = folder / "crawl", str((folder / "root").absolute())
    planted = _crawl(crawl)
    for snapshot in SNAPSHOTS:
        _say(f"\n=== Refining snapshot {snapshot} with Airflow, Spark and Ray ===")
        code = run(RunOptions(str((crawl / snapshot).absolute()), root, snapshot, RECIPE))
        if code:
            return code
    versions = [version_log.current(root, RECIPE, snapshot) for snapshot in SNAPSHOTS]
    for version in versions:
        _say(f"\n=== Funnel of snapshot {version.snapshot} ===", *funnel_lines(funnel(root, version)))
    _say("\n=== Found against planted, both snapshots ===", *compared(root, planted, versions))
    _say("\n=== The start of the last packed sequence, decoded ===", _decoded(root, versions[-1]))
    for version in versions:
        _say(f"report     {root}/{version.prefix}/report.html")
    _say(
        f"\nThe whole demo took {time.perf_counter() - started:.0f} s. Look further:",
        f"  .venv/bin/refinery trace {root} --recipe demo --random 3",
        f"  .venv/bin/refinery verify {root} --recipe demo",
        "  make up    # the same DAGs in Airflow's web UI",
    )
    return 0


def _crawl(folder: Path) -> truth.Truth:
    """Write the crawl unless it is there; return what was planted in it."""
    path = folder / "truth.json"
    if not path.exists():
        _say(f"Writing two crawl snapshots to {folder} ...")
        write_crawl(folder, SNAPSHOTS)
    if not path.exists():
        message = f"{path} is missing; remove {folder} and run the demo again"
        raise RecipeError(message)
    return truth.load(path)


def compared(root: str, planted: truth.Truth, versions: Iterable[version_log.Version]) -> list[str]:
    """Return one line per kind of planted record: planted, found, set aside otherwise, missed."""
    there = list(versions)
    rejected = [row for version in there for row in _set_aside(root, version)]
    kept = [row for version in there for row in _kept(root, version)]
    return truth.compare(planted, rejected, kept)


PLACE = ["snapshot", "file", "offset", "record_id"]


def _set_aside(root: str, version: version_log.Version) -> Iterator[Mapping[str, Any]]:
    for stage, path in version.manifests.items():
        if stage == "land":
            continue
        made = read_manifest(root, path)
        for batch in read_shards(root, (*made.rejects, *made.quarantine), [*PLACE, "reason"]):
            yield from batch.to_pylist()


def _kept(root: str, version: version_log.Version) -> Iterator[Mapping[str, Any]]:
    made = read_manifest(root, version.manifests["decontaminate"])
    for batch in read_shards(root, made.shards, [*PLACE, "pii_email", "pii_phone", "pii_ip"]):
        yield from batch.to_pylist()


def _decoded(root: str, version: version_log.Version) -> str:
    tokens, _ = read_published(root, version)
    if not len(tokens):
        return "(no tokens)"
    ids = tokens.sequence(len(tokens) - 1)[:SHOWN]
    return str(decoder_of(root, version)(ids.tolist()))


def _say(*lines: str) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()
