"""Compiles the loops over text before the first run on a machine, so that no task waits for a compiler."""

import os
from functools import partial
from typing import TextIO

from pipeline_tasks.shipped import numba_folder

COMPILING = "compiling the loops over text for this machine, once ..."
"""The line that says why the first run waits; those after it end with how many loops are done."""


def ensure_compiled(out: TextIO, *, all_loops: bool = False) -> None:
    """Compile loops unless that is done, and say so on `out`, as it takes a minute: all, or those of a first run.

    These are what the demo and the recipe `web` call; others are compiled by the task that calls them first.

    They are kept where tasks look for them.
    """
    os.environ["NUMBA_CACHE_DIR"] = numba_folder()  # numba reads it once, on import
    from pipeline_tasks.text.base.loop_calls import compile_ahead, first_calls, is_compiled, recorded_calls

    calls = recorded_calls() if all_loops else first_calls()
    if not is_compiled(calls):
        out.write(f"{COMPILING}\n")
        out.flush()
        compile_ahead(calls, partial(_tell, out))


def _tell(out: TextIO, done: int, count: int) -> None:
    out.write(f"{COMPILING} {done} of {count}\n")
    out.flush()
