"""Seconds of CPU that the overview page of many snapshots takes, against reading every manifest and verdict.

    python benchmarks/pages.py [--snapshots N] [--partitions N] [--root FOLDER] [--json]

A root is generated: each snapshot has a manifest and a verdict of every stage of the recipe `web`, with column profiles
and as many shards as partitions, and no rows. `manifests` reads all of them, as the page did before versions had
summaries; `cold` is the first overview of a process and `warm` the next; `page` renders the warm one. All are of the
same run, and ratios are to `manifests`.
"""

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from pipeline_tasks.cards import stage_card
from pipeline_tasks.gate.verdicts import Verdict, read_verdict, verdict_reference
from pipeline_tasks.inspect import funnel
from pipeline_tasks.inspect.versions.overview import overviews
from pipeline_tasks.manifest import NAMED, Manifest, dump, identified, manifest_path, reference_of
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.recipe import LAND, PUBLISH, load_recipe
from pipeline_tasks.report import summary
from pipeline_tasks.sealed import reference, seal, sha256
from pipeline_tasks.stage import Shard
from pipeline_tasks.store import storage

RECIPE = "web"
ROWS = 10_000
FIRST = date(2026, 1, 1)


def main() -> None:
    """Generate the root, measure, and print a table or one JSON line."""
    parser = argparse.ArgumentParser(description="Measure the overview page")
    parser.add_argument("--snapshots", type=int, default=300)
    parser.add_argument("--partitions", type=int, default=5000, help="of all snapshots together")
    parser.add_argument(
        "--root", default="", help="where the root is generated, and kept (default: a temporary folder)"
    )
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        root = options.root or f"{temporary}/root"
        os.environ.setdefault("AIRFLOW_HOME", f"{temporary}/airflow")  # the page asks Airflow for its own address
        generate(root, options.snapshots, max(options.partitions // options.snapshots, 1))
        seconds = measured(root)
    print(json.dumps(seconds) if options.json else "\n".join(lines(seconds)))


def measured(root: str) -> dict[str, float]:
    """Return the seconds of CPU of each way."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "plugins"))
    from refinery_airflow.pages.landed import landed_now
    from refinery_airflow.pages.overview import recipe_page
    from refinery_airflow.pages.rendering import render

    summary.forget()
    ways: dict[str, Callable[[], object]] = {
        "manifests": lambda: read_all(root),
        "cold": lambda: overviews(root),
        "warm": lambda: overviews(root),
        "page": lambda: render(
            "snapshots.html", root=root, landed=landed_now(), recipes=[recipe_page(each) for each in overviews(root)]
        ),
    }
    return {name: seconds_of(way) for name, way in ways.items()}


def seconds_of(call: Callable[[], object]) -> float:
    """Return the seconds of CPU that a call takes."""
    started = time.process_time()
    call()
    return time.process_time() - started


def read_all(root: str) -> list[Any]:
    """Read every manifest and verdict of the newest versions."""
    versions = version_log.latest_by_snapshot(root, RECIPE)
    verdicts = [read_verdict(root, path) for version in versions for path in version.verdicts.values()]
    return [*(funnel.funnel(root, version) for version in versions), verdicts]


# --- The generated root -------------------------------------------------------------------------------------------


def generate(root: str, snapshots: int, shards: int) -> None:
    """Publish snapshots of consecutive days, each of `shards` shards per stage."""
    draws = random.Random(7)  # noqa: S311 -- planted data
    history: dict[str, list[str]] = {}
    for day in range(snapshots):
        snapshot = (FIRST + timedelta(days=day)).isoformat()
        manifests = dict(refined(root, snapshot, shards, history, draws))
        paths = {stage: reference_of(_path(manifest), manifest) for stage, manifest in manifests.items()}
        verdicts = {
            stage: judged(root, stage, manifest, draws) for stage, manifest in manifests.items() if stage != LAND
        }
        verdicts[PUBLISH] = judged(root, PUBLISH, manifests["pack"], draws)
        kept = manifests["pack"].metrics["kept"]["n_tokens"]
        facts = {"landing": "", "prefix": "", "documents": manifests["shuffle"].rows, "tokens": kept["sum"]}
        named = {"recipe": RECIPE, "snapshot": snapshot, "manifests": paths, "verdicts": verdicts}
        version = version_log.append(root, {**named, **facts, "sequences": manifests["pack"].rows})
        summary.store_summary(root, version)


def refined(
    root: str, snapshot: str, shards: int, history: dict[str, list[str]], draws: random.Random
) -> Iterator[tuple[str, Manifest]]:
    """Yield the manifests of a snapshot by stage; each is committed."""
    parent = committed(root, _manifest(LAND, {"snapshot": snapshot}, (), _shards(LAND, ROWS, shards, draws), ROWS))
    yield LAND, parent
    for step in load_recipe(RECIPE).steps:
        known = history.setdefault(step.stage, []) if stage_card(step.stage).reads_history else []
        rows = round(parent.rows * draws.uniform(0.85, 1.0))
        parents = (parent.fingerprint, *known)
        saved = _shards(step.stage, 100, 1, draws) if stage_card(step.stage).reads_history else ()
        made = _manifest(step.stage, {}, parents, _shards(step.stage, rows, shards, draws), parent.rows, saved)
        parent = committed(root, made)
        known.append(parent.fingerprint)
        yield step.stage, parent


def _manifest(
    stage: str,
    params: dict[str, Any],
    parents: tuple[str, ...],
    shards: tuple[Shard, ...],
    rows_in: int,
    saved: tuple[Shard, ...] = (),
) -> Manifest:
    rows = sum(shard.rows for shard in shards)
    return Manifest(
        stage=stage,
        version=1,
        fingerprint="",
        params=params,
        parents=parents,
        covers=(),
        schema=(("text", "large_string"), ("id", "fixed_size_binary[16]")),
        shards=shards,
        history={"kept": saved} if saved else {},
        rejects=(),
        quarantine=(),
        rows_in=rows_in,
        bytes_in=rows_in * 2000,
        rejected={f"{stage}:reason_{number}": (rows_in - rows) // 8 for number in range(8)},
        quarantined={},
        metrics={"kept": _profiles(rows), "rejects": {}},
        parent_digests=tuple(sha256(parent.encode()) for parent in parents),
    )


def _profiles(rows: int) -> dict[str, Any]:
    """Return profiles of the columns that stages have, of about the size of real ones."""
    bins = {str(16 << (at // 8) | (at % 8) << (at // 8)): rows // 40 for at in range(40)}
    whole = {"kind": "whole", "count": rows, "sum": rows * 900, "bins": bins}
    score = {"kind": "ratio", "count": rows, "bins": {str(60 + at): rows // 40 for at in range(40)}}
    return {"chars": whole, "n_tokens": whole, "language_score": score}


def _shards(stage: str, rows: int, count: int, draws: random.Random) -> tuple[Shard, ...]:
    digests = [f"{draws.getrandbits(256):064x}" for _ in range(count)]
    return tuple(
        Shard(f"{stage}/shards/data/{digest[:NAMED]}.parquet", rows // count, rows * 800 // count, digest)
        for digest in digests
    )


def committed(root: str, manifest: Manifest) -> Manifest:
    """Commit a manifest under the fingerprint that follows from it."""
    manifest = identified(manifest)
    storage.commit(storage.connect(root), _path(manifest), dump(manifest))
    return manifest


def _path(manifest: Manifest) -> str:
    return manifest_path(manifest.stage, manifest.fingerprint)


def judged(root: str, gate: str, manifest: Manifest, draws: random.Random) -> str:
    """Commit a verdict of as many facts as real ones have; return its reference."""
    folder = f"{manifest.stage}/{manifest.fingerprint}/gate/{sha256(gate.encode())[:24]}"
    verdict = Verdict(
        stage=gate,
        fingerprint=manifest.fingerprint,
        manifest=reference(_path(manifest), sha256(dump(manifest))),
        previous="",
        outcome="warn" if draws.random() < 0.1 else "pass",  # noqa: PLR2004 -- one in ten
        override="",
        failures=(),
        evaluated=40,
        skipped=(),
        facts={f"fact_{number}": number / 7 for number in range(40)},
        path=f"{folder}/verdict.json",
        docs=f"{folder}/docs/index.html",
    )
    storage.commit(storage.connect(root), verdict.path, seal(verdict))
    return verdict_reference(verdict)


def lines(seconds: dict[str, float]) -> Sequence[str]:
    """Return the measurements as lines for a person."""
    whole = seconds["manifests"]
    return [f"{name:>10} {value:>9.3f} s of CPU {whole / value:>9.1f}x" for name, value in seconds.items()]


if __name__ == "__main__":
    main()
