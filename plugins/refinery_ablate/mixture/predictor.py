"""Fits what a mixture costs, finds the mixture of which the fit expects least, and checks both on mixtures left out.

Bits per byte are a - sum(b * log(w + f)) of the shares w of groups, with b >= 0. So tokens of a group are worth less
where there are more of it, and a group harms only by the place that it takes. The smaller the floor f, the faster their
worth falls; where f is large, bits fall in a line. The fit is a linear one, and its minimum follows from one number.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from refinery_ablate.mixture.swarm import Shares, within
from refinery_ablate.statistics import Floats

FLOORS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Of `f`, one is chosen by the error on mixtures that were left out."""

FOLDS = 5

LOWEST = 0.1
"""Share of the mixtures, those with the lowest predictions, over which optimism is the mean."""

FEWEST = 3
"""Mixtures of which it is at least."""

HALVINGS = 200

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Predictor:
    """A fit: `level` is the bits per byte where all logarithms are 0, and `slopes` are those of groups, at least 0."""

    level: float
    slopes: Floats
    floor: float

    def __call__(self, shares: Shares) -> Floats:
        """Return the bits per byte that are expected of mixtures (mixtures x groups), or of one."""
        return np.asarray(self.level - np.log(shares + self.floor) @ self.slopes, np.float64)

    def best(self, most: Shares, prior: Shares) -> Shares:
        """Return the shares with the fewest expected bits, none above its most; the prior where no share matters.

        At the minimum b / (w + f) is the same for all groups that are not at a limit. What groups that matter cannot
        take goes to the others as in the prior.
        """
        if not self.slopes.any():
            return within(prior, most)
        caps = np.minimum(most, 1.0)
        low, high = 0.0, float(self.slopes.max()) / self.floor
        if caps[self.slopes > 0].sum() <= 1:
            filled = np.where(self.slopes > 0, caps, 0.0)
            return filled + _rest(1.0 - filled.sum(), caps - filled, prior)
        for _ in range(HALVINGS):
            price = (low + high) / 2
            low, high = (price, high) if self._at(price, caps).sum() > 1 else (low, price)
        return within(self._at(high, caps), caps)

    def _at(self, price: float, caps: Shares) -> Shares:
        return np.clip(self.slopes / price - self.floor, 0.0, caps)


def _rest(rest: float, room: Shares, prior: Shares) -> Shares:
    """Return how a rest is shared by groups with room, as in the prior."""
    if rest <= 0:
        return np.zeros(len(room))
    return within(np.where(room > 0, prior, 0.0), room / rest) * rest


# --- Fitting ------------------------------------------------------------------------------------------------------


def fitted(shares: Shares, values: Floats) -> Predictor:
    """Fit values (bits per byte) to mixtures (mixtures x groups), with the floor that predicts left-out ones best.

    Errors count the less the more bits a mixture takes above the best one: how bad a bad one is decides little.
    """
    trust = _trust(values)
    errors = [(trust * (_left_out(shares, values, floor) - values) ** 2).sum() for floor in FLOORS]
    return _fitted(shares, values, FLOORS[int(np.argmin(errors))])


def _trust(values: Floats) -> Floats:
    """Return how much the squared error of each mixture counts: the best one four times the median one."""
    above = values - values.min()
    trust = 1 / (above + (np.median(above) or 1.0)) ** 2
    return np.asarray(trust / trust.sum(), np.float64)


def _fitted(shares: Shares, values: Floats, floor: float) -> Predictor:
    from scipy.optimize import nnls

    logs, trust = -np.log(shares + floor), _trust(values)
    middle, level = trust @ logs, float(trust @ values)
    roots = np.sqrt(trust)
    slopes, _ = nnls((logs - middle) * roots[:, None], (values - level) * roots)
    return Predictor(level - float(middle @ slopes), np.asarray(slopes, np.float64), floor)


def _left_out(shares: Shares, values: Floats, floor: float) -> Floats:
    """Return what is expected of each mixture by fits of the others."""
    expected = np.empty(len(values))
    for fold in _folds(shares):
        expected[fold] = _fitted(shares[~fold], values[~fold], floor)(shares[fold])
    return expected


def _folds(shares: Shares) -> Iterator[npt.NDArray[np.bool_]]:
    """Yield which rows are left out together; equal mixtures always are."""
    mixtures = mixtures_of(shares)
    fold_of = np.random.default_rng(0).permutation(mixtures.max() + 1) % FOLDS
    folds = (fold_of[mixtures] == fold for fold in range(FOLDS))
    yield from (fold for fold in folds if fold.any() and not fold.all())


def mixtures_of(shares: Shares) -> Ints:
    """Return the number of each row's mixture: equal ones have the same."""
    _, numbers = np.unique(shares, axis=0, return_inverse=True)
    return np.asarray(numbers, np.int64).reshape(-1)


# --- Checking -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Check:
    """How a fit does on mixtures that it was not fitted to (bits per byte).

    `correlation` is Spearman's, of expected and measured. `regret` is what the mixture that was expected to be best
    costs more than the one that was. `optimism` is how much more than expected those cost of which least was expected.
    `expected` and `measured` are of each mixture.
    """

    correlation: float
    regret: float
    optimism: float
    expected: tuple[float, ...]
    measured: tuple[float, ...]


def checked(shares: Shares, values: Floats) -> Check:
    """Predict each mixture by fits, and floors, that were chosen without it; repeated mixtures count by their mean."""
    expected = np.empty(len(values))
    for fold in _folds(shares):
        expected[fold] = fitted(shares[~fold], values[~fold])(shares[fold])
    mixtures = mixtures_of(shares)
    weights = np.bincount(mixtures)
    guess, truth = (np.bincount(mixtures, row) / weights for row in (expected, values))
    lowest = np.argsort(guess, kind="stable")[: max(round(LOWEST * len(guess)), FEWEST)]
    return Check(
        _rank_correlation(guess, truth),
        float(truth[lowest[0]] - truth.min()),
        float((truth - guess)[lowest].mean()),
        tuple(guess.tolist()),
        tuple(truth.tolist()),
    )


def _rank_correlation(first: Floats, second: Floats) -> float:
    """Return Spearman's correlation, 0 where one of both has equal values only."""
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return 0.0
    from scipy.stats import spearmanr

    return float(spearmanr(first, second).statistic)
