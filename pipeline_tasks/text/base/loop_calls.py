"""Compiles every loop ahead, for the types of arguments that `loop_calls.json` says stages call it with.

`python -m pipeline_tasks.demo.loop_calls` records that file: each loop that is called from Python, slowest to compile
first, with the types of its arguments. A number is its numba name; an array is its element type, dimensions and layout
("uint8 1d C", and "readonly"); a tuple is a list; a named tuple is an object with the path of its class.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from hashlib import sha256
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, TypeAlias

from numba import types
from numba.core.registry import cpu_target

from pipeline_tasks.errors import JobLost
from pipeline_tasks.owned import require_own
from pipeline_tasks.text.base.compiled import ROOMS, cache_place, stamp

Recorded: TypeAlias = "str | list[Recorded] | Mapping[str, list[Recorded]]"
"""The type of an argument, as the module's docstring says."""

Calls = dict[str, list[list[Recorded]]]
"""Types of arguments, of each call, by the path of a loop: "pipeline_tasks.text.base.hashing.fill"."""

MOST_PROCESSES = 4
"""Processes that compile at once: more would want gigabytes, and the slowest loop bounds what they gain."""

EVERY = 10.0
"""Seconds after which it is said how many loops are compiled, and again: on a busy machine all take minutes."""

DONE = "all"
"""File that says that all recorded calls are compiled."""

RECORDED = Path(__file__).with_name("loop_calls.json")


def recorded_calls() -> Calls:
    """Return the calls of `loop_calls.json`."""
    calls: Calls = json.loads(RECORDED.read_text(encoding="utf-8"))
    return calls


def is_compiled() -> bool:
    """Return whether `compile_ahead` has ended on this machine, for what the loops are made of and its processor."""
    return (_ready() / DONE).exists()


def compile_ahead(progress: Callable[[int, int], None] = lambda _done, _count: None) -> None:
    """Compile all recorded calls, by a process for each processor; what is cached is loaded.

    `progress` is called with how many loops are done, and how many there are, every `EVERY` seconds and at the end.
    A loop that does not compile fails the whole: the error is numba's, and names the loop. JobLost: a process died.
    """
    with TemporaryFile(dir=_made(_ready())):  # else a minute would be spent for nothing
        calls = recorded_calls()
    processes = min(len(os.sched_getaffinity(0)), MOST_PROCESSES)
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(_compile, call) for call in calls.items()}
        try:
            while waiting:
                compiled, waiting = wait(waiting, EVERY, FIRST_EXCEPTION)
                for each in compiled:
                    each.result()
                progress(len(calls) - len(waiting), len(calls))
        except BrokenProcessPool as error:
            message = f"one of {processes} processes that compile loops died; each needs up to 500 MB of memory"
            raise JobLost(message) from error
        finally:  # the pool alone cancels: its thread dies where a call is canceled while it says that a process died
            pool.shutdown(wait=False, cancel_futures=True)
    mark_compiled()


def mark_compiled() -> None:
    """Say that nothing is left to compile: `is_compiled` is true from now on."""
    (_made(_ready()) / DONE).touch()


def _ready() -> Path:
    """Return the folder whose file `DONE` says that all is compiled; its name has the calls, loops and processor.

    It is a folder beside those of loops, and the last by its name, as what brings loops elsewhere takes each in turn.
    """
    modules = {loop.rpartition(".")[0] for loop in recorded_calls()}
    stamps = [stamp(ROOMS.joinpath(*module.split(".")[2:]).with_suffix(".py")) for module in sorted(modules)]
    processor = cpu_target.target_context.codegen().magic_tuple()
    about = sha256(RECORDED.read_bytes() + repr((stamps, processor)).encode()).hexdigest()[:16]
    return cache_place() / f"ready-{about}"


def _made(folder: Path) -> Path:
    """Make a folder into which other users cannot write; RecipeError, or an OSError that names it."""
    require_own(str(folder))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _compile(call: tuple[str, Sequence[Sequence[Recorded]]]) -> None:
    path, signatures = call
    loop = _at(path)
    for arguments in signatures:
        taken = tuple(type_of(each) for each in arguments)
        if taken not in loop.signatures:  # a loop that names its types was compiled when its module was imported
            loop.compile(taken)


@cache
def _at(path: str) -> Any:  # noqa: ANN401 -- a loop, or the class of a named tuple
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)


def type_of(recorded: Recorded) -> types.Type:
    """Return the numba type of a recorded argument: the reverse of `recorded_type`."""
    if isinstance(recorded, list):
        return types.Tuple(tuple(type_of(each) for each in recorded))
    if isinstance(recorded, Mapping):
        [(path, fields)] = recorded.items()
        return _named_tuple(path, [type_of(each) for each in fields])
    name, *array = recorded.split()
    if not array:
        return getattr(types, name)
    dimensions, layout, *readonly = array
    return types.Array(getattr(types, name), int(dimensions.removesuffix("d")), layout, readonly=bool(readonly))


def _named_tuple(path: str, fields: Sequence[types.Type]) -> types.Type:
    if len(set(fields)) == 1:
        return types.NamedUniTuple(fields[0], len(fields), _at(path))
    return types.NamedTuple(fields, _at(path))


def recorded_type(type_: types.Type) -> Recorded:
    """Return what `loop_calls.json` has of the type of an argument; TypeError if it has no form for it."""
    if isinstance(type_, (types.NamedTuple, types.NamedUniTuple)):
        of = type_.instance_class
        return {f"{of.__module__}.{of.__qualname__}": [recorded_type(each) for each in type_]}
    if isinstance(type_, types.BaseTuple):
        return [recorded_type(each) for each in type_]
    if isinstance(type_, types.Array):
        return f"{_number(type_.dtype)} {type_.ndim}d {type_.layout}{'' if type_.mutable else ' readonly'}"
    return _number(type_)


def _number(type_: types.Type) -> str:
    if not isinstance(type_, (types.Number, types.Boolean)):
        message = f"a loop takes arrays, numbers and tuples of them, not {type_}"
        raise TypeError(message)
    return "boolean" if isinstance(type_, types.Boolean) else type_.name
