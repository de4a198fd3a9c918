"""Measures mixing, shuffling, packing and exporting of a training dataset, by tokens and processor seconds.

    python benchmarks/building.py [--m-tokens 10 40 160] [--engine ray] [--peer MEGABYTES] [--json]

Documents have random ids below 32,000 and lengths of a log-normal distribution (median 490), 8 shards of them. Stages
run on the local engine, one core; exports are those of `publish`. The first, small round compiles and is not counted.
With another engine, seconds are those of a clock, on all cores, with its start not counted.
`build_m_tokens_s` is of the largest size, without the mixing. `exponent` is the growth of seconds with tokens from the
smallest to the largest size. `fill` is the share of positions that are no pads; the gate's fact of that name leaves out
as many pads as one sequence may have, and is a little larger.

With `--peer`, so many megabytes of text (those of `benchmarks/tokens.py`) go through both: `build_ratio` is the
processor time of datatrove's `DocumentTokenizer` and `DocumentTokenizerMerger` over that of Refinery's `tokenize`,
`shuffle`, `pack` (best fit) and export, `merge_ratio` that of its merger over all but `tokenize`. The merger neither
packs nor writes lineage.
"""

import argparse
import gzip
import hashlib
import json
import math
import os
import resource
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import peers
import pyarrow as pa
import tokens

from pipeline_tasks.engines.each import HERE
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.exports import shards as exported
from pipeline_tasks.publish.exports.shards import PackedShard
from pipeline_tasks.schema import LOCATOR
from pipeline_tasks.stage import Shard, Shards
from tests.refining import commit_parent, refined

LENGTH = 2048
SHARDS = 8
VOCABULARY = 32_000
STAGES: dict[str, dict[str, Any]] = {
    "mix": {"epochs": {"en": 1.0}},
    "shuffle": {"seed": 1},
    "pack": {"method": "best_fit", "length": LENGTH},
}
TOKENIZER = tokens.SHARED / "resources" / "gpt-neo-tokenizer.json.gz"

T = TypeVar("T")


def main() -> None:
    """Print the figures; with --json the last line is one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--m-tokens", type=int, nargs="+", default=[10, 40, 160], help="millions of tokens")
    parser.add_argument("--engine", choices=("local", "spark", "ray"), default="local")
    parser.add_argument("--peer", type=int, default=0, metavar="MEGABYTES", help="compare with datatrove on text")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    measured(1, options.engine)
    runs = {size: measured(size, options.engine) for size in sorted(options.m_tokens)}
    for size, run in runs.items():
        print(f"{size:>6} M tokens  {'  '.join(f'{name} {value}' for name, value in run.items())}")
    first, last = min(runs), max(runs)
    seconds = {size: sum(runs[size][name] for name in ("shuffle", "pack", "export")) for size in (first, last)}
    growth = math.log(seconds[last] / seconds[first]) / math.log(last / first) if last > first else None
    figures: dict[str, Any] = {
        "engine": options.engine,
        "cores": len(os.sched_getaffinity(0)) if options.engine != "local" else 1,
        "build_m_tokens_s": round(runs[last]["m_tokens"] / seconds[last], 1),
        "exponent": growth and round(growth, 2),
        "fill": runs[last]["fill"],
        "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "runs": {str(size): run for size, run in runs.items()},
    }
    figures |= compared(options.peer) if options.peer else {}
    print({name: value for name, value in figures.items() if name != "runs"})
    if options.json:
        print(json.dumps(figures))


def measured(m_tokens: int, on: str = "local") -> dict[str, float]:
    """Return the seconds of each step over about so many million tokens on an engine, the tokens, and the fill."""
    clock, threads = (time.process_time, 1) if on == "local" else (time.perf_counter, HERE.workers.count)
    seconds: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="refinery-build-") as name:
        root = Path(name)
        path = commit_parent(root, [documents(number, m_tokens) for number in range(SHARDS)])
        manifests: dict[str, Manifest] = {}
        for stage, params in STAGES.items():
            step = partial(refined, root, stage, path, params, on=on)
            seconds[stage], (path, manifests[stage]) = timed(step, clock)
        packed = manifests["pack"]
        seconds["export"], _ = timed(lambda: write_all(root, manifests["shuffle"], packed, threads), clock)
        tokens = int(packed.metrics["kept"]["n_tokens"]["sum"])
        return {
            "m_tokens": round(tokens / 1e6, 1),
            **{step: round(value, 2) for step, value in seconds.items()},
            "fill": round(tokens / (packed.rows * LENGTH), 5),
        }


def compared(megabytes: int) -> dict[str, float]:
    """Return how many times the processor time of Refinery datatrove takes, from texts to merged tokens."""
    os.environ |= {"TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1"}
    texts = pa.Table.from_batches(tokens.batches(None, megabytes * 1_000_000))
    with tempfile.TemporaryDirectory(prefix="refinery-build-") as name:
        root, definition = Path(name), Path(name, "tokenizer.json")
        definition.write_bytes(gzip.decompress(TOKENIZER.read_bytes()))
        ours = tokenized_and_built(root, texts, definition)
        source = root / "documents.jsonl"
        peers.write_documents(source, texts["text"].to_pylist())
        theirs = peers.run("peer_tokens.py", str(source), str(root / "peer"), str(definition), python=peers.install())
    built = sum(ours[step] for step in ("shuffle", "pack", "export"))
    return {
        "build_ratio": round((theirs["tokenize_s"] + theirs["merge_s"]) / (ours["tokenize"] + built), 1),
        "merge_ratio": round(theirs["merge_s"] / built, 1),
        **{f"peer_{step}": round(seconds, 2) for step, seconds in theirs.items()},
        **{f"own_{step}_s": round(seconds, 2) for step, seconds in ours.items()},
    }


def tokenized_and_built(root: Path, texts: pa.Table, definition: Path) -> dict[str, float]:
    """Return processor seconds of the stages over texts in as many shards as the peer has files."""
    rows = -(-texts.num_rows // SHARDS)
    shards = [located(texts.slice(first, rows)) for first in range(0, texts.num_rows, rows)]
    parent = commit_parent(root, shards)
    tokenize, (path, _) = timed(lambda: refined(root, "tokenize", parent, {"tokenizer": str(definition)}))
    shuffle, (path, shuffled) = timed(lambda: refined(root, "shuffle", path, STAGES["shuffle"]))
    pack, (_, packed) = timed(lambda: refined(root, "pack", path, STAGES["pack"]))
    export, _ = timed(lambda: write_all(root, shuffled, packed))
    return {"tokenize": tokenize, "shuffle": shuffle, "pack": pack, "export": export}


def located(texts: pa.Table) -> pa.Table:
    """Return texts as documents of a crawl."""
    columns: dict[str, Any] = {
        field.name: pa.array(["crawl"] * texts.num_rows, field.type)
        if pa.types.is_string(field.type)
        else pa.array(range(texts.num_rows), field.type)
        for field in LOCATOR
    }
    return pa.table({**columns, "id": texts["id"], "text": texts["text"], "language": ["en"] * texts.num_rows})


def timed(work: Callable[[], T], clock: Callable[[], float] = time.process_time) -> tuple[float, T]:
    """Return the seconds of some work by a clock, and what it returns."""
    started = clock()
    result = work()
    return clock() - started, result


def write_all(root: Path, shuffled: Manifest, packed: Manifest, threads: int = 1) -> None:
    """Export every packed shard, as `publish` does, into folders that go."""
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda at: _write(root, packed.shards[at], shuffled.shards[at:]), range(len(packed.shards))))


def _write(root: Path, shard: Shard, shuffled: Shards) -> None:
    how: dict[str, Any] = {
        "numbered": False,
        "with_tokens": False,
        "carried": False,
        "length": LENGTH,
        "pad_id": 0,
        "dtype": "uint16",
    }
    with tempfile.TemporaryDirectory() as folder:
        exported.write(PackedShard(str(root), shard, shuffled, **how), Path(folder))
        list(exported.digests(Path(folder)))


def documents(number: int, m_tokens: int) -> pa.Table:
    """Return one shard of tokenized documents, the same for the same arguments."""
    random = np.random.default_rng([number, m_tokens])
    lengths = np.maximum(random.lognormal(6.2, 1.0, m_tokens * 1_000_000 // SHARDS // 800).astype(np.int64), 8)
    rows = len(lengths)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    tokens = random.integers(0, VOCABULARY, offsets[-1], dtype=np.int32)
    columns: dict[str, Any] = {
        field.name: pa.array(["crawl"] * rows if pa.types.is_string(field.type) else range(rows), field.type)
        for field in LOCATOR
    }
    columns |= {
        "file": [f"{number}.warc.gz"] * rows,
        "id": [hashlib.md5(f"{number} {row}".encode(), usedforsecurity=False).hexdigest() for row in range(rows)],
        "tokens": pa.ListArray.from_arrays(pa.array(offsets), pa.array(tokens)),
        "n_tokens": lengths,
        "language": ["en"] * rows,
    }
    return pa.table(columns)


if __name__ == "__main__":
    main()
