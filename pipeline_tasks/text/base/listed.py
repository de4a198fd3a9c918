"""Find the texts that have a character of a list."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.text.base.buffers import views
from pipeline_tasks.text.base.compiled import compiled
from pipeline_tasks.text.base.eight_bytes import HIGH_BITS, load_eight
from pipeline_tasks.text.base.utf8 import decode_valid

CODE_POINTS = 0x110000

Listed = npt.NDArray[np.bool_]
"""For each code point whether it is on the list."""


def listed(points: Iterable[int]) -> Listed:
    """Return the list of some code points, none of them ASCII."""
    flags = np.zeros(CODE_POINTS, np.bool_)
    flags[list(points)] = True
    return flags


def have_listed(texts: pa.Array, flags: Listed) -> npt.NDArray[np.bool_]:
    """Return for each text, which is valid UTF-8, whether it has a character of the list."""
    offsets, data = views(texts)
    found = np.zeros(len(offsets) - 1, np.bool_)
    _find(offsets, data, flags, found)
    return found


@compiled
def _find(offsets, data, flags, found):
    """Set `found` of each text with a listed character; eight bytes of ASCII are passed at once."""
    for row in range(len(found)):
        at, end = offsets[row], offsets[row + 1]
        while at < end:
            if at + 8 <= end and load_eight(data, at) & HIGH_BITS == 0:
                at += 8
                continue
            point, at = decode_valid(data, at)
            if flags[point]:
                found[row] = True
                break
