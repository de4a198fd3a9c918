"""Runs the demo: writes a crawl, refines both snapshots, builds a dataset of them, and compares with the truth."""

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline_tasks.demo import FOLDER, truth
from pipeline_tasks.demo.crawl import write_crawl
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.flow.running import BuildOptions, RunOptions, build, run
from pipeline_tasks.inspect.command import print_lines
from pipeline_tasks.inspect.funnel import funnel, funnel_lines
from pipeline_tasks.publish.datasets.decoding import decoder_of
from pipeline_tasks.publish.datasets.published_shards import Spot, open_build
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.recipe import RECIPES, engine_names
from pipeline_tasks.shipped import is_checkout
from pipeline_tasks.store.reading import read_history, read_manifest, read_shards
from pipeline_tasks.text.pii.kinds import COUNTS

RECIPE, BUILD = "demo", "demo_corpus"
SNAPSHOTS = ("2026-11-19", "2026-11-20")
SHOWN = 120
"""Tokens of the decoded sequence that are shown."""

LOCATOR = ("snapshot", "file", "offset", "record_id")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the folder and the engine."""
    parser.add_argument(
        "--to", "--folder", dest="folder", default=FOLDER, metavar="FOLDER", help="where the crawl and the output go"
    )
    parser.add_argument(
        "--engine", choices=engine_names(), default="", help="run every stage there (default: the recipe's)"
    )


def answer(options: argparse.Namespace) -> int:
    """Run the demo; return its exit code."""
    return show(Path(options.folder), options.engine)


def show(folder: Path, engine: str = "") -> int:
    """Run the demo, on one engine or those of its recipe; return the exit code of the first run that failed, else 0."""
    started = time.perf_counter()
    crawl, root = folder / "crawl", str((folder / "root").absolute())
    planted, recipe = _crawl(crawl), recipe_of(folder)
    way = f"on the engine {engine}" if engine else "with Airflow, Spark and Ray"
    for snapshot in SNAPSHOTS:
        print_lines([f"\n=== Refining snapshot {snapshot} {way} ==="])
        landed = str((crawl / snapshot).absolute())
        if code := run(RunOptions(landed, root, snapshot, recipe, engine=engine, builds=False)):
            return code
    print_lines([f"\n=== Building the training dataset {BUILD} of both ==="])
    if code := build(BuildOptions(root, BUILD, engine=engine)):
        return code
    print_lines(_result_lines(root, planted))
    refinery, up = (".venv/bin/refinery", "make up") if is_checkout() else ("refinery", "refinery up")
    print_lines(
        (
            f"\nThe whole demo took {time.perf_counter() - started:.0f} s. Look further:",
            f"  {refinery} look trace {root} --dataset {BUILD} --random 3",
            f"  {refinery} verify {root}",
            f"  {up}    # the same DAGs in Airflow's web UI",
        )
    )
    return 0


def recipe_of(folder: Path) -> str:
    """Return the demo's recipe: of another folder than `FOLDER` a copy that names the questions of its crawl."""
    if folder == Path(FOLDER):
        return RECIPE
    copy = folder / f"{RECIPE}.yaml"
    text = (RECIPES / copy.name).read_text(encoding="utf-8")
    copy.write_text(text.replace(f"{FOLDER}/", f"{folder.absolute()}/"), encoding="utf-8")
    return str(copy)


def _crawl(folder: Path) -> truth.Truth:
    """Write the crawl unless it exists; return what was planted in it."""
    path = folder / "truth.json"
    if not path.exists():
        print_lines([f"Writing two crawl snapshots to {folder} ..."])
        write_crawl(folder, SNAPSHOTS)
    if not path.exists():
        message = f"{path} is missing; remove {folder} and run the demo again"
        raise RecipeError(message)
    return truth.load(path)


def _result_lines(root: str, planted: truth.Truth) -> Iterator[str]:
    """Yield the funnels, the comparison with the truth, a look at the tokens, and the paths of the reports."""
    versions = [version_log.current(root, RECIPE, snapshot) for snapshot in SNAPSHOTS]
    for version in versions:
        yield f"\n=== Funnel of snapshot {version.snapshot} ==="
        yield from funnel_lines(funnel(root, version))
    yield "\n=== Found against planted, both snapshots ==="
    yield from compared(root, planted, versions)
    yield "\n=== The start of the last packed sequence, decoded ==="
    yield _decoded(root, version_log.current(root, BUILD))
    for version in versions:
        yield f"report     {root}/{version.report}"


def compared(root: str, planted: truth.Truth, versions: Sequence[version_log.Version]) -> list[str]:
    """Return one line per kind of planted record: planted, found, rejected for another reason, missed."""
    rejected = [row for version in versions for row in _rejected_rows(root, version)]
    kept = [row for version in versions for row in _kept_rows(root, version)]
    return truth.compare(planted, rejected, kept)


def _rejected_rows(root: str, version: version_log.Version) -> Iterator[Mapping[str, Any]]:
    for path in version.manifests.values():
        manifest = read_manifest(root, path)
        for batch in read_shards(root, (*manifest.rejects, *manifest.quarantine), [*LOCATOR, "reason"]):
            yield from batch.to_pylist()


def _kept_rows(root: str, version: version_log.Version) -> Iterator[Mapping[str, Any]]:
    manifest = read_manifest(root, version.manifests["decontaminate"])
    near = read_manifest(root, version.manifests["dedup_minhash"])
    lost = [row for batch in read_history(root, near, "superseded") for row in batch.to_pylist()]
    better = {id_ for row in lost for id_ in (row["winner"]["id"], row["near"])}
    for batch in read_shards(root, manifest.shards, ["id", *LOCATOR, *COUNTS]):
        yield from ({**row, "supersedes": row["id"] in better} for row in batch.to_pylist())


def _decoded(root: str, version: version_log.Version) -> str:
    dataset = open_build(root, version)
    shard = len(dataset.index["shards"]) - 1
    last = Spot(shard, dataset.index["shards"][shard]["sequences"] - 1, 0)
    return str(decoder_of(root, version)(dataset.sequence(last)[:SHOWN].tolist()))
