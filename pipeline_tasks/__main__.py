"""Entry point: `python -m pipeline_tasks request.json` is the only thing that a cluster ever runs."""

import sys
from pathlib import Path

if not __package__:  # run as a file, as spark-submit does: the package's own rooms must not shadow `inspect` and others
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from pipeline_tasks.service.handle import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
