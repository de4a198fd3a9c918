"""Removes lines and notices from texts by the line modifiers of RefinedWeb as DCLM has them."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.text.base import character_traits
from pipeline_tasks.text.base.characters import class_of, classes, decode, trim
from pipeline_tasks.text.base.compiled import compiled
from pipeline_tasks.text.base.phrases import encode_phrases, ends_with, occurrences
from pipeline_tasks.text.words.word_counts import next_word

STEPS = ("uppercase", "numeric", "counter", "short", "cart", "more", "sign_in")
"""The modifiers in their order: lines mostly in upper case, mostly digits, counters such as `3 likes`, lines of too few
words; then three notices that are cut out of lines, which go when nothing is left of them."""

BLANK = len(STEPS) + 1
"""What `trace` calls white space that went beside what modifiers took."""

COUNTED = (
    "likes", "shares", "comments", "retweets", "reposts", "quotes", "bookmarks", "upvotes", "downvotes", "downloads",
    "views", "followers",
)  # fmt: skip
NOTICES = ("items in cart", "read more", "sign-in")

UPPER, DIGIT, DECIMAL = (
    np.uint16(character_traits.UPPER),
    np.uint16(character_traits.DIGIT),
    np.uint16(character_traits.DECIMAL),
)
SPACE, ALNUM = np.uint16(character_traits.SPACE), np.uint16(character_traits.ALNUM)


@compiled
def _share(data, begin, end, bit, index, flags):
    """Return the share of code points of data[begin:end] that have the trait."""
    points, found, at = 0, 0, begin
    while at < end:
        code, width = decode(data, at, end)
        found += (class_of(index, flags, code) & bit) != 0
        points += 1
        at += width
    return found / points if points else 0.0


@compiled
def _words(data, begin, end, index, flags):
    """Return the words of data[begin:end] as `str.split` cuts."""
    count, at = 0, begin
    while True:
        first, at, _, _ = next_word(data, at, end, index, flags)
        if first == at:
            return count
        count += 1


@compiled
def _skip(data, at, end, wordlike, index, flags):
    """Return where the run of white space (`wordlike` 0) or of what is no word character (1) at `at` ends."""
    while at < end:
        code, width = decode(data, at, end)
        trait = class_of(index, flags, code)
        inside = not (trait & ALNUM or code == 0x5F) if wordlike else (trait & SPACE) != 0
        if not inside:
            break
        at += width
    return at


@compiled
def _is_counter(data, begin, end, letters, ends, index, flags):
    """Return whether a line is a number (with k, m or b behind) and one of the words, and no other word character."""
    at = _skip(data, begin, end, 1, index, flags)
    digits = 0
    while at < end:
        code, width = decode(data, at, end)
        decimal = (class_of(index, flags, code) & DECIMAL) != 0
        if not decimal and (digits == 0 or code not in (0x2C, 0x2E)):
            break
        digits += 1
        at += width
    if digits and at < end and data[at] | 0x20 in (0x6B, 0x6D, 0x62):
        at += 1
    word = _skip(data, at, end, 0, index, flags)
    if digits == 0 or word == at:
        return False
    for one in range(len(ends) - 1):
        tip = word + ends[one + 1] - ends[one]
        if tip <= end and ends_with(data, word, tip, letters, ends[one], ends[one + 1], 1):
            return _skip(data, tip, end, 1, index, flags) == end
    return False


@compiled
def _points(data, begin, end):
    """Return the code points of data[begin:end]."""
    count = 0
    for at in range(begin, end):
        count += (data[at] & 0xC0) != 0x80
    return count


@compiled
def _notice(data, at, begin, end, step, letters, ends, index, flags):
    """Return where the notice that begins at `at` ends, with the white space that goes with it; `at` if none does.

    `items in cart` goes anywhere with one white space before it. `read more` goes at the end of a line with any three
    characters behind it: the dots of `Read more...` stand in a pattern there. `sign-in` goes at the start.
    """
    tip = at
    if step != 6 and at < end:
        code, width = decode(data, at, end)
        tip += width if class_of(index, flags, code) & SPACE else 0
    notice = step - 4
    stop = tip + ends[notice + 1] - ends[notice]
    if stop > end or (step == 6 and at != begin):
        return at
    if not ends_with(data, tip, stop, letters, ends[notice], ends[notice + 1], 1):
        return at
    if step == 5:
        return end if _points(data, stop, end) == 3 else at
    if step == 6 and stop < end:
        code, width = decode(data, stop, end)
        stop += width if class_of(index, flags, code) & SPACE else 0
    return stop


@compiled
def _removes(data, begin, end, step, limits, counted, index, flags):
    """Return whether the modifier removes the whole line data[begin:end]; empty lines stay."""
    max_upper, max_numeric, min_words, _ = limits
    letters, ends = counted
    if begin == end:
        return False
    if step == 0:
        return _share(data, begin, end, UPPER, index, flags) > max_upper
    if step == 1:
        return _share(data, begin, end, DIGIT, index, flags) > max_numeric
    if step == 2:
        return _is_counter(data, begin, end, letters, ends, index, flags)
    return step == 3 and _words(data, begin, end, index, flags) < min_words


@compiled
def _step(data, size, step, limits, counted, notices, index, flags, out, places):
    """Write data[:size] as one modifier leaves it to `out`; return (bytes written, lines removed or cut).

    Where each byte of `out` stood in `data` goes to `places`, unless that has no room.
    """
    traced = len(places) > 0
    letters, ends = notices
    at, tip, changed, first = 0, 0, 0, True
    while at <= size:
        stop = at
        while stop < size and data[stop] != 0x0A:
            stop += 1
        begin, at = at, stop + 1
        if _removes(data, begin, stop, step, limits, counted, index, flags):
            changed += 1
            continue
        mark = tip
        if not first:
            out[tip] = 0x0A
            if traced:
                places[tip] = begin - 1
            tip += 1
        line, place = tip, begin
        cuts = step > 3 and begin < stop and _words(data, begin, stop, index, flags) <= limits[3]
        while place < stop:
            after = _notice(data, place, begin, stop, step, letters, ends, index, flags) if cuts else place
            if after > place:
                place = after
            else:
                out[tip] = data[place]
                if traced:
                    places[tip] = place
                tip += 1
                place += 1
        cut = tip - line < stop - begin
        changed += cut
        if cuts and begin < stop and _skip(out, line, tip, 0, index, flags) == tip:
            changed += not cut
            tip = mark
            continue
        first = False
    return tip, changed


@compiled
def _occurs(data, size, step, notices):
    """Return whether the notice of a modifier is anywhere in data[:size]."""
    letters, ends = notices
    return occurrences(data, 0, size, letters, ends[step - 4], ends[step - 3], 1) > 0


@compiled
def _blame(places, left, origins, size, reason, why):
    """Note `reason` for every byte that is not among places[:left], and bring `origins` up to those that are.

    `origins` says where the bytes of a text stood in the text as it came, and `places` where the bytes that a step
    left stood among them; both ascend.
    """
    at = 0
    for byte in range(size):
        if at < left and places[at] == byte:
            origins[at] = origins[byte]
            at += 1
        else:
            why[origins[byte]] = reason


@compiled
def _modify(offsets, data, limits, counted, notices, plain, table, kept, kept_offsets, out, why):
    """Write every text as the modifiers leave it to `kept`, and the lines that each changed to `out`.

    Unless `why` has no room, it gets for every byte the modifier that took it, counted from 1, BLANK for white space
    that goes beside, 0 for what stays.
    """
    index, flags = table
    size = 1
    for row in range(len(offsets) - 1):
        size = max(size, offsets[row + 1] - offsets[row])
    here, there = np.empty(size, np.uint8), np.empty(size, np.uint8)
    room = size if len(why) else 0
    places, origins = np.empty(room, np.int64), np.empty(room, np.int64)
    place = 0
    for row in range(len(offsets) - 1):
        length = 0
        for at in range(offsets[row], offsets[row + 1]):
            crowded = length > 1 and here[length - 1] == 0x0A and here[length - 2] == 0x0A
            if not (crowded and data[at] == 0x0A):
                here[length] = data[at]
                if room:
                    origins[length] = at
                length += 1
            elif room:
                why[at] = BLANK
        for step in range(7):
            if step > 3 and limits[2] >= 1 and not _occurs(here, length, step, notices):
                continue  # blank lines went with the short ones, so nothing changes
            left, out[row, step] = _step(here, length, step, limits, counted, notices, index, flags, there, places)
            first, last = trim(there, 0, left, plain[0], plain[1])
            if room:
                for at in range(left):
                    if at < first or at >= last:
                        why[origins[places[at]]] = BLANK
                _blame(places, left, origins, length, step + 1, why)
                origins[: last - first] = origins[first:last].copy()
            length = last - first
            there[:length] = there[first:last].copy()
            here, there = there, here
        kept[place : place + length] = here[:length]
        place += length
        kept_offsets[row + 1] = place


def modify(
    offsets: npt.NDArray[np.int64],
    data: npt.NDArray[np.uint8],
    limits: tuple[float, float, float, float],
) -> tuple[pa.Array, npt.NDArray[np.float64]]:
    """Return the texts as the modifiers leave them, and per text the lines that each of STEPS changed, (rows, 7).

    `limits`: most upper case and most digits (shares of a line), fewest words of a line, and most words of a line
    that notices are looked for in. Rules, order and patterns are those of mlfoundations/dclm
    `baselines/mappers/modifiers.py` as `baselines/baselines_configs/dclm_baseline_refinedweb.yaml` calls them, the
    cap of two newlines in a row included; each modifier sees the text that the one before left, stripped.
    """
    rows = len(offsets) - 1
    kept = np.empty(int(offsets[-1] - offsets[0]) + 1, np.uint8)
    kept_offsets, out = np.zeros(rows + 1, np.int64), np.zeros((rows, len(STEPS)))
    counted, notices = encode_phrases(COUNTED), encode_phrases(NOTICES)
    untraced = np.empty(0, np.uint8)
    _modify(
        offsets, data, limits, counted, notices, classes(), character_traits.traits(), kept, kept_offsets, out, untraced
    )
    left = pa.py_buffer(kept[: kept_offsets[-1]].copy())
    return pa.LargeStringArray.from_buffers(rows, pa.py_buffer(kept_offsets), left), out


def trace(
    offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8], limits: tuple[float, float, float, float]
) -> npt.NDArray[np.uint8]:
    """Return for every byte of `data` the place in STEPS of the modifier that takes it, from 1; 0 for what stays.

    BLANK is white space that goes beside: newlines beyond two in a row, and what stands at the ends of a text after a
    modifier. Parameters are those of `modify`.
    """
    rows = len(offsets) - 1
    kept, why = np.empty(len(data) + 1, np.uint8), np.zeros(max(len(data), 1), np.uint8)
    kept_offsets, out = np.zeros(rows + 1, np.int64), np.zeros((rows, len(STEPS)))
    counted, notices = encode_phrases(COUNTED), encode_phrases(NOTICES)
    _modify(offsets, data, limits, counted, notices, classes(), character_traits.traits(), kept, kept_offsets, out, why)
    return why[: len(data)]
