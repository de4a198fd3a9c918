"""Exports small training datasets as `refinery export` does, without the card and tokenizer that a version has."""

from typing import Any

from pipeline_tasks.publish.trainers.exporting import Export, run
from pipeline_tasks.publish.trainers.format import Format
from pipeline_tasks.publish.trainers.formats import format_of
from pipeline_tasks.publish.trainers.stretch import Dataset, open_dataset
from pipeline_tasks.publish.trainers.token_shards import token_jobs
from tests.training_dataset import Packed

PREFIX = "publish/0123456789abcdef01234567"


def dataset_of(packed: Packed) -> Dataset:
    """Return a dataset as exports read it."""
    return open_dataset(str(packed.folder.parent.parent), PREFIX)


def exported(
    packed: Packed, to: str, name: str = "parquet", shard_bytes: int = 700, workers: int = 1
) -> dict[str, Any]:
    """Export a dataset; return the list of its files."""
    dataset = dataset_of(packed)
    facts = {"export": name, "dataset": dataset.index.digest, "shard_bytes": shard_bytes}
    expected = {field: getattr(dataset.index, field) for field in ("sequences", "tokens", "pads")}
    jobs = token_jobs(dataset, name, shard_bytes)
    format_ = format_of(name)
    assert isinstance(format_, Format)
    return run(Export(facts, jobs, lambda shards: format_.index(dataset.index, shards), expected), to, workers)
