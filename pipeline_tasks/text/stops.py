"""Counts stop words, each text by the list of its own language."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.text.buffers import views
from pipeline_tasks.text.compiled import compiled
from pipeline_tasks.text.letters import classes
from pipeline_tasks.text.words import cut, hashes_of, longest

DIFFERENT, EVERY = 0, 1
"""Columns of `count`: how many words of the list occur, and how often any of them does."""


@compiled
def _count(offsets, data, rules, lists, ends, stops, table, out):  # type: ignore[no-untyped-def]
    """Fill out[row] with DIFFERENT and EVERY; list i is stops[ends[i]:ends[i + 1]]."""
    index, flags = table
    room = longest(offsets)
    lengths, hashes, kinds = np.empty(room, np.int32), np.empty(room, np.uint64), np.empty(room, np.uint8)
    seen = np.empty(len(stops), np.bool_)
    for row in range(len(offsets) - 1):
        seen[:] = False
        words = cut(data, offsets[row], offsets[row + 1], rules[row], index, flags, lengths, hashes, kinds)
        for word in range(words):
            for stop in range(ends[lists[row]], ends[lists[row] + 1]):
                if hashes[word] == stops[stop]:
                    out[row, 0] += not seen[stop]
                    out[row, 1] += 1
                    seen[stop] = True


def count(
    texts: pa.Array, rules: npt.NDArray[np.uint8], lists: npt.NDArray[np.int64], words: Sequence[tuple[str, ...]]
) -> npt.NDArray[np.float64]:
    """Return per text DIFFERENT and EVERY, shape (rows, 2): `lists` says which of `words` it is asked.

    `rules` are those of `text.words`; words are compared as spelled.
    """
    ends = np.cumsum([0, *map(len, words)])
    out = np.zeros((len(texts), 2))
    _count(*views(texts), rules, lists, ends, hashes_of(tuple(word for one in words for word in one)), classes(), out)
    return out
