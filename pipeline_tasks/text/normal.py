"""Brings text into one form: NFC, no control characters, tidy blanks, line ends kept."""

import re
import unicodedata
from functools import cache

MARKS = 32
"""Combining marks in a row that are kept: NFC sorts each run in quadratic time, no script needs more than about ten."""

_LINE_ENDS = re.compile("[\x0b\x0c\x85\u2028\u2029]")
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ufeff\ufffe\uffff\ud800-\udfff]")
_ODD_BLANKS = re.compile("[\t\xa0\u1680\u2000-\u200a\u202f\u205f\u3000]")
_INNER_BLANKS = re.compile(r"  (?<=[^\n ]  ) *")  # two blanks first: the search for them is fast, and never quadratic
_EMPTY_LINES = re.compile(r"\n{3,}")


def normalize(text: str) -> str:
    """Return `text` in NFC without controls, blanks in a row as one space, at most one empty line in a row.

    Indentation stays (code and lists mean something by it), as do all line ends.
    """
    if not _plain(text):  # else it holds none of these: most pages, and four passes less
        text = text.replace("\t", " ").replace("\xa0", " ")  # nearly always all there is
    if not _plain(text):
        text = _LINE_ENDS.sub("\n", text.replace("\r\n", "\n").replace("\r", "\n"))
        text = _ODD_BLANKS.sub(" ", _CONTROLS.sub("", text))
    if not text.isascii():
        text = unicodedata.normalize("NFC", cap_marks(text))
    if "  " in text:
        text = _INNER_BLANKS.sub(" ", text)
    if " \n" in text:
        text = "\n".join([line.rstrip(" ") for line in text.split("\n")])
    if "\n\n\n" in text:
        text = _EMPTY_LINES.sub("\n\n", text)
    return text.lstrip("\n").rstrip("\n ")


def _plain(text: str) -> bool:
    return text.replace("\n", "").isprintable()


def cap_marks(text: str) -> str:
    """Cut every run of combining marks to its first `MARKS`, so that NFC stays linear."""
    mark, pair, run = _marks()
    # a longer run covers one of every 32 characters, and two neighbors of every 16
    doubtful = mark.search(text[::MARKS]) and pair.search(text[:: MARKS // 2])
    return run.sub(r"\1", text) if doubtful else text


@cache
def _marks() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Match one, two, and too many, characters in a row that have a combining class in this Python's Unicode."""
    near, far = (_ranges(first, last) for first, last in ((0x300, 0xFFFF), (0x10000, 0x1F000)))
    # without the look ahead, every character that is no mark is compared with each far range
    mark = f"(?:[{near}]|(?=[\\U00010000-\\U0001f000])[{far}])"
    return re.compile(mark), re.compile(mark + mark), re.compile(f"({mark}{{{MARKS}}}){mark}+")


def _ranges(first: int, last: int) -> str:
    """Return the characters from `first` to `last` that have a combining class, as ranges of a regular expression."""
    members = {code for code in range(first, last + 1) if unicodedata.combining(chr(code))}
    ranges = []
    for start in sorted(code for code in members if code - 1 not in members):
        end = start
        while end + 1 in members:
            end += 1
        ranges.append(f"\\U{start:08x}-\\U{end:08x}")
    return "".join(ranges)
