"""Reject lists and fragments: too few lines that end in punctuation, many short lines, repeated lines, many newlines.

Rules, bounds, order and reasons are those of huggingface/datatrove `src/datatrove/pipeline/filters/
fineweb_quality_filter.py` (FineWeb, arXiv 2406.17557): reason `<why>` there is `fineweb:<why>` here, but for
`char_dup_ratio` and `list_ratio`. Those two have the name of their bound, as signal and as reason.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pipeline_tasks.constraints import Limit, Ratio
from pipeline_tasks.filters import Computed, Filter, Rule, share
from pipeline_tasks.text.words.languages import UNSPACED, is_language, word_rules

SIGNALS = ("prose_lines", "line_punct_ratio", "short_line_ratio", "char_duplicates_ratio", "new_line_ratio")

SHARES = ("line_punct_ratio", "short_line_ratio", "char_duplicates_ratio")


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on shares (0-1), with the names of the source, and what a short line is (code points)."""

    min_lines: Limit = 1
    line_punct_thr: Ratio = 0.12
    short_line_thr: Ratio = 0.67
    short_line_length: Limit = 30
    char_duplicates_ratio: Ratio = 0.01
    new_line_ratio: Limit = 0.3


RULES = (
    Rule("empty", "prose_lines", "min", "min_lines"),
    Rule("line_punct_ratio", "line_punct_ratio", "min", "line_punct_thr"),
    Rule("short_line_ratio", "short_line_ratio", "max", "short_line_thr"),
    Rule("char_duplicates_ratio", "char_duplicates_ratio", "max", "char_duplicates_ratio"),
    Rule("new_line_ratio", "new_line_ratio", "max", "new_line_ratio"),
)


def compute_signals(texts: pa.Array, languages: pa.Array, words: int, limits: Limits) -> Computed:
    """Return the SIGNALS of each text, shape (rows, 5); the texts are not edited.

    In languages written without spaces a short line is half as long: a code point carries about twice as much.
    """
    from pipeline_tasks.text.base.buffers import views
    from pipeline_tasks.text.signals import lines
    from pipeline_tasks.text.words import cutting

    offsets, data = views(texts)
    short = np.where(is_language(languages, UNSPACED), limits.short_line_length / 2, limits.short_line_length)
    total, ends, shorts, repeated, points, newlines = lines.prose_lines(offsets, data, short).T
    count = cutting.count_words(offsets, data, word_rules(languages, words))
    columns = [total, share(ends, total), share(shorts, total), share(repeated, points), share(newlines, count)]
    return Computed(np.column_stack(columns), texts)


FILTER = Filter("fineweb", SIGNALS, Limits, RULES, compute_signals, SHARES)
