"""Reads packed sequences with mosaicml-streaming, shuffled, and prints CPU seconds per pass and memory as JSON.

    .refinery/peers-loader/bin/python benchmarks/peer_streaming.py FOLDER LENGTH DTYPE BIN...

The .bin files are first written as MDS shards into FOLDER, one column of ids, as the project's examples do it.
"""

import json
import os
import sys
import time
import types
from pathlib import Path

import numpy as np

# The package imports its vision datasets, and these torchvision, whose build must fit torch's; none is used here.
sys.modules["streaming.vision"] = types.ModuleType("streaming.vision")

from streaming import MDSWriter, StreamingDataset  # noqa: E402 -- after what it must not import
from streaming.base.util import clean_stale_shared_memory  # noqa: E402 -- as above

PASSES = 3


def anonymous_mb() -> float:
    """Return the memory of this process that is no file."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("RssAnon:")[2].split()[0]) / 1000


def write(folder: Path, length: int, dtype: str, bins: list[str]) -> None:
    """Write the sequences of .bin files as MDS."""
    if (folder / "index.json").exists():
        return
    with MDSWriter(out=str(folder), columns={"tokens": f"ndarray:{dtype}:{length}"}) as out:
        for path in bins:
            for ids in np.fromfile(path, np.dtype(dtype)).reshape(-1, length):
                out.write({"tokens": ids})


def main() -> None:
    """Write if need be, and read several times."""
    folder, length, dtype, *bins = sys.argv[1:]
    write(Path(folder), int(length), dtype, bins)
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    clean_stale_shared_memory()
    dataset = StreamingDataset(local=folder, shuffle=True, shuffle_seed=5, batch_size=8)
    seconds, memory = [], []
    for _ in range(PASSES):
        started, checksum = time.process_time(), 0
        for sample in dataset:
            checksum += int(sample["tokens"][0])
        seconds.append(time.process_time() - started)
        memory.append(anonymous_mb())
    print(json.dumps({"seconds": seconds, "mb": memory, "checksum": checksum}))


if __name__ == "__main__":
    main()
