"""Judges prose and repetition by Gopher's rules as Dolma reads them: median word length, every occurrence of a repeat.

Definitions are those of allenai/dolma `python/dolma/taggers/gopher.py`, bounds and order those of its
`configs/dolma-v1_5/mixing/cc-head.yaml` (Dolma, arXiv 2402.00159). In that file the rules on the top 2-, 3- and 4-gram
name attributes that the tagger does not write (`2gram` for `2grams`), so upstream they never fired; here they do, and
a bound above 1 brings upstream's behavior back.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pipeline_tasks.filters import Filter, Measured, Rule, StopWords, share
from pipeline_tasks.text.words.languages import STOP_WORDS

BULLETS = ("*", "-")
ELLIPSES = ("…",)

GRAMS = (*(f"top_{n}_gram" for n in (2, 3, 4)), *(f"dup_{n}_gram" for n in range(5, 11)))

SIGNALS = (
    "dolma_words",
    "dolma_median_word_length",
    "dolma_symbol_ratio",
    "dolma_alpha_ratio",
    "dolma_required_words",
    "dolma_bullet_line_ratio",
    "dolma_ellipsis_line_ratio",
    "dolma_dup_line_frac",
    "dolma_dup_line_char_frac",
    *(f"dolma_{name}" for name in GRAMS),
)


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on words (count), median word length (code points) and shares (0-1; those of lines may exceed 1)."""

    min_words: float = 50
    max_words: float = 100_000
    min_median_word_length: float = 3
    max_median_word_length: float = 10
    max_symbol_ratio: float = 0.1
    min_alpha_ratio: float = 0.8
    min_required_words: float = 2
    max_bullet_line_ratio: float = 0.9
    max_ellipsis_line_ratio: float = 0.3
    dup_line_frac: float = 0.3
    dup_line_char_frac: float = 0.3
    top_2_gram: float = 0.2
    top_3_gram: float = 0.18
    top_4_gram: float = 0.16
    dup_5_gram: float = 0.15
    dup_6_gram: float = 0.14
    dup_7_gram: float = 0.13
    dup_8_gram: float = 0.12
    dup_9_gram: float = 0.11
    dup_10_gram: float = 0.1


RULES = (
    Rule("too_few_words", "dolma_words", "least", "min_words"),
    Rule("too_many_words", "dolma_words", "most", "max_words"),
    Rule("short_words", "dolma_median_word_length", "least", "min_median_word_length"),
    Rule("long_words", "dolma_median_word_length", "most", "max_median_word_length"),
    Rule("symbols", "dolma_symbol_ratio", "most", "max_symbol_ratio"),
    Rule("alpha", "dolma_alpha_ratio", "least", "min_alpha_ratio"),
    Rule("required_words", "dolma_required_words", "least", "min_required_words"),
    Rule("bullets", "dolma_bullet_line_ratio", "most", "max_bullet_line_ratio"),
    Rule("ellipses", "dolma_ellipsis_line_ratio", "most", "max_ellipsis_line_ratio"),
    *(Rule(name, f"dolma_{name}", "most", name) for name in ("dup_line_frac", "dup_line_char_frac", *GRAMS)),
)


def measure(texts: pa.Array, languages: pa.Array, words: int, limits: Limits) -> Measured:  # noqa: ARG001  (same shape for all filters)
    """Return the SIGNALS of each text, shape (rows, 18); the texts stay as they are.

    Words are those of `str.split` whatever the word rule. Empty lines are lines, and repeat each other.
    """
    from pipeline_tasks.text.base import phrases
    from pipeline_tasks.text.base.buffers import views
    from pipeline_tasks.text.signals import line_parts, repeated_ngrams
    from pipeline_tasks.text.words import word_counts

    view = views(texts)
    found = word_counts.count_words(*view, phrases.encode_phrases(STOP_WORDS), phrases.encode_phrases(()))
    lines = line_parts.count_parts(*view, line_parts.LINES, line_parts.RAW)
    bullets, ellipses = line_parts.count_edges(
        *view, line_parts.RAW, phrases.encode_phrases(BULLETS), phrases.encode_phrases(ELLIPSES)
    ).T
    count = found["words"]
    columns = [
        count,
        found["median"],
        share(found["marked"], count),
        share(found["alpha"], count),
        found["stops"],
        share(bullets, lines["parts"]),
        share(ellipses, lines["parts"]),
        share(lines["repeated"], lines["parts"]),
        lines["repeated_points"] / np.maximum(found["points"], 1),
        *repeated_ngrams.ngram_shares(*view, repeated_ngrams.DOLMA).T,
    ]
    return Measured(np.column_stack(columns), texts)


FILTER = Filter("dolma", SIGNALS, Limits, RULES, measure, StopWords("dolma_required_words"))
