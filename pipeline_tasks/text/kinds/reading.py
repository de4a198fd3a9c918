"""Rate how hard prose reads, by the formula of its language that Flesch's has become there.

ASL is words per sentence, ASW syllables per word. English: Flesch 1948; German: Amstad 1978; French: Kandel and Moles
1958; Spanish: Szigriszt Pazos 1993; Italian: Franchina and Vacca 1972; Dutch: Douma 1960; Portuguese: Martins and
others 1996; Russian: Oborneva 2006. Syllables are groups of vowels, which is an estimate: formulas were fitted to
syllables that people counted.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.text.kinds.measures import Measures

UNKNOWN = "unknown"
LEAST_WORDS = 100
"""Words of prose below which nothing is said, the length of the samples that Flesch counted."""

LEVELS = ("very_hard", "hard", "standard", "easy")
BOUNDS = (30.0, 50.0, 70.0)
"""Flesch's own: below 30 very difficult, to 50 difficult, to 70 standard (with fairly difficult), above easy."""


class Formula(NamedTuple):
    """`start` - `sentence` * ASL - `word` * ASW."""

    start: float
    sentence: float
    word: float


FORMULAS: Mapping[str, Formula] = {
    "en": Formula(206.835, 1.015, 84.6),
    "de": Formula(180.0, 1.0, 58.5),
    "fr": Formula(207.0, 1.015, 73.6),
    "es": Formula(206.835, 1.0, 62.3),
    "it": Formula(206.0, 1.0, 65.0),
    "nl": Formula(206.84, 0.93, 77.0),
    "pt": Formula(248.835, 1.015, 84.6),
    "ru": Formula(206.835, 1.3, 60.1),
}
SILENT_E = ("en", "fr")
"""Languages in which an e at the end of a word is mostly no syllable."""


def reading_ease(measured: Measures, languages: list[str]) -> npt.NDArray[np.float64]:
    """Return the ease of each text to a hundredth, NaN of one that is too short or whose language has no formula."""
    counts = measured.counts
    words, sentences = np.maximum(counts["words"], 1), np.maximum(counts["sentences"], 1)
    factors = np.array([FORMULAS.get(code, (np.nan,) * 3) for code in languages], np.float64).reshape(-1, 3)
    ease = factors[:, 0] - factors[:, 1] * words / sentences - factors[:, 2] * counts["syllables"] / words
    return np.where(counts["words"] >= LEAST_WORDS, np.round(ease, 2), np.nan)


def reading_levels(ease: npt.NDArray[np.float64]) -> pa.Array:
    """Return the level of each ease, `unknown` of NaN."""
    levels = np.array(LEVELS, object)[np.searchsorted(BOUNDS, np.nan_to_num(ease), side="right")]
    return pa.array(np.where(np.isnan(ease), UNKNOWN, levels), pa.string())
