"""What a session adds to the work of a stage on a cluster: the start of its driver, and the way of a request.

Each partition of a landed folder is ingested once by this process and once through a session, in turns and with fresh
roots. The driver is a process of this machine with the Spark of this machine, as for `spark://` in client mode.

    PYTHONPATH=. python benchmarks/session.py --input FOLDER [--partitions 8] [--json]

`start_s` is the time from the claim of the driver to its first reply, without the work. `request_s` is the median time
from posting a later request to seeing its reply, without the work. `share_of_minute` is what both add to a stage of so
many partitions of a minute, as a share: the start once, and one way of a request.
What Airflow adds (a deferred task is started twice) is not in it.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.service.handle import handle
from pipeline_tasks.service.requests.stages import LandRequest, SpansRequest
from pipeline_tasks.service.requests.wire import Wire
from pipeline_tasks.service.session import Session, Watch

POLL = 1.0
"""Seconds between two looks of a trigger (`plugins/refinery_airflow/tasks/session.py`)."""

MINUTE = 60.0


def measure(folder: str, partitions: int, abreast: int) -> dict[str, float]:
    """Return the figures of one session over `folder`."""
    with tempfile.TemporaryDirectory(prefix="refinery-session-") as root:
        requests = _requests(folder, root, partitions)
        session = Session.of(requests[0])
        session.driver({})
        began = time.perf_counter()
        command = [sys.executable, "-m", "pipeline_tasks.service.driver", session.root, session.name, "1"]
        driver = subprocess.Popen(command, env=dict(os.environ))
        try:
            start = _way(session, requests[0], began)
            ways = [_way(session, request, time.perf_counter()) for request in requests[1:]]
        finally:
            session.close(1)
            driver.wait()
    way = statistics.median(ways)
    waves = -(-partitions // abreast)  # a driver has 16 requests at once, so later ones wait in it and not on their way
    return {
        "start_s": round(start, 2),
        "request_s": round(way, 2),
        "partitions": partitions,
        "share_of_minute": round((start + way) / (waves * MINUTE), 4),
    }


def _requests(folder: str, root: str, partitions: int) -> list[RefineRequest]:
    landed = handle(LandRequest(root, folder, snapshot="day"))["manifest"]
    spans = handle(SpansRequest(root, landed, "ingest", partitions))["spans"]
    whole = RefineRequest(root, "ingest", {}, landed, landing=folder, engine="spark", recipe="web", snapshot="day")
    return [replace(whole, span=(span[0], span[1])) for span in spans]


def _way(session: Session, request: RefineRequest, began: float) -> float:
    """Return the seconds since `began` until the reply is seen, without those that the work took."""
    job = session.post(request, "once")
    watch = Watch(session, job, 1)
    while not watch.look():
        time.sleep(POLL)
    seen = time.perf_counter()
    reply: Wire = session.reply(job) or {}
    if "wall" not in reply:
        message = f"the request failed: {reply}"
        raise RuntimeError(message)
    return seen - began - float(reply["wall"])


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--input", required=True, help="a landed folder with at least --partitions files")
    parser.add_argument("--partitions", type=int, default=8)
    parser.add_argument("--abreast", type=int, default=2, help="partitions that the cluster works on at once")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    figures = measure(str(Path(options.input).absolute()), options.partitions, options.abreast)
    if options.json:
        sys.stdout.write(json.dumps(figures) + "\n")
        return
    for name, figure in figures.items():
        sys.stdout.write(f"{name:<16} {figure:g}\n")


if __name__ == "__main__":
    main()
