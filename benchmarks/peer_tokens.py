"""Tokenizes and merges documents by datatrove's two steps, in one process, and prints processor seconds as JSON.

    .refinery/peers/bin/python benchmarks/peer_tokens.py DOCUMENTS.jsonl FOLDER TOKENIZER.json

`tokenize_s` is `DocumentTokenizer`, which shuffles the documents of a file; `merge_s` is `DocumentTokenizerMerger`,
which shuffles the documents of all files into one. Documents are in memory before.
"""

import json
import os
import sys
import time
from pathlib import Path

from datatrove.data import Document
from datatrove.pipeline.tokens import DocumentTokenizer
from datatrove.pipeline.tokens.merger import DocumentTokenizerMerger
from datatrove.utils.logging import logger

FILES = 8
"""Files that the tokenizer writes, one for each of as many ranks."""


def main() -> None:
    """Tokenize and merge."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    logger.remove()
    source, folder, tokenizer = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    texts = [json.loads(line) for line in source.read_text(encoding="ascii").splitlines()]
    documents = [Document(text=text, id=str(number)) for number, text in enumerate(texts)]
    parts, merged = str(folder / "parts"), str(folder / "merged")
    DocumentTokenizer(str(folder / "warm"), tokenizer, seed=1).run(documents[:10])
    started = time.process_time()
    for rank in range(FILES):
        DocumentTokenizer(parts, tokenizer, seed=1).run(documents[rank::FILES], rank=rank, world_size=FILES)
    tokenized_by = time.process_time()
    DocumentTokenizerMerger(parts, merged, "merged", seed=1, progress=False).run()
    ended = time.process_time()
    size = sum(path.stat().st_size for path in Path(merged).glob("*.ds"))
    print(json.dumps({"tokenize_s": tokenized_by - started, "merge_s": ended - tokenized_by, "bytes": size}))


if __name__ == "__main__":
    main()
