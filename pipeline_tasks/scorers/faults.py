"""Tells what a machine does to a model (no memory, a GPU that is gone) from a text that the model cannot read."""

GPU = ("cuda error", "cublas", "cudnn", "no kernel image", "device-side assert")
"""What errors of a GPU say, in small letters; `run.machine` knows them by these, too."""

_OF_MACHINE = ("out of memory", "driver", *GPU)


def is_of_machine(error: BaseException) -> bool:
    """Return whether an error of a model is the machine's: another attempt, elsewhere, may do."""
    return isinstance(error, MemoryError) or any(word in str(error).lower() for word in _OF_MACHINE)


def is_panic(error: BaseException) -> bool:
    """Return whether an error is a panic of a library in Rust, which is no `Exception` of Python."""
    return type(error).__module__ == "pyo3_runtime"
