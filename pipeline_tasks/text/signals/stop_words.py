"""Count stop words, each text by the list of its own language."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.text.base.buffers import views
from pipeline_tasks.text.base.compiled import compiled
from pipeline_tasks.text.words import cutting
from pipeline_tasks.text.words.cutting import LOW_BYTE, hash_words

DISTINCT, OCCURRENCES = 0, 1
"""Columns of `count_stop_words`: words of the list that occur; occurrences of any of them."""


@compiled
def _count(words, lists, ends, stops, out):
    """Fill out[row] with DISTINCT and OCCURRENCES; list i is stops[ends[i]:ends[i + 1]]."""
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
                    out[row, DISTINCT] += not seen[stop]
                    out[row, OCCURRENCES] += 1
                    seen[stop] = True


def count_stop_words(
    texts: pa.Array, rules: npt.NDArray[np.uint8], lists: npt.NDArray[np.int64], words: Sequence[tuple[str, ...]]
) -> npt.NDArray[np.float64]:
    """Return per text DISTINCT and OCCURRENCES, shape (rows, 2); `lists` is the list in `words` for each text.

    `rules` are those of `words.cutting`; words are compared as spelled.
    """
    ends = np.cumsum([0, *map(len, words)])
    out = np.zeros((len(texts), 2))
    stops = hash_words(tuple(word for listed in words for word in listed))
    _count(cutting.words_of(*views(texts), rules), lists, ends, stops, out)
    return out
