"""Measures tokens: encoding beside `tokenizers`, and the proof that both give the same ids; with `--all`, building too.

    python benchmarks/tokens.py [--all] [--input FILE ...] [--tokenizer tokenizer.json] [--megabytes N] [--json]

Inputs are JSON lines with `text` (gzip or not); without any, the texts of `../shared/data`, and without those the
demo's crawl. They are repeated up to N megabytes, each time with their lines in another order. Figures are of one
process on one core, in processor seconds, after the first tenth of the input, and of the same texts for all.
`tokenize_m_tokens_s` is the stage's encoder from Arrow to Arrow, `kernel_m_tokens_s` the whole kernel of the stage,
`tokenizers_m_tokens_s` the library with one thread, `tokenize_ratio` the first over the last. `proof_share` is what
choosing the backend takes of the kernel's time. `identical` says whether all ids were the same, not only those of the
sample. `library_share` is what gigatoken itself takes of the encoder's time, given bytes in Python.
`--all` adds the figures of `building.py --peer 40` and `loader.py`, each in a process of its own.
"""

import argparse
import gzip
import json
import os
import random
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import documents
import numpy as np
import peers
import pyarrow as pa

from pipeline_tasks.stages.tokenize.encoding import choose_backend, encoded
from pipeline_tasks.stages.tokenize.fast import BACKENDS, fast
from pipeline_tasks.stages.tokenize.references import reference

SHARED = documents.ROOT.parent / "shared" / "data"
TEXTS = ("peps", "redpajama-pile-samples", "ccnet-head", "nltk-state-union-inaugural")
PER_BATCH = 1000


def main() -> None:
    """Print the figures; with --json the last line is one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", type=Path, nargs="*", help="files of JSON lines with `text`")
    parser.add_argument("--tokenizer", type=Path, default=SHARED / "resources" / "gpt-neo-tokenizer.json.gz")
    parser.add_argument("--megabytes", type=int, default=48)
    parser.add_argument("--all", action="store_true", help="building and loading, too (needs minutes)")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    cores = os.sched_getaffinity(0)
    os.environ |= {"TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1"}
    os.sched_setaffinity(0, [min(cores)])
    body = options.tokenizer.read_bytes()
    definition = gzip.decompress(body) if options.tokenizer.suffix == ".gz" else body
    figures = tokenized(definition, batches(options.input, options.megabytes * 1_000_000))
    os.sched_setaffinity(0, cores)
    if options.all:
        figures = peers.run("building.py", "--peer", "40", "--json") | peers.run("loader.py", "--json") | figures
    for name, value in figures.items():
        print(f"{name:<24}{value!s:>12}")
    if options.json:
        print(json.dumps(figures))


def batches(inputs: list[Path] | None, size: int) -> list[pa.RecordBatch]:
    """Return documents of about `size` bytes."""
    named = [SHARED / "text" / f"{name}.jsonl.gz" for name in TEXTS] if SHARED.is_dir() else []
    texts = list(_texts(inputs or named)) or list(_demo())
    drawn, total, draw = [], 0, random.Random(7)  # noqa: S311 -- no secrets
    while total < size:
        for text in texts:
            drawn.append(_reordered(text, draw) if total > sum(map(len, texts)) else text)
            total += len(drawn[-1])
    ids = [f"{number:032x}" for number in range(len(drawn))]
    table = pa.table({"id": ids, "text": pa.array(drawn, pa.large_string())})
    return list(table.to_batches(max_chunksize=PER_BATCH))


def _texts(files: list[Path]) -> Iterator[str]:
    for file in files:
        with gzip.open(file, "rt", encoding="utf-8") if file.suffix == ".gz" else file.open(encoding="utf-8") as lines:
            for line in lines:
                yield json.loads(line)["text"]


def _demo() -> Iterator[str]:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="refinery-tokens-") as root:
        yield from documents.english(None, Path(root))["text"].to_pylist()


def _reordered(text: str, draw: random.Random) -> str:
    lines = text.split("\n")
    draw.shuffle(lines)
    return "\n".join(lines)


def tokenized(definition: bytes, docs: list[pa.RecordBatch]) -> dict[str, Any]:
    """Return the figures of encoding documents."""
    row = {"kind": "tokenizers", "definition": definition, "eos_id": 0, "bos_id": None}
    _timed(lambda: choose_backend(docs, row, "auto"))  # loads the libraries
    proof, chosen = _timed(lambda: choose_backend(docs, row, "auto"))
    backend = chosen.backend
    slow = reference("tokenizers", definition)
    quick: Any = (fast(backend, "tokenizers", definition) if backend in BACKENDS else None) or slow
    warm, timed = docs[: len(docs) // 10], docs[len(docs) // 10 :]
    list(encoded(warm, row, backend))
    for batch in warm:
        quick(batch["text"])
        slow(batch["text"])
    ours, ids = _timed(lambda: [quick(batch["text"]) for batch in timed])
    theirs, expected = _timed(lambda: [slow(batch["text"]) for batch in timed])
    library = _library_seconds(quick.quick.tokenizer.encode_batch, timed) if backend == "gigatoken" else None
    kernel, _ = _timed(lambda: deque(encoded(timed, row, backend), maxlen=0))
    tokens = sum(len(numbers) for numbers, _ in expected) / 1e6
    same = all(
        np.array_equal(a, b) for one, other in zip(ids, expected, strict=True) for a, b in zip(one, other, strict=True)
    )
    return {
        "backend": backend,
        "m_tokens": round(tokens, 2),
        "tokenize_m_tokens_s": round(tokens / ours, 1),
        "kernel_m_tokens_s": round(tokens / kernel, 1),
        "tokenizers_m_tokens_s": round(tokens / theirs, 3),
        "tokenize_ratio": round(theirs / ours, 1),
        "library_share": library and round(library / ours, 2),
        "proof_share": round(proof / (kernel * len(docs) / len(timed)), 3),
        "identical": same,
    }


def _library_seconds(encode: Callable[..., Any], docs: list[pa.RecordBatch]) -> float:
    encoded = [batch["text"].cast(pa.large_binary()).to_pylist() for batch in docs]
    return _timed(lambda: deque((encode(texts, parallel=False) for texts in encoded), maxlen=0))[0]


def _timed(call: Callable[[], Any]) -> tuple[float, Any]:
    started = time.process_time()
    result = call()
    return time.process_time() - started, result


if __name__ == "__main__":
    main()
