r"""Reject texts with a word of a list of bad words for their language, as C4 did.

Rules are those of huggingface/datatrove `src/datatrove/pipeline/filters/c4_filters.py`, `C4BadWordsFilter` (after
tensorflow/datasets `c4_utils.py`): the text in lower case is searched for the words as the list spells them, so an
entry with a capital letter never matches. A word must be flanked by the ends of the text or by characters that are not
`\w`; in Japanese, Thai and Chinese it matches anywhere. A text of a language without a list passes, as upstream with
`fail_on_missing_language` off. Upstream draws the texts to keep from a generator that depends on their order; here the
draw is a hash of the text. The usual lists are LDNOOBW's; none is shipped.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.constraints import Ratio
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.filters import Computed, Filter, Rule
from pipeline_tasks.stage import FilePath

ANYWHERE = ("ja", "th", "zh")
"""Languages whose words match anywhere."""

COMMON = ("sm", "グロ", "女の子", "性")
"""Entries that are parts of many harmless words; upstream removes them from every list."""

NO_WORD = r"[^\p{L}\p{N}_]"
r"""What Python's `\W` matches: combining marks are not word characters to it."""

SIGNALS = ("bad_words",)
"""0 without a bad word, else a draw in (0, 1] that depends on the text only."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Share of the texts with bad words that are kept (0-1), and the lists of bad words by language.

    A list has one word per line, plain or compressed. At least one is needed.
    """

    keep_fraction: Ratio = 0
    bad_words: Mapping[str, FilePath] = field(default_factory=dict)


RULES = (Rule("document_removed_with_badwords", "bad_words", "max", "keep_fraction"),)


def compute_signals(texts: pa.Array, languages: pa.Array, _words: int, limits: Limits) -> Computed:
    """Return the SIGNALS of each text, shape (rows, 1); the texts are not edited."""
    from pipeline_tasks.text.base.cached import cached
    from pipeline_tasks.text.base.sampling import DRAW_SPAN, uniform_draws

    draws = np.zeros((len(texts), 1))
    for language, path in sorted(limits.bad_words.items()):
        rows = np.flatnonzero(pc.equal(languages, language).fill_null(fill_value=False).to_numpy(zero_copy_only=False))
        pattern = cached(_pattern_of_list, path, language)
        if len(rows) and pattern:
            selected = texts.take(pa.array(rows))
            hits = pc.match_substring_regex(_lower(selected), pattern).to_numpy(zero_copy_only=False).astype(np.bool_)
            drawn = uniform_draws(selected.filter(pa.array(hits)), seed=0)
            draws[rows[hits], 0] = (drawn + 1) / DRAW_SPAN
    return Computed(draws, texts)


def _pattern_of_list(path: str, language: str) -> str:
    from pipeline_tasks.text.words.wordlist import read

    return pattern_of(language, read(path))


def pattern_of(language: str, listed: Iterable[str]) -> str:
    """Return the RE2 pattern that finds a word of the list, empty for an empty list."""
    spelled = "|".join(map(re.escape, sorted(set(listed) - set(COMMON))))
    if not spelled or language in ANYWHERE:
        return spelled
    return f"(?:{NO_WORD}|^)(?:{spelled})(?:{NO_WORD}|$)"


def _lower(texts: pa.Array) -> pa.Array:
    """Return texts in lower case as `str.lower` has them: a dotted capital I is two code points."""
    from pipeline_tasks.text.base.replacing import replace_invalid_utf8

    return pc.utf8_lower(pc.replace_substring(pc.fill_null(replace_invalid_utf8(texts), ""), "\u0130", "i\u0307"))


def resources(limits: Limits) -> tuple[FilePath, ...]:
    """Return the lists of bad words; RecipeError if there is none."""
    if not limits.bad_words:
        message = "filter_quality: c4_badwords has no list of bad words; write c4_badwords: {bad_words: {en: PATH}}"
        raise RecipeError(message)
    return tuple(limits.bad_words.values())


FILTER = Filter("c4_badwords", SIGNALS, Limits, RULES, compute_signals, resources=resources)
