"""Runs datatrove's blocks from WARC files to deduplicated, scrubbed documents in one process; prints seconds as JSON.

    .refinery/peers/bin/python benchmarks/peer_chain.py WARC_FOLDER OUTPUT resiliparse|trafilatura FASTTEXT_MODEL

Blocks and order are those of datatrove's own FineWeb example: WARC, extraction, language, four filters, MinHash in
four steps, PII. `trafilatura` is datatrove's default extractor as it is; `resiliparse` is the library, called as
datatrove calls an extractor, in datatrove's sandbox. Imports, words and the language model are loaded before the clock
starts. Seconds are processor seconds, the sandbox's included. WarcReader needs libmagic on the machine.
"""

import json
import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path

from datatrove.data import Document
from datatrove.pipeline.dedup.minhash import (
    MinhashConfig,
    MinhashDedupBuckets,
    MinhashDedupCluster,
    MinhashDedupFilter,
    MinhashDedupSignature,
)
from datatrove.pipeline.extractors import Trafilatura
from datatrove.pipeline.extractors.base import BaseExtractor
from datatrove.pipeline.filters import (
    C4QualityFilter,
    FineWebQualityFilter,
    GopherQualityFilter,
    GopherRepetitionFilter,
    LanguageFilter,
)
from datatrove.pipeline.formatters import PIIFormatter
from datatrove.pipeline.readers import JsonlReader, WarcReader
from datatrove.pipeline.writers import JsonlWriter
from datatrove.utils.logging import logger
from fasttext.FastText import _FastText
from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree

BANDS, ROWS, NGRAM = 14, 8, 5


class Resiliparse(BaseExtractor):  # type: ignore[misc]  # installed with the peers alone
    """The main content by resiliparse: datatrove has no block for it."""

    name = "resiliparse"

    def __init__(self) -> None:
        super().__init__(timeout=10)

    def extract(self, text: str) -> str:
        """Return the main content of a page."""
        return str(
            extract_plain_text(HTMLTree.parse(text), preserve_formatting=True, main_content=True, alt_texts=False)
        )


def processor_seconds() -> float:
    """Return the processor seconds of this process and of its children that have ended."""
    own, ended = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime


def filters(model: str) -> list[LanguageFilter]:
    """Return the filters of the chain, with their models and words loaded."""
    language = LanguageFilter(["en"])
    language.model._model = _FastText(model)  # noqa: SLF001 -- datatrove would download it
    chain = [
        language,
        GopherRepetitionFilter(),
        GopherQualityFilter(),
        C4QualityFilter(filter_no_terminal_punct=False),
        FineWebQualityFilter(),
    ]
    for block in chain:
        block.filter(Document(text="Warm up the words. " * 20, id="0"))
    return chain


def main() -> None:
    """Run the chain; print the seconds of its parts."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    logger.remove()
    source, folder, extractor, model = sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4]
    chain = filters(model)
    seconds: dict[str, float] = {}
    counts: dict[str, int] = {}

    def timed(name: str, step: Callable[[], int | None]) -> None:
        started = processor_seconds()
        counts[name] = step() or 0
        seconds[name] = processor_seconds() - started

    def judge() -> int:
        documents = WarcReader(source, glob_pattern="*.warc.gz").run(rank=0, world_size=1)
        documents = (Trafilatura() if extractor == "trafilatura" else Resiliparse()).run(documents)
        for block in chain:
            documents = block.run(documents)
        return sum(1 for _ in JsonlWriter(str(folder / "judged"), compression=None).run(documents))

    config = MinhashConfig(n_grams=NGRAM, num_buckets=BANDS, hashes_per_bucket=ROWS)
    signatures, pairs, losers = (str(folder / name) for name in ("signatures", "pairs", "losers"))

    def read() -> JsonlReader:
        return JsonlReader(str(folder / "judged"), compression=None).run(rank=0, world_size=1)

    def deduplicate() -> None:
        MinhashDedupSignature(signatures, config).run(read())
        for band in range(BANDS):
            MinhashDedupBuckets(signatures, pairs, config=config).run(rank=band, world_size=BANDS)
        MinhashDedupCluster(pairs, losers, config).run()

    def write() -> int:
        kept = PIIFormatter().run(MinhashDedupFilter(losers).run(read()))
        return sum(1 for _ in JsonlWriter(str(folder / "kept"), compression=None).run(kept))

    timed("warc, extraction, language, filters", judge)
    timed("minhash", deduplicate)
    timed("pii, output", write)
    print(json.dumps({"seconds": seconds, "documents": counts, "whole_s": sum(seconds.values())}))


if __name__ == "__main__":
    main()
