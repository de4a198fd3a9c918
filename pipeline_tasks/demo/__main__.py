"""`python -m pipeline_tasks.demo FOLDER` writes the demo's crawl into FOLDER and prints what is in it."""

import argparse
import sys
from collections import Counter
from pathlib import Path

from pipeline_tasks.demo import write_crawl


def main() -> int:
    """Write a crawl of the given seed and scale."""
    parser = argparse.ArgumentParser(prog="python -m pipeline_tasks.demo", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=20261119)
    parser.add_argument("--scale", type=float, default=1.0, help="number of pages, relative to about 3,000")
    options = parser.parse_args()
    truth = write_crawl(options.folder, seed=options.seed, scale=options.scale)
    for snapshot, records in truth.records.items():
        counts = ", ".join(f"{count} {kind}" for kind, count in records.items())
        kinds = Counter(plant.kind for plant in truth.plants if plant.snapshot == snapshot)
        planted = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
        sys.stdout.write(f"{options.folder / snapshot}: {counts}\n  planted: {planted}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
