"""The chosen blocks of a page have the greatest expected F-measure of all sets."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.blocks.choice import NO_CUT, best_cut

BLOCKS = st.lists(st.tuples(st.integers(-30_000, 30_000), st.integers(0, 400)), min_size=1, max_size=9)


def chance(score: int) -> float:
    step = min(max(score >> 6, -512), 512) / 64
    return max(int(4096 / (1 + np.exp(-step))), 1) / 4096


def expected(blocks: list[tuple[int, int]], kept: tuple[bool, ...], beta: float) -> float:
    gained = sum(chance(score) * words for (score, words), is_kept in zip(blocks, kept, strict=True) if is_kept)
    every = sum(chance(score) * words for score, words in blocks)
    taken = sum(words for (_, words), is_kept in zip(blocks, kept, strict=True) if is_kept)
    return (1 + beta**2) * gained / max(beta**2 * every + taken, 1e-9)


def cut(blocks: list[tuple[int, int]], beta: float) -> int:
    columns = np.array(blocks, np.int32).reshape(-1, 2)
    return best_cut(np.ascontiguousarray(columns[:, 0]), np.ascontiguousarray(columns[:, 1]), beta)


@given(BLOCKS, st.sampled_from([0.5, 1.0, 1.5, 2.0]))
def test_no_other_set_is_better(blocks: list[tuple[int, int]], beta: float) -> None:
    least = cut(blocks, beta)
    chosen = tuple(score >= least for score, _ in blocks)
    best = max(expected(blocks, kept, beta) for kept in product([False, True], repeat=len(blocks)))
    assert expected(blocks, chosen, beta) == pytest.approx(best, abs=2e-4)


def test_more_weight_on_recall_chooses_more() -> None:
    blocks = [(8000, 100), (0, 50), (-4000, 50), (-8000, 50)]
    assert cut(blocks, 0.5) > cut(blocks, 1.0) > cut(blocks, 2.0)


def test_a_page_without_words_has_nothing_to_choose() -> None:
    assert cut([], 1.0) == NO_CUT
    assert cut([(9000, 0)], 1.0) == NO_CUT


def test_words_beyond_all_pages_do_not_overflow() -> None:
    assert cut([(30_000, 2**30), (-30_000, 2**30)], 2.0) == 30_000
