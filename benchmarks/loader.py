"""Measures the loader of training datasets, beside mosaicml-streaming over the same tokens in the same run.

    python benchmarks/loader.py [--dataset FOLDER] [--m-tokens N] [--json]

Both read packed sequences from this disk, shuffled, one process pinned to one core, and take the first id of each. The
loader also gives the borders of documents and the origin of each sequence. Figures are from CPU seconds of the fastest
of several passes, after the first one: `loader_m_tokens_s` is single sequences as int64, `batches_m_tokens_s` batches
of 8 with labels, `loader_ratio` single sequences of stored ids beside those of mosaicml-streaming. Memory is what is
not a mapped file, in MB: its growth from the second pass to the last one.
"""

import argparse
import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import peers
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline_tasks.training.dataset import TokenDataset
from pipeline_tasks.training.share import Passes, Split

LENGTH = 2048
PER_SHARD = 4096
PASSES = 4
SHUFFLED = Passes(shuffle="always", seed=5)


def main() -> None:
    """Print the figures; with --json the last line is one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", type=Path, help="the folder of a published version; random tokens without it")
    parser.add_argument("--m-tokens", type=int, default=64, help="millions of random tokens")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--measured", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measured:
        print(json.dumps(measured(options.measured)))
        return
    with tempfile.TemporaryDirectory(prefix="refinery-loader-") as name:
        folder = options.dataset or write_dataset(Path(name), options.m_tokens)
        figures = compared(folder, Path(name) / "mds")
    for key, value in figures.items():
        print(f"{key:<24}{value:>10}")
    if options.json:
        print(json.dumps(figures))


def compared(folder: Path, mds: Path) -> dict[str, float]:
    """Return the figures of a dataset, ours before and after those of the peer."""
    index = TokenDataset(str(folder)).index
    bins = [str(folder / shard.bin.path) for shard in index.shards]
    python = peers.install_with_pip("peers_loader.txt", "peers-loader")
    runs = [_run_measured(folder)]
    theirs = peers.run("peer_streaming.py", str(mds), str(index.length), index.dtype, *bins, python=python)
    runs.append(_run_measured(folder))
    stored = index.sequences * index.length / 1e6
    fastest = {name: min(run[name]["seconds"] for run in runs) for name in ("items", "batches", "stored")}
    return {
        "m_tokens": round(stored, 1),
        "loader_m_tokens_s": round(stored / fastest["items"], 1),
        "batches_m_tokens_s": round(stored / fastest["batches"], 1),
        "streaming_m_tokens_s": round(stored / min(theirs["seconds"][1:]), 1),
        "loader_ratio": round(min(theirs["seconds"][1:]) / fastest["stored"], 1),
        "grown_mb": round(max(kind["grown_mb"] for run in runs for kind in run.values()), 1),
        "grown_mb_streaming": round(theirs["mb"][-1] - theirs["mb"][1], 1),
    }


def _run_measured(folder: Path) -> Any:  # noqa: ANN401 -- JSON
    return peers.run("loader.py", "--measured", str(folder), python=sys.executable)


def measured(folder: Path) -> dict[str, dict[str, float]]:
    """Return the CPU seconds of the fastest pass, and the growth of memory, of each way to read a dataset."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    plain, batched = (TokenDataset(str(folder), Split(batch_size=size), SHUFFLED) for size in (1, 8))
    stored = TokenDataset(str(folder), passes=SHUFFLED, dtype=plain.index.dtype)
    return {
        "items": _passes(lambda: (item["input_ids"][0] for item in plain)),
        "batches": _passes(lambda: (batch["input_ids"][0, 0] for batch in batched.batches())),
        "stored": _passes(lambda: (item["input_ids"][0] for item in stored)),
    }


def _passes(ids: Any) -> dict[str, float]:  # noqa: ANN401 -- a function without arguments
    seconds, memory = [], []
    for _ in range(PASSES):
        started = time.process_time()
        _sum(ids())
        seconds.append(time.process_time() - started)
        memory.append(anonymous_mb())
    return {"seconds": min(seconds[1:]), "grown_mb": memory[-1] - memory[1]}


def _sum(ids: Iterable[np.integer]) -> int:
    return sum(map(int, ids))


def anonymous_mb() -> float:
    """Return the memory of this process that is no file."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("RssAnon:")[2].split()[0]) / 1000


# --- A dataset of random tokens ---------------------------------------------------------------------------------------


def write_dataset(root: Path, m_tokens: int) -> Path:
    """Write a published dataset of so many million random tokens, in documents of about 400."""
    folder = root / "publish" / "random"
    folder.mkdir(parents=True)
    (root / "publish" / "shards").mkdir()
    shards = [_write_shard(folder, number) for number in range(-(-m_tokens * 10**6 // (PER_SHARD * LENGTH)))]
    counts = {name: sum(shard[name] for shard in shards) for name in ("sequences", "tokens")}
    form = {"format": 1, "name": "random", "length": LENGTH, "dtype": "uint16", "byte_order": "little"}
    facts = form | {"pad_id": 0, "tokenizer": "0" * 64, "pads": 0, "shards": shards, **counts}
    (folder / "dataset.json").write_text(json.dumps(facts))
    return folder


def _write_shard(folder: Path, number: int) -> dict[str, Any]:
    drawn = np.random.default_rng(number)
    ids = drawn.integers(1, 50_000, PER_SHARD * LENGTH, dtype=np.uint16)
    borders = np.arange(1, PER_SHARD + 1) * LENGTH
    ends = np.union1d(borders, drawn.integers(1, PER_SHARD * LENGTH, len(ids) // 400))
    lineage = pa.BufferOutputStream()
    pq.write_table(_pieces(ends), lineage)
    bodies = {"bin": ids.tobytes(), "ends": ends.astype("<i8").tobytes(), "lineage": lineage.getvalue().to_pybytes()}
    files = {name: _write(folder, name, body) for name, body in bodies.items()}
    return {"sequences": PER_SHARD, "tokens": len(ids), **files}


def _pieces(ends: npt.NDArray[np.int64]) -> pa.Table:
    starts = np.concatenate([[0], ends[:-1]])
    return pa.table({"sequence": starts // LENGTH, "start": starts % LENGTH, "length": ends - starts})


def _write(folder: Path, name: str, body: bytes) -> dict[str, object]:
    digest = hashlib.sha256(body).hexdigest()
    path = f"../shards/{digest[:32]}.{'lineage.parquet' if name == 'lineage' else name}"
    (folder / path).write_bytes(body)
    return {"path": path, "bytes": len(body), "sha256": digest}


if __name__ == "__main__":
    main()
