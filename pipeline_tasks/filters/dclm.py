"""Remove URLs, reject poor prose and repetition, then remove lines of page furniture, as DCLM's RefinedWeb does.

Definitions, bounds and order are those of mlfoundations/dclm `baselines/baselines_configs/
dclm_baseline_refinedweb.yaml`, functions in `baselines/mappers/{filters/content_filters,modifiers}.py` (RefinedWeb,
arXiv 2306.01116; DCLM, arXiv 2406.11794). Its URL lists and language are stages of their own.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.constraints import Limit, Ratio, Switch
from pipeline_tasks.filters import Computed, Cuts, Filter, Rule, StopWords, share
from pipeline_tasks.filters.gopher import GRAM_RULES, GRAMS, GopherLimits
from pipeline_tasks.text.words.languages import STOP_WORDS

if TYPE_CHECKING:
    from pipeline_tasks.text.edits import inline_urls

SYMBOLS = ("#", "...", ". . .", "…")
BULLETS = ("●", "•", "*", "-")
ELLIPSES = SYMBOLS[1:]

REPEATS = ("line_frac", "para_frac", "line_char_frac", "para_char_frac")

SIGNALS = (
    "words",
    "word_length",
    "symbol_ratio",
    "bullet_line_ratio",
    "ellipsis_line_ratio",
    "non_alpha_ratio",
    "stop_words",
    *REPEATS,
    *GRAMS,
    "removed_ratio",
    "uppercase_lines",
    "numeric_lines",
    "counter_lines",
    "short_lines",
    "cart_lines",
    "more_lines",
    "sign_in_lines",
    "urls",
    "addresses",
)
"""The last nine count the lines that each modifier removed or cut, in order, and the URLs and IP addresses that were
removed before any other signal was computed."""


SHARES = ("non_alpha_ratio", *REPEATS, "removed_ratio")


@dataclass(frozen=True, slots=True)
class Limits(GopherLimits):
    """Further bounds on a text (counts, code points, shares 0-1), then on single lines: shares, and words per line.

    `remove_urls: 0` keeps URLs and IP addresses (upstream removes them; `text.edits.inline_urls` says which).
    """

    min_word_length: Limit = 3
    max_word_length: Limit = 10
    max_non_alpha_ratio: Ratio = 0.2
    min_stop_words: Limit = 2
    line_frac: Ratio = 0.3
    para_frac: Ratio = 0.3
    line_char_frac: Ratio = 0.2
    para_char_frac: Ratio = 0.2
    max_removed_ratio: Ratio = 0.05
    max_uppercase_per_line: Ratio = 0.5
    max_numeric_per_line: Ratio = 0.999999
    min_words_per_line: Limit = 2
    max_words_of_notice: Limit = 10
    remove_urls: Switch = 1


RULES = (
    Rule("too_few_words", "words", "min", "min_words"),
    Rule("too_many_words", "words", "max", "max_words"),
    Rule("short_words", "word_length", "min", "min_word_length"),
    Rule("long_words", "word_length", "max", "max_word_length"),
    Rule("symbols", "symbol_ratio", "max", "max_symbol_ratio"),
    Rule("bullets", "bullet_line_ratio", "max", "max_bullet_line_ratio"),
    Rule("ellipses", "ellipsis_line_ratio", "max", "max_ellipsis_line_ratio"),
    Rule("non_alpha", "non_alpha_ratio", "max", "max_non_alpha_ratio"),
    Rule("stop_words", "stop_words", "min", "min_stop_words"),
    *(Rule(name, name, "max", name) for name in REPEATS),
    *GRAM_RULES,
    Rule("removed_words", "removed_ratio", "max", "max_removed_ratio"),
)


def compute_signals(texts: pa.Array, _languages: pa.Array, _words: int, limits: Limits) -> Computed:
    """Return the SIGNALS of each text, shape (rows, 30), and the texts as the modifiers leave them.

    Words are those of the source whatever the word rule: fastText's for counts, `str.split` for shares, Unicode's for
    n-grams. A text without words or lines has the worst value of every share: upstream drops it at any of them.
    """
    from pipeline_tasks.text.base import phrases
    from pipeline_tasks.text.base.buffers import views
    from pipeline_tasks.text.edits import dclm
    from pipeline_tasks.text.signals import line_parts, repeated_ngrams
    from pipeline_tasks.text.words import word_counts

    removed = _without_urls(texts, limits)
    view = views(removed.texts)
    counts = word_counts.count_words(*view, phrases.encode_phrases(STOP_WORDS), phrases.encode_phrases(()))
    count, before = counts["words"], word_counts.count_fasttext_words(*view)
    lines = line_parts.count_parts(*view, line_parts.LINES, line_parts.STRIPPED)
    paras = line_parts.count_parts(*view, line_parts.PARAGRAPHS, line_parts.STRIPPED)
    bullets, ellipses = line_parts.count_edges(
        *view, line_parts.STRIPPED, phrases.encode_phrases(BULLETS), phrases.encode_phrases(ELLIPSES)
    ).T
    modified, changed = dclm.modify(*view, _line_bounds(limits))
    repeated = repeated_ngrams.ngram_shares(*view, repeated_ngrams.DCLM)
    repeated[np.diff(view[0]) == 0] = 1
    columns = [
        before,
        share(counts["points"], count),
        share(phrases.count(*view, phrases.encode_phrases(SYMBOLS)), count, of_nothing=1),
        share(bullets, lines["parts"]),
        share(ellipses, lines["parts"]),
        share(count - counts["alpha"], count, of_nothing=1),
        counts["folded_stops"],
        share(lines["repeated"], lines["parts"], of_nothing=1),
        share(paras["repeated"], paras["parts"], of_nothing=1),
        share(lines["repeated_points"], lines["points"], of_nothing=1),
        share(paras["repeated_points"], paras["points"], of_nothing=1),
        *repeated.T,
        np.maximum(share(before - word_counts.count_fasttext_words(*views(modified)), before, of_nothing=1), 0),
        *changed.T,
        *removed.counts.T,
    ]
    return Computed(np.column_stack(columns), modified)


TAKEN = ("uppercase", "numeric", "counter", "short", "cart", "more", "sign_in", "blank", "url", "address")
"""Rules that remove lines or parts of them, in the order of `text.edits.dclm`; `blank` is white space
next to removed text."""


def trace(texts: pa.Array, _removed_lines: pa.ListArray | None, limits: Limits) -> npt.NDArray[np.uint8]:
    """Return for every byte of the texts an index of TAKEN + 1, or 0 if it is kept."""
    from pipeline_tasks.text.base.buffers import views
    from pipeline_tasks.text.edits import dclm

    removed = _without_urls(texts, limits)
    if not removed.counts.any():
        return dclm.trace(*views(texts), _line_bounds(limits))
    offsets, _ = views(texts)
    within = slice(int(offsets[0]), int(offsets[-1]))
    marks = np.where(removed.why > 0, removed.why + TAKEN.index("url"), 0).astype(np.uint8)
    marks[within][removed.why[within] == 0] = dclm.trace(*views(removed.texts), _line_bounds(limits))
    return marks


def _without_urls(texts: pa.Array, limits: Limits) -> "inline_urls.Removed":
    from pipeline_tasks.text.edits import inline_urls

    if limits.remove_urls:
        return inline_urls.remove_urls(texts)
    return inline_urls.Removed(texts, np.zeros(0, np.uint8), np.zeros((len(texts), 2)))


def _line_bounds(limits: Limits) -> tuple[float, float, float, float]:
    """Return the bounds on lines in the order of `text.edits.dclm`."""
    shares = limits.max_uppercase_per_line, limits.max_numeric_per_line
    return (*shares, limits.min_words_per_line, limits.max_words_of_notice)


FILTER = Filter(
    "dclm", SIGNALS, Limits, RULES, compute_signals, SHARES, StopWords("stop_words", any_case=True), Cuts(TAKEN, trace)
)
