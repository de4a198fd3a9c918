"""Tells what a machine does to a model (no memory, a GPU that is gone) from a text that the model cannot read."""

from types import TracebackType

GPU = ("cuda error", "cublas", "cudnn", "no kernel image", "device-side assert")
"""What errors of a GPU say, in small letters; `run.machine` knows them by these, too."""

_OF_MACHINE = ("out of memory", "driver", *GPU)


def is_of_machine(error: BaseException) -> bool:
    """Return whether an error of a model is the machine's: another attempt, elsewhere, may do."""
    return isinstance(error, MemoryError) or any(word in str(error).lower() for word in _OF_MACHINE)


def is_panic(error: BaseException) -> bool:
    """Return whether an error is a panic of a library in Rust, which is no `Exception` of Python."""
    return type(error).__module__ == "pyo3_runtime"


def raised(error: BaseException) -> str:
    """Return the class of an error and the function that raised it, which are the same at each try.

    The text of an error is left out: it may be that of a record, or name an address in memory.
    """
    last: TracebackType | None = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    where = "" if last is None else f" in {last.tb_frame.f_globals.get('__name__')}.{last.tb_frame.f_code.co_qualname}"
    return f"{type(error).__name__}{where}"
