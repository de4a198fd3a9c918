"""Stores a text as what differs from another text: a zstd frame whose dictionary is the other text."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import zstandard

LEVEL = 3
SMALLEST = 8
"""Bytes that zstd needs of a dictionary; a shorter text is none."""


def is_long(kind: pa.DataType) -> bool:
    """Return whether the values of a type are texts or payloads, of which only the difference is worth storing."""
    return bool(pa.types.is_large_string(kind) or pa.types.is_large_binary(kind))


def encode(before: pa.Array, after: pa.Array) -> pa.Array:
    """Return for each value of `after` (text or bytes; null stays null) what differs from the value of `before`."""
    pairs = zip(_bodies(before), _bodies(after), strict=True)
    return pa.array([None if new is None else _compressed(old, new) for old, new in pairs], pa.large_binary())


def decode(before: pa.Array, deltas: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the values, of type `kind`, that `encode` was given with the same `before`."""
    pairs = zip(_bodies(before), _bodies(deltas), strict=True)
    values = [None if delta is None else _decompressed(old, delta) for old, delta in pairs]
    return pa.array(values, pa.large_binary()).cast(kind)


def _bodies(values: pa.Array) -> Iterator[Any]:
    for value in values:
        yield value.as_buffer() if value.is_valid else None


def _dictionary(before: pa.Buffer | None) -> Any:  # noqa: ANN401 -- a ZstdCompressionDict, or None
    if before is None or before.size < SMALLEST:
        return None
    return zstandard.ZstdCompressionDict(before, dict_type=zstandard.DICT_TYPE_RAWCONTENT)


def _compressed(before: pa.Buffer | None, after: pa.Buffer) -> bytes:
    dictionary = _dictionary(before)
    # The window covers dictionary and text, or a change far into a long text would repeat all that follows it.
    parameters = zstandard.ZstdCompressionParameters.from_level(
        LEVEL,
        source_size=after.size,
        dict_size=before.size if before is not None else 0,
        window_log=max(((before.size if before is not None else 0) + after.size).bit_length(), 10),
        write_content_size=True,
        write_dict_id=False,
        write_checksum=False,
    )
    compressor = zstandard.ZstdCompressor(dict_data=dictionary, compression_params=parameters)
    return compressor.compress(after)


def _decompressed(before: pa.Buffer | None, delta: pa.Buffer) -> bytes:
    return zstandard.ZstdDecompressor(dict_data=_dictionary(before)).decompress(delta)
