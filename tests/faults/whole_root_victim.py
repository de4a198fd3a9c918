"""A process that does a verb over a whole root and, at one chosen write, dies: `python -m tests.faults.whole_root_victim`."""

import json
import os
import signal
import sys

from pipeline_tasks.engines import each
from pipeline_tasks.engines.workers import Workers
from pipeline_tasks.service.handle import handle
from pipeline_tasks.service.requests.wire import decode
from pipeline_tasks.service.work import publication
from tests.faults.victim import strike_at


def main(request: str, at: str = "-1") -> None:
    """Handle a request, of which every batch has a receipt; print its reply."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # so that an export writes in this process
    each.FEW, publication.WORKERS = 0, Workers()
    strike_at(signal.SIGKILL, "after", int(at))
    sys.stdout.write(json.dumps(handle(decode(json.loads(request)))))


if __name__ == "__main__":
    main(*sys.argv[1:])
