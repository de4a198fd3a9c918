"""Build the table of code point classes for word, line and sentence rules; decode UTF-8 inside compiled loops."""

# ruff: noqa: RUF001 -- lists of signs

import functools
import unicodedata

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base.ascii import starts_character
from pipeline_tasks.text.base.compiled import inlined
from pipeline_tasks.text.base.eight_bytes import byte_at

SPACE, ALPHA, PUNCTUATION, BREAK, WORD, UNSPACED, TERMINAL, DIGIT = (1 << bit for bit in range(8))
"""Bits of a class: `str.isspace`, `str.isalpha`, pure symbols, `str.splitlines` breaks, letters with marks and
digits, scripts written without spaces, ends of sentences, decimal digits."""

LOWER, UPPER, QUOTE, PREFIX, SUFFIX, ICON, DOTTED, MARK = (1 << bit for bit in range(8, 16))
"""Bits for `words.spacy_affixes`: lower-case and upper-case letters (both: letters without case), quotes, prefixes and
suffixes of words, symbols, characters before a full stop that is cut off, and Unicode's punctuation."""

CASED_ANY = LOWER | UPPER

BLANK, ASCII_END = 0x20, 0x80
ELLIPSIS_0, ELLIPSIS_1, ELLIPSIS_2 = "\u2026".encode()

Classes = tuple[npt.NDArray[np.uint16], npt.NDArray[np.uint16]]
"""(block of cp >> 8, classes of block * 256 + (cp & 255)); block 0 is ASCII and Latin-1."""

BREAKS = "A-D 1C-1E 85 2028-2029"

TERMINALS = """
21 2E 3F 589 61D-61F 6D4 700-702 7F9 837 839 83D-83E 964-965 104A-104B 1362 1367-1368 166E 1735-1736 17D4-17D6
17D9-17DA 1803 1809 1944-1945 1AA8-1AAB 1B5A-1B5B 1B5E-1B5F 1B7D-1B7E 1C3B-1C3C 1C7E-1C7F 203C-203D 2047-2049
2E2E 2E3C 2E53-2E54 3002 A4FF A60E-A60F A6F3 A6F7 A876-A877 A8CE-A8CF A92F A9C8-A9C9 AA5D-AA5F AAF0-AAF1 ABEB
FE52 FE56-FE57 FF01 FF0E FF1F FF61 10A56-10A57 10F55-10F59 10F86-10F89 11047-11048 110BE-110C1 11141-11143
111C5-111C6 111CD 111DE-111DF 11238-11239 1123B-1123C 112A9 1144B-1144C 115C2-115C3 115C9-115D7 11641-11642
1173C-1173E 11944 11946 11A42-11A43 11A9B-11A9C 11C41-11C42 11EF7-11EF8 11F43-11F44 16A6E-16A6F 16AF5
16B37-16B38 16B44 16E98 1BC9F 1DA88
"""
"""What ends a sentence: Unicode's Sentence_Terminal as huggingface/datatrove `src/datatrove/utils/text.py`
(TERMINAL_PUNCTUATION) has it, and the Khmer full stop U+17D4, which that list lacks."""

SYMBOLS = """
0-8 B-C D-1F 7F-9F 21-2F 3A-40 5B-60 7B-7E AB B4 BB 2013-2014 2019 201C-201E 2026 2236 2501 25BA 3001-3002
3008-300D 3010-3011 FF01 FF05 FF08-FF09 FF0C FF0E FF11 FF1A-FF1B FF1F FF5E
"""
"""What a word may not consist of alone: PUNCTUATION of the same file; TERMINALS belong to it too."""

UNSPACED_SCRIPTS = """
E01-E3A E40-E4E E81-EDF F00-FBC 1000-109F 1780-17D3 3005-3007 3041-30FF 3400-9FFF F900-FAFF 20000-323AF
"""
"""Thai, Lao, Tibetan, Burmese, Khmer, kana and Han: their words are not set apart by spaces."""

CASED = """
41-7A C0-2AF 386-38A 38C 38E-38F 391-3A1 3A3-3A9 3AC-3AF 3B1-3C9 3CC-3CE 400-401 403-40A 40C-40D 410-451 453-45A
45C-45D 490-491 496-497 4A2-4A3 4AE-4AF 4BA-4BB 4D8-4D9 4E8-4E9 1D00-1D25 1D6B-1D77 1D79-1D9A 1E00-1EFF 2C60-2C7B
2C7E-2C7F A722-A76F A771-A7B9 A7FA AB30-AB5A AB60-AB64 FF21-FF5A
"""

UNCASED = """
591-5F4 620-64A 66E-6D5 6E5-6FF 750-77F 8A0-8BD 900-9FF B80-CFF D80-DFF 1100-137F 2E80-2FDF 2FF0-30FF 31C0-31EF
3200-4DBF 4E00-9FFF AC00-D7AF F900-FAFF FB1D-FBB1 FBD3-FD3D FD50-FDC7 FDF0-FDFB FE30-FE4F FE70-FEFC 1EE00-1EEBB
1F200-1F2FF 20000-2A6DF 2A700-2EBEF 2F800-2FA1F
"""
"""What explosion/spaCy `spacy/lang/char_classes.py` takes for letters: with case, and without."""

ICONS = """
A6-B0 482 58D-58E 60E-6FE 7F6 9FA B70 BF3-BFA C7F D4F D79 F01-F38 FBE-FCC FCE-FD8 109E-109F 1390-1399 1940 19DE-19FF
1B61-1B7C 2100-218B 2195-2426 2440-244A 249C-2B73 2B76-2B95 2B98-2BC8 2BCA-2BFE 2CE5-2CEA 2E80-2E99 2E9B-2EF3
2F00-2FD5 2FF0-2FFB 3004-303F 3190-31E3 3200-321E 322A-32FE 3300-4DFF A490-A4C6 A828-A82B A836-A839 AA77-AA79 FDFD
FFE4 FFE8-FFEE FFFC-FFFD 10137-1018E 10190-1019B 101A0 101D0-101FC 10877-10878 10AC8 1173F 16B3C-16B45 1BC9C
1D000-1D0F5 1D100-1D126 1D129-1D1E8 1D200-1D245 1D300-1D356 1D800-1DA86 1ECAC 1F000-1F02B 1F030-1F093 1F0A0-1F0AE
1F0B1-1F0BF 1F0C1-1F0CF 1F0D1-1F0F5 1F110-1F16B 1F170-1F1AC 1F1E6-1F202 1F210-1F23B 1F240-1F248 1F250-1F251
1F260-1F265 1F300-1F6D4 1F6E0-1F6EC 1F6F0-1F6F9 1F700-1F773 1F780-1F7D8 1F800-1F80B 1F810-1F847 1F850-1F859
1F860-1F887 1F890-1F8AD 1F900-1F90B 1F910-1F93E 1F940-1F970 1F973-1F976 1F97A 1F97C-1F9A2 1F9B0-1F9B9 1F9C0-1F9C2
1F9D0-1F9FF 1FA60-1FA6D
"""
"""Ranges with spaCy's symbols; only those of Unicode 11 count, so later emoji are not cut off words."""

QUOTES = "'\"”“`‘´’‚,„»«「」『』（）〔〕【】《》〈〉\u2329\u232a⟦⟧"
AFFIXES = "…,:;!?¿؟¡()[]{}<>_#*&。？！，、；：～·।،۔؛٪"
DASHES, PREFIXES, BEFORE_DOT = "—–", "§%=$£€¥฿₽﷼₴₠₡₢₣₤₥₦₧₨₩₪₫₭₮₯₰₱₲₳₵₶₷₸₹₺₻₼₾₿", "0123456789%²-+|"
GLOTTAL_STOP = "\u0294"
"""Characters of the same file: quotes, punctuation, dashes, currencies, characters before a full stop that is cut off,
and the letter without case that it treats as lower case."""

ASSIGNED = (range(0x32400), range(0xE0000, 0xE0200))
"""Ranges with all code points that are assigned and not for private use."""


@functools.cache
def classes() -> Classes:
    """Return the class table, shared and read-only; 0.1 s to build, once per process."""
    flags = np.zeros(0x110000, np.uint16)
    for codes in ASSIGNED:
        flags[codes.start : codes.stop] = [_class(chr(code)) for code in codes]
    for ranges, bits_of in ((CASED, _case), (ICONS, _icon)):
        for first, last in parse_ranges(ranges):
            bits_of_range = [bits_of(chr(code)) for code in range(first, last + 1)]
            flags[first : last + 1] |= np.array(bits_of_range, np.uint16)
    listed = {
        BREAKS: BREAK,
        TERMINALS: TERMINAL | PUNCTUATION,
        SYMBOLS: PUNCTUATION,
        UNSPACED_SCRIPTS: UNSPACED,
        UNCASED: LOWER | UPPER | DOTTED,
    }
    letters = {AFFIXES: PREFIX | SUFFIX | DOTTED, DASHES: PREFIX | SUFFIX, QUOTES: QUOTE | PREFIX | SUFFIX | DOTTED}
    for signs, bits in (letters | {PREFIXES: PREFIX, BEFORE_DOT: DOTTED, GLOTTAL_STOP: LOWER | DOTTED}).items():
        flags[[ord(sign) for sign in signs]] |= bits
    for ranges, bit in listed.items():
        for first, last in parse_ranges(ranges):
            flags[first : last + 1] |= bit
    return two_level(flags)


def _class(letter: str) -> int:
    """Return the bits of `letter` in Python's Unicode database."""
    category = unicodedata.category(letter)
    mark = category[0] == "M"
    return (
        SPACE * letter.isspace()
        | ALPHA * letter.isalpha()
        | WORD * (letter.isalnum() or mark or letter == "_")
        | DIGIT * letter.isdecimal()
        | MARK * (category[0] == "P")
    )


def _case(letter: str) -> int:
    """Return the bits of a letter with case; a full stop is cut off after lower case only."""
    return (LOWER | DOTTED) * letter.islower() | UPPER * letter.isupper()


def _icon(letter: str) -> int:
    """Return the bits of a symbol, which is a word of its own everywhere."""
    return (ICON | PREFIX | SUFFIX) * (unicodedata.category(letter) == "So")


def parse_ranges(ranges: str) -> list[tuple[int, int]]:
    """Read `21 2E-2F` as [(0x21, 0x21), (0x2E, 0x2F)]."""
    ends = [span.split("-") for span in ranges.split()]
    return [(int(end[0], 16), int(end[-1], 16)) for end in ends]


def two_level(flags: npt.NDArray[np.uint16]) -> Classes:
    """Store the flags of all code points as different blocks of 256; block 0 holds ASCII, so that it needs no index."""
    blocks, inverse = np.unique(flags.reshape(-1, 256), axis=0, return_inverse=True)
    index = inverse.reshape(-1)
    order = np.arange(len(blocks))
    order[0], order[index[0]] = index[0], 0
    table = (order[index].astype(np.uint16), np.ascontiguousarray(blocks[order]).reshape(-1))
    for part in table:
        part.flags.writeable = False
    return table


@inlined
def decode(data, at, end):
    """Return (code point, bytes it takes) of the UTF-8 at `at`; broken or cut bytes are U+FFFD."""
    lead = data[at]
    if lead < ASCII_END:
        return np.int64(lead), 1
    if 0xC2 <= lead < 0xE0 and at + 1 < end:
        return (np.int64(lead & 0x1F) << 6) | (data[at + 1] & 0x3F), 2
    if 0xE0 <= lead < 0xF0 and at + 2 < end:
        return (np.int64(lead & 0x0F) << 12) | (np.int64(data[at + 1] & 0x3F) << 6) | (data[at + 2] & 0x3F), 3
    if 0xF0 <= lead < 0xF5 and at + 3 < end:
        high = (np.int64(lead & 0x07) << 18) | (np.int64(data[at + 1] & 0x3F) << 12)
        code = high | (np.int64(data[at + 2] & 0x3F) << 6) | (data[at + 3] & 0x3F)
        return (code if code < 0x110000 else np.int64(0xFFFD)), 4
    return np.int64(0xFFFD), 1


@inlined
def count_code_points(data, begin, end):
    """Return how many code points begin in data[begin:end]."""
    count = 0
    for at in range(begin, end):
        count += starts_character(data[at])
    return count


@inlined
def is_ellipsis(data, at):
    """Return whether the three bytes at `at`, which must exist, are U+2026."""
    return (data[at] == ELLIPSIS_0) & (data[at + 1] == ELLIPSIS_1) & (data[at + 2] == ELLIPSIS_2)


@inlined
def class_of(index, flags, code):
    """Return the class bits of a code point."""
    if code < ASCII_END:
        return flags[code]
    return flags[(np.int64(index[code >> 8]) << 8) | (code & 0xFF)]


@inlined
def trim(data, begin, end, index, flags):
    """Return (begin, end) of data[begin:end] without white space at either side, as `str.strip` has it."""
    while begin < end and not BLANK < byte_at(data, begin) < ASCII_END:
        code, width = decode(data, begin, end)
        if not class_of(index, flags, code) & SPACE:
            break
        begin += width
    while begin < end and not BLANK < byte_at(data, end - 1) < ASCII_END:
        last = end - 1
        while last > begin and (data[last] & 0xC0) == 0x80:
            last -= 1
        code, _ = decode(data, last, end)
        if not class_of(index, flags, code) & SPACE:
            break
        end = last
    return begin, end
