"""Sorts every Unicode code point into the classes that word, line and sentence rules ask for."""

# ruff: noqa: RUF001 -- signs are told apart here

import functools
import unicodedata

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.compiled import inlined
from pipeline_tasks.text.loads import byte_at

SPACE, ALPHA, PUNCTUATION, BREAK, WORD, PAIRED, TERMINAL, DIGIT = (1 << bit for bit in range(8))
"""Bits of a class: `str.isspace`, `str.isalpha`, pure symbols, `str.splitlines` breaks, letters with marks and
digits, scripts written without spaces, ends of sentences, decimal digits."""

LOWER, UPPER, QUOTE, PREFIX, SUFFIX, ICON, DOTTED, MARK = (1 << bit for bit in range(8, 16))
"""Bits that `text.affixes` asks for: lower-case and upper-case letters (both: letters without case), quotes, what is
cut off before and after words, symbols, what a full stop is cut off after, and Unicode's punctuation."""

CASED_ANY = LOWER | UPPER

BLANK, ASCII_END = 0x20, 0x80

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

CASED = "41-5A 61-7A C0-2AF 386-3CE 400-4FF 1D00-1D9A 1E00-1EFF 2C60-2C7F A722-A7B9 AB30-AB64 FF21-FF3A FF41-FF5A"

UNCASED = """
591-5F4 620-64A 66E-6D5 6E5-6FF 750-77F 8A0-8BD 900-97F 980-9FF B80-BFF C00-C7F C80-CFF D80-DFF 1100-137F 2E80-2FDF
2FF0-303F 3040-30FF 31C0-31EF 3200-33FF 3400-4DBF 4E00-9FFF AC00-D7AF F900-FAFF FB1D-FBB1 FBD3-FDFB FE30-FE4F FE70-FEFC
20000-2EBEF
"""
"""What explosion/spaCy `spacy/lang/char_classes.py` takes for letters: with case, and without."""

QUOTES = "'\"”“`‘´’‚,„»«「」『』（）〔〕【】《》〈〉⟦⟧"
AFFIXES = "…,:;!?¿؟¡()[]{}<>_#*&。？！，、；：～·।،۔؛٪"
DASHES, PREFIXES, BEFORE_DOT = "—–", "§%=$£€¥฿₽﷼₴₠₡₢₣₤₥₦₧₨₩₪₫₭₮₯₰₱₲₳₵₶₷₸₹₺₻₼₾₿", "0123456789%²-+|"
"""Characters of the same file that stand apart: quotes, punctuation, dashes, currencies, and before a full stop."""

ASSIGNED = (range(0x32400), range(0xE0000, 0xE0200))
"""Planes that hold anything but private use and unassigned code points."""


@functools.cache
def classes() -> Classes:
    """Return the class table, shared and read-only; 0.1 s to build, once per process."""
    flags = np.zeros(0x110000, np.uint16)
    for codes in ASSIGNED:
        flags[codes.start : codes.stop] = [_class(chr(code)) for code in codes]
    for first, last in spans(CASED):
        cases = [_case(chr(code)) for code in range(first, last + 1)]
        flags[first : last + 1] |= np.array(cases, np.uint16)
    listed = {
        BREAKS: BREAK,
        TERMINALS: TERMINAL | PUNCTUATION,
        SYMBOLS: PUNCTUATION,
        UNSPACED_SCRIPTS: PAIRED,
        UNCASED: LOWER | UPPER | DOTTED,
    }
    letters = {AFFIXES: PREFIX | SUFFIX | DOTTED, DASHES: PREFIX | SUFFIX, QUOTES: QUOTE | PREFIX | SUFFIX | DOTTED}
    for signs, bits in (letters | {PREFIXES: PREFIX, BEFORE_DOT: DOTTED}).items():
        flags[[ord(sign) for sign in signs]] |= bits
    for ranges, bit in listed.items():
        for first, last in spans(ranges):
            flags[first : last + 1] |= bit
    blocks, index = np.unique(flags.reshape(-1, 256), axis=0, return_inverse=True)
    return _ascii_first(blocks, index.reshape(-1))


def _class(letter: str) -> int:
    """Return the bits of `letter` that Python's own database knows."""
    category = unicodedata.category(letter)
    mark = category[0] == "M"
    return (
        SPACE * letter.isspace()
        | ALPHA * letter.isalpha()
        | WORD * (letter.isalnum() or mark or letter == "_")
        | DIGIT * letter.isdecimal()
        | (ICON | PREFIX | SUFFIX) * (category == "So")
        | MARK * (category[0] == "P")
    )


def _case(letter: str) -> int:
    """Return whether `letter` is a lower-case or upper-case letter, which a full stop is cut off after or not."""
    return (LOWER | DOTTED) * letter.islower() | UPPER * letter.isupper()


def spans(ranges: str) -> list[tuple[int, int]]:
    """Read `21 2E-2F` as [(0x21, 0x21), (0x2E, 0x2F)]."""
    ends = [span.split("-") for span in ranges.split()]
    return [(int(end[0], 16), int(end[-1], 16)) for end in ends]


def _ascii_first(blocks: npt.NDArray[np.uint16], index: npt.NDArray[np.intp]) -> Classes:
    """Renumber blocks so that block 0 holds ASCII: its classes are then found without a second look-up."""
    order = np.arange(len(blocks))
    order[0], order[index[0]] = index[0], 0
    table = (order[index].astype(np.uint16), np.ascontiguousarray(blocks[order]).reshape(-1))
    for part in table:
        part.flags.writeable = False
    return table


@inlined
def decode(data, at, end):  # type: ignore[no-untyped-def]
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
def class_of(index, flags, code):  # type: ignore[no-untyped-def]
    """Return the class bits of a code point."""
    if code < ASCII_END:
        return flags[code]
    return flags[(np.int64(index[code >> 8]) << 8) | (code & 0xFF)]


@inlined
def trim(data, begin, end, index, flags):  # type: ignore[no-untyped-def]
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
