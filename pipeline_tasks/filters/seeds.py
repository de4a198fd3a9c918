"""Apply simple shares: length, punctuation, distinct words, similarity to code, listed words, signal density.

The rules that tutorials and small pipelines share (TokenTurbine and others), with the bounds that they publish: at
least 200 characters (100,000 at most), punctuation at most .3, distinct words at least .30, five code keywords or 5 %
code symbols, listed words at most .1 %. The length in words replaces a length in tokens, which are not known yet. The
minimum share of letters and digits (signal density) has no published bound; half is far below any prose.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.constraints import Limit, Ratio
from pipeline_tasks.filters import Computed, Filter, Rule, share
from pipeline_tasks.stage import NO_FILE, FilePath

KEYWORDS = (
    "async", "await", "bool", "boolean", "catch", "char", "class", "const", "continue", "def", "elif", "elseif",
    "endif", "enum", "eval", "extends", "finally", "fn", "foreach", "func", "function", "goto", "ifdef", "impl",
    "implements", "import", "include", "instanceof", "int", "interface", "isset", "lambda", "let", "mut", "namespace",
    "null", "nullptr", "printf", "println", "private", "protected", "public", "return", "sizeof", "static", "std",
    "struct", "switch", "template", "throw", "typedef", "typeof", "undefined", "unsigned", "usize", "var", "virtual",
    "void", "while", "xor",
)  # fmt: skip
"""Words of programming languages. Prose has some of them, so distinct keywords are counted, not occurrences."""

SIGNALS = (
    "chars",
    "words",
    "punctuation",
    "distinct_words",
    "code_keywords",
    "code_symbols",
    "listed_words",
    "signal_density",
)


SHARES = ("punctuation", "distinct_words", "code_symbols", "signal_density")


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on lengths (code points, words), distinct code keywords, and shares (0-1) of characters or words.

    `toxic_words` is a list of words (one per line, plain or compressed) for `max_listed_words`; without it the rule is
    silent.
    """

    min_chars: Limit = 200
    max_chars: Limit = 100_000
    min_words: Limit = 50
    max_words: Limit = 50_000
    max_punctuation: Ratio = 0.3
    min_distinct_words: Ratio = 0.3
    max_code_keywords: Limit = 4
    max_code_symbols: Ratio = 0.05
    max_listed_words: Limit = 0.001
    min_signal_density: Ratio = 0.5
    toxic_words: FilePath = NO_FILE


RULES = (
    Rule("too_short", "chars", "min", "min_chars"),
    Rule("too_long", "chars", "max", "max_chars"),
    Rule("too_few_words", "words", "min", "min_words"),
    Rule("too_many_words", "words", "max", "max_words"),
    Rule("punctuation", "punctuation", "max", "max_punctuation"),
    Rule("repeated_words", "distinct_words", "min", "min_distinct_words"),
    Rule("code_keywords", "code_keywords", "max", "max_code_keywords"),
    Rule("code_symbols", "code_symbols", "max", "max_code_symbols"),
    Rule("listed_words", "listed_words", "max", "max_listed_words"),
    Rule("signal_density", "signal_density", "min", "min_signal_density"),
)


def compute_signals(texts: pa.Array, _languages: pa.Array, _words: int, limits: Limits) -> Computed:
    """Return the SIGNALS of each text, shape (rows, 8); the texts are not edited.

    Words are those of `str.split`. Toxic words are compared in lower case with runs of letters, digits and `_`, so
    entries of several words never match.
    """
    from pipeline_tasks.text.base import phrases
    from pipeline_tasks.text.base.buffers import views
    from pipeline_tasks.text.base.cached import cached
    from pipeline_tasks.text.base.replacing import replace_invalid_utf8
    from pipeline_tasks.text.signals import character_counts
    from pipeline_tasks.text.words import word_counts

    view = views(texts)
    counts = word_counts.count_words(*view, phrases.encode_phrases(()), phrases.encode_phrases(()))
    signed = character_counts.count_characters(*view)
    listed = cached(_listed_words, limits.toxic_words) if limits.toxic_words else ()
    lower = views(pc.utf8_lower(replace_invalid_utf8(texts))) if listed else view
    runs, hits, _ = word_counts.count_listed_words(*lower, listed).T
    columns = [
        signed["points"],
        counts["words"],
        share(signed["punctuation"], signed["points"]),
        share(counts["distinct"], counts["words"]),
        word_counts.count_listed_words(*view, KEYWORDS)[:, 2],
        share(signed["code"], signed["points"]),
        share(hits, runs),
        share(signed["solid"], signed["points"]),
    ]
    return Computed(np.column_stack(columns), texts)


def _listed_words(path: str) -> tuple[str, ...]:
    from pipeline_tasks.text.words.wordlist import read

    return tuple(sorted(word.lower() for word in read(path)))


def resources(limits: Limits) -> tuple[FilePath, ...]:
    """Return the list of toxic words, if there is one."""
    return (limits.toxic_words,) if limits.toxic_words else ()


FILTER = Filter("seeds", SIGNALS, Limits, RULES, compute_signals, SHARES, resources=resources)
