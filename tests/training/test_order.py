"""The order of epochs: a permutation for every size, seed and block, computed place by place."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.training.order import Order, permuted


@given(st.integers(1, 3000), st.integers(0, 2**63 - 1), st.integers(1, 400), st.integers(0, 5))
def test_every_epoch_has_every_sequence_once(sequences: int, seed: int, block: int, epoch: int) -> None:
    order = Order(sequences, seed, "always", block)
    places = np.arange(epoch * sequences, (epoch + 1) * sequences)
    assert sorted(order.sequences_at(places).tolist()) == list(range(sequences))


@given(st.integers(1, 2000), st.integers(0, 99), st.integers(1, 300), st.integers(0, 10_000))
def test_a_place_has_the_same_sequence_whoever_asks(sequences: int, seed: int, block: int, start: int) -> None:
    order = Order(sequences, seed, "later", block)
    places = np.arange(start, start + 40)
    together = order.sequences_at(places).tolist()
    assert together == [int(order.sequences_at(np.array([place]))[0]) for place in places]


def test_the_first_epoch_has_the_stored_order_unless_it_is_asked_otherwise() -> None:
    places = np.arange(2000)
    later, always, never = (
        Order(1000, 7, shuffle, 64).sequences_at(places).tolist() for shuffle in ("later", "always", "never")
    )  # type: ignore[arg-type]
    assert later[:1000] == list(range(1000))
    assert later[1000:] != list(range(1000))
    assert always[:1000] != list(range(1000))
    assert never == [*range(1000), *range(1000)]


def test_epochs_and_seeds_have_orders_of_their_own() -> None:
    places = np.arange(5000)
    orders = [
        tuple(Order(1000, seed, "always", 16).sequences_at(places)[epoch * 1000 :][:1000].tolist())
        for seed in range(3)
        for epoch in range(5)
    ]
    assert len(set(orders)) == 15


def test_an_order_is_the_same_in_every_release() -> None:
    """A training run that goes on after an upgrade would see other sequences twice, and some never."""
    places = np.arange(992, 1008)
    assert Order(1000, 7, "always", 64).sequences_at(places).tolist() == [
        *(966, 961, 997, 998, 994, 971, 982, 989),
        *(675, 683, 702, 685, 660, 668, 693, 659),
    ]


def test_neighbors_stay_in_one_block() -> None:
    order = Order(10_000, 3, "always", 100)
    blocks = order.sequences_at(np.arange(10_000)).reshape(100, 100) // 100
    assert (blocks == blocks[:, :1]).all()


@pytest.mark.parametrize("size", [7, 64, 1000])
def test_a_value_goes_to_each_place_equally_often(size: int) -> None:
    """Chi-squared over 20,000 keys stays within five deviations of its mean."""
    keys = np.arange(20_000, dtype=np.uint64) * np.uint64(0x2545F4914F6CDD1D)
    for value in (0, size // 2, size - 1):
        counts = np.bincount(permuted(np.full(20_000, value), size, keys), minlength=size)
        chi = float(((counts - 20_000 / size) ** 2 / (20_000 / size)).sum())
        assert abs(chi - (size - 1)) < 5 * (2 * (size - 1)) ** 0.5


def test_no_sequences_have_no_order() -> None:
    assert Order(0, 0, "always", 256).sequences_at(np.arange(0)).tolist() == []
