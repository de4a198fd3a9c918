"""Reject texts with too few long paragraphs, as the multilingual C4 did.

The rule is that of huggingface/datatrove `src/datatrove/pipeline/filters/c4_filters.py`, `C4ParagraphFilter` (after
tensorflow/datasets `c4_utils.py`; mC4, arXiv 2010.11934): a paragraph is the text between two newlines, unstripped.
"""

from dataclasses import dataclass

import pyarrow as pa

from pipeline_tasks.constraints import Limit
from pipeline_tasks.filters import Computed, Filter, Rule

SIGNALS = ("long_paragraphs",)


@dataclass(frozen=True, slots=True)
class Limits:
    """Minimum number of long paragraphs, and their minimum length (code points)."""

    min_paragraphs: Limit = 3
    min_paragraph_len: Limit = 200


RULES = (Rule("too_few_paragraphs", "long_paragraphs", "min", "min_paragraphs"),)


def compute_signals(texts: pa.Array, _languages: pa.Array, _words: int, limits: Limits) -> Computed:
    """Return the SIGNALS of each text, shape (rows, 1); the texts are not edited."""
    from pipeline_tasks.text.base.buffers import views
    from pipeline_tasks.text.signals import line_parts

    return Computed(line_parts.count_long_lines(*views(texts), limits.min_paragraph_len).reshape(-1, 1), texts)


FILTER = Filter("c4_paragraphs", SIGNALS, Limits, RULES, compute_signals)
