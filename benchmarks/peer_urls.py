"""Runs datatrove's URL filter with the lists that it carries, and prints verdicts, seconds per URL and memory as JSON.

    .refinery/peers/bin/python benchmarks/peer_urls.py URLS.json FOLDER

FOLDER receives the lists, for others to read.
"""

import json
import os
import sys
import time
from pathlib import Path

os.environ["HF_ASSETS_CACHE"] = sys.argv[2]
os.environ["TLDEXTRACT_PUBLIC_SUFFIX_LIST_URLS"] = ""  # the list that the package carries

from datatrove.data import Document
from datatrove.pipeline.filters import URLFilter


def resident() -> int:
    """Return the memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    """Judge every URL."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    urls = json.loads(Path(sys.argv[1]).read_text())
    judge, before = URLFilter(), resident()
    started = time.process_time()
    judge.filter(Document(text="", id="0", metadata={"url": "https://example.com"}))
    loaded, held = time.process_time() - started, resident() - before
    documents = [Document(text="", id="0", metadata={"url": url}) for url in urls]
    reasons, times = [], []
    for document in documents:
        started = time.process_time()
        outcome = judge.filter(document)
        times.append(time.process_time() - started)
        reasons.append(outcome[1] if isinstance(outcome, tuple) else None)
    print(json.dumps({"reasons": reasons, "seconds": times, "load_s": loaded, "bytes": held}))


if __name__ == "__main__":
    main()
