"""Compares the methods of extraction with each other by quality and speed, and the stage with the bare library.

    PYTHONPATH=. python benchmarks/extract.py [--runs R] [--turns T] [--json]

Quality: each method extracts the pages of every gold set of ../shared/data and is scored as in
`tests/golden/extraction.py`. `blocks_f1_gap` is the largest shortfall of `blocks` against `trafilatura` over the
sets, 0 where it has none; without the sets it is left out. The halves of each set, by the hash of a page, are printed
as well.
Speed: the stage over all pages of a real snapshot (of the demo's crawl, where there is none), by `blocks`,
`trafilatura` and `resiliparse` in turns, in processor time of one pinned core, the sandbox included.
Overhead: the stage with `resiliparse`, in turns with resiliparse alone on the same pages in the same
order: decode UTF-8, parse once, main content with formatting, title. The stage also finds the charset, bounds each page
in a separate process, reads language and date, repairs mojibake,
normalizes and counts the text, and computes its id. Pages that give no document or nest too deep for the library are
left out on both sides.
Each run is a separate process. Starting the sandbox is not counted: it starts once per process and not per shard.
"""

import argparse
import json
import os
import shutil
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import documents
import peers
import pyarrow as pa
import pyarrow.parquet as pq
from text import drain, seconds

SHARED = documents.SNAPSHOT.parent.parent
METHODS = ("blocks", "trafilatura", "resiliparse")


def scores() -> dict[str, dict[str, list[float]]]:
    """Return the score of each method on each gold set: of all pages, and of two halves by the hash of a page."""
    from pipeline_tasks.stages.extract import Params
    from tests.golden.extraction import SCORES, read_gold

    results = dict[str, dict[str, list[float]]]()
    for name, score in SCORES.items():
        results[name] = {}
        for method in METHODS:
            gold, _, texts = read_gold(SHARED, name, Params(method, seconds=60))
            halves = [
                [at for at, page in enumerate(gold) if int(page["payload_sha1"][:2], 16) % 2 == half] for half in (0, 1)
            ]
            results[name][method] = [
                score([gold[at] for at in part], [texts[at] for at in part]) for part in (range(len(gold)), *halves)
            ]
    return results


def measure(folder: Path, turns: int) -> dict[str, float]:
    """Return the processor seconds of each side over the pages in `folder`; the first turn is not counted."""
    from pipeline_tasks.stages import extract

    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    pa.set_cpu_count(1)
    pages = pq.read_table(folder / "pages.parquet")
    plain = ordinary(pages)
    methods: dict[str, Callable[[], Any]] = {method: staged(pages, extract.Params(method)) for method in METHODS}

    def alone() -> None:
        for page in plain["payload"].to_pylist():
            bare(page)

    # sides with other limits have turns of their own: each change of limits starts a sandbox
    pair = {"stage": staged(plain, extract.Params("resiliparse")), "bare": alone}
    figures = {"pages": float(len(pages))}
    for calls, count in ((methods, turns), (pair, 2 * turns)):
        timed = [{name: seconds(call) for name, call in calls.items()} for _ in range(1 + count)][1:]
        figures |= {name: statistics.median(turn[name] for turn in timed) for name in calls}
    return figures


def staged(pages: pa.Table, params: Any) -> Callable[[], None]:  # noqa: ANN401 -- imported late
    """Return a call that extracts all pages in the stage."""
    from pipeline_tasks.stages import extract

    return lambda: drain(extract.extract_pages(iter(pages.to_batches(1024)), params=params))


def ordinary(pages: pa.Table) -> pa.Table:
    """Return the pages that the stage and the bare library both extract.

    Pages without text, and pages that nest too deep for the library alone, are left out.
    """
    from pipeline_tasks.stages import extract
    from pipeline_tasks.text.page.main_text import DEEPEST
    from pipeline_tasks.text.page.tags import survey

    params = extract.Params("resiliparse")
    rows = pa.Table.from_batches(list(extract.extract_pages(iter(pages.to_batches()), params=params)))
    depth = survey(pages["payload"].combine_chunks(), DEEPEST, DEEPEST).depth.tolist()
    good = [reason is None and deep <= DEEPEST for reason, deep in zip(rows["reason"].to_pylist(), depth, strict=True)]
    return pages.filter(pa.array(good))


def bare(page: bytes) -> tuple[str, str | None]:
    """Extract one page by resiliparse alone."""
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.html import HTMLTree

    tree = HTMLTree.parse(page.decode("utf-8", "replace"))
    text = extract_plain_text(tree, preserve_formatting=True, main_content=True, alt_texts=False)
    return text, tree.title


def prepare(folder: Path) -> None:
    """Write the pages that all sides read."""
    crawl = documents.demo_crawl() if not documents.SNAPSHOT.exists() else None
    pages = documents.after("ingest", [crawl / "2026-11-19" if crawl else documents.SNAPSHOT], folder / "root", ())
    pq.write_table(pages, folder / "pages.parquet")
    if crawl:
        shutil.rmtree(crawl)


def summary(runs: list[dict[str, float]], quality: dict[str, dict[str, list[float]]]) -> dict[str, float]:
    """Return the medians of all runs as the figures that have goals."""
    medians = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
    ratios = [run["trafilatura"] / run["blocks"] for run in runs]
    gaps = [methods["trafilatura"][0] - methods["blocks"][0] for methods in quality.values()]
    return (
        ({"blocks_f1_gap": round(max(0.0, *gaps), 4)} if gaps else {})
        | {
            "blocks_pages_s": round(medians["pages"] / medians["blocks"]),
            "blocks_pages_s_ratio": round(statistics.median(ratios), 2),
            "trafilatura_pages_s": round(medians["pages"] / medians["trafilatura"]),
            "resiliparse_pages_s": round(medians["pages"] / medians["resiliparse"]),
        }
        | {"extract_overhead": round(statistics.median(run["stage"] / run["bare"] for run in runs) - 1, 3)}
    )


def main() -> None:
    """Print the measurements; with --json the last line is one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure, options.turns)))
        return
    with tempfile.TemporaryDirectory(prefix="refinery-extract-") as name:
        prepare(Path(name))
        runs = [peers.run("extract.py", "--measure", name, "--turns", str(options.turns)) for _ in range(options.runs)]
    quality = scores() if (SHARED / "gold").exists() else {}
    for gold, methods in quality.items():
        for method, (whole, *halves) in methods.items():
            print(f"{gold:<24}{method:<14}{whole:.4f}   halves {' '.join(f'{half:.4f}' for half in halves)}")
    figures = summary(runs, quality)
    for key, value in figures.items():
        print(f"{key:<28}{value:>10}")
    if options.json:
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
