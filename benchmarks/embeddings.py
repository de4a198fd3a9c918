"""Measures how fast texts become vectors, beside sentence-transformers with the same model on the same machine.

    pip install sentence-transformers==6.2.0 torch==2.13.0 transformers==5.24.0
    python benchmarks/embeddings.py MODEL TEXTS.jsonl [--onnx FOLDER] [--documents 400] [--times 3] [--json]

MODEL is a folder of sentence-transformers, such as that of all-MiniLM-L6-v2, and `--onnx` the same exported to ONNX.
The peer is `SentenceTransformer.encode` as it comes: texts sorted by length, batches of 32, cut off behind
`max_seq_length`. Ours reads one window of as many tokens, so both see the same. `ratio` is texts per second of ours by
the peer's, in turns and the median of `--times`; `cosine` the lowest and the mean cosine of the vectors of a text, ours
as stored in float16. `windows` is texts per second with up to eight windows of each, which the peer does not read.
"""

import argparse
import gzip
import json
import os
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pipeline_tasks.scorers.embedder import EmbeddingModel, load_embedder
from pipeline_tasks.stage import FilePath
from pipeline_tasks.text.near.vectors import packed, unpacked


def texts_of(source: Path, documents: int) -> list[str]:
    """Return texts of a file of JSON lines, evenly drawn."""
    body = gzip.decompress(source.read_bytes()) if source.suffix == ".gz" else source.read_bytes()
    texts = [json.loads(line)["text"] for line in body.splitlines()]
    return texts[:: max(len(texts) // documents, 1)][:documents]


def seconds(work: Callable[[], Any]) -> float:
    """Return the seconds that some work takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def measured(model: str, onnx: str, texts: list[str], times: int) -> dict[str, Any]:
    """Return the figures."""
    from sentence_transformers import SentenceTransformer

    peer = SentenceTransformer(model, device="cpu")
    length = int(peer.max_seq_length or 256)
    kinds = {"torch": model, **({"onnx": onnx} if onnx else {})}
    ours = {
        name: load_embedder(EmbeddingModel(FilePath(path), length=length, windows=1)) for name, path in kinds.items()
    }
    theirs = peer.encode(texts, normalize_embeddings=True)
    facts: dict[str, Any] = {"texts": len(texts), "cores": os.cpu_count(), "load": os.getloadavg()[0]}
    for name, embedder in ours.items():
        stored = unpacked(packed(embedder.embed(texts).vectors))
        cosines = (stored * theirs).sum(axis=1) / np.linalg.norm(stored, axis=1)
        facts[f"cosine_{name}"] = [round(float(cosines.min()), 6), round(float(cosines.mean()), 6)]
    spent: dict[str, list[float]] = {name: [] for name in (*ours, "peer")}
    for _ in range(times):
        spent["peer"].append(seconds(partial(peer.encode, texts)))
        for name, embedder in ours.items():
            spent[name].append(seconds(partial(embedder.embed, texts)))
    middle = {name: statistics.median(values) for name, values in spent.items()}
    facts |= {f"texts_per_second_{name}": round(len(texts) / value, 2) for name, value in middle.items()}
    facts |= {f"ratio_{name}": round(middle["peer"] / middle[name], 3) for name in ours}
    best = "onnx" if onnx else "torch"
    whole = load_embedder(EmbeddingModel(FilePath(kinds[best]), length=length))
    facts["windows"] = round(len(texts) / seconds(lambda: whole.embed(texts)), 2)
    return {**facts, "ratio": facts[f"ratio_{best}"], "cosine": facts[f"cosine_{best}"]}


def main() -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("texts", type=Path)
    parser.add_argument("--onnx", default="")
    parser.add_argument("--documents", type=int, default=400)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    facts = measured(options.model, options.onnx, texts_of(options.texts, options.documents), options.times)
    if options.json:
        print(json.dumps(facts))
        return
    for name, value in facts.items():
        print(f"{name:<28}{value}")


if __name__ == "__main__":
    main()
