"""Measures what a published version took, from its manifests and the ledger: bytes, rows and seconds of every stage.

A build has the documents of other versions; their stages count as its own.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from pipeline_tasks.cards import has_sequences, makes_documents, stage_that
from pipeline_tasks.counted import counted
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.chosen import ordered_manifests
from pipeline_tasks.inspect.tokens import tokens_of
from pipeline_tasks.ledger import recorded_seconds
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.publish.published import read_published_file
from pipeline_tasks.recipe import DEFAULT_BUILD, load_build
from pipeline_tasks.run.unit_costs import MEGABYTE, cost_of, file_cost
from pipeline_tasks.sealed import path_of
from pipeline_tasks.stage import Shards
from refinery_study.plan.bases import TOKENS_PER_SHUFFLED_BYTE, UNIT_COST
from refinery_study.plan.demand import Basis, StageRate

DESCRIPTIONS = ("tokens.json", "dataset.json")
"""Names of the files that say how tokens are stored."""

Manifests = Mapping[str, Manifest]
"""Manifests by stage, in order."""

LEDGER = "ledger"
"""The source of seconds that a run recorded."""


@dataclass(frozen=True, slots=True)
class StageCost:
    """What a stage of a version took, and what unit costs foretell of it.

    `reads` and `stores` are bytes, `seconds` of one core; `seconds` is None where the ledger has none, and
    `unit_seconds` are those that unit costs give for `reads`. What is foretold follows from the landed files alone.
    """

    stage: str
    reads: int
    stores: int
    rows_in: int
    rows: int
    has_rows: bool
    seconds: float | None
    unit_seconds: float
    foretold_reads: float
    foretold_seconds: float

    @property
    def kept(self) -> float | None:
        """Share of its rows that it kept; None of a stage that has other rows than it reads."""
        return self.rows / self.rows_in if self.has_rows and self.rows_in else None


@dataclass(frozen=True, slots=True)
class VersionCost:
    """What a version took from its landed files to its tokens, and the tokens that unit costs foretell.

    `tokens` are those that its documents are estimated to have where it is a snapshot's.
    """

    version: Version
    landed: int
    tokens: int
    stages: tuple[StageCost, ...]
    foretold_tokens: float


def version_cost(root: str, version: Version) -> VersionCost:
    """Return what a version took; RecipeError if it has no documents, or its landed files are not known."""
    where = f"{root}: version {version.number} of recipe {version.recipe}"
    manifests = ordered_manifests(root, version)
    tokens = tokens_of(root, version) or round(_foretold_tokens(manifests))
    if not version.documents or not tokens:
        message = f"{where} has no documents to plan from; name a version with documents"
        raise RecipeError(message)
    parts = [(part, _until(root, part, path)) for part, path in _composed(root, manifests)]
    parts.append((version, manifests))
    prefixes = [f"{part.recipe}/" if len(parts) > 1 else "" for part, _ in parts]
    stages = _added(
        stage for (part, own), prefix in zip(parts, prefixes, strict=True) for stage in _stages(root, part, own, prefix)
    )
    landed = sum(_landed(own) for _, own in parts)
    if not landed:
        message = f"{where} does not name the landed files that it comes from; name a version of a snapshot"
        raise RecipeError(message)
    return VersionCost(version, landed, tokens, tuple(stages), _foretold_tokens(manifests))


def _composed(root: str, manifests: Manifests) -> list[tuple[Version, str]]:
    """Return the versions that a build was made of, each with the path of the manifest that the build reads."""
    named = [entry for manifest in manifests.values() for entry in manifest.params.get("versions") or ()]
    recipes = {str(entry.get("recipe", "")) for entry in named}
    published = {recipe: version_log.versions(root, recipe) for recipe in sorted(recipes)}
    return [_named(root, entry, published[str(entry.get("recipe", ""))]) for entry in named]


def _named(root: str, entry: Mapping[str, Any], published: Sequence[Version]) -> tuple[Version, str]:
    snapshot, path = str(entry.get("snapshot", "")), path_of(str(entry.get("manifest", "")))
    for version in reversed(published):
        if version.snapshot == snapshot and path in map(path_of, version.manifests.values()):
            return version, path
    message = (
        f"{root}: recipe {entry.get('recipe')} has no version of snapshot {snapshot} with {path}, of which a build was "
        "made; its log was replaced, restore it from a backup"
    )
    raise RecipeError(message)


def _until(root: str, version: Version, path: str) -> Manifests:
    """Return the manifests of a version up to the one at a path."""
    manifests = ordered_manifests(root, version)
    last = next(stage for stage, referred in version.manifests.items() if path_of(referred) == path)
    stages = [*manifests]
    return {stage: manifests[stage] for stage in stages[: stages.index(last) + 1]}


def _landed(manifests: Manifests) -> int:
    return sum(_weight(manifest.shards) for manifest in manifests.values() if manifest.landed)


def _stages(root: str, version: Version, manifests: Manifests, prefix: str) -> Iterator[StageCost]:
    """Yield what each stage of a version took; what it begins with was landed or composed, and took nothing here."""
    seconds, expected = recorded_seconds(root, version), _foretold_reads(manifests)
    parents = {manifest.fingerprint: manifest for manifest in manifests.values()}
    for stage, manifest in manifests.items():
        parent = parents.get(next(iter(manifest.parents), ""))
        if parent:
            cost = _stage_cost(manifest, _weight(parent.shards), seconds.get(stage), expected[stage])
            yield replace(cost, stage=f"{prefix}{stage}")


def _foretold_reads(manifests: Manifests) -> dict[str, float]:
    """Return the bytes that unit costs expect each stage to read, and under "" those that the last passes on."""
    reads = {}
    passed = 0.0
    for at, (stage, manifest) in enumerate(manifests.items()):
        reads[stage] = passed
        passed = float(_weight(manifest.shards)) if at == 0 else passed * _passed_on(stage, manifests)
    return reads | {"": passed}


def _foretold_tokens(manifests: Manifests) -> float:
    """Return the tokens that unit costs expect where they are packed; those of documents that nobody has are as many.

    These are packed by the default build.
    """
    reads = _foretold_reads(manifests)
    if packing := stage_that(has_sequences, manifests):
        return reads[packing] * TOKENS_PER_SHUFFLED_BYTE
    left = [step.stage for step in load_build(DEFAULT_BUILD).steps if step.stage not in manifests]
    shuffled = reads[""] * prod(cost_of(stage).kept for stage in left if not has_sequences(stage))
    return shuffled * TOKENS_PER_SHUFFLED_BYTE


def _weight(shards: Shards) -> int:
    return sum(shard.weight for shard in shards)


def _passed_on(stage: str, manifests: Manifests) -> float:
    """Return the bytes that the next stage is expected to read, per byte that this one reads."""
    files = [shard for manifest in manifests.values() if manifest.landed for shard in manifest.shards]
    if not makes_documents(stage) or not _weight(tuple(files)):
        return cost_of(stage).kept
    text = sum(shard.bytes * file_cost(shard.path).text for shard in files)
    return text / _weight(tuple(files))


def _stage_cost(manifest: Manifest, reads: int, seconds: float | None, expected: float) -> StageCost:
    rate = cost_of(manifest.stage).seconds
    return StageCost(
        stage=manifest.stage,
        reads=reads,
        stores=sum(shard.bytes for shard in manifest.stored),
        rows_in=manifest.rows_due,
        rows=manifest.rows,
        has_rows="url" in dict(manifest.schema),
        seconds=seconds,
        unit_seconds=reads / MEGABYTE * rate,
        foretold_reads=expected,
        foretold_seconds=expected / MEGABYTE * rate,
    )


def _added(stages: Iterable[StageCost]) -> list[StageCost]:
    """Return the stages with those of one name added up, in the order of their first."""
    named: dict[str, StageCost] = {}
    for stage in stages:
        named[stage.stage] = _sum(named[stage.stage], stage) if stage.stage in named else stage
    return list(named.values())


def _sum(a: StageCost, b: StageCost) -> StageCost:
    names = ("reads", "stores", "rows_in", "rows", "unit_seconds", "foretold_reads", "foretold_seconds")
    seconds = None if a.seconds is None or b.seconds is None else a.seconds + b.seconds
    return replace(a, seconds=seconds, **{name: getattr(a, name) + getattr(b, name) for name in names})


def version_basis(cost: VersionCost) -> Basis:
    """Return the rates of a version, per landed byte; seconds that the ledger lacks follow from unit costs."""
    version, landed = cost.version, cost.landed
    documents = counted(version.documents, "document")
    named = f"{version.recipe} version {version.number}, snapshot {version.snapshot}"
    source = f"{named}, {documents}: its manifests and the ledger"
    rates = (
        StageRate(
            stage=stage.stage,
            reads=stage.reads / landed,
            seconds=(stage.unit_seconds if stage.seconds is None else stage.seconds) / landed,
            stores=stage.stores / landed,
            kept=stage.kept,
            source=UNIT_COST if stage.seconds is None else LEDGER,
        )
        for stage in cost.stages
    )
    return Basis(f"version {version.number}", source, landed / cost.tokens, 0.0, tuple(rates))


def token_bytes(root: str, version: Version) -> int:
    """Return the bytes of a token in a version's exported files, from the description beside them; 0 without one."""
    for file in version.files:
        if file.path.rpartition("/")[2] in DESCRIPTIONS:
            dtype = json.loads(read_published_file(root, file, version.way_out)).get("dtype", "")
            return int(np.dtype(dtype).itemsize) if dtype else 0
    return 0
