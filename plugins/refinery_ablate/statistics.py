"""Says whether two arms differ: a difference of bits per byte with an interval, and what would be needed to see less.

An arm is trained with several seeds at each of two learning rates, and scored on the same held-out documents. The bits
per byte of an arm differ between seeds, and the difference of two arms differs between documents. Both are noise:

- of seeds, by the pooled variance of the arms, which follows from the runs themselves;
- of documents, by a jackknife over documents, which are paired: both arms are scored on the same ones.

The interval is that of Student's t with the degrees of freedom of the fewer: of seeds, or of documents, of which a few
long ones may weigh as much as all others.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

Outcome = Literal["better", "worse", "no difference seen", "not decidable"]
"""What the second arm is, beside the first."""

BETTER: Outcome = "better"
WORSE: Outcome = "worse"
SAME: Outcome = "no difference seen"
UNDECIDED: Outcome = "not decidable"

CONFIDENCE = 0.95

POWER = 0.8
"""Chance of seeing the smallest detectable difference where it is the true one."""

LEAST_SEEDS = 2
"""Seeds of an arm from which on there is a variance."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Bits per byte of the second arm minus those of the first: below 0 the second one is better.

    `low` and `high` bound it with `CONFIDENCE`; `seeds` and `documents` are the standard errors of the two noises.
    """

    value: float
    low: float
    high: float
    seeds: float
    documents: float

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval is on one side of 0."""
        return self.low > 0 or self.high < 0


def bits_per_byte(bits: Floats, sizes: Floats) -> Floats:
    """Return bits per byte of all documents together, for `bits` of any shape whose last axis is documents."""
    return np.asarray(bits.sum(axis=-1) / sizes.sum(), np.float64)


def difference(first: Floats, second: Floats, sizes: Floats, *, tests: int = 1) -> Difference:
    """Compare two arms by their bits (seeds x documents) on documents of so many bytes.

    With several `tests` each interval is as much wider as keeps the chance of one wrong among all (Bonferroni).
    """
    value = float(bits_per_byte(second, sizes).mean() - bits_per_byte(first, sizes).mean())
    by_seeds = seed_error(first, second, sizes)
    by_documents = document_error(second.mean(axis=0) - first.mean(axis=0), sizes)
    freedom = max(min(len(first) + len(second) - 2, _document_freedom(sizes)), 1)
    half = student(1 - (1 - CONFIDENCE) / 2 / tests, freedom) * math.hypot(by_seeds, by_documents)
    return Difference(value, value - half, value + half, by_seeds, by_documents)


def seed_error(first: Floats, second: Floats, sizes: Floats) -> float:
    """Return the standard error of the difference that follows from seeds alone."""
    return pooled_deviation([bits_per_byte(first, sizes), bits_per_byte(second, sizes)]) * math.sqrt(
        1 / len(first) + 1 / len(second)
    )


def pooled_deviation(arms: Sequence[Floats]) -> float:
    """Return the standard deviation between seeds of one arm, estimated from all arms."""
    freedom = sum(len(arm) - 1 for arm in arms)
    squares = sum(float(((arm - arm.mean()) ** 2).sum()) for arm in arms)
    return math.sqrt(squares / freedom) if freedom else math.inf


def document_error(bits: Floats, sizes: Floats) -> float:
    """Return the standard error of a difference of bits that follows from which documents were held out (jackknife)."""
    count = len(sizes)
    if count < LEAST_SEEDS:
        return math.inf
    without = (bits.sum() - bits) / (sizes.sum() - sizes)
    return math.sqrt((count - 1) / count * float(((without - without.mean()) ** 2).sum()))


def _document_freedom(sizes: Floats) -> float:
    """Return the degrees of freedom of documents: of so many equal ones as weigh what these do (Kish, 1965), less 1."""
    return float(sizes.sum() ** 2 / (sizes**2).sum()) - 1


def outcome(differences: Mapping[float, Difference]) -> Outcome:
    """Return what differences by learning rate, the largest rate first in weight, say together.

    The rate that trains well decides, and the very small one may object: where it has the other sign, or sees a
    difference that the other does not, the answer depends on how a model is trained, and there is none.
    """
    decisive = differences[max(differences)]
    others = [compared for rate, compared in differences.items() if rate != max(differences)]
    if decisive.excludes_zero:
        if any(compared.value * decisive.value < 0 for compared in others):
            return UNDECIDED
        return BETTER if decisive.value < 0 else WORSE
    return UNDECIDED if any(compared.excludes_zero for compared in others) else SAME


# --- Power --------------------------------------------------------------------------------------------------------


def detectable(deviation: float, seeds: int, tests: int = 1) -> float:
    """Return the smallest difference that so many seeds of each arm show with `POWER`, by the noise of seeds.

    `tests` are those of `difference`.
    """
    if seeds < LEAST_SEEDS:
        return math.inf
    freedom = 2 * seeds - 2
    quantiles = student(1 - (1 - CONFIDENCE) / 2 / tests, freedom) + student(POWER, freedom)
    return quantiles * deviation * math.sqrt(2 / seeds)


def seeds_for(deviation: float, wanted: float, tests: int = 1, most: int = 1_000) -> int:
    """Return how many seeds of each arm show a difference of `wanted` with `POWER`; `most` if more."""
    return next((seeds for seeds in range(LEAST_SEEDS, most) if detectable(deviation, seeds, tests) <= wanted), most)


def student(probability: float, freedom: float) -> float:
    """Return the quantile of Student's t."""
    from scipy.stats import t as distribution

    return float(distribution.ppf(probability, freedom))
