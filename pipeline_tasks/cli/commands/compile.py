"""`refinery setup compile` compiles the loops over text for this machine's processor, so that no task has to.

What is compiled is kept below NUMBA_CACHE_DIR (`.refinery/numba`), for the contents of the files that each loop is made
of and this kind of processor. It runs where tasks will run. `refinery run`, `build`, `demo` and `up` do it themselves
if nobody did.
"""

import argparse
import sys

from pipeline_tasks.inspect.command import print_lines
from pipeline_tasks.run.loops import ensure_compiled


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add nothing: it has no options."""


def answer(_: argparse.Namespace) -> int:
    """Compile unless that is done."""
    ensure_compiled(sys.stdout)
    print_lines(["the loops over text are compiled for this machine"])
    return 0
