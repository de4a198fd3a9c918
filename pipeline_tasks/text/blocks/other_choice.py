"""Says how many words of pages other choices of their blocks would have, by the scores that documents store."""

import numpy as np
import pyarrow as pa

from pipeline_tasks.text.blocks.choice import best_cut
from pipeline_tasks.text.blocks.model import POINT

STORED = 6
"""Binary digits behind the point of a stored score (`schema.BLOCK`)."""


def words_by(blocks: pa.ListArray, now: float, then: float) -> tuple[pa.Array, pa.Array]:
    """Return the words that the text of each row has, and would have by another beta; null for a row without blocks.

    The choice by scores is made again by both values. What is chosen besides them, such as a headline or the list that
    a line introduces, is taken to stay.
    """
    offsets, flat = blocks.offsets.to_numpy(), blocks.values
    scores = flat.field("score").to_numpy().astype(np.int32) << (POINT - STORED)
    words, kept = flat.field("words").to_numpy(), flat.field("kept").to_numpy(zero_copy_only=False)
    has, would = np.zeros(len(blocks), np.int64), np.zeros(len(blocks), np.int64)
    for row in range(len(blocks)):
        its = slice(offsets[row], offsets[row + 1])
        chosen = [words[its][scores[its] >= best_cut(scores[its], words[its], beta)].sum() for beta in (now, then)]
        has[row] = words[its][kept[its]].sum()
        would[row] = max(has[row] + chosen[1] - chosen[0], 0)
    unknown = blocks.is_null().to_numpy(zero_copy_only=False)
    return pa.array(has, mask=unknown), pa.array(would, mask=unknown)
