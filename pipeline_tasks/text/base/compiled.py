"""Compile loops over text buffers to machine code, once per machine and version of these files."""

from collections.abc import Callable
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import numba
import numba.extending

from pipeline_tasks.owned import require_own

Loop = Callable[..., Any]


def compiled(loop: Loop) -> Loop:
    """Compile `loop` on first call and cache it on disk (below NUMBA_CACHE_DIR if set); it releases the GIL.

    Loops take numpy arrays and numbers only, so their parameters go without annotations.
    """
    return _cached(numba.njit(cache=True, nogil=True), loop)


def inlined(loop: Loop) -> Loop:
    """As `compiled`, for a step of other loops that makes no arrays, and is called with nothing but arrays and numbers.

    It becomes part of every loop that calls it, and numba counts no references to its arrays: to count them takes
    10 ns a call, which is more than most steps take for a whole word.
    """
    return _cached(numba.njit(cache=True, nogil=True, forceinline=True, _nrt=False), loop)


def instruction(typed: Loop) -> Loop:
    """Make a step of loops from machine instructions; `typed` returns its signature and the function that builds it."""
    return cast("Loop", numba.extending.intrinsic(typed))


def compiled_as(signature: object) -> Callable[[Loop], Loop]:
    """Compile a loop at once, for arguments of this numba signature and no others; else as `compiled`."""
    return partial(_cached, numba.njit(signature, cache=True, nogil=True))


def _cached(compile_it: Callable[[Loop], Any], loop: Loop) -> Loop:
    """Compile with the cache below the folder of these files; RecipeError if another user could have written there."""
    place = numba.config.CACHE_DIR
    require_own(cache_folder(place))
    numba.config.CACHE_DIR = cache_folder(place)
    try:
        return cast("Loop", compile_it(loop))
    finally:
        numba.config.CACHE_DIR = place


@cache
def cache_folder(place: str) -> str:
    """Return the cache folder for the compiled rooms as they are now.

    numba compiles a cached loop again when its own file changes, but not when the file of a loop that it calls changes:
    it would link the old code of that loop. So all files of all rooms of `text` share one stamp.
    """
    rooms = Path(__file__).parents[1]
    files = [(str(file.relative_to(rooms)), file.stat()) for file in sorted(rooms.rglob("*.py"))]
    stats = [(name, stat.st_size, stat.st_mtime_ns) for name, stat in files]
    return str(Path(place or rooms / "__pycache__") / sha256(repr(stats).encode()).hexdigest()[:16])
