"""How often a document is used by its place among the documents of its group, ordered by a score."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Annotated, Literal

from pipeline_tasks.constraints import Range

BAND = "quality_band"
"""The column with the band of each document, from 1 (the lowest scores) up; null without a score."""

UNSCORED = 0
"""The band, in plans, of documents without a score."""

MILLION = 1_000_000

Factor = Annotated[float, Range(0, 100)]


@dataclass(frozen=True, slots=True)
class Curve:
    """A curve of factors over the ranks of a group, from 0 (the lowest score) to 1.

    What is below the rank `drop` is not used. From there the factor rises to `most` at rank 1, as the power of the rank
    for which the group comes out with `mean` times its tokens. Dolma 3 bounds its curves by the same three numbers:
    the lowest 40 % left out, 7 times at most, and the tokens that the group is to have (arXiv 2512.13961).
    """

    drop: Annotated[float, Range(0, 0.999)] = 0.4
    most: Annotated[float, Range(0, 100, above=True)] = 7.0
    mean: Annotated[float, Range(0, 100, above=True)] = 1.0

    def __post_init__(self) -> None:
        if self.mean > self.most * (1 - self.drop):
            message = (
                f"mean: {self.mean:g} is more than {self.most * (1 - self.drop):g}, which is `most` of all that is "
                "not dropped; lower it, or raise `most`"
            )
            raise ValueError(message)

    def factors(self, bands: int) -> tuple[Fraction, ...]:
        """Return the mean of the curve over each of so many equal bands, rounded to a millionth."""
        power = self.most * (1 - self.drop) / self.mean
        ranks = (max(0.0, (band / bands - self.drop) / (1 - self.drop)) for band in range(bands + 1))
        below = [round(self.mean * bands * rank**power * MILLION) for rank in ranks]
        return tuple(Fraction(high - low, MILLION) for low, high in pairwise(below))


@dataclass(frozen=True, slots=True)
class Quality:
    """Equal bands of a number within each group, and how often the documents of each band are used.

    `column` is a number that the tokenized documents have (`score`, `reading_ease`, ...). Each group is cut into
    `bands` of equal `measure` (`tokens` or `documents`). Documents are ordered by the number, and where it is equal by
    id; a document on a border is in the lower band. A group may have fewer documents than bands, and empty bands then.
    `upsample` is a curve, `factors` are those of the bands themselves, the lowest first: one of the two, or neither
    where every band is used alike. Documents without the number have the factor `unscored`.
    """

    column: str = "score"
    bands: Annotated[int, Range(1, 1000)] = 20
    measure: Literal["tokens", "documents"] = "tokens"
    upsample: Curve | None = None
    factors: tuple[Factor, ...] = ()
    unscored: Factor = 1.0

    def __post_init__(self) -> None:
        if self.upsample and self.factors:
            message = "quality: `upsample` is a curve and `factors` are those of the bands; remove one of the two"
            raise ValueError(message)
        if self.factors and len(self.factors) != self.bands:
            message = f"quality: {len(self.factors)} factors are given for {self.bands} bands; give one for each"
            raise ValueError(message)

    @property
    def band_factors(self) -> Sequence[Fraction]:
        """The factor of each band, the lowest first."""
        return _band_factors(self)


@cache
def _band_factors(quality: Quality) -> Sequence[Fraction]:
    """Return the factors of a quality: they are asked for row by row."""
    if quality.upsample:
        return quality.upsample.factors(quality.bands)
    return tuple(Fraction(factor) for factor in quality.factors) or (Fraction(1),) * quality.bands
