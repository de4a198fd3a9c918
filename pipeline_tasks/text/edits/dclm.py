"""Removes lines and notices from texts by the line modifiers of RefinedWeb as DCLM has them."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.text.base import character_traits
from pipeline_tasks.text.base.ascii import CASE_BIT, COMMA, DOT, NEWLINE, UNDERSCORE, starts_character
from pipeline_tasks.text.base.buffers import Bytes, Offsets
from pipeline_tasks.text.base.characters import class_of, classes, decode, trim
from pipeline_tasks.text.base.compiled import compiled
from pipeline_tasks.text.base.newlines import line_end
from pipeline_tasks.text.base.phrases import encode_phrases, ends_with, occurrences
from pipeline_tasks.text.words.word_counts import next_word

STEPS = ("uppercase", "numeric", "counter", "short", "cart", "more", "sign_in")
"""The modifiers in their order: lines mostly in upper case, mostly digits, counters such as `3 likes`, lines of too few
words; then three notices that are cut out of lines, which are removed when they become blank."""

UPPERCASE, NUMERIC, COUNTER, SHORT, CART, MORE, SIGN_IN = range(len(STEPS))

BLANK = len(STEPS) + 1
"""The mark of `trace` for white space that is removed together with what modifiers remove."""

COUNTED = (
    "likes", "shares", "comments", "retweets", "reposts", "quotes", "bookmarks", "upvotes", "downvotes", "downloads",
    "views", "followers",
)  # fmt: skip
NOTICES = ("items in cart", "read more", "sign-in")
MORE_POINTS = 3
"""Characters behind `read more`."""

LETTER_B, LETTER_K, LETTER_M = (ord(letter) for letter in "bkm")

Limits = tuple[float, float, float, float]
"""Most upper case and most digits (shares of a line), fewest words of a line, and most words of a line in which notices
are looked for."""

UPPER, DIGIT, DECIMAL = (
    np.uint16(character_traits.UPPER),
    np.uint16(character_traits.DIGIT),
    np.uint16(character_traits.DECIMAL),
)
SPACE, ALNUM = np.uint16(character_traits.SPACE), np.uint16(character_traits.ALNUM)


@compiled
def _share(data, begin, end, bit, index, flags):
    """Return the share of code points of data[begin:end] that have the trait."""
    points, hits, at = 0, 0, begin
    while at < end:
        code, width = decode(data, at, end)
        hits += (class_of(index, flags, code) & bit) != 0
        points += 1
        at += width
    return hits / points if points else 0.0


@compiled
def _word_count(data, begin, end, index, flags):
    """Return the words of data[begin:end] as `str.split` cuts."""
    count, at = 0, begin
    while True:
        first, at, _, _ = next_word(data, at, end, index, flags)
        if first == at:
            return count
        count += 1


@compiled
def _point_count(data, begin, end):
    """Return the code points of data[begin:end]."""
    count = 0
    for at in range(begin, end):
        count += starts_character(data[at])
    return count


@compiled
def _space_end(data, at, end, index, flags):
    """Return where the white space at `at` ends."""
    while at < end:
        code, width = decode(data, at, end)
        if not class_of(index, flags, code) & SPACE:
            break
        at += width
    return at


@compiled
def _after_space(data, at, end, index, flags):
    """Return where the one white space at `at` ends, `at` if there is none."""
    if at == end:
        return at
    code, width = decode(data, at, end)
    return at + width if class_of(index, flags, code) & SPACE else at


@compiled
def _word_begin(data, at, end, index, flags):
    """Return where the first word character at or behind `at` is."""
    while at < end:
        code, width = decode(data, at, end)
        if class_of(index, flags, code) & ALNUM or code == UNDERSCORE:
            break
        at += width
    return at


# --- Lines that are removed ------------------------------------------------------------------------------------------


@compiled
def _number_end(data, at, end, index, flags):
    """Return where the decimal number at `at` ends, with its commas and dots and k, m or b behind; `at` if none."""
    first = at
    while at < end:
        code, width = decode(data, at, end)
        decimal = class_of(index, flags, code) & DECIMAL
        if not decimal and (at == first or code not in (COMMA, DOT)):
            break
        at += width
    if at > first and at < end and data[at] | CASE_BIT in (LETTER_K, LETTER_M, LETTER_B):
        at += 1
    return at


@compiled
def _is_counter(data, begin, end, letters, ends, index, flags):
    """Return whether a line is a number (with k, m or b behind) and one of the words, and no other word character."""
    at = _word_begin(data, begin, end, index, flags)
    number_end = _number_end(data, at, end, index, flags)
    word = _space_end(data, number_end, end, index, flags)
    if number_end in (at, word):
        return False
    for counted in range(len(ends) - 1):
        tip = word + ends[counted + 1] - ends[counted]
        if tip <= end and ends_with(data, word, tip, letters, ends[counted], ends[counted + 1], 1):
            return _word_begin(data, tip, end, index, flags) == end
    return False


@compiled
def _is_removed(data, begin, end, step, limits, counted, index, flags):
    """Return whether the modifier removes the whole line data[begin:end]; empty lines are kept."""
    max_upper, max_numeric, min_words, _ = limits
    letters, ends = counted
    if begin == end:
        return False
    if step == UPPERCASE:
        return _share(data, begin, end, UPPER, index, flags) > max_upper
    if step == NUMERIC:
        return _share(data, begin, end, DIGIT, index, flags) > max_numeric
    if step == COUNTER:
        return _is_counter(data, begin, end, letters, ends, index, flags)
    return step == SHORT and _word_count(data, begin, end, index, flags) < min_words


# --- Notices that are cut out of lines -------------------------------------------------------------------------------


@compiled
def _notice_end(data, at, begin, end, step, notices, index, flags):
    """Return where the notice that begins at `at` ends, with the white space removed with it; `at` if none does.

    `items in cart` is removed anywhere, with one white space before it. `read more` is removed at the end of a line
    with any three characters behind it: the dots of `Read more...` match any character in upstream's pattern.
    `sign-in` is removed at the start.
    """
    letters, ends = notices
    notice = step - CART
    if step == SIGN_IN and at != begin:
        return at
    tip = at if step == SIGN_IN else _after_space(data, at, end, index, flags)
    stop = tip + ends[notice + 1] - ends[notice]
    if stop > end or not ends_with(data, tip, stop, letters, ends[notice], ends[notice + 1], 1):
        return at
    if step == MORE:
        return end if _point_count(data, stop, end) == MORE_POINTS else at
    return _after_space(data, stop, end, index, flags) if step == SIGN_IN else stop


@compiled
def _occurs(data, size, step, notices):
    """Return whether the notice of a modifier is anywhere in data[:size]."""
    letters, ends = notices
    notice = step - CART
    return occurrences(data, 0, size, letters, ends[notice], ends[notice + 1], 1) > 0


@compiled
def _write(byte, origin, out, tip, places):
    """Write a byte to out[tip] and where it was to `places`, unless that has no room; return the next place."""
    out[tip] = byte
    if len(places):
        places[tip] = origin
    return tip + 1


@compiled
def _write_line(data, at, end, cuts, step, notices, index, flags, out, tip, places):
    """Write the line data[at:end] to out[tip:], without its notices if `cuts`; return where it ends there."""
    begin = at
    while at < end:
        after = _notice_end(data, at, begin, end, step, notices, index, flags) if cuts else at
        if after > at:
            at = after
        else:
            tip = _write(data[at], at, out, tip, places)
            at += 1
    return tip


# --- One modifier, and all of them -----------------------------------------------------------------------------------


@compiled
def _apply(data, size, step, limits, counted, notices, index, flags, out, places):
    """Write data[:size] as one modifier leaves it to `out`; return (bytes written, lines removed or cut).

    Where each byte of `out` was in `data` goes to `places`, unless that has no room.
    """
    at, tip, changed, is_first = 0, 0, 0, True
    while at <= size:
        begin, stop = at, line_end(data, at, size)
        at = stop + 1
        if _is_removed(data, begin, stop, step, limits, counted, index, flags):
            changed += 1
            continue
        line = tip if is_first else _write(NEWLINE, begin - 1, out, tip, places)
        cuts = step >= CART and begin < stop and _word_count(data, begin, stop, index, flags) <= limits[3]
        written = _write_line(data, begin, stop, cuts, step, notices, index, flags, out, line, places)
        is_cut = written - line < stop - begin
        is_blank = cuts and _space_end(out, line, written, index, flags) == written
        changed += is_cut or is_blank
        if not is_blank:
            tip, is_first = written, False
    return tip, changed


@compiled
def _cap_newlines(data, begin, end, out, origins, why):
    """Write data[begin:end] to `out` with at most two newlines in a row; return its length there.

    Where the bytes come from goes to `origins` and BLANK to `why` for newlines that are removed, unless `origins` has
    no room.
    """
    length, traced = 0, len(origins) > 0
    for at in range(begin, end):
        is_third = length > 1 and data[at] == NEWLINE and out[length - 1] == NEWLINE and out[length - 2] == NEWLINE
        if is_third and traced:
            why[at] = BLANK
        elif not is_third:
            if traced:
                origins[length] = at
            out[length] = data[at]
            length += 1
    return length


@compiled
def _trace_step(places, written, first, last, origins, size, reason, why):
    """Write BLANK or `reason` for the bytes that a step removed, and reduce `origins` to the bytes that it kept.

    `origins` says where the `size` bytes of a text were in the original text, and places[:written] where the bytes that
    a step wrote were among them; both ascend. Of the bytes written only first:last are kept, the others are blank.
    """
    for byte in range(written):
        if byte < first or byte >= last:
            why[origins[places[byte]]] = BLANK
    at = 0
    for byte in range(size):
        if at < written and places[at] == byte:
            origins[at] = origins[byte]
            at += 1
        else:
            why[origins[byte]] = reason
    origins[: last - first] = origins[first:last].copy()


@compiled
def _modify_text(text, length, limits, counted, notices, plain, table, spare, places, origins, out, why):
    """Apply all modifiers to text[:length] in place; return its length after them. `out` gets the lines changed."""
    index, flags = table
    for step in range(len(out)):
        if step >= CART and limits[2] >= 1 and not _occurs(text, length, step, notices):
            continue  # blank lines were removed with the short ones, so nothing changes
        written, out[step] = _apply(text, length, step, limits, counted, notices, index, flags, spare, places)
        first, last = trim(spare, 0, written, plain[0], plain[1])
        if len(origins):
            _trace_step(places, written, first, last, origins, length, step + 1, why)
        length = last - first
        text[:length] = spare[first:last]
    return length


@compiled
def _modify(offsets, data, limits, counted, notices, plain, table, kept, kept_offsets, out, why):
    """Write every text as the modifiers leave it to `kept`, and the lines that each changed to `out`.

    Unless `why` has no room, it gets for every byte the modifier that removed it, counted from 1, BLANK for white space
    that is removed with it, 0 for what is kept.
    """
    size = 1
    for row in range(len(offsets) - 1):
        size = max(size, offsets[row + 1] - offsets[row])
    text, spare = np.empty(size, np.uint8), np.empty(size, np.uint8)
    room = size if len(why) else 0
    places, origins = np.empty(room, np.int64), np.empty(room, np.int64)
    at = 0
    for row in range(len(offsets) - 1):
        length = _cap_newlines(data, offsets[row], offsets[row + 1], text, origins, why)
        length = _modify_text(
            text, length, limits, counted, notices, plain, table, spare, places, origins, out[row], why
        )
        kept[at : at + length] = text[:length]
        at += length
        kept_offsets[row + 1] = at


def _modified(
    offsets: Offsets, data: Bytes, limits: Limits, why: npt.NDArray[np.uint8]
) -> tuple[pa.Array, npt.NDArray[np.float64]]:
    """Return what `modify` does; `why` gets what `trace` returns, unless it has no room."""
    rows = len(offsets) - 1
    kept = np.empty(int(offsets[-1] - offsets[0]) + 1, np.uint8)
    kept_offsets, out = np.zeros(rows + 1, np.int64), np.zeros((rows, len(STEPS)))
    phrases, tables = (encode_phrases(COUNTED), encode_phrases(NOTICES)), (classes(), character_traits.traits())
    _modify(offsets, data, limits, *phrases, *tables, kept, kept_offsets, out, why)
    buffer = pa.py_buffer(kept[: kept_offsets[-1]].copy())
    return pa.LargeStringArray.from_buffers(rows, pa.py_buffer(kept_offsets), buffer), out


def modify(offsets: Offsets, data: Bytes, limits: Limits) -> tuple[pa.Array, npt.NDArray[np.float64]]:
    """Return the texts as the modifiers leave them, and per text the lines that each of STEPS changed, (rows, 7).

    Rules, order and patterns are those of mlfoundations/dclm `baselines/mappers/modifiers.py` as
    `baselines/baselines_configs/dclm_baseline_refinedweb.yaml` calls them, the cap of two newlines in a row included;
    each modifier gets the text that the one before left, stripped.
    """
    return _modified(offsets, data, limits, np.empty(0, np.uint8))


def trace(offsets: Offsets, data: Bytes, limits: Limits) -> npt.NDArray[np.uint8]:
    """Return for every byte of `data` the place in STEPS of the modifier that removes it, from 1; 0 for what is kept.

    BLANK is white space removed with other bytes: newlines beyond two in a row, and white space at the ends of a text
    after a modifier. Parameters are those of `modify`.
    """
    why = np.zeros(max(len(data), 1), np.uint8)
    _modified(offsets, data, limits, why)
    return why[: len(data)]
