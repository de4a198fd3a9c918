"""Runs datatrove's `PIIFormatter` (e-mail and IP addresses) over documents and prints its seconds as JSON.

.refinery/peers/bin/python benchmarks/peer_pii.py DOCUMENTS.jsonl
"""

import json
import os
import sys
import time
from pathlib import Path

from datatrove.pipeline.formatters import PIIFormatter


def main() -> None:
    """Format every document twice; the first time is not counted."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    texts = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]
    formatter = PIIFormatter()
    for _ in range(2):
        started = time.process_time()
        changed = sum(formatter.format(text) != text for text in texts)
        elapsed = time.process_time() - started
    print(json.dumps({"seconds": elapsed, "changed": changed}))


if __name__ == "__main__":
    main()
