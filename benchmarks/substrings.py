"""Finds repeated stretches by `dedup_substrings`, and by a suffix array, and prints ratios.

    python benchmarks/substrings.py [--input SNAPSHOT] [--root FOLDER] [--copies 1] [--json]

Documents are those of the snapshot behind `dedup_minhash`, as the recipe `web` has it, with "?" for what is not ASCII:
so bytes are code points, and both must find the same. `--copies` takes them several times, the words of each copy
shuffled but for its first half, so that there is more text with repetitions. The peer is what google-research's
deduplicate-text-datasets does (its Rust is not on PyPI), by pydivsufsort: the suffix array of all texts as one, the
longest common prefix of neighbors (Kasai), and of suffixes with `WIDTH` equal bytes all but the first. `stage` is the
stage as a run of one bucket, with its files; `kernels` is what it does between reading and cutting. Seconds are of a
processor, each in a process of its own; memory is the process's largest.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import documents
import numpy as np
import peers
import pyarrow as pa

from pipeline_tasks.engines.choose import engine
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.run.runner import refine
from pipeline_tasks.stages.dedup_substrings import FOUND, PIECES, Params, find_repeated
from pipeline_tasks.stages.dedup_substrings.windows import cut_pieces
from pipeline_tasks.testing.refining import commit_parent

WIDTH = 200
STAGE = "dedup_substrings"


def several(texts: list[str], copies: int) -> list[str]:
    """Return the texts, and further copies whose second halves have their words in another order."""
    rest = []
    for copy in range(1, copies):
        for at, text in enumerate(texts):
            words = text.split()
            half = words[len(words) // 2 :]
            random.Random(f"{copy} {at}").shuffle(half)  # noqa: S311 -- the same copies in every run
            rest.append(" ".join([*words[: len(words) // 2], *half]))
    return texts + rest


def kernels(texts: list[str]) -> dict[str, float]:
    """Find by the stage's kernels; return the seconds, the text that others have before, and the peak of memory."""
    began = time.process_time()
    pieces = cut_pieces(texts, WIDTH)
    _, number, counts = np.unique(pieces.key, return_inverse=True, return_counts=True)
    shared = np.flatnonzero((counts[number] > 1) | (pieces.windows > WIDTH))
    shared = shared[np.lexsort((pieces.start[shared], pieces.doc[shared], pieces.key[shared]))]
    stops = pieces.start + pieces.windows + WIDTH - 1
    columns = {
        "key": pieces.key[shared],
        "id": [f"{doc:09}" for doc in pieces.doc[shared].tolist()],
        "at": pieces.start[shared],
        "piece": [texts[pieces.doc[at]][pieces.start[at] : stops[at]] for at in shared.tolist()],
    }
    batches = pa.table(columns, schema=PIECES).to_batches(max_chunksize=4096)
    found = pa.Table.from_batches(list(find_repeated(iter(batches), params=Params(min_chars=WIDTH))), schema=FOUND)
    marks = np.zeros(sum(map(len, texts)) + 1, np.int64)
    bounds = np.cumsum([0, *map(len, texts)])
    for row in found.to_pylist():
        if row["winner"]:
            marks[bounds[int(row["id"])] + row["start"]] += 1
            marks[bounds[int(row["id"])] + row["end"]] -= 1
    seconds = time.process_time() - began
    carried = int((stops[shared] - pieces.start[shared]).sum()) / int(bounds[-1])
    repeated = int(np.count_nonzero(np.cumsum(marks)))
    return {"s": seconds, "repeated": repeated, "carried": carried, "peak_mb": peak_megabytes()}


def stage(root: str, parent: str) -> dict[str, float]:
    """Run the stage over documents in one bucket."""
    began = time.process_time()
    done = refine(
        RefineRequest(root, STAGE, {"min_chars": WIDTH, "action": "cut", "buckets": 1}, parent), engine("local")
    )
    cut = done.manifest.metrics["kept"]["substring_chars"]["sum"]
    return {"s": time.process_time() - began, "cut": cut, "rejected": done.manifest.rows_in - done.manifest.rows}


def peak_megabytes() -> float:
    """Return this process's largest resident size."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 / 10**6 for line in lines if line.startswith("VmHWM"))


def main() -> None:
    """Measure every side, and compare what they found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--input", type=Path, default=documents.SNAPSHOT)
    parser.add_argument("--root", help="where the snapshot is refined, or was; a temporary folder")
    parser.add_argument("--copies", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--measure", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        what, *arguments = options.measure
        done = kernels(json.loads(Path(arguments[0]).read_text())) if what == "kernels" else stage(*arguments)
        print(json.dumps(done))
        return
    with tempfile.TemporaryDirectory(prefix="substrings-") as name:
        figures = compare(Path(name), options)
    if figures["kernels"]["repeated"] != figures["peer"]["repeated"]:
        sys.exit(f"they do not find the same: {figures}")
    print(json.dumps(figures) if options.json else "\n".join(f"{key}: {value}" for key, value in figures.items()))


def compare(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of each side, and ratios of the peer's to ours."""
    table = documents.after("dedup_minhash", [options.input], Path(options.root or folder / "snapshot"), [])
    table = table.sort_by("id")
    ascii_texts = [text.encode("ascii", "replace").decode() for text in table.column("text").to_pylist()]
    texts = several(ascii_texts, options.copies)
    (folder / "texts.json").write_text(json.dumps(texts))
    rows = pa.concat_tables([table] * options.copies).combine_chunks()
    named = rows.set_column(
        rows.schema.get_field_index("text"), "text", pa.array(texts, rows.schema.field("text").type)
    )
    ids = pa.array([f"{at:032}" for at in range(len(texts))])
    parent = commit_parent(folder / "root", [named.set_column(named.schema.get_field_index("id"), "id", ids)])
    figures: dict[str, Any] = {
        "megabytes": sum(map(len, texts)) / 10**6,
        "documents": len(texts),
        "kernels": peers.run("substrings.py", "--measure", "kernels", str(folder / "texts.json")),
        "stage": peers.run("substrings.py", "--measure", "stage", str(folder / "root"), parent),
        "peer": peers.run("peer_substrings.py", str(folder / "texts.json"), str(WIDTH), python=peers.install()),
    }
    ours, theirs = figures["kernels"], figures["peer"]
    ratios = {"seconds": theirs["s"] / ours["s"], "peak": theirs["peak_mb"] / ours["peak_mb"]}
    return {**figures, "peer_to_kernels": ratios, "peer_to_stage": theirs["s"] / figures["stage"]["s"]}


if __name__ == "__main__":
    main()
