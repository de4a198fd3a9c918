"""Best fit: the compiled loop against a plain one, and what holds for any lengths."""

from itertools import accumulate

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.packing.best_fit import cut, fit, lay_out, scatter

LENGTHS = st.lists(st.integers(0, 40), max_size=60)
CAPACITY = st.integers(1, 17)


def plain_fit(sizes: list[int], capacity: int) -> list[int]:
    """Best-fit decreasing as it is defined; of bins with the same room, the one that was filled last."""
    rooms: list[int] = []
    filled: list[int] = []  # bins, the one that was filled last at the end
    bins = [-1] * len(sizes)
    for piece in sorted(range(len(sizes)), key=lambda piece: -sizes[piece]):
        fitting = [bin_ for bin_ in filled if rooms[bin_] >= sizes[piece]]
        least = min((rooms[bin_] for bin_ in fitting), default=None)
        if least is None:
            rooms.append(capacity)
            chosen = len(rooms) - 1
        else:
            chosen = [bin_ for bin_ in fitting if rooms[bin_] == least][-1]
            filled.remove(chosen)
        rooms[chosen] -= sizes[piece]
        filled.append(chosen)
        bins[piece] = chosen
    return bins


@given(LENGTHS, CAPACITY)
def test_the_loop_is_best_fit_decreasing(lengths: list[int], capacity: int) -> None:
    _, _, sizes = cut(np.array(lengths, np.int64), capacity)
    bins, count = fit(sizes, capacity)
    assert bins.tolist() == plain_fit(sizes.tolist(), capacity)
    assert count == len(set(bins.tolist()))


@given(LENGTHS, CAPACITY)
def test_nothing_is_lost_and_only_long_documents_are_cut(lengths: list[int], capacity: int) -> None:
    documents, starts, sizes = cut(np.array(lengths, np.int64), capacity)
    for document, length in enumerate(lengths):
        own = [(start, size) for at, start, size in zip(documents, starts, sizes, strict=True) if at == document]
        assert sum(size for _, size in own) == length
        assert [start for start, _ in own] == [0, *accumulate(size for _, size in own[:-1])][: len(own)]
        assert len(own) == (length + capacity - 1) // capacity
    bins, count = fit(sizes, capacity)
    filled = np.bincount(bins, weights=sizes, minlength=count)
    assert (filled <= capacity).all()
    if count > 1:
        two_least = np.sort(filled)[:2]
        assert two_least.sum() > capacity  # else the pieces of one would have gone into the other


@given(st.integers(0, 500))
def test_bins_are_scattered_over_all_places(count: int) -> None:
    assert sorted(scatter(count).tolist()) == list(range(count))


def test_pieces_are_laid_out() -> None:
    out = np.full(8, -1, np.int32)
    numbers = np.arange(10, dtype=np.int32)
    lay_out(numbers, np.array([7, 0]), np.array([3, 2]), np.array([0, 4]), out)
    assert out.tolist() == [7, 8, 9, -1, 0, 1, -1, -1]
