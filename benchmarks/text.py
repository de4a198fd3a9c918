"""Text stages beside their peers: Refinery and datatrove over the same English documents, on one core.

    python benchmarks/text.py [--input WET_FOLDER] [--documents N] [--runs R] [--words split|spacy] [--json]

Each runs in a process of its own, in turns; medians are shown, in processor seconds of one pinned core. Heuristics
are all signals and decisions of Gopher repetition, Gopher quality, C4 and FineWeb with evidence, as the stage makes
them; datatrove judges each document by each of the four filters. `stopping` compares with a chain that looks at a
dropped document no more. URL and language: what the two stages take beyond the model's own predictions. Extraction:
the stage over those pages of the demo's crawl that give documents, beside `extract_plain_text` of resiliparse alone
on the decoded pages
(parse, main content, formatting kept, title; no charset detection, sandbox, normalization or content id).
"""

import argparse
import json
import os
import resource
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import documents
import peers
import pyarrow as pa
import pyarrow.parquet as pq

MEGABYTE = 1e6

SHARD = 20
"""Times that the URLs are read in one call, because the suffix list is loaded once per shard."""


def clock() -> float:
    """Return the processor seconds of this process and of the children that it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def seconds(call: Callable[[], Any]) -> float:
    """Return the processor seconds of a call."""
    started = clock()
    call()
    return clock() - started


def drain(batches: Any) -> None:  # noqa: ANN401 -- a kernel's output
    """Take every batch of a kernel."""
    for _ in batches:
        pass


def measure(folder: Path, words: str) -> dict[str, float]:
    """Return Refinery's figures over the tables in `folder`; the first pass compiles and is not counted."""
    from pipeline_tasks.stages import extract, filter_language, filter_quality, filter_url, scrub_pii

    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    pa.set_cpu_count(1)
    told, pages = pq.read_table(folder / "told.parquet"), ordinary(pq.read_table(folder / "pages.parquet"))
    texts = told["text"].to_pylist()
    sizes = sum(len(text.encode()) for text in texts) / MEGABYTE
    params = filter_quality.Params(words=words)  # type: ignore[arg-type]
    urls, tongues, url_params = (
        pa.concat_tables([told.select(["url"])] * SHARD),
        told.select(["text"]),
        filter_url.Params(),
    )
    language_params = filter_language.Params(keep=())
    model = filter_language._load(filter_language.packaged_model())  # noqa: SLF001 -- its time is taken apart
    windows = [" ".join(text[: language_params.window].split()) + "\n" for text in texts]
    calls: dict[str, Callable[[], Any]] = {
        "heuristics": lambda: drain(filter_quality.sift(iter(told.to_batches(1024)), params=params)),
        "pii": lambda: drain(scrub_pii.scrub(iter(told.to_batches(1024)), params=scrub_pii.Params())),
        "url": lambda: drain(filter_url.screen(iter(urls.to_batches(1024)), params=url_params)),
        "language": lambda: drain(filter_language.tell(iter(tongues.to_batches(1024)), params=language_params)),
        "load": lambda: filter_language._load(filter_language.packaged_model()),  # noqa: SLF001
        "model": lambda: [model.f.predict(window, 1, 0.0, "strict") for window in windows],
        "extract": lambda: drain(extract.pull(iter(pages.to_batches(1024)), params=extract.Params())),
        "bare": lambda: [bare(page) for page in pages["payload"].to_pylist()],
    }
    figures = {"mb": sizes, "documents": float(len(texts))}
    for name, call in calls.items():
        call()
        figures[name] = statistics.median(seconds(call) for _ in range(3))
    figures["url"] /= SHARD
    figures["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MEGABYTE
    return figures


def ordinary(pages: pa.Table) -> pa.Table:
    """Return the pages that give a document by the extractor's main way: no deep nests, which the stage goes round."""
    from pipeline_tasks.stages import extract
    from pipeline_tasks.text.markup import DEEPEST, deeper_than

    pulled = pa.Table.from_batches(list(extract.pull(iter(pages.to_batches()), params=extract.Params())))
    deep = [deeper_than(page.decode("utf-8", "replace"), DEEPEST) for page in pages["payload"].to_pylist()]
    good = [reason is None and not far for reason, far in zip(pulled["reason"].to_pylist(), deep, strict=True)]
    return pages.filter(pa.array(good))


def bare(page: bytes) -> tuple[str, str]:
    """Extract one page by resiliparse alone."""
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.html import HTMLTree

    tree = HTMLTree.parse(page.decode("utf-8", "replace"))
    text = extract_plain_text(tree, preserve_formatting=True, main_content=True, alt_texts=False)
    return text, tree.title


def prepare(folder: Path, source: Path | None, count: int) -> None:
    """Write the documents and pages that both sides read."""
    told = documents.english(source, folder / "root").slice(0, count)
    pq.write_table(told, folder / "told.parquet")
    peers.write_documents(folder / "documents.jsonl", told["text"].to_pylist())
    crawl = documents.demo_crawl()
    pages = documents.after("ingest", [crawl / "2026-11-19"], folder / "pages", ())
    pq.write_table(pages, folder / "pages.parquet")
    shutil.rmtree(crawl)


def summary(ours: list[dict[str, float]], theirs: list[dict[str, Any]]) -> dict[str, float]:
    """Return the medians of all runs as the figures that the project is held to."""
    mine = {name: statistics.median(run[name] for run in ours) for name in ours[0]}
    peer = statistics.median(sum(run["seconds"].values()) for run in theirs)
    stopping = statistics.median(run["stopping_s"] for run in theirs)
    beyond_model = mine["url"] + max(mine["language"] - mine["load"] - mine["model"], 1e-9)
    return {
        "heuristics_ratio": round(peer / mine["heuristics"], 1),
        "heuristics_ratio_stopping": round(stopping / mine["heuristics"], 1),
        "heuristics_mb_s": round(mine["mb"] / mine["heuristics"], 1),
        "language_docs_s": round(mine["documents"] / beyond_model),
        "extract_overhead": round(mine["extract"] / mine["bare"] - 1, 3),
        "pii_mb_s": round(mine["mb"] / mine["pii"], 1),
        "peak_mb": round(max(run["peak_mb"] for run in ours)),
    }


def main() -> None:
    """Print what was measured; with --json the last line is one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", type=Path, default=documents.WET if documents.WET.exists() else None)
    parser.add_argument("--documents", type=int, default=1_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--words", default="split", choices=("split", "unicode", "spacy"))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure, options.words)))
        return
    python = peers.install()
    with tempfile.TemporaryDirectory(prefix="refinery-text-") as name:
        folder = Path(name)
        prepare(folder, options.input, options.documents)
        ours, theirs = [], []
        for _ in range(options.runs):
            ours.append(peers.ask("text.py", "--measure", name, "--words", options.words))
            theirs.append(peers.ask("peer_datatrove.py", str(folder / "documents.jsonl"), python=python))
    print(f"{ours[0]['documents']:.0f} English documents, {ours[0]['mb']:.1f} MB, words: {options.words}")
    for key in (key for key in ours[0] if key not in ("mb", "documents", "peak_mb")):
        print(f"{key:<12}{statistics.median(run[key] for run in ours):>9.3f} s")
    for key in theirs[0]["seconds"]:
        print(f"datatrove {key:<20}{statistics.median(run['seconds'][key] for run in theirs):>9.2f} s")
    found = summary(ours, theirs)
    for key, value in found.items():
        print(f"{key:<28}{value:>10}")
    if options.json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
