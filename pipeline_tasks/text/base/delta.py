"""Stores a text as what differs from another text: a zstd frame whose dictionary is the other text."""

import pyarrow as pa
import zstandard

KIND = pa.large_binary()
LEVEL = 3
SMALLEST = 8
"""Bytes that zstd needs of a dictionary; a shorter text is none."""


def encode(before: pa.Array, after: pa.Array) -> pa.Array:
    """Return for each value of `after` (text or bytes; null stays null) what differs from the value of `before`."""
    pairs = zip(before, after, strict=True)
    return pa.array([_compressed(_body(old), _body(new)) if new.is_valid else None for old, new in pairs], KIND)


def decode(before: pa.Array, deltas: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the values, of type `kind`, that `encode` was given with the same `before`."""
    pairs = zip(before, deltas, strict=True)
    values = [_decompressed(_body(old), _body(delta)) if delta.is_valid else None for old, delta in pairs]
    return pa.array(values, KIND).cast(kind)


def _body(value: pa.Scalar) -> pa.Buffer:
    """Return the bytes of a value, none of a null."""
    return value.as_buffer() if value.is_valid else pa.py_buffer(b"")


def _dictionary(before: pa.Buffer) -> zstandard.ZstdCompressionDict | None:
    if before.size < SMALLEST:
        return None
    return zstandard.ZstdCompressionDict(before, dict_type=zstandard.DICT_TYPE_RAWCONTENT)


def _compressed(before: pa.Buffer, after: pa.Buffer) -> bytes:
    # The window covers dictionary and text, or a change far into a long text would repeat all that follows it.
    parameters = zstandard.ZstdCompressionParameters.from_level(
        LEVEL,
        source_size=after.size,
        dict_size=before.size,
        window_log=max((before.size + after.size).bit_length(), 10),
        write_content_size=True,
        write_dict_id=False,
        write_checksum=False,
    )
    return zstandard.ZstdCompressor(dict_data=_dictionary(before), compression_params=parameters).compress(after)


def _decompressed(before: pa.Buffer, delta: pa.Buffer) -> bytes:
    return zstandard.ZstdDecompressor(dict_data=_dictionary(before)).decompress(delta)
