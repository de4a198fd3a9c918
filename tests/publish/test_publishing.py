"""What is published of manifests has a prefix that follows from them, and the sizes of their last stages."""

from dataclasses import replace

from pipeline_tasks.manifest import Manifest, identified
from pipeline_tasks.publish.version_facts import prefix_of, sizes_of
from pipeline_tasks.stage import Shard

EMPTY = Manifest("ingest", 1, "", {}, (), (), (), (), {}, (), (), 0, 0, {}, {})


def manifest(stage: str, rows: int, tokens: int = 0, *parents: Manifest) -> Manifest:
    metrics = {"kept": {"n_tokens": {"kind": "whole", "count": rows, "sum": tokens, "bins": {}}}, "rejects": {}}
    shards = (Shard(f"{stage}/data", rows, 9, "d"),)
    made_of = tuple(parent.fingerprint for parent in parents)
    return identified(replace(EMPTY, stage=stage, shards=shards, metrics=metrics, parents=made_of))


def by_stage(*manifests: Manifest) -> dict[str, Manifest]:
    return {each.stage: each for each in manifests}


def test_a_snapshot_has_the_documents_of_its_last_stage() -> None:
    """The last stage is the one that no other was made of, in whatever order a recipe has them."""
    first = manifest("ingest", 10)
    second = manifest("dedup_exact", 9, 0, first)
    refined = by_stage(manifest("extract", 7, 0, second), second, first)
    assert sizes_of(refined) == {"documents": 7, "tokens": 0, "sequences": 0}


def test_a_dataset_has_documents_tokens_and_sequences() -> None:
    built = by_stage(manifest("tokenize", 7, 70), manifest("shuffle", 6, 60), manifest("pack", 3, 58))
    assert sizes_of(built) == {"documents": 6, "tokens": 58, "sequences": 3}


def test_a_prefix_follows_from_the_recipe_and_the_fingerprints_alone() -> None:
    refined = by_stage(manifest("ingest", 10), manifest("extract", 9))
    assert prefix_of("web", refined) == prefix_of("web", dict(reversed(refined.items())))
    assert prefix_of("web", refined).startswith("publish/")
    other = by_stage(manifest("ingest", 10), replace(manifest("extract", 9), fingerprint="other"))
    assert len({prefix_of("web", refined), prefix_of("web_en", refined), prefix_of("web", other)}) == 3
