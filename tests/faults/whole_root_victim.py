"""A process that does a verb over a whole root and, at one chosen write, dies: `python -m tests.faults.whole_root_victim`."""

import json
import os
import signal
import sys

from pipeline_tasks.engines import each
from pipeline_tasks.engines.each import On
from pipeline_tasks.engines.workers import Workers
from pipeline_tasks.service.work import publication
from tests.faults.victim import strike_at
from tests.screened_root import done


def main(request: str, at: str = "-1") -> None:
    """Do a verb, of which every batch has a receipt; print what it says."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # so that an export writes in this process
    each.FEW, publication.WORKERS = 0, Workers()
    strike_at(signal.SIGKILL, "after", int(at))
    sys.stdout.write(json.dumps(done(json.loads(request), On(workers=Workers()))))


if __name__ == "__main__":
    main(*sys.argv[1:])
