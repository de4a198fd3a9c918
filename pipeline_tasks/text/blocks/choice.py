"""Chooses the blocks of a page that are its text: the set with the greatest expected F-measure, by whole numbers.

A fixed threshold loses pages whose text is hard to tell from what surrounds it, such as listings: their best blocks
have low scores. The set that is best by expectation is all blocks from some score on (Lewis 1995; Jansche 2007).
"""

from decimal import Decimal
from functools import cache

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base.compiled import compiled
from pipeline_tasks.text.blocks.model import POINT

NO_CUT = np.iinfo(np.int32).max
"""The cut of a page that has no words: no score reaches it."""

_STEP, _REACH = 6, 8  # binary digits of a score that the table leaves out; log-odds at its ends
_MOST_WORDS = 1 << 17  # of a page, beyond which words count in groups: no product overflows


def best_cut(scores: npt.NDArray[np.int32], words: npt.NDArray[np.int32], beta: float) -> int:
    """Return the score from which on blocks are main text, so that the expected F-measure of their words is greatest.

    `beta` says how many times as much recall counts as precision. `scores` are log-odds with `POINT` binary digits
    behind the point.
    """
    if not len(scores):
        return NO_CUT
    order = np.argsort(-scores, kind="stable")
    return int(_best_cut(scores[order], words[order], _chances(), round(256 * beta * beta), NO_CUT))


@cache
def _chances() -> npt.NDArray[np.int64]:
    """Return the probability of each step of scores, times 4096, by decimal arithmetic: the same on every machine."""
    steps = _REACH << (POINT - _STEP)
    one = Decimal(1)
    chances = [one / (one + (-Decimal(step) / (1 << (POINT - _STEP))).exp()) for step in range(-steps, steps + 1)]
    return np.array([max(int(4096 * chance), 1) for chance in chances], np.int64)


@compiled
def _best_cut(scores, words, chances, recall, no_cut):
    """Return the score of the last block of the best set; scores descend, and `recall` is beta squared times 256."""
    half, total = len(chances) // 2, np.int64(0)
    for block in range(len(scores)):
        total += words[block]
    shift = 0
    while total >> shift >= _MOST_WORDS:
        shift += 1
    expected = np.int64(0)
    for block in range(len(scores)):
        expected += _weight(words[block], shift) * _chance(scores[block], chances, half)
    missing = recall * expected >> 8
    gained = taken = best_gained = np.int64(0)
    best_all, cut = np.int64(1), np.int64(no_cut)
    for block in range(len(scores)):
        weight = _weight(words[block], shift)
        gained += weight * _chance(scores[block], chances, half)
        taken += weight << 12
        if block + 1 < len(scores) and scores[block + 1] == scores[block]:
            continue  # equal scores are chosen together
        if gained * best_all > best_gained * (missing + taken):
            best_gained, best_all, cut = gained, missing + taken, np.int64(scores[block])
    return cut


@compiled
def _weight(words, shift):
    return max(np.int64(words) >> shift, np.int64(words > 0))


@compiled
def _chance(score, chances, half):
    return chances[min(max((np.int64(score) >> _STEP) + half, 0), 2 * half)]
