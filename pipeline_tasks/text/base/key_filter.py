"""A filter over the keys of a segment: it says of most keys that the segment does not have that it does not have them.

It is the split-block Bloom filter of Parquet (github.com/apache/parquet-format, BloomFilter.md): blocks of eight words
of 32 bits, one bit in each word for each key. At `BITS` for each key about 0.1 % of other keys pass.
"""

from functools import cache
from importlib.util import find_spec

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Hashes = npt.NDArray[np.uint64]
Blocks = npt.NDArray[np.uint32]
"""Of shape (blocks, 8)."""

BITS = 16

_WORDS = 8
_SALTS = np.array(
    [0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31], np.uint32
)
_HALF, _TOP_BITS = np.uint64(32), np.uint32(27)


def may_filter(kind: pa.DataType) -> bool:
    """Return whether keys of a type have a filter: whole numbers, texts and bytes."""
    of_bytes = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
    return any(
        is_kind(kind) for is_kind in (pa.types.is_integer, pa.types.is_string, pa.types.is_large_string, *of_bytes)
    )


@cache
def has_hashes(kind: pa.DataType) -> bool:
    """Return whether this environment can hash keys of a type: of texts only where loops are compiled.

    A web server without kernels asks no filter, and reads what it would have denied.
    """
    return bool(pa.types.is_integer(kind)) or find_spec("numba") is not None


_APART = np.uint64(0x9E3779B97F4A7C15)
"""Added to whole numbers: the keys of a bucket are a range of the hashes of the numbers themselves (`run/shuffle.py`),
and all of them would share the few blocks of that range. It is the step of SplitMix64 from a number to the next."""


def key_hashes(keys: pa.Array) -> Hashes:
    """Return a 64-bit hash of each key (no nulls), the same on every machine; of a type that `may_filter`."""
    if pa.types.is_integer(keys.type):
        numbers = np.asarray(keys.cast(pa.int64(), safe=False).to_numpy(zero_copy_only=False)).view(np.uint64)
        return _mixed(numbers + _APART)
    from pipeline_tasks.text.base.hashed import hash_texts  # loads compiled loops

    return hash_texts(keys.cast(pa.large_binary()).view(pa.large_string()))  # the bytes are hashed, text or not


def _mixed(numbers: Hashes) -> Hashes:
    """Return numbers whose bits are mixed (the finalizer of SplitMix64): neighbors get far apart."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        numbers = (numbers ^ (numbers >> np.uint64(shift))) * np.uint64(factor)
    return numbers ^ (numbers >> np.uint64(31))


def filter_of(hashes: Hashes) -> bytes:
    """Return the filter of keys by their hashes, in any order; the same keys give the same bytes."""
    count = max(len(hashes) * BITS // (32 * _WORDS), 1)
    blocks = np.zeros((count, _WORDS), np.uint32)
    hashes = hashes[np.argsort(_block(hashes, count), kind="stable")]
    places, starts = np.unique(_block(hashes, count), return_index=True)
    for word in range(_WORDS):
        blocks[places, word] = np.bitwise_or.reduceat(_bits(hashes, word), starts) if len(starts) else 0
    return blocks.astype("<u4").tobytes()


def blocks_of(body: bytes) -> Blocks:
    """Return the blocks of a stored filter."""
    return np.frombuffer(body, "<u4").reshape(-1, _WORDS)


def may_have(blocks: Blocks, hashes: Hashes) -> npt.NDArray[np.bool_]:
    """Return for each hash whether its key may be in the segment; False says that it is not."""
    places = _block(hashes, len(blocks))
    found = np.ones(len(hashes), np.bool_)
    for word in range(_WORDS):
        found &= (blocks[places, word] & _bits(hashes, word)) != 0
    return found


def _block(hashes: Hashes, count: int) -> npt.NDArray[np.int64]:
    return (((hashes >> _HALF) * np.uint64(count)) >> _HALF).astype(np.int64)


def _bits(hashes: Hashes, word: int) -> npt.NDArray[np.uint32]:
    """Return the one bit that each key has in a word of its block."""
    places = (hashes.astype(np.uint32) * _SALTS[word]) >> _TOP_BITS
    bits: npt.NDArray[np.uint32] = np.left_shift(np.uint32(1), places, dtype=np.uint32)
    return bits
