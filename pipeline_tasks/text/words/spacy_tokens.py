"""Cuts English words as spaCy's blank English tokenizer does: exceptions, prefixes, suffixes, infixes, URLs.

The algorithm is that of explosion/spaCy 3.8 `spacy/tokenizer.pyx` (MIT) over the rules of `spacy/lang/punctuation.py`
and `spacy/lang/en/punctuation.py`, written anew over bytes. Left out: letters of title case beside signs
(U+01C5), top-level domains beyond U+FFFF, marks and digits beyond ASCII in schemes, ports and IP numbers, and
exceptions that upstream leaves cut apart because the word before them begins another one (`well) :)then`); and spaCy
fails on some texts that name its attribute IS_ALPHA, which datatrove then takes out of them.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base.characters import (
    ASCII_END,
    CASED_ANY,
    DOTTED,
    ICON,
    LOWER,
    PREFIX,
    QUOTE,
    SUFFIX,
    UPPER,
    WORD,
    class_of,
    decode,
)
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.base.hashing import mix
from pipeline_tasks.text.words.spacy_english import AFTER_DIGIT, exceptions

LONGEST = 40
"""No exception has more bytes."""

MERGED, MOST_MERGED = LONGEST, 11
"""Bytes, and words that affixes cut it into, of the longest exception that is looked for among words cut apart."""

BASIS, PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
DOT, PLUS, MINUS, DOLLAR, COLON, SLASH, AT = 0x2E, 0x2B, 0x2D, 0x24, 0x3A, 0x2F, 0x40
EN_DASH, EM_DASH, ELLIPSIS = 0x2013, 0x2014, 0x2026


@inlined
def spelling(data, begin, end):
    """Return a 64-bit hash of data[begin:end], never 0."""
    value = BASIS
    for at in range(begin, end):
        value = (value ^ np.uint64(data[at])) * PRIME
    value = mix(value)
    return value if value != np.uint64(0) else np.uint64(1)


def _table(words: Mapping[str, Sequence[str]]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Return (keys, values) of an open-addressing table from spellings to packed lengths of parts, in bytes."""
    keys, values = np.zeros(4096, np.uint64), np.zeros(4096, np.int64)
    for word, parts in words.items():
        letters = np.frombuffer(word.encode(), np.uint8)
        key = spelling(letters, 0, len(letters))
        slot = int(key) & 4095
        while keys[slot]:
            slot = (slot + 1) & 4095
        keys[slot] = key
        values[slot] = sum(len(part.encode()) << 8 * place for place, part in enumerate(parts))
    return keys, values


def _rims(words: Iterable[str]) -> npt.NDArray[np.bool_]:
    """Return a table of 2 ** 16 that says whether some word begins and ends with these two bytes."""
    rims = np.zeros(1 << 16, np.bool_)
    for word in words:
        letters = word.encode()
        rims[letters[0] << 8 | letters[-1]] = True
    return rims


KEYS, VALUES = _table(exceptions())
RIMS = _rims(exceptions())
UNIT_KEYS, UNIT_VALUES = _table({unit: (unit,) for unit in AFTER_DIGIT})


@inlined
def _looked_up(keys, values, data, begin, end):
    """Return the packed lengths of an exception, 0 for none."""
    if end - begin > LONGEST or end <= begin:
        return 0
    key = spelling(data, begin, end)
    slot = np.int64(key) & 4095
    while keys[slot] != np.uint64(0):
        if keys[slot] == key:
            return values[slot]
        slot = (slot + 1) & 4095
    return 0


@inlined
def _excepted(data, begin, end):
    """Return the packed lengths of an exception, 0 for none; most words are told by their first and last byte."""
    if begin >= end or not RIMS[np.int64(data[begin]) << 8 | data[end - 1]]:
        return 0
    return _looked_up(KEYS, VALUES, data, begin, end)


@inlined
def _before(data, begin, at):
    """Return where the code point that ends at `at` begins."""
    last = at - 1
    while last > begin and (data[last] & 0xC0) == 0x80:
        last -= 1
    return last


@inlined
def _bits(data, at, end, index, flags):
    """Return the class of the code point at `at`, 0 at the end."""
    if at >= end:
        return np.int64(0)
    code, _ = decode(data, at, end)
    return np.int64(class_of(index, flags, code))


@inlined
def _is_digit(byte):
    return 0x30 <= byte <= 0x39


@inlined
def _prefix(data, begin, end, index, flags):
    """Return the bytes of the prefix of data[begin:end], 0 for none."""
    lead = data[begin]
    code, width = decode(data, begin, end)
    if class_of(index, flags, code) & PREFIX:
        return width
    if lead == PLUS and not (begin + 1 < end and _is_digit(data[begin + 1])):
        return 1
    if lead == DOT:
        run = begin
        while run < end and data[run] == DOT:
            run += 1
        return run - begin if run - begin > 1 else 0
    if lead == 0x55 and begin + 2 < end and data[begin + 1] == 0x53 and data[begin + 2] == DOLLAR:
        return 3
    if lead in (0x41, 0x43) and begin + 1 < end and data[begin + 1] == DOLLAR:
        return 2
    return 0


@inlined
def _suffix(data, begin, end, index, flags):  # noqa: PLR0911 -- one per rule
    """Return the bytes of the longest suffix of data[begin:end], 0 for none."""
    if begin >= end:
        return 0
    last = _before(data, begin, end)
    code, width = decode(data, last, end)
    bits = class_of(index, flags, code)
    digit = end - 1
    while digit >= begin and end - digit <= 10 and not _is_digit(data[digit]):
        digit -= 1
    if begin <= digit < end - 1 and _is_digit(data[digit]) and _looked_up(UNIT_KEYS, UNIT_VALUES, data, digit + 1, end):
        return end - 1 - digit
    if code == DOT and last > begin:
        if data[last - 1] == DOT:
            run = last
            while run > begin and data[run - 1] == DOT:
                run -= 1
            return end - run
        before = _before(data, begin, last)
        behind = _bits(data, before, last, index, flags)
        if behind & DOTTED:
            return 1
        if behind & UPPER and before > begin:
            return 1 if _bits(data, _before(data, begin, before), before, index, flags) & UPPER else 0
        return 0
    if code in (0x73, 0x53) and last > begin:
        apostrophe, _ = decode(data, _before(data, begin, last), last)
        if apostrophe in (0x27, 0x2019):
            return end - _before(data, begin, last)
        return 0
    if bits & SUFFIX:
        if code == ELLIPSIS and last - 3 >= begin:
            twin, _ = decode(data, last - 3, last)
            if twin == ELLIPSIS:
                return 6
        return width
    return 0


@inlined
def _infix(data, begin, at, end, index, flags):  # noqa: PLR0911 -- one per rule
    """Return the bytes of the infix at `at` of data[begin:end], 0 for none."""
    code, width = decode(data, at, end)
    bits = class_of(index, flags, code)
    if code == DOT:
        run = at
        while run < end and data[run] == DOT:
            run += 1
        if run - at > 1:
            return run - at
    if code == ELLIPSIS or bits & ICON:
        return width
    if at == begin or (code < ASCII_END and bits & CASED_ANY) or _is_digit(code):
        return 0
    before = _before(data, begin, at)
    behind = _bits(data, before, at, index, flags)
    digit = _is_digit(data[before])
    following = at + width
    ahead = _bits(data, following, end, index, flags)
    reckoned = digit and code in (PLUS, MINUS, 0x2A, 0x5E) and following < end
    if reckoned and (_is_digit(data[following]) or data[following] == MINUS):
        return 1
    if code == DOT:
        return 1 if behind & (LOWER | QUOTE) and ahead & (UPPER | QUOTE) else 0
    if code == 0x2C:
        return 1 if behind & CASED_ANY and ahead & CASED_ANY else 0
    if not (digit or behind & CASED_ANY):
        return 0
    if code in (COLON, 0x3C, 0x3D, 0x3E, SLASH):
        return 1 if ahead & CASED_ANY else 0
    if code in (MINUS, EN_DASH, EM_DASH, 0x7E):
        most = 3 if code == MINUS else (2 if code == EM_DASH else 1)
        tip, times = at, 0
        while times < most and tip < end:
            twin, _ = decode(data, tip, end)
            if twin != code:
                break
            tip, times = tip + width, times + 1
            if _bits(data, tip, end, index, flags) & CASED_ANY:
                return tip - at
    return 0


@inlined
def _is_host(data, begin, end, index, flags):
    """Tell whether data[begin:end] is an address or a host of two labels or more, with port or path as it may be."""
    at, label, labels, lower, size = begin, begin, 0, True, 0
    address = _address_end(data, begin, end)
    if address and _is_rest(data, address, end):
        return True
    while at < end:
        code, width = decode(data, at, end)
        letter = 0x41 <= code <= 0x5A or 0x61 <= code <= 0x7A or _is_digit(code) or 0xA1 <= code <= 0xFFFF
        if code == DOT:
            if at == label or data[at - 1] in (MINUS, 0x5F) or data[label] in (MINUS, 0x5F) or size > 64:
                return False
            labels, label, lower, size = labels + 1, at + 1, True, 0
        elif letter or code in (MINUS, 0x5F):
            lower &= (class_of(index, flags, code) & LOWER) != 0
            size += 1
        else:
            break
        at += width
    return labels > 0 and lower and 2 <= size <= 63 and _is_rest(data, at, end)


@inlined
def _is_rest(data, at, end):
    """Tell whether data[at:end] is what may follow a host: nothing, a port, a path, or both."""
    if at < end and data[at] == COLON:
        port = at + 1
        while port < end and _is_digit(data[port]):
            port += 1
        if not 2 <= port - at - 1 <= 5:
            return False
        at = port
    return at == end or data[at] in (SLASH, 0x3F, 0x23)


@inlined
def _address_end(data, begin, end):
    """Return where the public IP number that data[begin:end] begins with ends, 0 if it begins with none."""
    at, network = begin, 0
    for place in range(4):
        start, value = at, 0
        while at < end and at - start < 3 and _is_digit(data[at]):
            value = value * 10 + data[at] - 0x30
            at += 1
        if at == start or (data[start] == 0x30 and (place in (0, 3) or at - start == 3)):
            return 0
        if value > (223 if place == 0 else (254 if place == 3 else 255)):
            return 0
        if place < 3 and (at == end or data[at] != DOT):
            return 0
        network = network << 8 | value if place < 2 else network
        at += place < 3
    private = network >> 8 in (10, 127) or network in (0xA9FE, 0xC0A8) or 0xAC10 <= network <= 0xAC1F
    return 0 if private else at


@inlined
def _is_url(data, begin, end, index, flags):
    """Tell whether data[begin:end] is a URL or mail address."""
    if _is_host(data, begin, end, index, flags):
        return True
    scheme = _bits(data, begin, end, index, flags) & WORD != 0 or data[begin] in (PLUS, MINUS, DOT)
    _, second = decode(data, begin, end)
    second += begin
    for at in range(begin + 1, end - 3):
        if (data[at] & 0xC0) == 0x80:
            continue
        named = scheme and at > second and data[at] == COLON and data[at + 1] == SLASH and data[at + 2] == SLASH
        if named and _is_host(data, at + 3, end, index, flags):
            return True
        if data[at] == AT and _is_host(data, at + 1, end, index, flags):
            return True
        scheme &= _bits(data, at, end, index, flags) & WORD != 0 or data[at] in (PLUS, MINUS, DOT)
    return False


@compiled
def cut_chunk(data, begin, end, index, flags, ends, count):
    """Write where each word of data[begin:end], which holds no white space, ends; return the words in `ends` then.

    `ends` must have room for a word per byte after the `count` that it holds.
    """
    held = count
    count = _cut_affixes(data, begin, end, index, flags, ends, count, excepting=True)
    if count - held > 1 and _may_merge(data, begin, ends, held, count):
        return _merge(data, begin, index, flags, ends, held, count)
    return count


@inlined
def _cut_affixes(data, begin, end, index, flags, ends, count, excepting):
    """Cut prefixes, suffixes and infixes off as `cut_chunk` does; `excepting` keeps exceptions that this lays bare."""
    first, last, suffixes, size = begin, end, 0, -1
    room = len(ends)
    while first < last and last - first != size:
        if excepting and _excepted(data, first, last):
            break
        size = last - first
        before = _prefix(data, first, last, index, flags)
        if before and excepting and _excepted(data, first + before, last):
            first += before
            ends[count] = first
            count += 1
            break
        after = _suffix(data, first + before, last, index, flags)
        if after:
            suffixes += 1
            ends[room - suffixes] = last
            last -= after
            if excepting and _excepted(data, first, last):
                break
        if before:
            first += before
            ends[count] = first
            count += 1
    if first < last:
        lengths = _excepted(data, first, last) if excepting else 0
        if lengths:
            count = _write(lengths, first, ends, count)
        else:
            count = _cut_infixes(data, first, last, index, flags, ends, count)
    for place in range(suffixes, 0, -1):
        ends[count] = ends[room - place]
        count += 1
    return count


@inlined
def _write(lengths, start, ends, count):
    """Write where the words of an exception that begins at `start` end; return the words in `ends` then."""
    while lengths:
        start += lengths & 255
        lengths >>= 8
        ends[count] = start
        count += 1
    return count


@inlined
def _holds_sign(data, begin, end):
    """Tell whether some byte is no ASCII letter or digit: only such an exception can have been cut by affixes."""
    for at in range(begin, end):
        low = data[at] | 0x20
        if not (_is_digit(data[at]) or 0x61 <= low <= 0x7A):
            return True
    return False


@inlined
def _spelled(data, begin, end):
    """Return the packed lengths of an exception that several words may spell, 0 for none."""
    lengths = _excepted(data, begin, end)
    return lengths if lengths and _holds_sign(data, begin, end) else 0


@inlined
def _may_merge(data, begin, ends, held, count):
    """Tell whether some neighbors spell an exception."""
    for read in range(held, count - 1):
        other = read + 1
        while other < count and ends[other] - begin <= MERGED:
            if _spelled(data, begin, ends[other]):
                return True
            other += 1
        begin = ends[read]
    return False


@compiled
def _merge(data, begin, index, flags, ends, held, count):
    """Make neighbors that are an exception together the words that it is cut into; return the words in `ends` then.

    They are one if they spell it and affixes alone would cut it so. The longest goes first, of equals the earliest;
    as upstream, what overlaps it stays as it is, and so does what overlaps that.
    """
    words = count - held
    starts, spare = np.empty(words + 1, np.int64), np.empty(2 * MERGED, np.int64)
    made, sizes, taken = np.zeros(words, np.int64), np.ones(words, np.int64), np.zeros(words, np.bool_)
    starts[0] = begin
    for place in range(words):
        starts[place + 1] = ends[held + place]
    for size in range(min(words, MOST_MERGED), 1, -1):
        for at in range(words + 1 - size):
            first, last = starts[at], starts[at + size]
            lengths = _spelled(data, first, last) if last - first <= MERGED else 0
            if lengths and _cut_affixes(data, first, last, index, flags, spare, 0, excepting=False) == size:
                same, free = True, not (taken[at] or taken[at + size - 1])
                for place in range(size):
                    same &= spare[place] == starts[at + place + 1]
                if same and free:
                    made[at], sizes[at] = lengths, size
                if same:
                    taken[at : at + size] = True
    at, count = 0, held
    while at < words:
        if made[at]:
            count = _write(made[at], starts[at], ends, count)
        else:
            ends[count] = starts[at + 1]
            count += 1
        at += sizes[at]
    return count


@inlined
def _cut_infixes(data, first, last, index, flags, ends, count):
    """Write the ends of the words between infixes, and of infixes; a URL stays whole."""
    start, at, asked = first, first, False
    while at < last:
        low = data[at] | 0x20
        if 0x61 <= low <= 0x7A or _is_digit(data[at]):
            at += 1
            continue
        width = _infix(data, first, at, last, index, flags)
        if width == 0:
            at += 1
            while at < last and (data[at] & 0xC0) == 0x80:
                at += 1
            continue
        if at > first:
            if not asked:
                asked = True
                if _is_url(data, first, last, index, flags):
                    break
            if at > start:
                ends[count] = at
                count += 1
            start = at + width
            ends[count] = start
            count += 1
        at += width
    if start < last:
        ends[count] = last
        count += 1
    return count
