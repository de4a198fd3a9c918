"""Remove lines that are not sentences or are notices, then reject texts with too little prose, as C4 did.

Rules, bounds and the order of the line rules are those of huggingface/datatrove `src/datatrove/pipeline/filters/
c4_filters.py` (C4, arXiv 1910.10683): reason `<why>` there is `c4:<why>` here. Lines need no terminal punctuation by
default, as in FineWeb (`examples/fineweb.py` of the same repository). Two differences: a text is edited
and counted to its end after a `lorem ipsum` or `{`, and sentences are counted by `text.edits`, over a tokenizer's words
only if the word rule is SPACY.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.constraints import Limit, LimitOrOff, Switch
from pipeline_tasks.filters import Computed, Cuts, Filter, Rule
from pipeline_tasks.text.words.languages import word_rules

SIGNALS = (
    "lines",
    "long_word_lines",
    "no_terminal_lines",
    "few_words_lines",
    "javascript_lines",
    "policy_lines",
    "citations",
    "lorem_ipsum",
    "curly_brackets",
    "sentences",
)
"""Lines before the edit; removed lines by rule; citations removed from kept lines; lines with lorem ipsum or `{`;
sentences of kept lines."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Line rules (words, code points, switches: 0 or 1) and bounds on lines and sentences of a text (counts).

    As upstream, -1 turns `max_word_length`, `min_words_per_line` and `min_num_sentences` off.
    """

    require_terminal_punctuation: Switch = 0
    remove_citations: Switch = 1
    filter_javascript: Switch = 1
    filter_policy: Switch = 1
    max_word_length: LimitOrOff = 1000
    min_words_per_line: LimitOrOff = 3
    max_lorem_ipsum: Limit = 0
    max_curly_brackets: Limit = 0
    min_num_sentences: LimitOrOff = 5


RULES = (
    Rule("lorem_ipsum", "lorem_ipsum", "max", "max_lorem_ipsum"),
    Rule("curly_bracket", "curly_brackets", "max", "max_curly_brackets"),
    Rule("too_few_sentences", "sentences", "min", "min_num_sentences"),
)


def compute_signals(texts: pa.Array, languages: pa.Array, words: int, limits: Limits) -> Computed:
    """Return the SIGNALS of each text, shape (rows, 10), and the texts without the removed lines.

    Words are those of `str.split` whatever the word rule, except in languages written without spaces. With the word
    rule SPACY the sentences of English are those of spaCy's `sentencizer`.
    """
    from pipeline_tasks.text.base.buffers import views
    from pipeline_tasks.text.edits.c4 import LineRules, edit
    from pipeline_tasks.text.words.cutting import SPACY, SPLIT

    rules = LineRules(
        max_word_length=limits.max_word_length if limits.max_word_length >= 0 else np.inf,
        min_words=limits.min_words_per_line,
        require_terminal=bool(limits.require_terminal_punctuation),
        remove_citations=bool(limits.remove_citations),
        drop_javascript=bool(limits.filter_javascript),
        drop_policy=bool(limits.filter_policy),
        sentences=word_rules(languages, words) if words == SPACY else None,
    )
    edited = edit(*views(texts), word_rules(languages, SPLIT), rules)
    return Computed(edited.counts, edited.texts, edited.removed)


TAKEN = ("long_word", "no_terminal", "few_words", "javascript", "policy", "citation", "blank")
"""Rules that remove lines, in the order of SIGNALS; then citations within lines, and white space around lines."""


def trace(texts: pa.Array, removed_lines: pa.ListArray, limits: Limits) -> npt.NDArray[np.uint8]:
    """Return for every byte of the texts an index of TAKEN + 1, or 0 if it is kept."""
    from pipeline_tasks.text.base.buffers import views
    from pipeline_tasks.text.edits import spans

    view = views(texts)
    edges = TAKEN.index("citation") + 1, TAKEN.index("blank") + 1
    marks = removed_lines.flatten().to_numpy()
    return spans.mark_lines(view, spans.split_lines(*view), marks, edges, cited=bool(limits.remove_citations))


FILTER = Filter("c4", SIGNALS, Limits, RULES, compute_signals, cuts=Cuts(TAKEN, trace))
