"""A filter: texts that shout are rejected."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.filters import Computed, Filter, Rule, share


@dataclass(frozen=True, slots=True)
class Limits:
    """At most this share of a text's characters may be exclamation marks."""

    max_shouted: float = 0.02


def compute_signals(texts: pa.Array, languages: pa.Array, words: int, limits: Limits) -> Computed:
    """Return the share of exclamation marks of each text."""
    del languages, words, limits
    texts = pc.fill_null(texts, "")
    marks = pc.count_substring(texts, "!").to_numpy(zero_copy_only=False).astype(np.float64)
    chars = pc.utf8_length(texts).to_numpy(zero_copy_only=False).astype(np.float64)
    return Computed(share(marks, chars)[:, None], texts)


FILTER = Filter(
    "a_filter", ("shouted",), Limits, (Rule("shouts", "shouted", "max", "max_shouted"),), compute_signals, ("shouted",)
)
