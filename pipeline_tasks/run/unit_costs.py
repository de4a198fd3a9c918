"""What stages cost per byte that they read, as measured: partitions follow from it, and what `refinery lint` foretells.

    python benchmarks/unit_costs.py --input ../shared/data/snapshots/dev-2026-45 --json

The snapshot has 22 MB of WARC, 3,027 records; `dedup_url` and `dedup_paragraphs` were put into the recipe `web` for
their rows. One core of a shared machine of 2; kernels were compiled before. Seconds include what a process loads once
(models, lists, word tables), so they are rather too high for a large input. They decide how work is cut, and no output
byte depends on them. The cards of the stages have them (`facets.UnitCost`).

The seconds of `extract` are those of an earlier method, less what `blocks` reads faster (`benchmarks/extract.py`: 365
pages a second for 274). Those of `select` and `takedown` are from a build of the two development snapshots, without
conditions. That of `check_rights` is 6 % of what `extract` took in a run beside it; looking robots.txt files up took
0.8 ms a host. That of `embed` is that of an encoder of 22 million parameters on a CPU: static embeddings take a
hundredth of it. Those of `dedup_semantic` and `topics` are from a run of 48 documents. That of `filter_toxicity`
follows from 36 MB of text a second, as its loops were measured, and not from a run; that of `dedup_substrings` from
0.16 s for a megabyte of text (`benchmarks/substrings.py`), and as much again for a second pass, its files and spans.
"""

from collections.abc import Mapping
from typing import NamedTuple

from pipeline_tasks.cards import known_card
from pipeline_tasks.facets import DEAREST, UnitCost

MEGABYTE = 1_000_000


BUCKET_BASE = 200 * MEGABYTE
"""Memory of a process that sorts an empty bucket, by the measurement of `facets.BUCKET_MEMORY`."""

TASK_MEMORY = 600 * MEGABYTE
"""Memory of a process without a bucket: the most of any stage (`filter_quality`, with kernels being compiled)."""

LAND_SECONDS = 1 / 1500
"""Seconds per megabyte of SHA-256, which `land` computes of files whose digests no `snapshot.json` promises."""

CUT_SECONDS = 1 / 74
"""Seconds per megabyte of a large file that `land` cuts into pieces: 105 MB of WARC, its gzip members inflated."""


def cost_of(stage: str) -> UnitCost:
    """Return what a stage costs, by its card: the dearest for one that this release does not know."""
    card = known_card(stage)
    return card.cost if card else DEAREST


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
