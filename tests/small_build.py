"""A small training dataset, built from the two published days of the small root by the requests of its DAG."""

import shutil
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from pipeline_tasks.publish.datasets.published_shards import named_files
from pipeline_tasks.publish.datasets.tokenizer_pin import pin_path
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.recipe import Recipe, parse_recipe
from pipeline_tasks.sealed import path_of
from pipeline_tasks.store.reading import read_manifest
from tests.chain import reply
from tests.small_root import DAYS, RECIPE, SmallRoot

DATASET = "corpus"

STAGES = ("tokenize", "select", "mix", "shuffle", "takedown", "pack")

BUILT: Mapping[str, Any] = {
    "name": DATASET,
    "versions": {"recipe": RECIPE},
    "stages": {
        "tokenize": {},  # `build` names the tokenizer of the small root
        "select": {"where": {"n_tokens": {"most": 93}}},
        "mix": {"by": "snapshot", "epochs": {DAYS[0]: 2.5}, "tokens": {DAYS[1]: 300}},
        "shuffle": {"seed": 3, "buckets": 3},
        "pack": {"method": "best_fit", "length": 64},
    },
}
"""Rejects superseded documents, uses those of one day two or three times, and packs three shards."""


def recipe(**changes: Mapping[str, Any]) -> Recipe:
    """Return the recipe of the build with other params for some stages."""
    return parse_recipe({**BUILT, "stages": {**BUILT["stages"], **changes}}, "corpus.yaml")


def copied(small: SmallRoot, folder: Path) -> SmallRoot:
    """Return a copy of a root."""
    return replace(small, root=str(shutil.copytree(small.root, folder / "root")))


def build(small: SmallRoot, built: Recipe | None = None, *, judged: bool = False) -> dict[str, Any]:
    """Build as the DAG does: compose, each stage (with its gate, if `judged`), publish; return the reply of `publish`."""
    built = built or recipe()
    assert built.versions is not None
    named = {"root": small.root, "recipe": built.name, "snapshot": "build"}
    parent = reply("compose", **named, versions=asdict(built.versions))["manifest"]
    manifests, verdicts = {"compose": parent}, {}
    for step in built.steps:
        params = {"tokenizer": small.tokenizer} if step.stage == "tokenize" else dict(step.params)
        request = {"stage": step.stage, "params": params, "parent": parent}
        parent = manifests[step.stage] = reply("refine", **named, **request)["manifest"]
        if judged:
            verdicts[step.stage] = reply("judge", **named, manifest=parent, override="a test")["verdict"]
    return reply("publish", **named, manifests=manifests, verdicts=verdicts)


def objects(small: SmallRoot, dataset: str = DATASET) -> dict[str, list[Path]]:
    """Return the objects of the newest version of a dataset by kind."""
    root, version = Path(small.root), version_log.current(small.root, dataset)
    manifests = {stage: read_manifest(small.root, referred) for stage, referred in version.manifests.items()}
    select, mix = manifests["select"], manifests["mix"]
    shards = {
        "superseded documents": manifests["compose"].history_shards,
        "tokenizer": manifests["tokenize"].history_shards,
        "layer of select": select.shards,
        "layer of mix": mix.shards,
        "plan": mix.history_shards,
        "rejects of select": select.rejects,
        "rejects of mix": mix.rejects,
        "shuffled shard": manifests["shuffle"].shards,
        "packed shard": manifests["pack"].shards,
    }
    log = root / "datasets" / dataset
    verdicts = [root / path_of(referred) for referred in version.verdicts.values()]
    return {
        "log entry": sorted(log.glob("*.json")),
        "log head": sorted((log / "heads").iterdir()),
        **{f"manifest of {stage}": [root / path_of(referred)] for stage, referred in version.manifests.items()},
        **{kind: [root / shard.path for shard in part] for kind, part in shards.items()},
        **{f"receipt of {stage}": sorted(root.glob(f"{stage}/*/receipts/*")) for stage in ("select", "mix")},
        "verdict": verdicts,
        "Data Docs page": [path.parent / "docs" / "index.html" for path in verdicts],
        **{
            kind: _published(root, version, kind)
            for kind in ("dataset.json", "build.json", "tokenizer.json", "README.md")
        },
        **{kind: _published(root, version, kind) for kind in (".bin", ".ends", ".lineage.parquet")},
        "tokenizer pin": [root / pin_path(dataset)],
        "tokenizer definition": sorted((root / pin_path(dataset)).parent.glob(f"{version.tokenizer}.*")),
    }


def _published(root: Path, version: Version, ending: str) -> list[Path]:
    return [root / file.path for file in named_files(str(root), version) if file.path.endswith(ending)]
