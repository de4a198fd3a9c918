"""Signs documents by rensa, one thread, and prints processor seconds as JSON.

    .refinery/peers/bin/python benchmarks/peer_rensa.py DOCUMENTS.jsonl NGRAM PERMUTATIONS

rensa's fastest way over whole sets is R-MinHash for a batch (`RMinHash.digest_matrix_from_token_sets`); its rho sketch
is faster yet, but samples tokens and depends on their order, so it is no MinHash. It takes tokens, so texts are first
made into word n-grams in the cheapest way that Python has: lower case, split at white space, joined by zip and map.
`tokens_s` is that, `digests_s` is rensa's own work on the lists; both leave punctuation, width and format characters.
"""

import json
import os
import statistics
import sys
import time
from pathlib import Path

RUNS = 3


def tokens(text: str, ngram: int) -> list[str]:
    """Return the word n-grams of a text as strings."""
    words = text.lower().split()
    return list(map(" ".join, zip(*(words[at:] for at in range(ngram)), strict=False)))


def main() -> None:
    """Sign every document, several times."""
    os.environ["RAYON_NUM_THREADS"] = "1"
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    from rensa import RMinHash

    texts = [json.loads(line)["text"] for line in Path(sys.argv[1]).read_text().splitlines()]
    ngram, permutations = int(sys.argv[2]), int(sys.argv[3])
    times: dict[str, list[float]] = {"tokens_s": [], "digests_s": []}
    for _ in range(RUNS):
        started = time.process_time()
        tokenized_texts = [tokens(text, ngram) for text in texts]
        tokenized = time.process_time()
        RMinHash.digest_matrix_from_token_sets(tokenized_texts, permutations, 42)
        times["tokens_s"].append(tokenized - started)
        times["digests_s"].append(time.process_time() - tokenized)
        del tokenized_texts
    print(json.dumps({name: statistics.median(seconds) for name, seconds in times.items()}))


if __name__ == "__main__":
    main()
