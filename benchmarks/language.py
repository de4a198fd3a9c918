"""Compares the reader of language models with fastText's own `predict`, in turns on one core over the same bytes.

    PYTHONPATH=. python benchmarks/language.py [--input WET_FOLDER] [--sentences FILE] [--turns N] [--json]

The texts are labeled sentences of many languages, the web texts of a WET folder, and those of them that are English;
each as `filter_language` reads it: the first 10,000 characters. The demo's crawl stands in for a missing input.
fastText gets lines that are encoded beforehand, one call per text; the reader gets Arrow columns, and an empty memory
of words in every turn.

The model is lid.176, compressed (`ftz`) and as a dense file (`bin`), which the benchmark writes: as large as
lid.176.bin (128 MB), and with its buckets, of which those that compression removed are zero. Values are medians of
processor seconds. `lid_ratio` is of `ftz` and all texts: documents per second against fastText's. `lid_same` is the
share of texts with the same label and `lid_difference` the largest difference of probabilities, over both formats.
`stage_us` are microseconds per web text of the whole stage `filter_language`; `paragraph_us` of the same with
`unit: paragraph`, which reads the whole texts. `paragraph_ratio` compares the two per byte that is read.
"""

import argparse
import gzip
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import documents
import fasttext
import numpy as np
import pyarrow as pa
from fastwarc.warc import ArchiveIterator, WarcRecordType

from pipeline_tasks.stages import filter_language
from pipeline_tasks.text.words.fasttext_model import load
from pipeline_tasks.text.words.fasttext_prediction import Predictor
from tests.fasttext_file import write_dense

SENTENCES = documents.WET.parent / "lid" / "lid-sentences.jsonl.gz"
PARAMS = filter_language.Params(keep=(), min_chars=1)
BATCH = 1024
MICROSECONDS = 1e6


def web_texts(source: Path | None) -> list[str]:
    """Return the texts of a WET folder, or of the demo's crawl."""
    if source is None:
        with tempfile.TemporaryDirectory(prefix="refinery-language-") as name:
            table = documents.after("extract", [documents.demo_crawl() / "2026-11-19"], Path(name), ("text",))
            return [str(text) for text in table["text"].to_pylist()]
    texts = []
    for path in sorted(source.glob("*.wet.gz")):
        with path.open("rb") as stream:
            records = ArchiveIterator(stream, record_types=WarcRecordType.conversion)
            texts += [record.reader.read().decode("utf-8", "replace") for record in records]
    return texts


def sentences(path: Path) -> list[str]:
    """Return the texts of a file of labeled sentences, none if it is missing."""
    return [json.loads(line)["text"] for line in gzip.open(path)] if path.exists() else []


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the processor seconds of a call and its result."""
    started = time.process_time()
    result = call()
    return time.process_time() - started, result


class Sides:
    """Both readers of one model over the same texts."""

    def __init__(self, path: str, texts: list[str]) -> None:
        self._path, self._model = path, fasttext.load_model(path)
        self._batches = pa.table({"text": pa.array(texts, pa.string())}).to_batches(BATCH)
        self._lines = []
        for batch in self._batches:
            data, windows = self._windows(batch)
            for begin, end in windows.tolist():
                self._lines.append(data[begin:end].tobytes().replace(b"\n", b" ") + b"\n" if end > 0 else b"")

    @staticmethod
    def _windows(batch: pa.RecordBatch) -> tuple[Any, Any]:
        data, windows = filter_language.read_windows(batch.column("text"), filter_language.reading_of(PARAMS))
        return data, windows.reshape(-1, 2)

    def ours(self) -> list[tuple[str | None, float]]:
        """Return the label and probability of each text by the compiled reader."""
        predictor = Predictor(self._path, "benchmark")
        labels = np.array([*predictor.labels, None], object)
        answers: list[tuple[str | None, float]] = []
        for batch in self._batches:
            numbers, probabilities = predictor.best(*self._windows(batch))
            answers += zip(labels[numbers].tolist(), probabilities.tolist(), strict=True)
        return answers

    def theirs(self) -> list[list[tuple[float, str]]]:
        """Return what fastText's `predict` returns for each text."""
        predict = self._model.f.predict
        return [predict(line, 1, 0.0, "strict") if line else [] for line in self._lines]


def english(path: str, texts: list[str]) -> list[str]:
    """Return the texts that are English by the model."""
    answers = Sides(path, texts).ours()
    return [text for text, (label, _) in zip(texts, answers, strict=True) if label == "__label__en"]


def compared(path: str, texts: list[str], turns: int) -> dict[str, float]:
    """Return the medians of both sides, and how far they agree; the first turn compiles and is not counted."""
    sides = Sides(path, texts)
    answers, pairs = sides.ours(), []
    for _ in range(turns):
        ours, answers = seconds(sides.ours)
        theirs, expected = seconds(sides.theirs)
        pairs.append((ours, theirs))
    known = [(best[0][1], min(best[0][0], 1.0)) if best else (None, 0.0) for best in expected]
    both = list(zip(answers, known, strict=True))
    return {
        "texts": len(texts),
        "ours": statistics.median(ours for ours, _ in pairs),
        "theirs": statistics.median(theirs for _, theirs in pairs),
        "same": sum(answer[0] == other[0] for answer, other in both),
        "difference": max(abs(answer[1] - other[1]) for answer, other in both),
    }


def identify(batches: list[pa.RecordBatch], params: filter_language.Params) -> None:
    """Run the stage's kernels and keep nothing."""
    for _ in filter_language.identify(iter(batches), params=params):
        pass


def stage_seconds(texts: list[str], turns: int) -> tuple[float, float]:
    """Return the medians of processor seconds of the stage's kernels, by text and by paragraph."""
    batches = pa.table({"text": pa.array(texts, pa.string())}).to_batches(BATCH)
    both = [filter_language.Params(keep=(), min_chars=1, unit=unit) for unit in ("text", "paragraph")]
    calls = [partial(identify, batches, params) for params in both]
    pairs = [[seconds(call)[0] for call in calls] for _ in range(turns + 1)]  # the first turn compiles
    by_text, by_paragraph = zip(*pairs[1:], strict=True)
    return statistics.median(by_text), statistics.median(by_paragraph)


def main() -> None:
    """Print the measurements; with --json the last line is one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", type=Path, default=documents.WET if documents.WET.exists() else None)
    parser.add_argument("--sentences", type=Path, default=SENTENCES)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    pa.set_cpu_count(1)
    packaged: str = filter_language.packaged_model()
    texts = {"web": web_texts(options.input), "sentences": sentences(options.sentences)}
    texts["english"] = english(packaged, texts["web"])
    with tempfile.TemporaryDirectory(prefix="refinery-language-") as name:
        model = load(packaged, "benchmark")
        dense = write_dense(Path(name) / "lid.176.bin", model, model.arguments.buckets)
        runs = {
            (kind, which): compared(path, read, options.turns)
            for kind, path in (("ftz", packaged), ("bin", dense))
            for which, read in texts.items()
            if read
        }
    for (kind, which), run in runs.items():
        each = [MICROSECONDS * run[side] / run["texts"] for side in ("ours", "theirs")]
        print(f"{kind} {which:<10}{run['texts']:>7.0f} texts{each[0]:>9.1f} us, fastText{each[1]:>9.1f} us", end="")
        print(f"{each[1] / each[0]:>7.1f} x, same {run['same']:.0f}, difference {run['difference']:.1e}")
    packed = [runs["ftz", which] for which in ("web", "sentences") if texts[which]]
    each_text, each_paragraph = (
        MICROSECONDS * used / len(texts["web"]) for used in stage_seconds(texts["web"], options.turns)
    )
    whole, read = (sum(len(text[:end].encode()) for text in texts["web"]) for end in (None, PARAMS.window))
    figures = {
        "lid_ratio": round(sum(run["theirs"] for run in packed) / sum(run["ours"] for run in packed), 2),
        "lid_same": sum(run["same"] for run in runs.values()) / sum(run["texts"] for run in runs.values()),
        "lid_difference": max(run["difference"] for run in runs.values()),
        "stage_us": round(each_text, 1),
        "paragraph_us": round(each_paragraph, 1),
        "paragraph_ratio": round(each_paragraph / whole / (each_text / read), 2),
    }
    for names, run in runs.items():
        figures[f"ratio_{'_'.join(names)}"] = round(run["theirs"] / run["ours"], 2)
    for key, value in figures.items():
        print(f"{key:<24}{value:>12}")
    if options.json:
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
