"""Apply NeMo Curator's heuristics for English: kinds of characters, notices, unique lines, n-grams.

Definitions are those of NVIDIA/NeMo-Curator `nemo_curator/filters/heuristic_filter.py` (in later versions
`nemo_curator/stages/text/filters/heuristic/`) and `nemo_curator/utils/constants.py`, bounds and order those of
`config/heuristic_filter_en.yaml`. Its ratios of "repeated" lines are shares of unique ones, and are named so here; its
"sentences" are lines that are not blank. Where upstream divides by zero, a text fails the bounds on words.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pipeline_tasks.constraints import Limit, Ratio
from pipeline_tasks.filters import Computed, Filter, Rule, StopWords, share
from pipeline_tasks.filters.gopher import GRAM_RULES, GRAMS, GopherLimits
from pipeline_tasks.text.words.languages import STOP_WORDS

BULLETS = ("•", "‣", "\u2043", "⁌", "⁍", "∙", "○", "●", "◘", "◦", "⦾", "⦿")
ELLIPSES = ("...", "[...]", "…", "(...)", "[…]", "-»", "read more..", "read more")
END_MARKS = (".", "?", "!", '"', "'")

LOREM_IPSUM = ("lorem ipsum",)
NOTICES = (
    "terms of use",
    "privacy policy",
    "cookie policy",
    "uses cookies",
    "privacy overview",
    "use of cookies",
    "use cookies",
    "privacy & cookies policy",
    "privacy and cookies policy",
    (
        "necessary cookies are absolutely essential for the website to function properly. this category only includes "
        "cookies that ensures basic functionalities and security features of the website. these cookies do not store "
        "any personal information."
    ),
    (
        "any cookies that may not be particularly necessary for the website to function and is used specifically to "
        "collect user personal data via analytics, ads, other embedded contents are termed as non-necessary cookies. "
        "it is mandatory to procure user consent prior to running these cookies on your website."
    ),
    (
        "if you continue to browse this site without changing your cookie settings, you agree to this use. "
        "acceptread more"
    ),
)
"""Phrases of boilerplate paragraphs, in lower case; upstream's other two notices contain `uses cookies`."""

SIGNALS = (
    "non_alpha_numeric",
    "symbol_ratio",
    "number_ratio",
    "url_ratio",
    "white_space_ratio",
    "parentheses_ratio",
    "boilerplate_ratio",
    "unique_lines",
    "unique_paragraphs",
    "unique_line_chars",
    "unique_paragraph_chars",
    "words",
    "lines_without_end_mark",
    "alpha_ratio",
    "common_words",
    "word_length",
    "longest_word",
    "ellipsis_line_ratio",
    *GRAMS,
    "bullet_line_ratio",
)


SHARES = (
    "non_alpha_numeric",
    "number_ratio",
    "white_space_ratio",
    "unique_lines",
    "unique_paragraphs",
    "lines_without_end_mark",
    "alpha_ratio",
)


@dataclass(frozen=True, slots=True)
class Limits(GopherLimits):
    """Further bounds on shares (0-1), words (counts) and word lengths (code points)."""

    max_non_alpha_numeric: Ratio = 0.25
    max_number_ratio: Ratio = 0.15
    max_url_ratio: Limit = 0.2
    max_white_space_ratio: Ratio = 0.25
    max_parentheses_ratio: Limit = 0.1
    max_boilerplate_ratio: Limit = 0.4
    min_unique_lines: Ratio = 0.7
    min_unique_paragraphs: Ratio = 0.7
    min_unique_line_chars: Ratio = 0.8
    min_unique_paragraph_chars: Ratio = 0.8
    max_lines_without_end_mark: Ratio = 0.85
    min_alpha_ratio: Ratio = 0.8
    min_common_words: Limit = 2
    min_word_length: Limit = 3
    max_word_length: Limit = 10
    max_longest_word: Limit = 1000


RULES = (
    Rule("non_alpha_numeric", "non_alpha_numeric", "max", "max_non_alpha_numeric"),
    Rule("symbols", "symbol_ratio", "max", "max_symbol_ratio"),
    Rule("numbers", "number_ratio", "max", "max_number_ratio"),
    Rule("urls", "url_ratio", "max", "max_url_ratio"),
    Rule("white_space", "white_space_ratio", "max", "max_white_space_ratio"),
    Rule("parentheses", "parentheses_ratio", "max", "max_parentheses_ratio"),
    Rule("boilerplate", "boilerplate_ratio", "max", "max_boilerplate_ratio"),
    Rule("repeated_lines", "unique_lines", "min", "min_unique_lines"),
    Rule("repeated_paragraphs", "unique_paragraphs", "min", "min_unique_paragraphs"),
    Rule("repeated_line_chars", "unique_line_chars", "min", "min_unique_line_chars"),
    Rule("repeated_paragraph_chars", "unique_paragraph_chars", "min", "min_unique_paragraph_chars"),
    Rule("too_few_words", "words", "min", "min_words"),
    Rule("too_many_words", "words", "max", "max_words"),
    Rule("punctuation", "lines_without_end_mark", "max", "max_lines_without_end_mark"),
    Rule("alpha", "alpha_ratio", "min", "min_alpha_ratio"),
    Rule("common_words", "common_words", "min", "min_common_words"),
    Rule("short_words", "word_length", "min", "min_word_length"),
    Rule("long_words", "word_length", "max", "max_word_length"),
    Rule("longest_word", "longest_word", "max", "max_longest_word"),
    Rule("ellipses", "ellipsis_line_ratio", "max", "max_ellipsis_line_ratio"),
    *GRAM_RULES,
    Rule("bullets", "bullet_line_ratio", "max", "max_bullet_line_ratio"),
)


def compute_signals(texts: pa.Array, _languages: pa.Array, _words: int, _limits: Limits) -> Computed:
    """Return the SIGNALS of each text, shape (rows, 28); the texts are not edited.

    Words are those of `str.split` whatever the word rule. `lorem ipsum` anywhere makes the share of boilerplate 1.
    """
    from pipeline_tasks.text.base import phrases
    from pipeline_tasks.text.base.buffers import views
    from pipeline_tasks.text.signals import character_counts, line_parts, repeated_ngrams
    from pipeline_tasks.text.words import word_counts

    view = views(texts)
    counts = word_counts.count_words(*view, phrases.encode_phrases(STOP_WORDS), phrases.encode_phrases(ELLIPSES))
    signed, count = character_counts.count_characters(*view), counts["words"]
    lines = line_parts.count_parts(*view, line_parts.LINES, line_parts.FILLED)
    paras = line_parts.count_parts(*view, line_parts.PARAGRAPHS, line_parts.RAW)
    bullets, ellipses = line_parts.count_edges(
        *view, line_parts.FILLED, phrases.encode_phrases(BULLETS), phrases.encode_phrases(ELLIPSES)
    ).T
    _, ended = line_parts.count_edges(
        *view, line_parts.FILLED, phrases.encode_phrases(()), phrases.encode_phrases(END_MARKS)
    ).T
    lorem = line_parts.count_containing(*view, line_parts.PARAGRAPHS, phrases.encode_phrases(LOREM_IPSUM)) > 0
    notices = line_parts.count_containing(*view, line_parts.PARAGRAPHS, phrases.encode_phrases(NOTICES))
    kinds = ("odd", "digits", "in_urls", "blanks", "brackets")
    odd, digits, urls, blanks, brackets = (share(signed[kind], signed["points"], of_nothing=1) for kind in kinds)
    columns = [
        odd,
        share(counts["mostly_marks"], count),
        digits,
        urls,
        blanks,
        brackets,
        np.where(lorem, 1.0, share(notices, paras["parts"])),
        share(lines["unique"], lines["parts"]),
        share(paras["unique"], paras["parts"]),
        share(lines["unique_points"], lines["points"]),
        share(paras["unique_points"], paras["points"]),
        count,
        share(lines["parts"] - ended, lines["parts"]),
        share(counts["alpha"], count),
        counts["stops"],
        share(counts["points"], count),
        counts["longest"],
        share(ellipses, lines["parts"]),
        *repeated_ngrams.ngram_shares(*view, repeated_ngrams.NEMO).T,
        share(bullets, lines["parts"]),
    ]
    return Computed(np.column_stack(columns), texts)


FILTER = Filter("nemo", SIGNALS, Limits, RULES, compute_signals, SHARES, StopWords("common_words"))
