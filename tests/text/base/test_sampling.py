"""Draws depend on seed and id alone, and are uniform."""

import numpy as np
import pyarrow as pa

from pipeline_tasks.text.base.sampling import DRAW_SPAN, uniform_draws

IDS = pa.array([f"document {number}" for number in range(4000)])


def test_draws_repeat() -> None:
    draws = uniform_draws(IDS, 7)
    assert (uniform_draws(IDS.slice(100, 50), 7) == draws[100:150]).all()
    assert not (uniform_draws(IDS, 8) == draws).any()
    assert uniform_draws(pa.array([None, ""]), 7).tolist() == [uniform_draws(pa.array([""]), 7)[0]] * 2


def test_draws_are_pinned() -> None:
    assert uniform_draws(pa.array(["a", "b"]), 0).tolist() == [4157258607972684679, 1573588911311429903]


def test_draws_are_uniform() -> None:
    draws = uniform_draws(IDS, 7)
    assert ((draws >= 0) & (draws < DRAW_SPAN)).all()
    counts, _ = np.histogram(draws.astype(np.float64), bins=10, range=(0, DRAW_SPAN))
    assert (abs(counts - 400) < 100).all()
