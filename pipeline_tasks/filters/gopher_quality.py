"""Reject texts that do not read like prose: too few words, unusual word lengths, many symbols, bullets or ellipses.

Rules, bounds and their order are those of huggingface/datatrove `src/datatrove/pipeline/filters/
gopher_quality_filter.py` (Gopher, arXiv 2112.11446, A1.1). Its reasons `gopher_<why>` are `gopher_quality:<why>`
here, with the same `<why>`; its parameter `max_non_alpha_words_ratio`, in fact a minimum, is `min_alpha_words_ratio`.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pipeline_tasks.constraints import Limit, Ratio
from pipeline_tasks.filters import Computed, Filter, Rule, StopWords, share
from pipeline_tasks.text.words.languages import STOP_WORDS, word_rules

SIGNALS = (
    "words",
    "word_length",
    "hash_ratio",
    "ellipsis_ratio",
    "bullet_line_ratio",
    "ellipsis_line_ratio",
    "alpha_word_ratio",
    "stop_words",
)


SHARES = ("bullet_line_ratio", "ellipsis_line_ratio", "alpha_word_ratio")


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on words (count), mean word length (code points) and shares (0-1)."""

    min_doc_words: Limit = 50
    max_doc_words: Limit = 100_000
    min_avg_word_length: Limit = 3
    max_avg_word_length: Limit = 10
    max_symbol_word_ratio: Limit = 0.1
    max_bullet_lines_ratio: Ratio = 0.9
    max_ellipsis_lines_ratio: Ratio = 0.3
    min_alpha_words_ratio: Ratio = 0.8
    min_stop_words: Limit = 2


RULES = (
    Rule("short_doc", "words", "min", "min_doc_words"),
    Rule("long_doc", "words", "max", "max_doc_words"),
    Rule("below_avg_threshold", "word_length", "min", "min_avg_word_length"),
    Rule("above_avg_threshold", "word_length", "max", "max_avg_word_length"),
    Rule("too_many_hashes", "hash_ratio", "max", "max_symbol_word_ratio"),
    Rule("too_many_ellipsis", "ellipsis_ratio", "max", "max_symbol_word_ratio"),
    Rule("too_many_bullets", "bullet_line_ratio", "max", "max_bullet_lines_ratio"),
    Rule("too_many_end_ellipsis", "ellipsis_line_ratio", "max", "max_ellipsis_lines_ratio"),
    Rule("below_alpha_threshold", "alpha_word_ratio", "min", "min_alpha_words_ratio"),
    Rule("enough_stop_words", "stop_words", "min", "min_stop_words"),
)


def compute_signals(texts: pa.Array, languages: pa.Array, words: int, _limits: Limits) -> Computed:
    """Return the SIGNALS of each text, shape (rows, 8); the texts are not edited.

    Words that are all punctuation count in the denominator of every share, and nowhere else.
    """
    from pipeline_tasks.text.base.buffers import views
    from pipeline_tasks.text.signals import lines
    from pipeline_tasks.text.words import cutting

    offsets, data = views(texts)
    stops = cutting.hash_words(STOP_WORDS)
    solid, count, points, alpha, stop_words = cutting.word_signals(offsets, data, word_rules(languages, words), stops).T
    total, bullets, trailing, hashes, ellipses = lines.line_shapes(offsets, data).T
    columns = [
        solid,
        share(points, solid),
        share(hashes, count),
        share(ellipses, count),
        share(bullets, total),
        share(trailing, total),
        share(alpha, count),
        stop_words,
    ]
    return Computed(np.column_stack(columns), texts)


FILTER = Filter(
    "gopher_quality", SIGNALS, Limits, RULES, compute_signals, SHARES, StopWords("stop_words", distinct=True)
)
