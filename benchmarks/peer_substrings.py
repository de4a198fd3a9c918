"""Finds what texts repeat by a suffix array, one thread, and prints processor seconds as JSON.

    .refinery/peers/bin/python benchmarks/peer_substrings.py TEXTS.json WIDTH

Texts are ASCII, one after the other with a byte of its own kind between them. As google-research's
deduplicate-text-datasets has it: suffixes that begin with `WIDTH` equal bytes are neighbors in the array. Of such
neighbors all but the first in order are repeated, and of those in one text all that do not overlap the first.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
from pydivsufsort import divsufsort, kasai

BETWEEN = 255
"""A byte that no text has."""


def main() -> None:
    """Find every byte that is in a repeated window."""
    texts, width = json.loads(Path(sys.argv[1]).read_text()), int(sys.argv[2])
    began = time.process_time()
    joined = np.frombuffer(bytearray([BETWEEN]).join(text.encode() for text in texts), np.uint8)
    order = divsufsort(joined)
    common = kasai(joined, order)
    # A window with a separator in it is in two texts, and none.
    after = np.cumsum(joined == BETWEEN)
    inside = np.zeros(len(joined), bool)
    inside[: len(joined) - width + 1] = after[width - 1 :] == after[: len(joined) - width + 1]
    inside &= joined != BETWEEN
    starts = np.flatnonzero(np.concatenate([[True], common[: len(joined) - 1] < width]))
    first = np.repeat(np.minimum.reduceat(order, starts), np.diff(np.append(starts, len(order))))
    overlaps = (after[order] == after[first]) & (order < first + width)
    repeated = order[(order != first) & ~overlaps & inside[order]]
    marks = np.zeros(len(joined) + width + 1, np.int64)
    np.add.at(marks, repeated, 1)
    np.add.at(marks, repeated + width, -1)
    count = int(np.count_nonzero(np.cumsum(marks)))
    seconds = time.process_time() - began
    lines = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) * 1024 / 10**6 for line in lines if line.startswith("VmHWM"))
    print(json.dumps({"s": seconds, "repeated": count, "peak_mb": peak}))


if __name__ == "__main__":
    main()
