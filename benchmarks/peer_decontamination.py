"""Runs datatrove's n-gram decontamination filter over documents, and prints verdicts and seconds as JSON.

    .refinery/peers/bin/python benchmarks/peer_decontamination.py DOCUMENTS.jsonl PASSAGES.jsonl

The index is filled from the passages by the filter's own words and hash: its indexer takes lighteval's tasks only.
"""

import json
import os
import sys
import time
from pathlib import Path

from datatrove.data import Document
from datatrove.pipeline.decont.n_grams import NGramsDecontConfig, NGramsDecontFilter
from datatrove.utils.text import ngrams, simplify_text

NGRAM = 13


def main() -> None:
    """Judge every document."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    texts, passages = ([json.loads(line) for line in Path(file).read_text().splitlines()] for file in sys.argv[1:3])
    judge = NGramsDecontFilter("/nonexistent", config=NGramsDecontConfig(n_grams=NGRAM))
    known = {}
    for passage in passages:
        words = judge.tokenizer.word_tokenize(simplify_text(passage, judge.config.norm_config))
        known.update({judge.hash_func(" ".join(ngram)): "benchmark" for ngram in ngrams(words, NGRAM)})
    judge._index_hashes = known  # noqa: SLF001 -- what its own loader fills
    started = time.process_time()
    kept = [judge.filter(Document(text=text, id="0")) is True for text in texts]
    print(json.dumps({"seconds": time.process_time() - started, "found": kept.count(False)}))


if __name__ == "__main__":
    main()
