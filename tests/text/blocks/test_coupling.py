"""Neighbors decide together: a score is how much better the best choice of a page is with a block than without it."""

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.blocks.blocks import read_blocks
from pipeline_tasks.text.blocks.coupling import RELATIONS, counted_couplings, coupled, relations
from pipeline_tasks.text.blocks.features import shown_blocks
from pipeline_tasks.text.blocks.model import POINT

RELATED = st.lists(st.tuples(st.integers(-9000, 9000), st.integers(0, 3)), min_size=1, max_size=7)
TABLES = st.lists(st.integers(-3000, 3000), min_size=16, max_size=16)


@given(RELATED, TABLES)
def test_no_choice_of_all_blocks_says_otherwise(blocks: list[tuple[int, int]], table: list[int]) -> None:
    couplings = np.zeros((RELATIONS, 2, 2), np.int16)
    couplings[:4] = np.reshape(table, (4, 2, 2))
    best = np.full((len(blocks), 2), -(10**9))
    for kept in product([0, 1], repeat=len(blocks)):
        worth = sum(score * state for (score, _), state in zip(blocks, kept, strict=True))
        worth += sum(int(couplings[blocks[at][1], kept[at - 1], kept[at]]) for at in range(1, len(blocks)))
        for at, state in enumerate(kept):
            best[at, state] = max(best[at, state], worth)
    scores, related = np.array([score for score, _ in blocks], np.int32), np.array([r for _, r in blocks], np.uint16)
    assert coupled(scores, related, couplings).tolist() == ((best[:, 1] - best[:, 0]) * 4 // 5).tolist()


def test_an_item_goes_with_its_list_and_not_with_what_is_beside_it() -> None:
    page = "<nav><a>Home</a></nav><h1>Tea</h1><ul><li>Water<li>Leaves<li>Milk</ul><p>Pour the water on the leaves.</p>"
    blocks = read_blocks(np.frombuffer(page.encode(), np.uint8))
    related = relations(blocks, shown_blocks(blocks))
    is_main = np.array([False, True, True, True, True, True])
    assert len(related) == len(is_main)
    assert related[3] == related[4]
    assert len(set(related[1:].tolist())) == 4
    couplings = counted_couplings([(related, is_main), (related, ~is_main)] * 50, POINT)
    scores = np.array([-9000, 4000, 4000, -300, 4000, 4000], np.int32)
    assert (coupled(scores, related, couplings) > 0).tolist() == is_main.tolist()
    assert (coupled(scores, related, np.zeros_like(couplings)) > 0).tolist() == (scores > 0).tolist()


def test_a_page_without_blocks_has_no_scores() -> None:
    none = np.zeros(0, np.int32)
    assert len(coupled(none, none.astype(np.uint16), np.zeros(4 * RELATIONS, np.int16))) == 0
