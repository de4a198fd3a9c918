"""Lets neighboring blocks decide together: a score of each block that weighs what the others' scores make of it.

Trees score a block by itself, so a short heading, a term or an item of one word goes without the text that it belongs
to. Blocks in order are a chain: how often two neighbors are both main text, or one alone, depends on how they are
related, and is counted on marked pages. The score of a block is how much better the best choice of all blocks is with
it than without it (max-marginals by dynamic programming, Viterbi 1967).
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.blocks import measures as m
from pipeline_tasks.text.blocks.blocks import Blocks
from pipeline_tasks.text.blocks.features import LONG
from pipeline_tasks.text.blocks.reading import B_KIND, B_LEVEL, B_NODE, HEADED, N_PARENT

_STEPS = 5  # elements between a block and the one that holds its neighbor as well; more count as the last
_SHORT = 4  # words up to which a block is a label
RELATIONS = _STEPS * _STEPS * 2 * 2 * 2 * 3 * 3
"""Ways in which a block is related to the one before it."""

_STRENGTH = 0.2  # of what is counted, the rest of which trees have seen already: chosen on held-out sites
_FEW = 20  # pairs of blocks that a relation is taken to have had, as all relations have them
_TEMPER, _TEMPERED = 4, 5  # a chain is too sure of itself by so much


def relations(blocks: Blocks, shown: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint16]:
    """Return how each block that a page shows is related to the one before it that it shows.

    That is: elements that hold one and not the other, which of both is a heading, whether they are of one kind, and how
    long each is.
    """
    return np.asarray(_relations(blocks.table, blocks.nodes, blocks.measures, np.flatnonzero(shown)))


@compiled
def _relations(table, nodes, rows, places):
    depth = np.zeros(len(nodes), np.int64)
    for node in range(1, len(nodes)):
        depth[node] = depth[nodes[node, N_PARENT]] + 1
    related = np.zeros(len(places), np.uint16)
    for nth in range(1, len(places)):
        one, other = places[nth - 1], places[nth]
        left, right = np.int64(table[one, B_NODE]), np.int64(table[other, B_NODE])
        up = down = 0
        while left != right:
            if depth[left] >= depth[right]:
                left = np.int64(nodes[left, N_PARENT])
                up += 1
            else:
                right = np.int64(nodes[right, N_PARENT])
                down += 1
        number = min(up, _STEPS - 1) * _STEPS + min(down, _STEPS - 1)
        number = 2 * number + (table[one, B_KIND] == HEADED)
        number = 2 * number + (table[other, B_KIND] == HEADED)
        is_alike = table[one, B_KIND] == table[other, B_KIND] and table[one, B_LEVEL] == table[other, B_LEVEL]
        number = 2 * number + is_alike
        related[nth] = 9 * number + 3 * _length(rows[one, m.WORDS]) + _length(rows[other, m.WORDS])
    return related


@inlined
def _length(words):
    return (words > _SHORT) + (words >= LONG)


def counted_couplings(
    pages: Iterable[tuple[npt.NDArray[np.uint16], npt.NDArray[np.bool_]]], point: int
) -> npt.NDArray[np.int16]:
    """Return what neighbors say of each other: by relation, and whether the one before and the block are main text.

    `pages` have the relations of blocks, and which are main text. A coupling is the logarithm of how many times as
    often both are so as by chance, with `point` binary digits behind the point.
    """
    counts = np.zeros((RELATIONS, 2, 2))
    for related, is_main in pages:
        labels = is_main.astype(np.intp)
        np.add.at(counts, (related[1:], labels[:-1], labels[1:]), 1)
    counts += _FEW * counts.sum(0) / max(counts.sum(), 1) + 1e-6
    shares = counts / counts.sum((1, 2), keepdims=True)
    by_chance = shares.sum(2, keepdims=True) * shares.sum(1, keepdims=True)
    return np.asarray(np.rint(_STRENGTH * np.log(shares / by_chance) * (1 << point)), np.int16)


def coupled(
    scores: npt.NDArray[np.int32], related: npt.NDArray[np.uint16], couplings: npt.NDArray[np.int16]
) -> npt.NDArray[np.int32]:
    """Return the scores of the blocks that a page shows with what their neighbors make of them."""
    return np.asarray(_coupled(scores, related, couplings.reshape(RELATIONS, 2, 2)))


@compiled
def _coupled(scores, related, couplings):
    count = len(scores)
    ahead, behind = np.zeros((count, 2), np.int64), np.zeros((count, 2), np.int64)  # the best of all on each side
    for block in range(1, count):
        for state in range(2):
            pair = couplings[related[block], :, state]
            out, kept = ahead[block - 1, 0] + pair[0], ahead[block - 1, 1] + scores[block - 1] + pair[1]
            ahead[block, state] = max(out, kept)
    for block in range(count - 2, -1, -1):
        for state in range(2):
            pair = couplings[related[block + 1], state]
            out, kept = behind[block + 1, 0] + pair[0], behind[block + 1, 1] + scores[block + 1] + pair[1]
            behind[block, state] = max(out, kept)
    summed = np.empty(count, np.int32)
    for block in range(count):
        apart = ahead[block, 1] - ahead[block, 0] + behind[block, 1] - behind[block, 0]
        summed[block] = _TEMPER * (scores[block] + apart) // _TEMPERED
    return summed
