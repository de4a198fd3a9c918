"""What stages cost per byte that they read, as measured: partitions follow from it, and what `refinery lint` foretells.

    python benchmarks/unit_costs.py --input ../shared/data/snapshots/dev-2026-45 --json

The snapshot has 22 MB of WARC, 3,027 records; `dedup_url` and `dedup_paragraphs` were put into the recipe `web` for
their rows. One core of a shared machine of 2; kernels were compiled before. Seconds include what a process loads once
(models, lists, word tables), so they are rather too high for a large input. They decide how work is cut, and no output
byte depends on them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class UnitCost:
    """What a stage costs per byte that it reads: the bytes of its input's files, and of those that layers rest on.

    `seconds` are of one core per megabyte. `kept` are bytes that the next stage reads, `stored` bytes that are written,
    rejected rows and history included. `objects` are files per shard of the input, receipts included. `bucket` is the
    memory that a task needs per byte of its bucket, 0 where memory does not follow from the bucket.
    """

    seconds: float
    kept: float
    stored: float
    objects: float
    bucket: float = 0.0


BUCKET_MEMORY = 8.4
"""Bytes of memory per byte of documents in a bucket: text is 3.6 times as stored, and sorting it needs two copies.

`--buckets 1` over 50 and 200 MB of generated JSON lines: 394 and 999 MB for 24 and 96 MB of documents as stored.
"""

BUCKET_BASE = 200 * MEGABYTE
"""Memory of a process that sorts an empty bucket, by the same measurement."""

TASK_MEMORY = 600 * MEGABYTE
"""Memory of a process without a bucket: the most of any stage (`filter_quality`, with kernels being compiled)."""

LAND_SECONDS = 1 / 1500
"""Seconds per megabyte of SHA-256, which `land` computes of files whose digests no `snapshot.json` promises."""

CUT_SECONDS = 1 / 74
"""Seconds per megabyte of a large file that `land` cuts into pieces: 105 MB of WARC, its gzip members inflated."""

COSTS: Mapping[str, UnitCost] = {
    "ingest": UnitCost(0.026, 1.01, 0.02, 5),
    "check_rights": UnitCost(0.02, 1.01, 0.02, 8),
    "extract": UnitCost(0.36, 0.22, 0.22, 3),
    "filter_url": UnitCost(0.18, 1.00, 0.01, 2),
    "filter_language": UnitCost(0.21, 1.01, 0.02, 5),
    "filter_quality": UnitCost(0.3, 1.25, 0.26, 5),
    "dedup_url": UnitCost(0.13, 1.00, 1.04, 6, BUCKET_MEMORY),
    "dedup_exact": UnitCost(0.023, 0.60, 0.63, 4, BUCKET_MEMORY),
    "cut_templates": UnitCost(0.05, 1.00, 0.05, 4),
    "dedup_minhash": UnitCost(0.27, 1.00, 1.73, 8),
    "dedup_paragraphs": UnitCost(0.30, 1.01, 0.18, 4),
    "score_quality": UnitCost(0.38, 1.02, 0.02, 4),
    "filter_toxicity": UnitCost(0.2, 1.02, 0.02, 4),
    "scrub_pii": UnitCost(0.23, 1.01, 0.01, 2),
    "decontaminate": UnitCost(0.23, 1.00, 0.34, 4),
    "enrich": UnitCost(0.06, 1.00, 0.02, 2),
    "embed": UnitCost(60.0, 1.2, 0.2, 4),
    "dedup_semantic": UnitCost(0.5, 1.00, 0.5, 8),
    "topics": UnitCost(0.1, 1.00, 0.02, 4),
    "tokenize": UnitCost(0.16, 1.90, 0.92, 3),
    "select": UnitCost(0.015, 1.00, 0.01, 2),
    "mix": UnitCost(0.025, 1.00, 0.01, 2),
    "shuffle": UnitCost(0.024, 0.50, 0.50, 2, BUCKET_MEMORY),
    "takedown": UnitCost(0.015, 1.00, 0.01, 2),
    "pack": UnitCost(0.04, 0.02, 0.02, 2),
}
"""By stage. Those of `select` and `takedown` are from a build of the two development snapshots, without conditions.

That of `check_rights` is 6 % of what `extract` took in a run beside it; looking robots.txt files up took 0.8 ms a host.
That of `embed` is that of an encoder of 22 million parameters on a CPU: static embeddings take a hundredth of it. Those
of `dedup_semantic` and `topics` are from a run of 48 documents. That of `filter_toxicity` follows from 36 MB of text a
second, as its loops were measured, and not from a run.
"""

DEAREST = UnitCost(0.60, 1.0, 1.0, 8)
"""Of a stage without a row."""


def cost_of(stage: str) -> UnitCost:
    """Return what a stage costs."""
    return COSTS.get(stage, DEAREST)


class FileCost(NamedTuple):
    """What follows from the kind of a landed file: its bytes per record, and the text in it as `extract` stores it."""

    record_bytes: int
    text: float


WARC = FileCost(7_274, 0.23)
"""Pages in gzip members."""

FILES: Mapping[str, FileCost] = {
    ".wet": FileCost(3_863, 0.83),
    ".parquet": FileCost(2_168, 0.86),
    ".jsonl.": FileCost(2_168, 0.86),
    ".ndjson.": FileCost(2_168, 0.86),
    ".json.": FileCost(2_168, 0.86),
    ".json": FileCost(5_294, 0.36),
    ".ndjson": FileCost(5_294, 0.36),
}
"""By a part of the name, the first that is in it.

The same command over the two WET files, and over 50 MB of JSON lines of their words, with gzip and without. Parquet is
taken to be as dense as gzip.
"""


def file_cost(name: str) -> FileCost:
    """Return what follows from the name of a landed file."""
    last = name.rpartition("/")[2].lower()
    return next((cost for part, cost in FILES.items() if part in last), WARC)
