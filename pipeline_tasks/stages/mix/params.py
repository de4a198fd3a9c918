"""The parameters of a mixture, and their checks."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Annotated, Literal

from pipeline_tasks.constraints import LARGEST, OMITTED, Range, Seed, Weight, Word
from pipeline_tasks.stages.mix.quality import Factor, Quality

MOST_EPOCHS = 1000
"""Times that a document may be used: beyond four epochs repeated text is worth little (arXiv 2305.16264)."""

Epochs = Annotated[float, Range(0, MOST_EPOCHS)]
Tokens = Annotated[int, Range(0, 2**62)]
Bound = Annotated[float, Range(-LARGEST, LARGEST)]
Grouping = Annotated[str, Word(r"[\w.]+(\+[\w.]+)?", "a column, or two as `language+source`")]


@dataclass(frozen=True, slots=True)
class Params:
    """Groups of documents, how many tokens of each are wanted, and a token budget.

    `by` names the column whose values are the groups, or two (`language+source`: group `en+crawl`). `bands` cuts a
    column of numbers at ascending bounds: with `{quality: [0.3, 0.6]}` its groups are `..0.3`, `0.3..0.6`, `0.6..`.

    A group is named in at most one of three. `weights` are target shares of the tokens of the groups that it names
    (they need not add up to 1): their total is the largest for which no group is used more than `max_epochs` times.
    `tokens` are absolute: so many of the group, at most `max_epochs` times what it has. `epochs` says how often a group
    is used, 2.5 for all of its documents twice and half of them once more. A weighted group without tokens is ignored.
    Groups that neither `weights` nor `tokens` names follow `unlisted`: `drop`, or `keep` them whole; without both
    every group is kept whole. `temperature` T above 1 instead weights all groups by tokens ** (1/T) and shares
    `budget_tokens` (or all tokens) among them; what a group cannot give goes to the others. Groups that `epochs` names
    are taken off the budget first; without one they leave the others all of their own tokens. A `budget_tokens` above 0
    scales all groups by one factor.

    `factors` say how much more, or less, often than its group a document is used, by a column of numbers: lower bounds
    of its bands and the factor of each. `{cluster_size: {1: 1, 2: 2, 5: 3, 1000: 0}}` repeats what many pages have, and
    leaves out what a thousand have (rehydration, as FineWeb-2 does it: arXiv 2506.20920); `{score: {0: 0.5, 0.7: 1,
    0.9: 2}}` prefers the better ones. Factors of several columns are multiplied; the factor below the lowest bound, and
    without a value, is 1. They come first: the tokens that a group has are those after its factors, so that `weights`,
    `tokens`, `epochs`, `max_epochs` and the budget hold for what is written. At an epoch of 1.5 a document with the
    factor 2 is used three times.

    `quality` does the same by the rank of a document within its group: exact quantiles of a number, over all documents
    that the mixture gets, and a factor for each. `{column: score, bands: 20, upsample: {drop: 0.4, most: 7, mean: 1}}`
    cuts each group into 20 bands of equal tokens (`measure: documents`: of equal documents), leaves out the lowest 40 %
    and uses the best up to 7 times, so that the group has `mean` times its tokens. `factors: [...]` in place of
    `upsample` gives that of each band, the lowest first. Documents are ordered by the number and where it is equal by
    id; one that has none has the factor `unscored` (1). Each document gets the column `quality_band`, and the manifest
    the history section `bands`: what each band of each group has and gives.

    A document is used once more if its draw (by `seed` and id) is below the limit of its group. Limits are set by
    counting: a group never has more tokens than its share, and at most a thousandth of its tokens (or one document)
    fewer; with `factors`, that much of each factor. The plan with exact counts is kept in the manifest, as the history
    section `plan`.
    """

    by: Grouping = "language"
    bands: Mapping[str, tuple[Bound, ...]] = field(default_factory=dict)
    weights: Mapping[str, Weight] = field(default_factory=dict)
    tokens: Mapping[str, Tokens] = field(default_factory=dict)
    epochs: Mapping[str, Epochs] = field(default_factory=dict)
    factors: Mapping[str, Mapping[str, Factor]] = field(default_factory=dict, metadata={OMITTED: {}})
    quality: Quality | None = field(default=None, metadata={OMITTED: None})
    max_epochs: Epochs = 1.0
    temperature: Annotated[float, Range(0, 100)] = 0.0
    budget_tokens: Tokens = 0
    seed: Seed = 0
    unlisted: Literal["drop", "keep"] = "drop"

    def __post_init__(self) -> None:
        named = Counter([*self.weights, *self.tokens, *self.epochs])
        twice = sorted(group for group, times in named.items() if times > 1)
        if twice:
            message = f"group {twice[0]!r} is in several of weights, tokens and epochs; name it in one"
            raise ValueError(message)
        if self.weights and not any(self.weights.values()):
            message = f"weights: {dict(self.weights)}; at least one must be above 0"
            raise ValueError(message)
        if self.temperature and (self.temperature < 1 or self.weights or self.tokens):
            message = "temperature is a number from 1 up, and takes the place of weights and tokens"
            raise ValueError(message)
        for column, bounds in self.bands.items():
            if list(bounds) != sorted(set(bounds)) or column not in self.by.split("+"):
                message = f"bands: {column} must be a column of `by`, with ascending bounds"
                raise ValueError(message)
        for column, table in self.factors.items():
            lowest = [_bound(column, text) for text in table]
            if not lowest or lowest != sorted(set(lowest)):
                message = f"factors: {column} must have bands, by ascending lower bounds"
                raise ValueError(message)

    @property
    def repeats(self) -> bool:
        """Whether a document may be used more than once."""
        most = max(1.0, self.max_epochs, *self.epochs.values())
        for table in self.factors.values():
            most *= max(1.0, *table.values())
        if self.quality:
            most *= max(1.0, self.quality.unscored, *map(float, self.quality.band_factors))
        return most > 1


def _bound(column: str, text: str) -> float:
    try:
        bound = float(text)
    except ValueError:
        bound = float("nan")
    if not isfinite(bound):
        message = f"factors: {column}: {text!r} is no number, and no lower bound of a band"
        raise ValueError(message)
    return bound
