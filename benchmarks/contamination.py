"""Compares decontamination with datatrove's n-gram filter, over the same documents and evaluation sets, on one core.

    python benchmarks/contamination.py [--input DOCUMENTS.jsonl.gz] [--benchmark FILE]... [--runs R] [--json]

`screen` finds the hits of Arrow batches by both methods, after the evaluation sets are indexed. `sketch` computes the
sketches of kept documents. `scan` searches the evaluation sets in sketches alone, in MB of the text that they cover.
Values are medians in processor seconds of one pinned core, in turns with datatrove's filter (13-grams, own process).
`recall` plants each question of the first set, with words replaced or left out, into a separate document and counts the
detected ones, for each method. `false` counts unedited documents in which any method has a hit. `items a passage`
plants halves of passages that many items of a set share, which tells what `max_items` may be.
"""

import argparse
import gzip
import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import documents
import peers
import pyarrow as pa

from pipeline_tasks.stages.decontaminate import Params, bounds_of, inspect, read_reference, read_texts, sketch

DATA = documents.ROOT.parent / "shared" / "data"
METHODS = ("ngram", "sampled", "both")
WORDS = ("apple", "harbor", "seven", "quickly", "stone", "paper", "early", "river")


def read(path: Path) -> list[str]:
    """Return the `text` of each line of a JSONL file."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        return [json.loads(line)["text"] for line in lines]


def seconds(call: Callable[[], Any]) -> float:
    """Return the processor seconds of a call."""
    started = time.process_time()
    call()
    return time.process_time() - started


def drain(batches: Iterator[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Consume every batch of a kernel."""
    return list(batches)


def speeds(texts: Sequence[str], params: Params, runs: int, folder: Path) -> dict[str, float]:
    """Return speeds, sizes, and the ratio to datatrove's filter."""
    from pipeline_tasks.text.near.sketches import sift

    table = pa.table({"text": pa.array(texts, pa.large_string()), "chars": pa.array(map(len, texts), pa.int64())})
    batches = table.to_batches(1024)
    size = sum(len(text.encode()) for text in texts) / 1e6
    reference, bounds = read_reference(params), bounds_of(params)
    sketches = [batch.column("sketch") for batch in sketch(iter(batches), params=params)]
    prints = sum(len(sketched.values) for sketched in sketches)
    calls: dict[str, Callable[[], Any]] = {
        "index_s": lambda: read_reference(params),
        "screen": lambda: [inspect(batch.column("text"), reference, bounds) for batch in batches],
        "sketch": lambda: drain(sketch(iter(batches), params=params)),
        "scan": lambda: [sift(sketched, reference.sieve) for sketched in sketches],
    }
    peers.write_documents(folder / "texts.jsonl", texts)
    peers.write_documents(folder / "passages.jsonl", [text.text for text in read_texts(params)])
    peer = peers.install()
    times: dict[str, list[float]] = {name: [] for name in (*calls, "datatrove")}
    for _ in range(runs):
        for name, call in calls.items():
            times[name].append(seconds(call))
        files = [str(folder / name) for name in ("texts.jsonl", "passages.jsonl")]
        times["datatrove"].append(peers.run("peer_decontamination.py", *files, python=peer)["seconds"])
    median = {name: statistics.median(values) for name, values in times.items()}
    candidates = sum(int(sift(sketched, reference.sieve).sum()) for sketched in sketches)
    return {
        "mb": round(size, 1),
        "index_s": round(median["index_s"], 2),
        **{f"{name}_mb_s": round(size / median[name], 1) for name in ("screen", "sketch", "scan", "datatrove")},
        "ratio": round(median["datatrove"] / median["screen"], 1),
        "sketch_bytes_per_document": round(4 * prints / len(texts), 1),
        "sketch_bytes_per_text_byte": round(4 * prints / (size * 1e6), 3),
        "candidates": candidates,
    }


def replaced(text: str, each: int, draws: random.Random) -> str:
    """Return a text with one word in every `each` replaced."""
    first = draws.randrange(each)
    return " ".join(draws.choice(WORDS) if at % each == first else word for at, word in enumerate(text.split()))


def scattered(text: str, share: float, draws: random.Random) -> str:
    """Return a text of which each word is, with this probability, replaced or left out."""
    kept = [(word, draws.random()) for word in text.split()]
    return " ".join(
        draws.choice(WORDS) if draw < share / 2 else word for word, draw in kept if not share / 2 <= draw < share
    )


def first(text: str, words: int) -> str:
    """Return the first words of a text."""
    return " ".join(text.split()[:words])


EDITS: dict[str, Callable[[str, random.Random], str]] = {
    "as it is": lambda text, draws: text,  # noqa: ARG005 -- as the others
    "first 60 %": lambda text, draws: text[: len(text) * 6 // 10],  # noqa: ARG005 -- as the others
    "first 13 words": lambda text, draws: first(text, 13),  # noqa: ARG005 -- as the others
    "1 word in 20": lambda text, draws: replaced(text, 20, draws),
    "1 word in 12": lambda text, draws: replaced(text, 12, draws),
    "1 word in 10": lambda text, draws: replaced(text, 10, draws),
    "1 word in 9": lambda text, draws: replaced(text, 9, draws),
    "1 word in 8": lambda text, draws: replaced(text, 8, draws),
    "5 % at random": lambda text, draws: scattered(text, 0.05, draws),
    "10 % at random": lambda text, draws: scattered(text, 0.1, draws),
    "20 % at random": lambda text, draws: scattered(text, 0.2, draws),
}


def recall(texts: Sequence[str], params: Params) -> dict[str, dict[str, float]]:
    """Return the share of planted questions that are detected, by edit and method."""
    reference = read_reference(params)
    questions = [text for text in read_texts(params) if text.part == "question"]
    questions = [question for question in questions if question.benchmark == questions[0].benchmark]
    shares: dict[str, dict[str, float]] = {}
    for name, edit in EDITS.items():
        draws = random.Random(7)  # noqa: S311 -- the same plants in every run
        planted = []
        for question in questions:
            page = draws.choice(texts)
            at = draws.randrange(len(page))
            planted.append(f"{page[:at]} {edit(question.text, draws)} {page[at:]}")
        column = pa.array(planted, pa.large_string())
        shares[name] = {}
        for method in METHODS:
            matches = inspect(column, reference, bounds_of(Params(method=method)))  # type: ignore[arg-type]
            right = [any(hit.part.item == questions[row].item for hit in hits) for row, hits in matches.items()]
            shares[name][method] = round(sum(right) / len(questions), 3)
    return shares


INSTRUCTION = "Read the passage below and answer the question that follows it with as few words as you can."

PASSAGES, LONG, SHARED_WORDS = 60, 200, 60


def shared_passages(texts: Sequence[str], folder: Path) -> Iterator[str]:
    """Yield, by items that share a passage and by `max_items`, how many planted halves of passages are detected.

    Each item is an `input`: an instruction, a passage of a text, and words of its own. Pages that have the instruction
    alone are counted, too: it is the template of the set.
    """
    long = [text for text in texts if len(text.split()) > LONG]
    passages = [" ".join(text.split()[:SHARED_WORDS]) for text in long[:PASSAGES]]
    pages = long[PASSAGES : 2 * PASSAGES]
    halves = [
        planted(page, first(passage, SHARED_WORDS * 6 // 10)) for page, passage in zip(pages, passages, strict=True)
    ]
    templates = [planted(page, INSTRUCTION) for page in pages]
    path = folder / "shared.jsonl"
    for each in (5, 15, 40, 200):
        items = [f"{INSTRUCTION} {passage} Question {at}?" for passage in passages for at in range(each)]
        path.write_text("".join(json.dumps({"input": item}) + "\n" for item in items))
        for most in (10, 100, 1000, 0):
            params = Params(benchmarks={"shared": str(path)}, max_items=most)  # type: ignore[dict-item]
            reference, bounds = read_reference(params), bounds_of(params)
            found = [len(inspect(pa.array(made, pa.large_string()), reference, bounds)) for made in (halves, templates)]
            yield f"{each} items a passage, max_items {most}: halves {found[0]}, instruction {found[1]} of {PASSAGES}"


def planted(page: str, text: str) -> str:
    """Return a page with a text in its middle."""
    return f"{page[: len(page) // 2]} {text} {page[len(page) // 2 :]}"


def main() -> None:
    """Print the measurements; with --json the last line is one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", type=Path, default=DATA / "text" / "peps.jsonl.gz")
    parser.add_argument("--benchmark", type=Path, action="append", help="(default: those of the development data)")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    pa.set_cpu_count(1)
    sets = options.benchmark or sorted((DATA / "benchmarks").glob("*.jsonl.gz"))
    params = Params(benchmarks={path.name.partition(".")[0]: str(path) for path in sets})  # type: ignore[misc]
    texts = read(options.input)
    with tempfile.TemporaryDirectory(prefix="refinery-bench-") as folder:
        figures: dict[str, Any] = speeds(texts, params, options.runs, Path(folder))
        for line in shared_passages(texts, Path(folder)):
            print(line)
    hits = inspect(pa.array(texts, pa.large_string()), read_reference(params), bounds_of(params))
    figures |= {"documents": len(texts), "false": len(hits), "recall": recall(texts, params)}
    for name, value in figures.items():
        if name != "recall":
            print(f"{name:<28}{value}")
    for edit, by_method in figures["recall"].items():
        print(f"{edit:<28}" + "  ".join(f"{method} {share:.3f}" for method, share in by_method.items()))
    if options.json:
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
