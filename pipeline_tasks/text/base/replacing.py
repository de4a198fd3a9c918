"""Replace bytes that are no text, and rows, of an Arrow column."""

from collections.abc import Sequence

import pyarrow as pa


def replace_invalid_utf8(texts: pa.Array) -> pa.Array:
    """Return a string column with U+FFFD for what is no UTF-8; nulls stay.

    Arrow's own functions refuse such bytes, which a string column of a Parquet file may have; loops here do not.
    """
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        raw = texts.cast(pa.large_binary()).to_pylist()
        replaced = [None if text is None else text.decode("utf-8", "replace") for text in raw]
        return pa.array(replaced, pa.large_string())
    return texts


def replace_rows(column: pa.Array, rows: Sequence[int], values: pa.Array) -> pa.Array:
    """Return `column` with `values` in place of `rows`, which ascend; unlike `take`, it copies whole slices."""
    pieces, at = [], 0
    for nth, row in enumerate(rows):
        pieces += [column[at:row], values[nth : nth + 1]]
        at = row + 1
    return pa.concat_arrays([*pieces, column[at:]])
