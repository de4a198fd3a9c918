"""View the bytes of an Arrow text column as numpy arrays, without copying them."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Offsets = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


def views(texts: pa.Array) -> tuple[Offsets, Bytes]:
    """Return (offsets, data) of a string column: text i is UTF-8 in data[offsets[i]:offsets[i + 1]].

    Shapes (rows + 1,) and (bytes,). Slices keep their place in the shared data; a null counts as an empty text.
    Neither can be written to, whoever owns the buffers: a loop is compiled for one kind of array and not for two.
    """
    column = texts.cast(pa.large_string())
    if column.null_count:
        column = column.fill_null("")
    _, offsets, data = column.buffers()
    if offsets is None or len(column) == 0:
        return _sealed(np.zeros(1, np.int64)), _sealed(np.zeros(0, np.uint8))
    first = np.frombuffer(offsets, np.int64, len(column) + 1, column.offset * 8)
    return _sealed(first), _sealed(np.frombuffer(data if data is not None else b"", np.uint8))


def _sealed(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array.setflags(write=False)
    return array


def take_rows(column: pa.Array, rows: npt.NDArray[np.int64]) -> pa.Array:
    """Return the values of `rows`, which ascend.

    Bytes of texts and payloads are shared where all that is left out between `rows` is empty: Arrow's `take` copies
    them, however few rows it leaves out.
    """
    if not is_long(column.type) or not len(rows):
        return column.take(pa.array(rows))
    _, offsets, data = column.buffers()
    bounds = np.frombuffer(offsets, np.int64, len(column) + 1, column.offset * 8)
    starts, ends = bounds[rows], bounds[rows + 1]
    if not np.array_equal(starts[1:], ends[:-1]):
        return column.take(pa.array(rows))
    validity = column.is_valid().take(pa.array(rows)).buffers()[1] if column.null_count else None
    shared = [validity, pa.py_buffer(np.append(starts, ends[-1])), data]
    return pa.Array.from_buffers(column.type, len(rows), shared)


def is_long(kind: pa.DataType) -> bool:
    """Return whether the values of a type are texts or payloads."""
    return bool(pa.types.is_large_string(kind) or pa.types.is_large_binary(kind))
