"""Tokens are drawn as often as a network says, from the nucleus alone, and by the seed of their text alone."""

import numpy as np
import pytest
from refinery_models.generators.sampling import Draw

from pipeline_tasks.generators.generator import Sampling

SHARES = np.array([0.5, 0.1, 0.3, 0.1, 0.0])
LOGITS = np.log(SHARES + 1e-12).astype(np.float32)


def drawn(sampling: Sampling, count: int, seed: int = 1) -> list[int]:
    draw = Draw(sampling, seed)
    return [draw.token(LOGITS) for _ in range(count)]


def test_a_temperature_of_0_takes_the_likeliest_and_of_equals_the_first() -> None:
    draw = Draw(Sampling(), 1)
    assert draw.token(LOGITS) == 0
    assert draw.token(np.array([1, 3, 3, 2], np.float32)) == 1


@pytest.mark.parametrize("top_p", [1.0, 0.9999999])
def test_tokens_come_as_often_as_the_network_says(top_p: float) -> None:
    counts = np.bincount(drawn(Sampling(1.0, top_p), 20_000), minlength=5) / 20_000
    assert np.abs(counts - SHARES).max() < 0.012
    assert counts[4] == 0


def test_a_higher_temperature_is_flatter() -> None:
    counts = np.bincount(drawn(Sampling(2.0), 20_000), minlength=5) / 20_000
    wanted = np.sqrt(SHARES) / np.sqrt(SHARES).sum()
    assert np.abs(counts - wanted).max() < 0.012


@pytest.mark.parametrize(
    ("top_p", "ids"), [(0.0, {0}), (0.4, {0}), (0.6, {0, 2}), (0.85, {0, 1, 2}), (1.0, {0, 1, 2, 3})]
)
def test_the_nucleus_is_the_fewest_tokens_with_that_share(top_p: float, ids: set[int]) -> None:
    assert {*drawn(Sampling(1.0, top_p), 2000)} == ids


def test_the_nucleus_of_a_large_vocabulary_is_that_of_all_sorted() -> None:
    random = np.random.default_rng(3)
    for top_p in (0.1, 0.5, 0.9, 0.99):
        logits = random.normal(0, 3, 50_000).astype(np.float32)
        shares = np.exp(logits.astype(np.float64)) / np.exp(logits.astype(np.float64)).sum()
        order = np.argsort(-shares, kind="stable")
        nucleus = order[: int(np.searchsorted(np.cumsum(shares[order]), top_p)) + 1]
        draw = Draw(Sampling(1.0, top_p), 5)
        assert {draw.token(logits) for _ in range(300)} <= {*nucleus.tolist()}


def test_a_seed_decides() -> None:
    assert drawn(Sampling(1.0), 50, 7) == drawn(Sampling(1.0), 50, 7)
    assert drawn(Sampling(1.0), 50, 7) != drawn(Sampling(1.0), 50, 8)
    assert drawn(Sampling(1.0), 50, 2**63 - 1)
