"""Pages whose text is not to be had: images of text, and characters without a meaning."""

import numpy as np

# fewer characters on an image that fills the page are no text of it
_FEW = 40
# share of a page that an image of text fills
_FILLED = 0.6
# share of characters without a meaning from which a page is garbled; others have up to .02
_ODD = 0.15
# share of a page's characters whose fonts are lost from which it is not read: a sentence without them lacks words
_LOST = 0.03
# share of marks of Latin letters: texts that are decomposed have .15 at most
_MARKS = 0.3
# of letters beside each other in words, the share of two scripts; pages of formulas have up to .1
_MIXED = 0.15
# of Latin letters, the least share of vowels: Welsh and Czech have .33, letters that are moved by a number about .15
_VOWELS = 0.23
# of ideographs, the least share of frequent ones: texts have .3 or more
_FREQUENT = 0.06
# letters below which shares say nothing
_LETTERS = 150

# begins of ranges of code points, and the script of each: 0 has no letters, -1 no meaning
_RANGES = (
    (0x0000, -1), (0x0009, 0), (0x000E, -1), (0x0020, 0), (0x0041, 1), (0x005B, 0), (0x0061, 1), (0x007B, 0),
    (0x007F, -1), (0x00A0, 0), (0x00C0, 1), (0x0250, 0), (0x0370, 2), (0x0374, 0), (0x0386, 2), (0x03CF, 3),
    (0x0400, 4), (0x0530, 5), (0x0590, 6), (0x0600, 7), (0x0900, 8), (0x0980, 9), (0x0A00, 10), (0x0A80, 11),
    (0x0B00, 12), (0x0B80, 13), (0x0C00, 14), (0x0C80, 15), (0x0D00, 16), (0x0D80, 17), (0x0E00, 18), (0x0E80, 19),
    (0x0F00, 20), (0x1000, 21), (0x10A0, 22), (0x1100, 40), (0x1200, 23), (0x13A0, 24), (0x1400, 25), (0x1680, 26),
    (0x1780, 27), (0x1800, 28), (0x18B0, 25), (0x1900, 29), (0x1C80, 4), (0x1C90, 22), (0x1CC0, 30), (0x1E00, 1),
    (0x1F00, 2), (0x2000, 0), (0x2C00, 31), (0x2C60, 1), (0x2C80, 3), (0x2D00, 32), (0x2DE0, 4), (0x2E00, 0),
    (0x2E80, 40), (0x3000, 0), (0x3041, 40), (0xA000, 33), (0xA640, 4), (0xA6A0, 34), (0xA720, 1), (0xA800, 35),
    (0xA8E0, 8), (0xA900, 36), (0xAB30, 1), (0xAB70, 24), (0xABC0, 37), (0xAC00, 40), (0xD7B0, 40), (0xD800, -1),
    (0xF900, 40), (0xFB00, 1), (0xFB07, 5), (0xFB1D, 6), (0xFB50, 7), (0xFE00, 0), (0xFE70, 7), (0xFEFF, 0),
    (0xFF66, 40), (0xFFE0, 0), (0xFFF0, -1), (0x10000, 0),
)  # fmt: skip
_BEGINS = np.array([begin for begin, _ in _RANGES], np.uint32)
_SCRIPTS = np.array([script for _, script in _RANGES], np.int8)
_LATIN, _IDEOGRAPHS = 1, 40
_VOWEL = np.zeros(0x250, bool)
_VOWEL[[ord(one) for one in "aeiouyAEIOUYàáâãäåæèéêëìíîïòóôõöøùúûüýÿÀÁÂÃÄÅÆÈÉÊËÌÍÎÏÒÓÔÕÖØÙÚÛÜÝ"]] = True
_VOWEL[[ord(one) for one in "āăąēĕėęěĩīĭįıōŏőœũūŭůűųŷ"]] = True
_COMMON = np.array(sorted(map(ord, (
    "的一是不了在人有我他这這中大来來上国國个個到说說们們为為子和你地出道也时時年得就那要下以生会會自着著去之过過家学學对對可她里裡"
    "后後小么麼心多天而能好都然没沒日于於起还還发發成事只作当當想看文无無开開手十用主行方又如前所本见見经經头頭面公同三已老从從"
    "动動两兩长長知民样樣现現分将將外但身些与與高意进進把法此实實回二理美点點月明其种種声聲全工己话話者向情部正名定女问問力机機"
    "给給等几幾很业業最间間新什打便位因重被走电電四第门門相次东東政海口使教西再平真听聽世气氣信北少关關并內内加化由却代军軍"
    "产產入先山五太水万萬市数數书書今合通度目体體式期利社制计計品地区區系系統统"
))), np.uint32)  # fmt: skip


def is_scanned(characters: int, image_share: float) -> bool:
    """Return whether a page is an image of its text."""
    return characters < _FEW and image_share > _FILLED


def lost_fonts(fonts: np.ndarray, controls: np.ndarray) -> list[int]:
    """Return the fonts that write characters that no font has, by the font of each visible and of each control code.

    PDFium takes Helvetica for a font that is missing, and each half of a code of two bytes for a character.
    """
    found, counts = np.unique(controls[controls > 0], return_counts=True)
    return [
        font
        for font, count in zip(found.tolist(), counts.tolist(), strict=True)
        if count > _ODD * (count + int((fonts == font).sum()))
    ]


def is_lost(visible: int, lost: int) -> bool:
    """Return whether so many of a page's visible characters are of lost fonts that it is not read."""
    return lost > _LOST * visible


def is_garbled(text: str) -> bool:
    """Return whether the characters of a page are no text.

    They have no meaning, mix scripts in words, or are letters of which vowels, or frequent ones, are as rare as by
    chance: fonts that do not say what their glyphs are.
    """
    codes = np.frombuffer(text.encode("utf-32-le", "replace"), np.uint32)
    scripts = _SCRIPTS[np.searchsorted(_BEGINS, codes, "right") - 1]
    visible = int((codes > 0x20).sum())
    if int((scripts < 0).sum()) > _ODD * visible or int(((codes >= 0x300) & (codes < 0x370)).sum()) > _MARKS * visible:
        return True
    letters = scripts > 0
    pairs = letters[1:] & letters[:-1]
    if int(pairs.sum()) > _LETTERS and int((pairs & (np.diff(scripts) != 0)).sum()) > _MIXED * int(pairs.sum()):
        return True
    return _lacks(codes, scripts, letters)


def _lacks(codes: np.ndarray, scripts: np.ndarray, letters: np.ndarray) -> bool:
    """Return whether the letters that texts of their script have most of are missing."""
    count = int(letters.sum())
    if count < _LETTERS:
        return False
    latin = codes[scripts == _LATIN]
    if len(latin) * 2 > count:
        return int(_VOWEL[latin[latin < len(_VOWEL)]].sum()) < _VOWELS * len(latin)
    signs = codes[scripts == _IDEOGRAPHS]
    # kana and Hangul are frequent ones
    ideographs = signs[(signs >= 0x3400) & (signs < 0xA000)]
    if len(signs) * 2 < count or len(ideographs) * 10 < 9 * len(signs):
        return False
    return int(np.isin(ideographs, _COMMON).sum()) < _FREQUENT * len(ideographs)
