"""Counts stop words, each text by the list of its own language."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.text.base.buffers import views
from pipeline_tasks.text.base.compiled import compiled
from pipeline_tasks.text.words import cutting
from pipeline_tasks.text.words.cutting import LOW_BYTE, hash_words

DIFFERENT, EVERY = 0, 1
"""Columns of `count`: how many words of the list occur, and how often any of them does."""


@compiled
def _count(words, lists, ends, stops, out):
    """Fill out[row] with DIFFERENT and EVERY; list i is stops[ends[i]:ends[i + 1]]."""
    likely, seen = np.zeros(int(LOW_BYTE) + 1, np.bool_), np.empty(len(stops), np.bool_)
    for stop in range(len(stops)):
        likely[stops[stop] & LOW_BYTE] = True
    for row in range(len(lists)):
        seen[:] = False
        for word in range(words.at[row], words.at[row + 1]):
            if not likely[words.hashes[word] & LOW_BYTE]:
                continue
            for stop in range(ends[lists[row]], ends[lists[row] + 1]):
                if words.hashes[word] == stops[stop]:
                    out[row, 0] += not seen[stop]
                    out[row, 1] += 1
                    seen[stop] = True


def count_stop_words(
    texts: pa.Array, rules: npt.NDArray[np.uint8], lists: npt.NDArray[np.int64], words: Sequence[tuple[str, ...]]
) -> npt.NDArray[np.float64]:
    """Return per text DIFFERENT and EVERY, shape (rows, 2): `lists` says which of `words` it is asked.

    `rules` are those of `text.words`; words are compared as spelled.
    """
    ends = np.cumsum([0, *map(len, words)])
    out = np.zeros((len(texts), 2))
    spelled = hash_words(tuple(word for one in words for word in one))
    _count(cutting.words_of(*views(texts), rules), lists, ends, spelled, out)
    return out
