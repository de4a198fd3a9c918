"""Compiles a loop over text buffers to machine code, once per machine."""

from collections.abc import Callable
from typing import Any, cast

import numba

Loop = Callable[..., Any]


def compiled(loop: Loop) -> Loop:
    """Compile `loop` on first call and cache it on disk (in NUMBA_CACHE_DIR if set); it releases the GIL.

    Loops take numpy arrays and numbers only, so their parameters go without annotations.
    """
    return cast("Loop", numba.njit(loop, cache=True, nogil=True))
