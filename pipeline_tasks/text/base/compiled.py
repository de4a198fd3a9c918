"""Compile loops over text buffers to machine code, once per machine and contents of the files that they are made of."""

import re
from collections.abc import Callable
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import numba
import numba.extending
from numba.core.caching import CompileResultCacheImpl, FunctionCache, UserWideCacheLocator
from numba.misc.appdirs import AppDirs

from pipeline_tasks.owned import require_own

Loop = Callable[..., Any]

ROOMS = Path(__file__).parents[1]
"""The folder of `text`, whose modules have all that loops call and all constants that they name."""

_IMPORT = re.compile(r"^ *(?:from|import) pipeline_tasks\.text([.\w]*)(?: import (\([^)]*\)|.*))?", re.MULTILINE)


def compiled(loop: Loop) -> Loop:
    """Compile `loop` on first call and cache it on disk (below NUMBA_CACHE_DIR if set); it releases the GIL.

    Loops take numpy arrays and numbers only, so their parameters go without annotations.
    """
    return _cached(loop)


def inlined(loop: Loop) -> Loop:
    """As `compiled`, for a step of other loops that makes no arrays, and is called with nothing but arrays and numbers.

    It becomes part of every loop that calls it, and numba counts no references to its arrays: to count them takes
    10 ns a call, which is more than most steps take for a whole word.
    """
    return _cached(loop, forceinline=True, _nrt=False)


def instruction(typed: Loop) -> Loop:
    """Make a step of loops from machine instructions; `typed` returns its signature and the function that builds it."""
    return cast("Loop", numba.extending.intrinsic(typed))


def compiled_as(signature: object) -> Callable[[Loop], Loop]:
    """Compile a loop at once, for arguments of this numba signature and no others; else as `compiled`."""
    return partial(_cached, signature=signature)


def _cached(loop: Loop, *, signature: object = None, **options: bool) -> Loop:
    dispatcher = numba.njit(nogil=True, **options)(loop)
    dispatcher._cache = _Cache(loop)  # noqa: SLF001 -- numba's decorator takes no other cache than its own
    if signature is not None:
        dispatcher.compile(signature)
        dispatcher.disable_compile()
    return cast("Loop", dispatcher)


class _Locator(UserWideCacheLocator):  # type: ignore[misc]  # numba has no types
    """Keeps a loop below NUMBA_CACHE_DIR, else the user's folder, by its module's name and stamp.

    numba alone compiles again when a loop's own file changes, but not when the file of a loop that it calls does: it
    would link the old code of that one. RecipeError if another user could have written there.
    """

    def __init__(self, loop: Loop, file: str) -> None:
        super().__init__(loop, file)
        self._cache_path = str(cache_place() / f"{loop.__module__}-{stamp(Path(file))}")
        require_own(self._cache_path)

    def get_source_stamp(self) -> str:
        return self._cache_path.rpartition("-")[2]


class _Loops(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_Locator,)


class _Cache(FunctionCache):  # type: ignore[misc]
    _impl_class = _Loops


def cache_place() -> Path:
    """Return the folder of the folders in which loops are kept."""
    return Path(numba.config.CACHE_DIR or AppDirs("numba", appauthor=False).user_cache_dir)


@cache
def stamp(file: Path) -> str:
    """Return the digest of what a module and all modules of `text` that it imports, or that these do, have in them."""
    closure, waiting = {file}, [file]
    while waiting:
        waiting += contents(waiting.pop())[1] - closure
        closure.update(waiting)
    return sha256(repr(sorted((path.parts[-2:], contents(path)[0]) for path in closure)).encode()).hexdigest()[:16]


@cache
def contents(file: Path) -> tuple[str, frozenset[Path]]:
    """Return the digest of a file, and the modules of `text` that it imports anywhere; a line of prose may add one."""
    content = file.read_bytes()
    found = _IMPORT.findall(content.decode())
    return sha256(content).hexdigest(), frozenset(path for each in found for path in _files(*each))


def _files(module: str, names: str) -> list[Path]:
    """Return the file of a module, or of a room and of those of the names that are modules of it."""
    path = ROOMS.joinpath(*module.split("."))
    if (file := path.with_suffix(".py")).is_file():
        return [file]
    return [file for name in ("__init__", *re.findall(r"\w+", names)) if (file := path / f"{name}.py").is_file()]
