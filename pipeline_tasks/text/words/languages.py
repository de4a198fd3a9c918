"""Choose the rule that cuts a language into words; list the stop words of English prose."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

UNICODE, PAIRS, SPACY = 1, 2, 3
"""Rules of `words.cutting`, by value, so that an import of these tables compiles nothing."""

UNSPACED = ("zh", "yue", "wuu", "ja", "th", "lo", "km", "my", "bo", "dz")
"""Written without spaces between words: words are cut in pairs of code points (PAIRS), whatever the recipe
says. Codes are those of fastText lid.176, and of languages near Thai."""

STOP_WORDS = ("the", "be", "to", "of", "and", "that", "have", "with")
"""English words of good prose, from Gopher (arXiv 2112.11446, A1.1); other languages have theirs in packs."""


def word_rules(languages: pa.Array, rule: int) -> npt.NDArray[np.uint8]:
    """Return the word rule per row: `rule`, or PAIRS for an UNSPACED language.

    SPACY cuts English only; other languages get UNICODE instead.
    """
    rules = np.where(is_language(languages, ("en",)), SPACY, UNICODE) if rule == SPACY else rule
    return np.where(is_language(languages, UNSPACED), PAIRS, rules).astype(np.uint8)


def is_language(languages: pa.Array, codes: tuple[str, ...]) -> npt.NDArray[np.bool_]:
    """Return per row whether its language is one of `codes`; a null is none of them."""
    listed = pc.is_in(languages, value_set=pa.array(codes, languages.type))
    return np.asarray(listed.to_numpy(zero_copy_only=False), np.bool_)
