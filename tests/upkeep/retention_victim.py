"""A process that applies a policy and, at one chosen write or removal, dies: `python -m tests.upkeep.retention_victim`."""

import signal
import sys

from pipeline_tasks.cli.main import main as refinery
from tests.faults.victim import strike_at
from tests.upkeep.erase_victim import strike_removal


def main(root: str, policy: str, what: str = "write", when: str = "before", at: str = "-1") -> None:
    """Apply; print how many objects this process wrote and removed."""
    writes = strike_at(signal.SIGKILL, when, int(at) if what == "write" else -1)
    removals = strike_removal(when, int(at) if what == "removal" else -1)
    assert refinery(["keep", "retention", root, "--policy", policy, "--apply"]) == 0
    sys.stdout.write(f"\n{next(writes)} {next(removals)}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
