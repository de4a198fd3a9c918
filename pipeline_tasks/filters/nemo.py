"""Judges English by the heuristics of NeMo Curator: kinds of characters, notices, unique lines, n-grams.

Definitions are those of NVIDIA/NeMo-Curator `nemo_curator/filters/heuristic_filter.py` (in later versions
`nemo_curator/stages/text/filters/heuristic/`) and `nemo_curator/utils/constants.py`, bounds and order those of
`config/heuristic_filter_en.yaml`. Its ratios of "repeated" lines are shares of unique ones, and are named so here; its
"sentences" are lines that are not blank. Where upstream divides by zero, a text fails the bounds on words.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pipeline_tasks.filters import Filter, Measured, Rule, StopWords, share
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
"""What makes a paragraph boilerplate, in lower case; upstream's other two notices contain `uses cookies`."""

GRAMS = (*(f"top_{n}_gram" for n in (2, 3, 4)), *(f"dup_{n}_gram" for n in range(5, 11)))

SIGNALS = (
    "nemo_non_alpha_numeric",
    "nemo_symbol_ratio",
    "nemo_number_ratio",
    "nemo_url_ratio",
    "nemo_white_space_ratio",
    "nemo_parentheses_ratio",
    "nemo_boilerplate_ratio",
    "nemo_unique_lines",
    "nemo_unique_paragraphs",
    "nemo_unique_line_chars",
    "nemo_unique_paragraph_chars",
    "nemo_words",
    "nemo_lines_without_end_mark",
    "nemo_alpha_ratio",
    "nemo_common_words",
    "nemo_word_length",
    "nemo_longest_word",
    "nemo_ellipsis_line_ratio",
    *(f"nemo_{name}" for name in GRAMS),
    "nemo_bullet_line_ratio",
)


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on shares (0-1), words (counts) and word lengths (code points)."""

    max_non_alpha_numeric: float = 0.25
    max_symbol_ratio: float = 0.1
    max_number_ratio: float = 0.15
    max_url_ratio: float = 0.2
    max_white_space_ratio: float = 0.25
    max_parentheses_ratio: float = 0.1
    max_boilerplate_ratio: float = 0.4
    min_unique_lines: float = 0.7
    min_unique_paragraphs: float = 0.7
    min_unique_line_chars: float = 0.8
    min_unique_paragraph_chars: float = 0.8
    min_words: float = 50
    max_words: float = 100_000
    max_lines_without_end_mark: float = 0.85
    min_alpha_ratio: float = 0.8
    min_common_words: float = 2
    min_word_length: float = 3
    max_word_length: float = 10
    max_longest_word: float = 1000
    max_ellipsis_line_ratio: float = 0.3
    top_2_gram: float = 0.2
    top_3_gram: float = 0.18
    top_4_gram: float = 0.16
    dup_5_gram: float = 0.15
    dup_6_gram: float = 0.14
    dup_7_gram: float = 0.13
    dup_8_gram: float = 0.12
    dup_9_gram: float = 0.11
    dup_10_gram: float = 0.1
    max_bullet_line_ratio: float = 0.9


RULES = (
    Rule("non_alpha_numeric", "nemo_non_alpha_numeric", "most", "max_non_alpha_numeric"),
    Rule("symbols", "nemo_symbol_ratio", "most", "max_symbol_ratio"),
    Rule("numbers", "nemo_number_ratio", "most", "max_number_ratio"),
    Rule("urls", "nemo_url_ratio", "most", "max_url_ratio"),
    Rule("white_space", "nemo_white_space_ratio", "most", "max_white_space_ratio"),
    Rule("parentheses", "nemo_parentheses_ratio", "most", "max_parentheses_ratio"),
    Rule("boilerplate", "nemo_boilerplate_ratio", "most", "max_boilerplate_ratio"),
    Rule("repeated_lines", "nemo_unique_lines", "least", "min_unique_lines"),
    Rule("repeated_paragraphs", "nemo_unique_paragraphs", "least", "min_unique_paragraphs"),
    Rule("repeated_line_chars", "nemo_unique_line_chars", "least", "min_unique_line_chars"),
    Rule("repeated_paragraph_chars", "nemo_unique_paragraph_chars", "least", "min_unique_paragraph_chars"),
    Rule("too_few_words", "nemo_words", "least", "min_words"),
    Rule("too_many_words", "nemo_words", "most", "max_words"),
    Rule("punctuation", "nemo_lines_without_end_mark", "most", "max_lines_without_end_mark"),
    Rule("alpha", "nemo_alpha_ratio", "least", "min_alpha_ratio"),
    Rule("common_words", "nemo_common_words", "least", "min_common_words"),
    Rule("short_words", "nemo_word_length", "least", "min_word_length"),
    Rule("long_words", "nemo_word_length", "most", "max_word_length"),
    Rule("longest_word", "nemo_longest_word", "most", "max_longest_word"),
    Rule("ellipses", "nemo_ellipsis_line_ratio", "most", "max_ellipsis_line_ratio"),
    *(Rule(name, f"nemo_{name}", "most", name) for name in GRAMS),
    Rule("bullets", "nemo_bullet_line_ratio", "most", "max_bullet_line_ratio"),
)


def measure(texts: pa.Array, languages: pa.Array, words: int, limits: Limits) -> Measured:  # noqa: ARG001  (same shape for all filters)
    """Return the SIGNALS of each text, shape (rows, 28); the texts stay as they are.

    Words are those of `str.split` whatever the word rule. `lorem ipsum` anywhere makes the share of boilerplate 1.
    """
    from pipeline_tasks.text.base import phrases
    from pipeline_tasks.text.base.buffers import views
    from pipeline_tasks.text.signals import character_counts, line_parts, repeated_ngrams
    from pipeline_tasks.text.words import word_counts

    view = views(texts)
    found = word_counts.count_words(*view, phrases.encode_phrases(STOP_WORDS), phrases.encode_phrases(ELLIPSES))
    signed, count = character_counts.count_characters(*view), found["words"]
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
        share(found["mostly_marks"], count),
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
        share(found["alpha"], count),
        found["stops"],
        share(found["points"], count),
        found["longest"],
        share(ellipses, lines["parts"]),
        *repeated_ngrams.ngram_shares(*view, repeated_ngrams.NEMO).T,
        share(bullets, lines["parts"]),
    ]
    return Measured(np.column_stack(columns), texts)


FILTER = Filter("nemo", SIGNALS, Limits, RULES, measure, StopWords("nemo_common_words"))
