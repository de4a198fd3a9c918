"""Says which rule cuts a language into words, and what English prose is known by."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

UNICODE, PAIRS, SPACY = 1, 2, 3
"""Those of `text.words`, by value, so that reading these tables compiles nothing."""

UNSPACED = ("zh", "yue", "wuu", "ja", "th", "lo", "km", "my", "bo", "dz")
"""Written without spaces between words: words are cut in pairs of code points (`words.PAIRS`), whatever the recipe
says. Codes are those of fastText lid.176, with Thai's neighbors."""

STOP_WORDS = ("the", "be", "to", "of", "and", "that", "have", "with")
"""English words of good prose, from Gopher (arXiv 2112.11446, A1.1); other languages have theirs in packs."""


def word_rules(languages: pa.Array, rule: int) -> npt.NDArray[np.uint8]:
    """Return the rule for what a word is of `text.words` per row: `rule`, or PAIRS wherever UNSPACED.

    SPACY knows English only; other languages get UNICODE for it.
    """
    rules = np.where(is_language(languages, ("en",)), SPACY, UNICODE) if rule == SPACY else rule
    return np.where(is_language(languages, UNSPACED), PAIRS, rules).astype(np.uint8)


def is_language(languages: pa.Array, codes: tuple[str, ...]) -> npt.NDArray[np.bool_]:
    """Return per row whether its language is one of `codes`; a null is none of them."""
    listed = pc.is_in(languages, value_set=pa.array(codes, languages.type))
    return np.asarray(listed.to_numpy(zero_copy_only=False), np.bool_)
