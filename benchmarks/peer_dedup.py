"""Removes near duplicates by datatrove's four steps, in one process, and prints processor seconds as JSON.

    .refinery/peers/bin/python benchmarks/peer_dedup.py DOCUMENTS.jsonl FOLDER NGRAM BANDS ROWS

`signature_s` is the first step over documents that are in memory already. `whole_s` is all four steps: reading,
signatures, buckets, clusters, filtering, writing. The files are not compressed; compression would cost more.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from datatrove.pipeline.dedup.minhash import (
    MinhashConfig,
    MinhashDedupBuckets,
    MinhashDedupCluster,
    MinhashDedupFilter,
    MinhashDedupSignature,
)
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers import JsonlWriter
from datatrove.utils.logging import logger


def read(source: Path) -> Any:  # noqa: ANN401 -- a stream of datatrove's documents
    """Yield the documents of the file."""
    return JsonlReader(str(source.parent), glob_pattern=source.name, compression=None).run(rank=0, world_size=1)


def main() -> None:
    """Sign, bring equal bands together, cluster, filter."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    logger.remove()
    source, folder = Path(sys.argv[1]), Path(sys.argv[2])
    ngram, bands, rows = map(int, sys.argv[3:6])
    config = MinhashConfig(n_grams=ngram, num_buckets=bands, hashes_per_bucket=rows)
    signatures, pairs, losers = (str(folder / name) for name in ("signatures", "pairs", "losers"))
    sign = MinhashDedupSignature(signatures, config)
    sign.get_signature(sign.get_shingles("Warm up the words. " * 20))
    started = time.process_time()
    documents = list(read(source))
    read_by = time.process_time()
    sign.run(documents)
    signed_by = time.process_time()
    for band in range(bands):
        MinhashDedupBuckets(signatures, pairs, config=config).run(rank=band, world_size=bands)
    MinhashDedupCluster(pairs, losers, config).run()
    writer = JsonlWriter(str(folder / "kept"), compression=None)
    kept = sum(1 for _ in writer.run(MinhashDedupFilter(losers).run(read(source)), rank=0, world_size=1))
    ended = time.process_time()
    seconds = {"signature_s": signed_by - read_by, "whole_s": ended - started}
    print(json.dumps({**seconds, "documents": len(documents), "kept": kept}))


if __name__ == "__main__":
    main()
