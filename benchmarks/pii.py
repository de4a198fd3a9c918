"""Compares the scrubbing of personal data with datatrove's `PIIFormatter`, in turns on one core.

    python benchmarks/pii.py [--input WET_FOLDER] [--documents N] [--runs R] [--json]

datatrove replaces e-mail and IP addresses; Refinery finds phone numbers, too, and writes counts and redactions. Answers
of libphonenumber and of the Public Suffix List are forgotten before each turn, as a shard's documents are new to a
process. Values are medians of processor seconds, and of the ratios of neighboring turns.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path

import documents
import peers
import pyarrow as pa
import pyarrow.parquet as pq

MEGABYTE = 1e6
TURNS = 3


def measure(table: pa.Table, which: str) -> float:
    """Return the median of processor seconds of the stage's kernel; the first turn compiles and is not counted."""
    from pipeline_tasks.stages import scrub_pii
    from pipeline_tasks.text.pii import emails, phone_validation
    from pipeline_tasks.text.pii.kinds import KINDS, TABLE, Action

    action: Action = "redact" if which == "all" else "keep"
    actions: dict[str, Action] = {} if which == "default" else {kind: action for kind in KINDS if TABLE[kind].forms}
    params = scrub_pii.Params(kinds=actions)
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    pa.set_cpu_count(1)
    seconds = []
    for _ in range(TURNS + 1):
        for forget in (emails._mail_host.cache_clear, phone_validation.forget):  # noqa: SLF001 -- a cache
            forget()
        started = time.process_time()
        for _ in scrub_pii.scrub(iter(table.to_batches(1024)), params=params):
            pass
        seconds.append(time.process_time() - started)
    return statistics.median(seconds[1:])


def main() -> None:
    """Print the measurements; with --json the last line is one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", type=Path, default=documents.WET if documents.WET.exists() else None)
    parser.add_argument("--documents", type=int, default=1_000)
    parser.add_argument("--runs", type=int, default=5)
    kinds = ("first", "default", "all")
    parser.add_argument("--kinds", choices=kinds, default="default", help="with --measure; first: mail, phone, IP")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps({"seconds": measure(pq.read_table(options.measure), options.kinds)}))
        return
    python = peers.install()
    with tempfile.TemporaryDirectory(prefix="refinery-pii-") as name:
        folder = Path(name)
        table = documents.english(options.input, folder / "root").slice(0, options.documents)
        texts = table["text"].to_pylist()
        pq.write_table(table, folder / "documents.parquet")
        peers.write_documents(folder / "documents.jsonl", texts)
        pairs = [
            (
                peers.run("pii.py", "--measure", str(folder / "documents.parquet"))["seconds"],
                peers.run("peer_pii.py", str(folder / "documents.jsonl"), python=python)["seconds"],
            )
            for _ in range(options.runs)
        ]
    ratios = sorted(peer / ours for ours, peer in pairs)
    figures = {
        "mb": round(sum(len(text.encode()) for text in texts) / MEGABYTE, 1),
        "mb_s": round(sum(len(text.encode()) for text in texts) / MEGABYTE / statistics.median(o for o, _ in pairs), 1),
        "ratio": round(statistics.median(ratios), 2),
        "least_ratio": round(ratios[0], 2),
        "greatest_ratio": round(ratios[-1], 2),
    }
    for key, value in figures.items():
        print(f"{key:<16}{value:>10}")
    if options.json:
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
