"""Draws tokens from what a network says of each: greedily, or by a generator of random numbers of the request's own."""

import numpy as np
import numpy.typing as npt

from pipeline_tasks.generators.generator import Sampling

Logits = npt.NDArray[np.floating]


class Draw:
    """Draws the tokens of one text: the same from the same outputs, whatever is drawn beside it."""

    def __init__(self, sampling: Sampling, seed: int) -> None:
        self._sampling = sampling
        self._random = np.random.Generator(np.random.Philox(seed))

    def token(self, logits: Logits) -> int:
        """Return the next token by the outputs of the vocabulary, shape (tokens,); of equal ones the lowest id."""
        if not self._sampling.temperature:
            return int(logits.argmax())
        scaled = (logits - logits.max()) / np.float32(self._sampling.temperature)
        weights = np.exp(scaled, dtype=np.float32)
        ids = _nucleus(weights, self._sampling.top_p)
        sums = np.cumsum(weights if ids is None else weights[ids], dtype=np.float64)
        place = int(np.searchsorted(sums, self._random.random() * sums[-1], side="right"))
        place = min(place, len(sums) - 1)
        return place if ids is None else int(ids[place])


def _nucleus(weights: npt.NDArray[np.float32], top_p: float) -> npt.NDArray[np.int64] | None:
    """Return the fewest tokens that have `top_p` of the weight, the likeliest first; None for all.

    Tokens below an equal share of what may be missing have together less than that, so none of them is looked at.
    """
    if top_p >= 1:
        return None
    total = float(weights.sum(dtype=np.float64))
    ids = np.flatnonzero(weights >= (1 - top_p) * total / len(weights))
    ids = ids[np.argsort(-weights[ids], kind="stable")]
    before = np.cumsum(weights[ids], dtype=np.float64)
    return ids[: int(np.searchsorted(before, top_p * total, side="left")) + 1]
