"""Measures how fast a sequence classifier scores documents, beside the way in which others run the same classifier.

    refinery run ROOT --no-build --recipe web --input .../dev-2026-45
    python benchmarks/models.py ROOT [--stage extract] [--layers 6 --hidden 384] [--documents 400] [--json]
    python benchmarks/models.py TEXTS.jsonl --layers 12 --hidden 768 --numerics fp32 tf32 bf16   # on a GPU

The classifier is a BERT of that size with drawn weights; its WordPiece vocabulary is made of the documents. If the
machine has a GPU, all figures are of the GPU.

`peer` is the script by which FineWeb-Edu's classifier is published: `padding`, `truncation`, batches in the order of
documents, of which the first 512 tokens are read. It is given batches of 64 on a CPU and 256 on a GPU, and padding to
the maximal length. `ours` reads the same tokens: one window of 512 per document. `scorer_ratio` is documents per second
of ours by the peer's; `apart` is the largest difference of a score, in steps of 1/1,024. `windows` is documents per
with up to eight windows of each. `model_share` is the time that the network takes for these windows alone, their tokens
made before, by the time that scoring takes. `utilization` is the mean that the GPU's driver reports while eight windows
are read, and `moved` how many scores differ by how many steps when documents come in another order.
"""

import argparse
import json
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from refinery_models.huggingface import huggingface_scorer

from pipeline_tasks.scorers.classifier import Classifier
from pipeline_tasks.scorers.encoder import EncoderScorer
from pipeline_tasks.scorers.scorer import STEPS
from pipeline_tasks.stage import FilePath

LENGTH = 512
VOCABULARY = 30_522
HEAD = 64
SPECIAL = {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}


def texts_of(source: Path, stage: str, documents: int) -> list[str]:
    """Return texts of a file of JSON lines, or documents that a stage kept in a root, evenly drawn."""
    if source.is_file():
        texts = [json.loads(line)["text"] for line in source.read_text().splitlines()]
    else:
        from pipeline_tasks.store.reading import read_manifest, read_shards

        texts = []
        for path in sorted(source.glob(f"{stage}/*/manifest.json")):
            manifest = read_manifest(str(source), str(path.relative_to(source)))
            texts += [text for batch in read_shards(str(source), manifest.shards) for text in batch["text"].to_pylist()]
    step = max(len(texts) // documents, 1) if documents else 1
    return texts[::step][: documents or None]


def write_classifier(folder: Path, texts: Sequence[str], layers: int, hidden: int) -> None:
    """Write a BERT of one output with drawn weights, and a WordPiece vocabulary of the texts."""
    import torch
    import transformers
    from tokenizers import BertWordPieceTokenizer

    tokenizer = BertWordPieceTokenizer()
    tokenizer.train_from_iterator(texts, vocab_size=VOCABULARY, show_progress=False)
    tokenizer.save(str(folder / "tokenizer.json"))
    torch.manual_seed(1)
    config = transformers.BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=hidden // HEAD,
        intermediate_size=4 * hidden,
        num_labels=1,
        pad_token_id=0,
        initializer_range=0.05,
    )
    transformers.BertForSequenceClassification(config).save_pretrained(folder)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds that some work takes, and its result."""
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


class Peer:
    """The published way: batches of one size, padded to the maximal length, in the order of documents."""

    def __init__(self, folder: Path, numerics: str) -> None:
        import torch
        import transformers

        self._tokenizer = transformers.PreTrainedTokenizerFast(
            tokenizer_file=str(folder / "tokenizer.json"),
            **SPECIAL,
        )
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        kind = torch.bfloat16 if numerics == "bf16" else torch.float32
        torch.backends.cuda.matmul.allow_tf32 = numerics == "tf32"
        network = transformers.AutoModelForSequenceClassification.from_pretrained(folder, dtype=kind)
        self._network, self._batch = network.eval().to(self._device), 256 if self._device == "cuda" else 64

    def outputs(self, texts: Sequence[str]) -> list[float]:
        """Return the output of each text's first 512 tokens."""
        import torch

        found: list[float] = []
        for start in range(0, len(texts), self._batch):
            given = self._tokenizer(
                list(texts[start : start + self._batch]),
                return_tensors="pt",
                padding="max_length",
                truncation=True,
                max_length=LENGTH,
            )
            with torch.inference_mode():
                sent = {name: given[name].to(self._device) for name in ("input_ids", "attention_mask")}
                found += self._network(**sent).logits[:, 0].float().tolist()
        return found


def bounds_of(outputs: Sequence[float]) -> tuple[float, float]:
    """Return a range that has all outputs of a regression."""
    middle, reach = (max(outputs) + min(outputs)) / 2, max(max(outputs) - min(outputs), 1e-3)
    return middle - reach, middle + reach


def scorer_of(folder: Path, bounds: tuple[float, float], windows: int, numerics: Any) -> EncoderScorer:  # noqa: ANN401
    """Return our scorer of the classifier."""
    lowest, highest = bounds
    return huggingface_scorer(
        Classifier(FilePath(str(folder)), lowest=lowest, highest=highest, windows=windows, numerics=numerics)
    )


class Recorded:
    """A model that notes the windows that it reads, so that they can be read again without anything else."""

    def __init__(self, model: Any) -> None:  # noqa: ANN401 -- an `encoder.Model`
        self._model, self.hardware, self.chunks = model, model.hardware, list[Any]()

    def outputs(self, chunks: Iterable[Any]) -> Any:  # noqa: ANN401 -- as the model has them
        return self._model.outputs(self._noted(chunks))

    def again(self) -> float:
        """Return the seconds that the noted windows take."""
        return timed(lambda: self._model.outputs(iter(self.chunks)))[0]

    def _noted(self, chunks: Iterable[Any]) -> Iterator[Any]:
        for chunk in chunks:
            self.chunks.append(chunk)
            yield chunk


@contextmanager
def utilization() -> Iterator[list[int]]:
    """Collect what the GPU's driver says of its use, ten times a second; nothing without one."""
    seen: list[int] = []
    try:
        import pynvml
    except ImportError:
        yield seen
        return
    pynvml.nvmlInit()
    handle, ended = pynvml.nvmlDeviceGetHandleByIndex(0), threading.Event()

    def look() -> None:
        while not ended.wait(0.1):
            seen.append(int(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()


def measured(folder: Path, texts: Sequence[str], numerics: str) -> dict[str, Any]:
    """Return the figures of one numerics."""
    column = pa.array(texts, pa.large_string())
    peer = Peer(folder, numerics)
    peer.outputs(texts[:256])
    peer_seconds, outputs = timed(partial(peer.outputs, texts))
    bounds = bounds_of(outputs)
    first = scorer_of(folder, bounds, 1, numerics)
    first.scores(column.slice(0, 256))
    seconds, scores = timed(partial(first.scores, column))
    expected = (np.array(outputs) - bounds[0]) / (bounds[1] - bounds[0])
    whole = scorer_of(folder, bounds, 8, numerics)
    recorded = whole._model = Recorded(whole._model)  # noqa: SLF001 -- a measurement looks inside
    whole.scores(column.slice(0, 256))
    recorded.chunks.clear()
    with utilization() as seen:
        whole_seconds, found = timed(lambda: whole.scores(column))
    model_seconds = recorded.again()
    order = np.random.default_rng(1).permutation(len(texts))
    other = whole.scores(column.take(pa.array(order))).values
    steps = np.abs(other - found.values[order]) * STEPS
    tokens = sum(len(ids) for chunk in recorded.chunks for ids in chunk)
    return {
        "numerics": numerics,
        "hardware": recorded.hardware,
        "documents": len(texts),
        "peer documents/s": round(len(texts) / peer_seconds, 1),
        "ours documents/s": round(len(texts) / seconds, 1),
        "scorer_ratio": round(peer_seconds / seconds, 2),
        "apart": round(float(np.nanmax(np.abs(scores.values - expected))) * STEPS, 2),
        "windows documents/s": round(len(texts) / whole_seconds, 1),
        "tokens/s": round(tokens / whole_seconds),
        "seen": round(float(np.nanmean(found.seen)), 4),
        "model_share": round(model_seconds / whole_seconds, 3),
        "utilization": round(float(np.mean(seen)), 1) if seen else None,
        "moved": {
            str(int(step)): int(count)
            for step, count in zip(*np.unique(np.round(steps[~np.isnan(steps)]), return_counts=True), strict=True)
        },
    }


def main() -> None:
    """Print a line of figures for each numerics."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="a root, or a file of JSON lines with `text`")
    parser.add_argument("--stage", default="extract")
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--hidden", type=int, default=384)
    parser.add_argument("--documents", type=int, default=400, help="0: all")
    parser.add_argument("--numerics", nargs="+", default=["fp32"])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    texts = texts_of(options.source, options.stage, options.documents)
    with tempfile.TemporaryDirectory() as folder:
        write_classifier(Path(folder), texts, options.layers, options.hidden)
        for numerics in options.numerics:
            figures = measured(Path(folder), texts, numerics)
            print(
                json.dumps(figures)
                if options.json
                else "\n".join(f"{name:20} {value}" for name, value in figures.items())
            )


if __name__ == "__main__":
    main()
