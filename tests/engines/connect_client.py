"""Refines toy stages over Spark Connect: `connect_client.py ADDRESS ROOT PARENT STAGE...`, in a process of its own.

A process that was a client of Spark Connect can start no Spark of its own afterwards, and other tests want one.
"""

import json
import sys

from refinery_spark.spark import QUERY_SETTINGS, session

from pipeline_tasks import stages as own
from pipeline_tasks.engines.choose import engine
from pipeline_tasks.errors import JobLost
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.run.runner import refine
from tests.toys import CARDS, MODULES


def main(address: str, root: str, parent: str, *stages: str) -> None:
    """Refine each stage, and wait for a line after half of them; print how many were lost once, and the settings."""
    own.NAMES = (*own.NAMES, *(card.name for card in CARDS))
    sys.modules.update(MODULES)
    half, lost = len(stages) // 2, 0
    for number, stage in enumerate(stages):
        if number == half:
            print("half", flush=True)
            sys.stdin.readline()
        try:
            refine(RefineRequest(root, stage, {}, parent), engine("spark", address))
        except JobLost:
            lost += 1
            refine(RefineRequest(root, stage, {}, parent), engine("spark", address))
    print(lost)
    print(json.dumps({name: session(address).conf.get(name) for name in QUERY_SETTINGS}))


if __name__ == "__main__":
    main(*sys.argv[1:])
