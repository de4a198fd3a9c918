"""Runs datatrove's four heuristic filters, each on every document, and prints verdicts and seconds as JSON.

    .refinery/peers/bin/python benchmarks/peer_datatrove.py DOCUMENTS.jsonl

Each filter gets each unedited document. `stopping_s` is the time of FineWeb's chain of them, which stops at the first
filter that drops a document.
"""

import json
import os
import resource
import sys
import time
from pathlib import Path

from datatrove.data import Document
from datatrove.pipeline.filters import (
    C4QualityFilter,
    FineWebQualityFilter,
    GopherQualityFilter,
    GopherRepetitionFilter,
)


def main() -> None:
    """Run every filter on every document."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    texts = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]
    filters = {
        "gopher_repetition": GopherRepetitionFilter(),
        "gopher_quality": GopherQualityFilter(),
        "c4": C4QualityFilter(filter_no_terminal_punct=False),
        "fineweb": FineWebQualityFilter(),
    }
    for filter_ in filters.values():
        filter_.filter(Document(text="Warm up the words. " * 20, id="0"))
    verdicts: dict[str, list[str | None]] = {name: [] for name in filters}
    seconds = dict.fromkeys(filters, 0.0)
    stopping = 0.0
    for text in texts:
        dropped = False
        for name, filter_ in filters.items():
            document = Document(text=text, id="0")
            started = time.process_time()
            try:
                outcome = filter_.filter(document)
            except ZeroDivisionError:
                outcome = (False, "error:division")
            elapsed = time.process_time() - started
            seconds[name] += elapsed
            stopping += 0 if dropped else elapsed
            reason = outcome[1] if isinstance(outcome, tuple) else None
            dropped = dropped or reason is not None
            verdicts[name].append(reason.removeprefix("gopher_") if reason else None)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps({"seconds": seconds, "stopping_s": stopping, "peak_mb": peak, "verdicts": verdicts}))


if __name__ == "__main__":
    main()
