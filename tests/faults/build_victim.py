"""A process that builds the small dataset and, at one chosen write, dies: `python -m tests.faults.build_victim ...`."""

import signal
import sys
from pathlib import Path

from tests.faults.victim import strike_at
from tests.small_build import build
from tests.small_root import SmallRoot


def main(root: str, landing: str, when: str = "before", at: str = "-1") -> None:
    """Build; print how many objects this process wrote."""
    writes = strike_at(signal.SIGKILL, when, int(at))
    build(SmallRoot(root, Path(landing)))
    sys.stdout.write(f"{next(writes)}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
