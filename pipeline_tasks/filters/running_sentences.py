"""Reject texts that are no documents: contents lists, menus and frames, of which hardly anything is a running sentence.

The rule and its bound are of this project, chosen by reading crawls in 24 languages (docs/decisions/0097).
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pipeline_tasks.constraints import Ratio
from pipeline_tasks.filters import Computed, Filter, Rule, share

SIGNALS = ("running_ratio", "apart_ratio")


@dataclass(frozen=True, slots=True)
class Limits:
    """The least share (0-1) of the letters of a text that are in running sentences, code or rows of tables."""

    min_running_ratio: Ratio = 0.25


RULES = (Rule("few", "running_ratio", "min", "min_running_ratio"),)


def compute_signals(texts: pa.Array, _languages: pa.Array, _words: int, _limits: Limits) -> Computed:
    """Return the SIGNALS of each text, shape (rows, 2); the texts are not edited.

    `running_ratio` is the share of letters in running sentences, code and rows of tables, `apart_ratio` that of the
    latter two. An empty text has neither.
    """
    from pipeline_tasks.text.base.buffers import views
    from pipeline_tasks.text.signals.running import running_letters

    running, apart, letters = running_letters(*views(texts)).T
    return Computed(np.column_stack([share(running + apart, letters), share(apart, letters)]), texts)


FILTER = Filter("running_sentences", SIGNALS, Limits, RULES, compute_signals, SIGNALS)
