"""Views the bytes of an Arrow text column as numpy arrays, without copying them."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Offsets = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


def views(texts: pa.Array) -> tuple[Offsets, Bytes]:
    """Return (offsets, data) of a string column: text i is UTF-8 in data[offsets[i]:offsets[i + 1]].

    Shapes (rows + 1,) and (bytes,). Slices keep their place in the shared data; a null counts as an empty text.
    """
    column = texts.cast(pa.large_string())
    if column.null_count:
        column = column.fill_null("")
    _, offsets, data = column.buffers()
    if offsets is None or len(column) == 0:
        return np.zeros(1, np.int64), np.zeros(0, np.uint8)
    first = np.frombuffer(offsets, np.int64, len(column) + 1, column.offset * 8)
    return first, np.frombuffer(data if data is not None else b"", np.uint8)
