"""Looks keys up among others that are sorted once: a hash table of them for each batch takes longer than all else."""

import pyarrow as pa
import pyarrow.compute as pc


class SortedKeys:
    """Keys of texts or bytes, and where each of them was given."""

    def __init__(self, keys: pa.Array) -> None:
        """Sort keys, none of them null; keys that come in sorted runs take little time."""
        self._places = pc.array_sort_indices(keys)
        self._keys = keys.take(self._places)

    def places(self, wanted: pa.Array) -> pa.Array:
        """Return where each wanted key was given, null for one that was not and for a null."""
        if not len(self._keys):
            return pa.nulls(len(wanted), pa.int64())
        filled = pc.fill_null(wanted, pa.scalar(b"" if pa.types.is_binary(wanted.type) else "", wanted.type))
        near = pc.min_element_wise(pc.search_sorted(self._keys, filled).cast(pa.int64()), len(self._keys) - 1)
        is_there = pc.and_(wanted.is_valid(), pc.equal(self._keys.take(near), filled))
        return pc.if_else(is_there, self._places.take(near).cast(pa.int64()), pa.scalar(None, pa.int64()))
