"""What each stage costs per megabyte that it reads: CPU seconds, bytes kept and saved, objects, and peak memory.

    python benchmarks/unit_costs.py --input SNAPSHOT [--input SNAPSHOT ...] [--recipe web] [--buckets N] [--json]

Each stage of the recipe runs over each snapshot in a process of its own (`python -m pipeline_tasks`), one after the
other, on the engine `local`, with the snapshots before as history. `read` is the weight of the shards that the stage
reads: the bytes of their files and of the shards that layers rest on. CPU seconds are those of kernels; a process also
takes about two seconds to start, and compiles on its first run. `pipeline_tasks/run/unit_costs.py` has the results.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from pipeline_tasks.cards import stage_card
from pipeline_tasks.landing import listing
from pipeline_tasks.manifest import reference_of
from pipeline_tasks.recipe import LAND, LOCAL, Recipe, load_recipe
from pipeline_tasks.service.handle import handle
from pipeline_tasks.service.requests.publication import PublishRequest
from pipeline_tasks.service.requests.stages import HistoryRequest
from pipeline_tasks.store.reading import read_manifest

MEGABYTE = 1e6


@dataclass(frozen=True, slots=True)
class Spent:
    """What one stage cost over all snapshots: seconds, bytes, rows, objects, and peak memory of a process.

    `kept` is the weight of its shards, which the next stage reads, and `stored` their bytes; `saved` is history, what
    was rejected, and shards of the stage that layers rest on.
    """

    stage: str
    read: int
    seconds: float
    kept: int
    stored: int
    saved: int
    rows: int
    objects: int
    peak: int


def main() -> None:
    """Print a row per stage, and with --json one JSON object as the last line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", action="append", required=True)
    parser.add_argument("--recipe", default="web")
    parser.add_argument("--buckets", type=int, default=0, help="of every stage that has them (default: its own)")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="refinery-bench-") as folder:
        spent = [
            row
            for snapshot in options.input
            for row in snapshot_costs(Path(folder), snapshot, load_recipe(options.recipe), options.buckets)
        ]
    totals = {stage: _sum([row for row in spent if row.stage == stage]) for stage in dict.fromkeys(map(_stage, spent))}
    sys.stdout.writelines(map(_line, totals.values()))
    if options.json:
        sys.stdout.write(json.dumps({stage: asdict(row) for stage, row in totals.items()}) + "\n")


def _line(row: Spent) -> str:
    megabytes, rate = row.read / MEGABYTE, row.seconds / row.read * MEGABYTE
    shares = "  ".join(f"{getattr(row, name) / row.read:>5.2f} {name}" for name in ("kept", "stored", "saved"))
    counts = f"{row.read // max(row.rows, 1):>7,} B/row  {row.objects:>5} objects  {row.peak / MEGABYTE:>6.0f} MB"
    return f"{row.stage:<16} {megabytes:>8.2f} MB read  {rate:>8.3f} s/MB  {shares}  {counts}\n"


def _stage(row: Spent) -> str:
    return row.stage


def _sum(rows: Sequence[Spent]) -> Spent:
    names = ("read", "seconds", "kept", "stored", "saved", "rows", "objects")
    totals = {name: sum(getattr(row, name) for row in rows) for name in names}
    return Spent(stage=rows[0].stage, peak=max(row.peak for row in rows), **totals)


def snapshot_costs(folder: Path, snapshot: str, recipe: Recipe, buckets: int) -> list[Spent]:
    """Refine and publish a snapshot stage by stage; return what each stage cost."""
    root = str(folder / "root")
    path, landed, _ = listing.land(root, snapshot)
    parent = reference_of(path, landed)
    about: dict[str, Any] = {"root": root, "recipe": recipe.name, "snapshot": str(landed.params["snapshot"])}
    history = handle(HistoryRequest(**about))["history"]
    manifests, spent = {LAND: parent}, []
    for step in recipe.steps:
        params = {**step.params, **({"buckets": buckets} if buckets and _has_buckets(step.stage) else {})}
        if step.stage == "tokenize" and "train" in params:
            params = {**params, "train": {**params["train"], "min_bytes": 0}}
        request = {
            "verb": "refine",
            **about,
            "stage": step.stage,
            "params": params,
            "parent": parent,
            "history": history.get(step.stage, []),
            "landing": listing.landing_of(snapshot),
            "engine": LOCAL,
            "error_budget": {"share": 1.0, "rows": 1e9},
        }
        row, parent = _refined(folder, root, request)
        manifests[step.stage] = parent
        spent.append(row)
    handle(PublishRequest(**about, manifests=manifests))
    return spent


def _has_buckets(stage: str) -> bool:
    return "buckets" in {field.name for field in fields(stage_card(stage).params)}


def _refined(folder: Path, root: str, request: Mapping[str, Any]) -> tuple[Spent, str]:
    asked = folder / "request.json"
    asked.write_text(json.dumps(request))
    before = _objects(root)
    child = subprocess.Popen([sys.executable, "-m", "pipeline_tasks", str(asked)], stdout=subprocess.PIPE, text=True)
    output = child.stdout.read() if child.stdout else ""
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        message = f"{request['stage']} failed with status {status}"
        raise SystemExit(message)
    reply = json.loads(output)
    parent, manifest = (read_manifest(root, referred) for referred in (request["parent"], reply["manifest"]))
    return (
        Spent(
            stage=request["stage"],
            read=sum(shard.weight for shard in parent.shards),
            seconds=reply["cpu"],
            kept=sum(shard.weight for shard in manifest.shards),
            stored=manifest.bytes,
            saved=sum(shard.bytes for shard in manifest.stored) - manifest.bytes,
            rows=manifest.rows_in,
            objects=_objects(root) - before,
            peak=usage.ru_maxrss * 1024,
        ),
        reply["manifest"],
    )


def _objects(root: str) -> int:
    return sum(1 for path in Path(root).rglob("*") if path.is_file())


if __name__ == "__main__":
    main()
