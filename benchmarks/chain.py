"""Compares the whole chain with datatrove's blocks, and the whole run with its extraction library, on one core.

    python benchmarks/chain.py [--input SNAPSHOT] [--size MB] [--words spacy|split] [--method M] [--runs R] [--json]

- `chain_ratio`: seconds of datatrove's blocks with resiliparse / of Refinery's stages with `--method` (blocks), from
  WARC files to scrubbed documents without near duplicates, on the same pages: WARC, extraction, language (English,
  0.65, the same lid.176), Gopher repetition, Gopher quality, C4, FineWeb, MinHash (14 x 8, word 5-grams), PII
- `chain_ratio_trafilatura`: the same against datatrove's default extractor; Refinery's side as before
- `gated_ratio`: as `chain_ratio`, with Refinery's gates and the list of what landed, which have no peer
- `library_share`: the part of Refinery's seconds that bare resiliparse needs for these pages
- `run_over_extract`: seconds of the whole run of the recipe `web` (landing, all stages, gates, tokens, publication) /
  of bare resiliparse, on the varied crawl of `varied_crawl.py`

Seconds are processor seconds of all processes, without start-up: imports, compiled loops, models and words are
loaded on both sides before. The sides run in turns; medians count. `--size 0` leaves the whole run out.
"""

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import documents
import peers
import scale
import varied_crawl
from extract import bare

from pipeline_tasks.recipe import RECIPES
from pipeline_tasks.stages import extract, filter_language

MEGABYTE = 10**6
LANDING = ("land", "gates")
"""Steps that have no peer."""

RECIPE = """
name: chain
stages:
  ingest: {{}}
  extract: {{method: {method}, min_chars: 0}}
  filter_language: {{keep: [en], threshold: 0.65}}
  filter_quality: {{words: {words}}}
  dedup_exact: {{}}
  dedup_minhash: {{}}
  scrub_pii: {{}}
run: {{error_budget: {{share: 1}}}}
"""

Facts = dict[str, Any]


def web_pages(source: Path, folder: Path) -> Path:
    """Copy the web pages of a snapshot (all of a snapshot that does not tell them apart) to a folder of their own."""
    files = sorted(source.glob("*-web-*.warc.gz")) or sorted(source.glob("*.warc.gz"))
    folder.mkdir()
    for file in files:
        shutil.copyfile(file, folder / file.name)
    return folder


def pages_of(snapshot: Path) -> Iterator[bytes]:
    """Yield the body of each response of a snapshot."""
    for row in varied_crawl.responses(snapshot):
        yield row["payload"]


def measure(snapshot: Path) -> Facts:
    """Return the processor seconds of bare resiliparse over the pages of a snapshot."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    bare(b"<p>Warm up.</p>")
    seconds, count, size = 0.0, 0, 0
    for page in pages_of(snapshot):
        started = time.process_time()
        bare(page)
        seconds += time.process_time() - started
        count, size = count + 1, size + len(page)
    return {"bare_s": seconds, "pages": count, "mb": size / MEGABYTE}


def chain(snapshot: Path, place: Path, words: str, method: str) -> Facts:
    """Return the facts of one turn: Refinery, both of datatrove's, and the bare library."""
    recipe = place / "chain.yaml"
    recipe.write_text(RECIPE.format(words=words, method=method))
    model = str(filter_language.packaged_model())
    arguments = ["--input", str(snapshot), "--root", str(place / "root"), "--recipe", str(recipe)]
    ours = peers.run("whole_run.py", *arguments, "--until", "scrub_pii")
    theirs = {}
    for extractor in ("resiliparse", "trafilatura"):
        out = place / extractor
        theirs[extractor] = peers.run(
            "peer_chain.py", str(snapshot), str(out), extractor, model, python=peers.install()
        )
        shutil.rmtree(out)
    bare_facts = peers.run("chain.py", "--measure", str(snapshot))
    shutil.rmtree(place / "root")
    return {"ours": ours, "theirs": theirs, **bare_facts}


def chain_summary(turns: list[Facts]) -> Facts:
    """Return the ratios of the medians of all turns."""

    def median(of: Any) -> float:  # noqa: ANN401 -- a function of a turn
        return float(statistics.median(of(turn) for turn in turns))

    def stages(turn: Facts) -> float:
        return float(sum(step["cpu"] for name, step in turn["ours"]["steps"].items() if name not in LANDING))

    own, gated = median(stages), median(lambda turn: turn["ours"]["total"]["cpu"])
    theirs = {name: median(lambda turn, name=name: turn["theirs"][name]["whole_s"]) for name in turns[0]["theirs"]}
    return {
        "chain_ratio": round(theirs["resiliparse"] / own, 1),
        "chain_ratio_trafilatura": round(theirs["trafilatura"] / own, 1),
        "gated_ratio": round(theirs["resiliparse"] / gated, 1),
        "library_share": round(median(lambda turn: turn["bare_s"]) / own, 2),
    }


def whole(source: Path, place: Path, size: int) -> Facts:
    """Return `run_over_extract` of a varied crawl of so many MB, and what both sides took."""
    crawl = place / f"crawl-{size}"
    volume = varied_crawl.Volume(size * MEGABYTE, varied_crawl.FILE_BYTES)
    varied_crawl.write(crawl, varied_crawl.exchanges(varied_crawl.read_source(source), 0), volume)
    run = scale.once(crawl, scale.Machine("local", recipe=str(RECIPES / "web.yaml")))
    library = peers.run("chain.py", "--measure", str(crawl))
    shutil.rmtree(crawl)
    ratio = round(run["total"]["cpu"] / library["bare_s"], 2)
    return {"run_over_extract": ratio, "run_s": run["total"]["cpu"], "run_bare_s": round(library["bare_s"], 1)}


def show(turn: Facts) -> None:
    """Print the seconds of both sides."""
    print(f"{turn['pages']} pages, {turn['mb']:.1f} MB; bare resiliparse {turn['bare_s']:.2f} s")
    for name, step in turn["ours"]["steps"].items():
        print(f"{name:<18}{step['cpu']:>8.2f} s{step['rows']:>8,.0f} rows")
    for extractor, facts in turn["theirs"].items():
        print(f"datatrove, {extractor}: {facts['whole_s']:.1f} s")
        for name, seconds in facts["seconds"].items():
            print(f"  {name:<36}{seconds:>8.2f} s{facts['documents'][name]:>8,} rows")


def main() -> None:
    """Print the measurements; with --json the last line is one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", type=Path, default=documents.SNAPSHOT if documents.SNAPSHOT.exists() else None)
    parser.add_argument("--size", type=int, default=1_600, help="MB of HTML of the whole run; 0 leaves it out")
    parser.add_argument("--words", default="spacy", choices=("split", "spacy"))
    parser.add_argument("--method", default="blocks", choices=extract.METHODS)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure)))
        return
    source = options.input or documents.demo_crawl() / "2026-11-19"
    with tempfile.TemporaryDirectory(prefix="refinery-chain-") as name:
        place = Path(name)
        snapshot = web_pages(source, place / "web-pages")
        turns = [chain(snapshot, place, options.words, options.method) for _ in range(options.runs)]
        figures = chain_summary(turns)
        show(turns[-1])
        if options.size:
            figures |= whole(source, place, options.size)
    if options.input is None:
        shutil.rmtree(documents.demo_crawl())
    for key, value in figures.items():
        print(f"{key:<28}{value:>10}")
    if options.json:
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
