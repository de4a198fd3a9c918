"""Apply Gopher's rules as Dolma implements them: median word length, every occurrence of a repeat counts.

Definitions are those of allenai/dolma `python/dolma/taggers/gopher.py`, bounds and order those of its
`configs/dolma-v1_5/mixing/cc-head.yaml` (Dolma, arXiv 2402.00159). In that file the rules on the top 2-, 3- and 4-gram
name attributes that the tagger does not write (`2gram` for `2grams`), so upstream they never fired. Here they do; a
bound above 1 restores upstream's behavior.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pipeline_tasks.constraints import Limit, Ratio
from pipeline_tasks.filters import Computed, Filter, Rule, StopWords, share
from pipeline_tasks.filters.gopher import GRAM_RULES, GRAMS, GopherLimits
from pipeline_tasks.text.words.languages import STOP_WORDS

BULLETS = ("*", "-")
ELLIPSES = ("…",)

SIGNALS = (
    "words",
    "median_word_length",
    "symbol_ratio",
    "alpha_ratio",
    "required_words",
    "bullet_line_ratio",
    "ellipsis_line_ratio",
    "dup_line_frac",
    "dup_line_char_frac",
    *GRAMS,
)


SHARES = ("alpha_ratio",)


@dataclass(frozen=True, slots=True)
class Limits(GopherLimits):
    """Further bounds: median word length (code points) and shares (0-1; those of lines may exceed 1)."""

    min_median_word_length: Limit = 3
    max_median_word_length: Limit = 10
    min_alpha_ratio: Ratio = 0.8
    min_required_words: Limit = 2
    dup_line_frac: Limit = 0.3
    dup_line_char_frac: Limit = 0.3


RULES = (
    Rule("too_few_words", "words", "min", "min_words"),
    Rule("too_many_words", "words", "max", "max_words"),
    Rule("short_words", "median_word_length", "min", "min_median_word_length"),
    Rule("long_words", "median_word_length", "max", "max_median_word_length"),
    Rule("symbols", "symbol_ratio", "max", "max_symbol_ratio"),
    Rule("alpha", "alpha_ratio", "min", "min_alpha_ratio"),
    Rule("required_words", "required_words", "min", "min_required_words"),
    Rule("bullets", "bullet_line_ratio", "max", "max_bullet_line_ratio"),
    Rule("ellipses", "ellipsis_line_ratio", "max", "max_ellipsis_line_ratio"),
    *(Rule(name, name, "max", name) for name in ("dup_line_frac", "dup_line_char_frac")),
    *GRAM_RULES,
)


def compute_signals(texts: pa.Array, _languages: pa.Array, _words: int, _limits: Limits) -> Computed:
    """Return the SIGNALS of each text, shape (rows, 18); the texts are not edited.

    Words are those of `str.split` whatever the word rule. Empty lines are lines, and repeat each other.
    """
    from pipeline_tasks.text.base import phrases
    from pipeline_tasks.text.base.buffers import views
    from pipeline_tasks.text.signals import line_parts, repeated_ngrams
    from pipeline_tasks.text.words import word_counts

    view = views(texts)
    counts = word_counts.count_words(*view, phrases.encode_phrases(STOP_WORDS), phrases.encode_phrases(()))
    lines = line_parts.count_parts(*view, line_parts.LINES, line_parts.RAW)
    bullets, ellipses = line_parts.count_edges(
        *view, line_parts.RAW, phrases.encode_phrases(BULLETS), phrases.encode_phrases(ELLIPSES)
    ).T
    count = counts["words"]
    columns = [
        count,
        counts["median"],
        share(counts["marked"], count),
        share(counts["alpha"], count),
        counts["stops"],
        share(bullets, lines["parts"]),
        share(ellipses, lines["parts"]),
        share(lines["repeated"], lines["parts"]),
        lines["repeated_points"] / np.maximum(counts["points"], 1),
        *repeated_ngrams.ngram_shares(*view, repeated_ngrams.DOLMA).T,
    ]
    return Computed(np.column_stack(columns), texts)


FILTER = Filter("dolma", SIGNALS, Limits, RULES, compute_signals, SHARES, StopWords("required_words"))
