"""Pages whose text is not to be had: images of text, and characters without a meaning."""

import re

# fewer characters on an image that fills the page are no text of it
_FEW = 40
# share of a page that an image of text fills
_FILLED = 0.6
# share of characters without a meaning from which a page is garbled
_ODD = 0.15
_LATIN_WORD = re.compile(r"[^\W\d_]{2,}")
_VOWEL = re.compile(
    r"[aeiouy\u00e0-\u00e6\u00e8-\u00ef\u00f2-\u00f6\u00f9-\u00fd\u0100-\u0105\u0112-\u011b\u0128-\u0131\u014c-\u0153\u0168-\u0173]",
    re.IGNORECASE,
)
# words of text of which that share has no vowel are no words
_BARE = 0.6
_WORDS = 30


def is_scanned(characters: int, image_share: float) -> bool:
    """Return whether a page is an image of its text."""
    return characters < _FEW and image_share > _FILLED


def odd_share(text: str) -> float:
    """Return the share of characters without a meaning: replacements, private use, controls."""
    odd = sum(text.count(one) for one in "\ufffd") + len(_ODD_ONES.findall(text))
    return odd / max(1, len(text) - text.count(" "))


_ODD_ONES = re.compile("[\ue000-\uf8ff\x00-\x08\x0e-\x1f\x7f-\x9f\ufff0-\ufffc]")


def is_garbled(text: str) -> bool:
    """Return whether the characters of a page are no text: without a meaning, or in words without vowels."""
    if odd_share(text) > _ODD:
        return True
    words = [word for word in _LATIN_WORD.findall(text) if word[0] < "\u0250"]
    if len(words) < _WORDS or len(words) * 2 < len(text.split()):
        return False
    return sum(_VOWEL.search(word) is None for word in words) > _BARE * len(words)
