"""Runs what is left of a comparison or a mixture search: `python -m refinery_ablate FOLDER`.

It needs torch and the loader only.
"""

import argparse
import sys
from pathlib import Path

from refinery_ablate.mixture.search_plan import SEARCH
from refinery_ablate.running import run_jobs, run_proxies


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    """Run the models of a folder that have no result."""
    parser = argparse.ArgumentParser(prog="python -m refinery_ablate", description=__doc__)
    parser.add_argument("folder", help="folder that `refinery ablate --prepare`, or `model mixture --prepare`, left")
    parser.add_argument("--share", default="0/1", metavar="I/N", help="each N-th run from the I-th on (all)")
    options = parser.parse_args()
    number, count = map(int, options.share.split("/"))
    folder = Path(options.folder)
    run = run_proxies if (folder / SEARCH).exists() else run_jobs
    run(folder, number, count, _say)
    return 0


if __name__ == "__main__":
    sys.exit(main())
