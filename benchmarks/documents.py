"""Provides the documents of the text benchmarks: the output of Refinery's first stages over real or demo snapshots."""

import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.engines.choose import engine
from pipeline_tasks.landing import listing
from pipeline_tasks.recipe import ErrorBudget, load_recipe
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.run.runner import refine
from pipeline_tasks.run.tasks.task import StageIO, read_input
from pipeline_tasks.store.reading import read_manifest

ROOT = Path(__file__).parent.parent
WET = ROOT.parent / "shared" / "data" / "wet"
SNAPSHOT = ROOT.parent / "shared" / "data" / "snapshots" / "dev-2026-45"


@cache
def demo_crawl() -> Path:
    """Write the demo's crawl to a temporary folder and return it; the caller removes it."""
    from pipeline_tasks.demo.crawl import write_crawl

    folder = Path(tempfile.mkdtemp(prefix="refinery-demo-crawl-"))
    write_crawl(folder)
    return folder


def after(stage: str, inputs: Sequence[Path], root: Path, columns: Sequence[str]) -> pa.Table:
    """Run the web recipe up to `stage` over every snapshot of `inputs`; return the columns (none named: all) kept."""
    recipe, factory, tables = load_recipe("web"), engine("local"), []
    for uri in map(str, inputs):
        path, _, landed = listing.land(str(root), uri)
        for step in recipe.steps:
            work = RefineRequest(
                str(root),
                step.stage,
                step.params,
                path,
                landing=listing.landing_of(uri),
                error_budget=ErrorBudget(share=1),
            )
            path, _, _ = refine(work, factory)
            if step.stage == stage:
                break
        where = StageIO(str(root), "", landing=listing.landing_of(uri), snapshot=landed.snapshot)
        shards = read_manifest(str(root), path).shards
        rows = pa.Table.from_batches([batch for shard in shards for batch in read_input(where, shard)])
        tables.append(rows.select(list(columns)) if columns else rows)
    return pa.concat_tables(tables)


def english(source: Path | None, root: Path) -> pa.Table:
    """Return the English documents (text, language) of each file of a WET folder, or of the demo's crawl."""
    inputs = sorted(source.glob("*.wet.gz")) if source else [demo_crawl() / "2026-11-19", demo_crawl() / "2026-11-20"]
    identified = after("filter_language", inputs, root, ())
    return identified.filter(pc.equal(identified["language"], "en"))
