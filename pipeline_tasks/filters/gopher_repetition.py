"""Reject texts that repeat themselves: duplicate paragraphs and lines, repeated word n-grams.

Rules, bounds, order and reasons are those of huggingface/datatrove `src/datatrove/pipeline/filters/
gopher_repetition_filter.py` (Gopher, arXiv 2112.11446, table A1): reason `<why>` there is `gopher_repetition:<why>`
here. All shares of characters are of the whole text. Other projects count every occurrence of a repeated line where
this counts those after the first, so bounds do not carry over.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pipeline_tasks.constraints import Limit, Ratio
from pipeline_tasks.filters import Computed, Filter, Rule, share
from pipeline_tasks.text.words.languages import word_rules

RATIOS = (
    "dup_para_frac",
    "dup_para_char_frac",
    "dup_line_frac",
    "dup_line_char_frac",
    "top_2_gram",
    "top_3_gram",
    "top_4_gram",
    "duplicated_5_n_grams",
    "duplicated_6_n_grams",
    "duplicated_7_n_grams",
    "duplicated_8_n_grams",
    "duplicated_9_n_grams",
    "duplicated_10_n_grams",
)

SIGNALS = (*RATIOS, "chars")
"""The last is the length of the text, of which the shares of characters are."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Minimum length, and maximum repetition as shares (0-1) of paragraphs, lines or characters."""

    min_chars: Limit = 1
    dup_para_frac: Ratio = 0.3
    dup_para_char_frac: Ratio = 0.2
    dup_line_frac: Ratio = 0.3
    dup_line_char_frac: Ratio = 0.2
    top_2_gram: Ratio = 0.2
    top_3_gram: Ratio = 0.18
    top_4_gram: Ratio = 0.16
    duplicated_5_n_grams: Ratio = 0.15
    duplicated_6_n_grams: Ratio = 0.14
    duplicated_7_n_grams: Ratio = 0.13
    duplicated_8_n_grams: Ratio = 0.12
    duplicated_9_n_grams: Ratio = 0.11
    duplicated_10_n_grams: Ratio = 0.1


RULES = (Rule("empty", "chars", "min", "min_chars"), *(Rule(signal, signal, "max", signal) for signal in RATIOS))


def compute_signals(texts: pa.Array, languages: pa.Array, words: int, _limits: Limits) -> Computed:
    """Return the SIGNALS of each text, shape (rows, 14); the texts are not edited."""
    from pipeline_tasks.text.base.buffers import views
    from pipeline_tasks.text.signals import lines, ngrams

    offsets, data = views(texts)
    paras, para_dups, para_points, total, line_dups, line_points, points = lines.repeated_parts(offsets, data).T
    grams = ngrams.gopher_ngrams(offsets, data, word_rules(languages, words))
    columns = [
        share(para_dups, paras),
        share(para_points, points),
        share(line_dups, total),
        share(line_points, points),
        *(share(gram, points) for gram in grams.T),
        points,
    ]
    return Computed(np.column_stack(columns), texts)


FILTER = Filter("gopher_repetition", SIGNALS, Limits, RULES, compute_signals, RATIOS[:4])
