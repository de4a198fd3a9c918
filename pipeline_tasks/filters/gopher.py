"""Gopher's bounds that the profiles of DCLM, Dolma and NeMo Curator take over under one set of names."""

from dataclasses import dataclass

from pipeline_tasks.constraints import Limit, Ratio
from pipeline_tasks.filters import Rule

GRAMS = (*(f"top_{n}_gram" for n in (2, 3, 4)), *(f"dup_{n}_gram" for n in range(5, 11)))
"""Signals, limits and reasons of repeated n-grams: the most frequent 2- to 4-gram, all repeated 5- to 10-grams."""

GRAM_RULES = tuple(Rule(name, name, "max", name) for name in GRAMS)


@dataclass(frozen=True, slots=True)
class GopherLimits:
    """Bounds of Gopher (arXiv 2112.11446): words and lines (A1.1), shares of repeated n-grams (table A1)."""

    min_words: Limit = 50
    max_words: Limit = 100_000
    max_symbol_ratio: Limit = 0.1
    max_bullet_line_ratio: Ratio = 0.9
    max_ellipsis_line_ratio: Ratio = 0.3
    top_2_gram: Ratio = 0.2
    top_3_gram: Ratio = 0.18
    top_4_gram: Ratio = 0.16
    dup_5_gram: Ratio = 0.15
    dup_6_gram: Ratio = 0.14
    dup_7_gram: Ratio = 0.13
    dup_8_gram: Ratio = 0.12
    dup_9_gram: Ratio = 0.11
    dup_10_gram: Ratio = 0.1
