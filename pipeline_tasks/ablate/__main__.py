"""Runs what is left of a comparison, where only torch and the loader are: `python -m pipeline_tasks.ablate FOLDER`."""

import argparse
import sys
from pathlib import Path

from pipeline_tasks.ablate.running import run_jobs


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    """Run the jobs of a folder that have no result."""
    parser = argparse.ArgumentParser(prog="python -m pipeline_tasks.ablate", description=__doc__)
    parser.add_argument("folder", help="folder of a comparison, as `refinery ablate --prepare` leaves it")
    parser.add_argument("--share", default="0/1", metavar="I/N", help="each N-th run from the I-th on (all)")
    options = parser.parse_args()
    number, count = map(int, options.share.split("/"))
    run_jobs(Path(options.folder), number, count, _say)
    return 0


if __name__ == "__main__":
    sys.exit(main())
