"""Compares the text stages with datatrove over the same English documents, on one core.

    python benchmarks/text.py [--input WET_FOLDER] [--documents N] [--runs R] [--words split|spacy] [--json]

Each side runs in a separate process, in turns. Values are medians of processor seconds of one pinned core.
Heuristics: all signals and decisions of Gopher repetition, Gopher quality, C4 and FineWeb with evidence, as in the
stage; datatrove judges each document by each of the four filters. `stopping` compares with a chain that stops at the
first filter that drops a document.
URL and language: the time of the two stages with a language model that returns at once. Model time is that of the
reader of fastText models alone, over the same windows (`model`; `language.py` compares it with fastText). The URL
filter has a million hosts, 100,000 URLs and as many words as datatrove's lists.
"""

import argparse
import json
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import documents
import numpy as np
import peers
import pyarrow as pa
import pyarrow.parquet as pq

MEGABYTE = 1e6

SHARD = 20
"""Times that the URLs are read in one call, so that a call has as many as a shard."""


def clock() -> float:
    """Return the processor seconds of this process and of its children, running (Linux) and ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    tasks = Path("/proc/self/task").glob("*/children")
    alive = [Path(f"/proc/{pid}/schedstat") for task in tasks for pid in task.read_text().split()]
    return (
        time.process_time()
        + ended.ru_utime
        + ended.ru_stime
        + sum(int(child.read_text().split()[0]) for child in alive) / 1e9
    )


def seconds(call: Callable[[], Any]) -> float:
    """Return the processor seconds of a call."""
    started = clock()
    call()
    return clock() - started


def drain(batches: Any) -> None:  # noqa: ANN401 -- a kernel's output
    """Consume every batch of a kernel."""
    for _ in batches:
        pass


def measure(folder: Path, words: str) -> dict[str, float]:
    """Return Refinery's figures over the tables in `folder`; the first pass compiles and is not counted."""
    from pipeline_tasks.stages import filter_language, filter_quality, filter_url, scrub_pii
    from pipeline_tasks.text.words.fasttext_prediction import Predictor

    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    pa.set_cpu_count(1)
    identified = pq.read_table(folder / "identified.parquet")
    texts = identified["text"].to_pylist()
    sizes = sum(len(text.encode()) for text in texts) / MEGABYTE
    params = filter_quality.Params(words=words)  # type: ignore[arg-type]
    urls, languages = (
        pa.concat_tables([identified.select(["url"])] * SHARD).to_batches(4096),
        identified.select(["text"]),
    )
    url_params, language_params = filter_url.Params(**url_lists(folder)), filter_language.Params(keep=())  # type: ignore[arg-type]
    reading = filter_language.reading_of(language_params)
    windows = [filter_language.read_windows(batch.column("text"), reading) for batch in languages.to_batches(4096)]
    identify = partial(with_model, languages, language_params)
    model = filter_language.packaged_model()
    calls: dict[str, Callable[[], Any]] = {
        "heuristics": lambda: judge(identified, params),
        "pii": lambda: drain(scrub_pii.scrub(iter(identified.to_batches(1024)), params=scrub_pii.Params())),
        "url": lambda: drain(filter_url.screen(iter(urls), params=url_params)),
        "language": lambda: identify(Predictor),
        "language without model": lambda: identify(Constant),
        "model": lambda: predict_all(Predictor(model, "model"), windows),
    }
    figures = {"mb": sizes, "documents": float(len(texts))}
    for name, call in calls.items():
        call()
        figures[name] = statistics.median(seconds(call) for _ in range(3))
    figures["url"] /= SHARD
    figures["list_bytes"] = filter_url.list_bytes(url_params)
    figures["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MEGABYTE
    return figures


def judge(texts: pa.Table, params: Any) -> None:  # noqa: ANN401
    """Run `filter_quality` over texts as a new process does: it has cut no word before."""
    from pipeline_tasks.stages import filter_quality
    from pipeline_tasks.text.words import spacy_chunks

    spacy_chunks.forget()
    drain(filter_quality.filter_texts(iter(texts.to_batches(1024)), params=params))


class Constant:
    """A language model that returns a constant: the time of a stage with it is the stage's own."""

    labels = ("__label__en",)

    def __init__(self, *_: object) -> None:
        pass

    def best(self, _: Any, bounds: Any) -> tuple[Any, Any]:  # noqa: ANN401
        """Return the one label for each text."""
        return np.zeros(len(bounds), np.int64), np.full(len(bounds), 0.9)


def predict_all(predictor: Any, windows: list[tuple[Any, Any]]) -> None:  # noqa: ANN401
    """Predict the label of all windows of all batches."""
    for data, bounds in windows:
        predictor.best(data, bounds.reshape(-1, 2))


def with_model(texts: pa.Table, params: Any, predictor: type) -> None:  # noqa: ANN401
    """Run `filter_language` over texts with the given class of predictors."""
    from pipeline_tasks.stages import filter_language
    from pipeline_tasks.text.words import fasttext_prediction

    prediction: Any = fasttext_prediction
    own, prediction.Predictor = prediction.Predictor, predictor
    try:
        drain(filter_language.identify(iter(texts.to_batches(4096)), params=params))
    finally:
        prediction.Predictor = own


def url_lists(folder: Path) -> dict[str, str]:
    """Write random lists with the sizes of real block lists; return them as parameters."""
    sizes = {"domains": 1_000_000, "urls": 100_000, "hard_words": 215, "soft_words": 88, "subwords": 134}
    for which, count in sizes.items():
        drawn = (
            blake2b(f"{which}{number}".encode(), digest_size=4 + number % 4).hexdigest() for number in range(count)
        )
        end = {"domains": ".com", "urls": ".com/page"}.get(which, "")
        (folder / which).write_text("".join(f"{item}{end}\n" for item in drawn))
    return {which: str(folder / which) for which in sizes}


def prepare(folder: Path, source: Path | None, count: int) -> None:
    """Write the documents that both sides read."""
    identified = documents.english(source, folder / "root").slice(0, count)
    pq.write_table(identified, folder / "identified.parquet")
    peers.write_documents(folder / "documents.jsonl", identified["text"].to_pylist())


def summary(ours: list[dict[str, float]], theirs: list[dict[str, Any]]) -> dict[str, float]:
    """Return the medians of all runs as the figures that have goals."""
    medians = {name: statistics.median(run[name] for run in ours) for name in ours[0]}
    peer = statistics.median(sum(run["seconds"].values()) for run in theirs)
    stopping = statistics.median(run["stopping_s"] for run in theirs)
    return {
        "heuristics_ratio": round(peer / medians["heuristics"], 1),
        "heuristics_ratio_stopping": round(stopping / medians["heuristics"], 1),
        "heuristics_mb_s": round(medians["mb"] / medians["heuristics"], 1),
        "language_docs_s": round(medians["documents"] / (medians["url"] + medians["language without model"])),
        "language_docs_s_with_model": round(medians["documents"] / (medians["url"] + medians["language"])),
        "list_mb": round(medians["list_bytes"] / MEGABYTE, 1),
        "pii_mb_s": round(medians["mb"] / medians["pii"], 1),
        "peak_mb": round(max(run["peak_mb"] for run in ours)),
    }


def main() -> None:
    """Print the measurements; with --json the last line is one JSON object."""
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
            ours.append(peers.run("text.py", "--measure", name, "--words", options.words))
            theirs.append(peers.run("peer_datatrove.py", str(folder / "documents.jsonl"), python=python))
    print(f"{ours[0]['documents']:.0f} English documents, {ours[0]['mb']:.1f} MB, words: {options.words}")
    for key in (key for key in ours[0] if key not in ("mb", "documents", "peak_mb", "list_bytes")):
        print(f"{key:<12}{statistics.median(run[key] for run in ours):>9.3f} s")
    for key in theirs[0]["seconds"]:
        print(f"datatrove {key:<20}{statistics.median(run['seconds'][key] for run in theirs):>9.2f} s")
    figures = summary(ours, theirs)
    for key, value in figures.items():
        print(f"{key:<28}{value:>10}")
    if options.json:
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
