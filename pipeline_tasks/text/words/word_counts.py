"""Count the words of texts by kind, cut as `str.split`, fastText or the word breaks of UAX #29 cut them."""

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base import character_traits as kinds
from pipeline_tasks.text.base.ascii import HASH, NUL, RETURN, TAB, UNDERSCORE, is_digit
from pipeline_tasks.text.base.characters import BLANK, class_of, count_code_points, decode, is_ellipsis
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.base.eight_bytes import byte_at, hash_bytes
from pipeline_tasks.text.base.numbering import number_distinct, numbering_table
from pipeline_tasks.text.base.phrases import Phrases, ends_with
from pipeline_tasks.text.base.utf8 import eight_at, leading_alphanumerics

SPACE, ALPHA, ALNUM = np.uint16(kinds.SPACE), np.uint16(kinds.ALPHA), np.uint16(kinds.ALNUM)
SHIFT = kinds.KIND_SHIFT
LETTER, NUMBER, KATAKANA, CONNECTOR = kinds.LETTER, kinds.NUMBER, kinds.KATAKANA, kinds.CONNECTOR
EXTEND, MID_LETTER, MID_NUMBER, MID_BOTH = kinds.EXTEND, kinds.MID_LETTER, kinds.MID_NUMBER, kinds.MID_BOTH

Floats = npt.NDArray[np.float64]

COUNTS = (
    "words",
    "points",
    "alpha",
    "stops",
    "folded_stops",
    "longest",
    "median",
    "marked",
    "mostly_marks",
    "distinct",
)
"""Words of `str.split`; their code points; words with a letter; words that are a stop word, as spelled and in lower
case; code points of the longest word and of the median one; words with `#` or an ellipsis character; words that are
an ellipsis mark or have more runs of `#` than half their length; different words."""

WORDS, POINTS, ALPHA_WORDS, STOPS, FOLDED_STOPS, LONGEST, MEDIAN, MARKED, MOSTLY_MARKS, DISTINCT = range(len(COUNTS))
"""Columns of COUNTS."""

LISTED, LISTED_DISTINCT = 1, 2
"""Columns of `count_listed_words` after WORDS."""


@inlined
def next_word(data, at, end, index, flags):
    """Return (begin, end, code points, has a letter) of the next word of `str.split`; begin = end if there is none."""
    while at < end:
        code, width = decode(data, at, end)
        if not class_of(index, flags, code) & SPACE:
            break
        at += width
    begin, points, alpha = at, 0, False
    while at < end:
        code, width = decode(data, at, end)
        trait = class_of(index, flags, code)
        if trait & SPACE:
            break
        points += 1
        alpha |= (trait & ALPHA) != 0
        at += width
    return begin, at, points, alpha


@inlined
def _peek(data, at, end, index, flags):
    """Return (begin, bytes, word break class) of the next code point that extends nothing; the end has class OTHER."""
    while at < end:
        code, width = decode(data, at, end)
        kind = np.int64(class_of(index, flags, code)) >> SHIFT
        if kind != EXTEND:
            return at, width, kind
        at += width
    return end, 0, np.int64(0)


@inlined
def _join(before, kind):
    """Return whether no word ends between two word break classes (WB5, WB8 to WB10, WB13 to WB13b of UAX #29)."""
    letters = before in (LETTER, NUMBER) and kind in (LETTER, NUMBER)
    connected = kind == CONNECTOR and before in (LETTER, NUMBER, KATAKANA, CONNECTOR)
    connects = before == CONNECTOR and kind in (LETTER, NUMBER, KATAKANA)
    return letters or connected or connects or before == kind == KATAKANA


@inlined
def _bridges(before, middle, following):
    """Return whether a middle sign joins the letters or digits at its sides (WB6, WB7, WB11, WB12 of UAX #29)."""
    inner = before == LETTER == following and middle != MID_NUMBER
    return inner or (before == NUMBER == following and middle != MID_LETTER)


@inlined
def _plain_end(data, at, end):
    """Return where the ASCII letters and digits from `at` on end."""
    while at < end:
        size, _ = leading_alphanumerics(eight_at(data, at), np.uint64(min(end - at, 8)))
        at += np.int64(size)
        if size < np.uint64(8):
            break
    return at


@inlined
def next_unicode_word(data, at, end, index, flags):
    """Return (begin, end, code points) of the next word of UAX #29 that begins with a letter or digit."""
    while at < end:
        begin, at = at, _plain_end(data, at, end)  # no word ends within them (WB5, WB8 to WB10)
        if at > begin:
            before, is_word = np.int64(NUMBER if is_digit(byte_at(data, at - 1)) else LETTER), True
            if at == end or byte_at(data, at) == BLANK:
                return begin, at, at - begin
        else:
            code, width = decode(data, at, end)
            trait = class_of(index, flags, code)
            before, is_word = np.int64(trait) >> SHIFT, (trait & ALNUM) != 0
            at += width
            if not is_word and before != CONNECTOR:
                continue  # nothing joins it but what extends it
        at, width, kind = _peek(data, at, end, index, flags)
        while at < end:
            if not (kind == LETTER == before) and not _join(before, kind):
                if kind not in (MID_LETTER, MID_NUMBER, MID_BOTH):
                    break
                ahead, wide, following = _peek(data, at + width, end, index, flags)
                if not _bridges(before, kind, following):
                    break
                at, width, kind = ahead, wide, following
            before = kind
            at, width, kind = _peek(data, at + width, end, index, flags)
        if is_word:
            return begin, at, count_code_points(data, begin, at)
    return end, end, 0


@inlined
def _runs_of_hash(data, begin, end):
    """Return the number of runs of `#` in data[begin:end]."""
    runs = 0
    for at in range(begin, end):
        runs += data[at] == HASH and (at == begin or data[at - 1] != HASH)
    return runs


@inlined
def _is_listed(data, begin, end, letters, ends, fold):
    """Return whether data[begin:end] is one of the phrases."""
    for phrase in range(len(ends) - 1):
        size = ends[phrase + 1] - ends[phrase]
        if size == end - begin and ends_with(data, begin, end, letters, ends[phrase], ends[phrase + 1], fold):
            return True
    return False


@inlined
def _has_ellipsis(data, begin, end):
    """Return whether data[begin:end] has the character U+2026."""
    has = False
    for at in range(begin, end - 2):
        has |= is_ellipsis(data, at)
    return has


@compiled
def _count_words(offsets, data, index, flags, stops, marks, out):
    """Fill out[row] with the COUNTS."""
    letters, ends = stops
    mark_letters, mark_ends = marks
    room = 1024
    lengths, hashes = np.empty(room, np.int64), np.empty(room, np.uint64)
    for row in range(len(offsets) - 1):
        at, end = offsets[row], offsets[row + 1]
        count, points, longest = 0, 0, 0
        while True:
            begin, at, length, alpha = next_word(data, at, end, index, flags)
            if begin == at:
                break
            if count == room:
                room *= 2
                lengths, hashes = np.append(lengths, lengths), np.append(hashes, hashes)
            lengths[count], hashes[count] = length, hash_bytes(data, begin, at)
            count += 1
            points += length
            longest = max(longest, length)
            runs = _runs_of_hash(data, begin, at)
            out[row, ALPHA_WORDS] += alpha
            out[row, STOPS] += _is_listed(data, begin, at, letters, ends, 0)
            out[row, FOLDED_STOPS] += _is_listed(data, begin, at, letters, ends, 1)
            out[row, MARKED] += runs > 0 or _has_ellipsis(data, begin, at)
            out[row, MOSTLY_MARKS] += 2 * runs > length or _is_listed(data, begin, at, mark_letters, mark_ends, 0)
        out[row, WORDS], out[row, POINTS], out[row, LONGEST] = count, points, longest
        if count:
            out[row, MEDIAN] = np.median(lengths[:count])
            out[row, DISTINCT] = number_distinct(hashes, count, numbering_table(count), np.empty(count, np.int32))


def count_words(
    offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8], stops: Phrases, marks: Phrases
) -> dict[str, Floats]:
    """Return the COUNTS of each text by name, shape (rows,) each; `marks` are the ellipsis marks, whole words."""
    out = np.zeros((len(offsets) - 1, len(COUNTS)))
    _count_words(offsets, data, *kinds.traits(), stops, marks, out)
    return dict(zip(COUNTS, out.T, strict=True))


@compiled
def _count_fasttext(offsets, data, index, flags, out):
    """Fill out[row] with the words that begin with a letter or digit, parted by ASCII white space or NUL."""
    for row in range(len(offsets) - 1):
        at, end = offsets[row], offsets[row + 1]
        inside = False
        while at < end:
            code, width = decode(data, at, end)
            blank = code in (BLANK, NUL) or TAB <= code <= RETURN
            if not blank and not inside:
                out[row] += (class_of(index, flags, code) & ALNUM) != 0
            inside = not blank
            at += width


def count_fasttext_words(offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8]) -> Floats:
    """Return per text the words that begin with a letter or digit, cut as fastText's tokenizer cuts, shape (rows,)."""
    out = np.zeros(len(offsets) - 1)
    _count_fasttext(offsets, data, *kinds.traits(), out)
    return out


@compiled
def _count_listed(offsets, data, index, flags, known, out):
    """Fill out[row] with: runs of letters, digits and `_`; those whose hash is in `known`; different ones of these."""
    seen = np.zeros(len(known), np.int64)
    for row in range(len(offsets) - 1):
        at, end = offsets[row], offsets[row + 1]
        while at < end:
            begin = at
            while at < end:
                code, width = decode(data, at, end)
                if not class_of(index, flags, code) & ALNUM and code != UNDERSCORE:
                    break
                at += width
            if at > begin:
                out[row, WORDS] += 1
                place = np.searchsorted(known, hash_bytes(data, begin, at))
                if place < len(known) and known[place] == hash_bytes(data, begin, at):
                    out[row, LISTED] += 1
                    out[row, LISTED_DISTINCT] += seen[place] <= row
                    seen[place] = row + 1
            else:
                _, width = decode(data, at, end)
                at += width


def count_listed_words(offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8], words: tuple[str, ...]) -> Floats:
    """Return per text: words (runs of letters, digits and `_`), those that are one of `words`, different ones of these.

    Shape (rows, 3). Words are compared as they are spelled.
    """
    encoded = [np.frombuffer(word.encode(), np.uint8) for word in words]
    known = np.unique(np.array([hash_bytes(letters, 0, len(letters)) for letters in encoded], np.uint64))
    out = np.zeros((len(offsets) - 1, 3))
    _count_listed(offsets, data, *kinds.traits(), known, out)
    return out
