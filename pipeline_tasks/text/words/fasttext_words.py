"""Cut lines as fastText does, and sum the vectors of each word and its n-grams in compiled loops.

The rules are those of `Dictionary::readWord`, `getLine`, `computeSubwords` and `addWordNgrams` in
facebookresearch/fastText 0.9.2. A word's sum is remembered with the word's bytes, so that a word that repeats is added
at once. Sums of words are float32, in the order of rows; a text's sum is float64, in the order of words. So a result
depends neither on what is remembered nor on other texts.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base.ascii import GREATER, LESS, NUL, RETURN, TAB
from pipeline_tasks.text.base.ascii import SPACE as BLANK
from pipeline_tasks.text.base.characters import ASCII_END, SPACE, class_of, decode
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.base.eight_bytes import (
    HIGH_BITS,
    byte_at,
    first_marked,
    keep_first,
    load_eight,
    load_tail,
    mark_blanks,
    prefetch,
    same_bytes,
)
from pipeline_tasks.text.base.hashing import absorb
from pipeline_tasks.text.words.fasttext_model import CENTROIDS, Bytes, Floats, Matrix, Model, Numbers, Places

BASIS, PRIME, LOW_32 = np.uint64(2166136261), np.uint64(16777619), np.uint64(0xFFFFFFFF)
"""FNV-1a of 32 bits (RFC 9923)."""

SIGN_BITS = np.uint64(0xFFFFFF00)
"""fastText widens bytes with their sign before it takes them into a hash."""

WORD_FACTOR = np.uint64(116049371)
"""What fastText multiplies the hash of a run of words with, before the next word."""

UNIT_SEPARATORS = 0x1C
"""The first of four controls that are white space in Unicode, and no blank to fastText."""

END_OF_LINE = np.frombuffer(b"</s>", np.uint8).copy()
END_KEY = np.uint64(int.from_bytes(b"</s>", "little"))
LABEL_MARK = np.frombuffer(b"__label__", np.uint8).copy()
"""The word at the end of each line; how labels begin, which are no words of a text."""

KEY_BYTES = 32
"""The longest word that is remembered. Longer ones are mostly lines of scripts without blanks, and do not repeat."""

PROBES = 4
MEMORY_BYTES = 1 << 24
"""Size of a memory; a word is looked up in PROBES slots, and takes the first of them if all are taken."""

FILTER_BITS = 16
ALL_BITS = np.uint64(0xFFFFFFFFFFFFFFFF)
BATCH = 256
"""Buckets that are looked up together."""

DENSE_BYTES = 1 << 26
"""The largest matrix that is decoded when a model is loaded."""

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FREE = -1
HASH, COUNT = KEY_BYTES // 8, KEY_BYTES // 8 + 1
SUM = 2 * (COUNT + 1)
"""Columns of a Memory, after the word."""

NO_WORD = -1
"""The row count of what is a label, and no word of the text."""


class Lookup(NamedTuple):
    """Hash tables of entries by their bytes and of rows by their bucket; free slots are FREE.

    `slots` has numbers of entries, `kept` the buckets that pruning kept, in the high half, with their rows in the low.
    `filter` has a bit for each kept bucket, all bits if no bucket was pruned; few others share one.
    """

    letters: Bytes
    ends: Numbers
    slots: Places
    words: int
    end_of_line: int
    kept: Numbers
    filter: npt.NDArray[np.uint64]
    pruned: bool


class Memory(NamedTuple):
    """Sums of words seen before, a row each: two views of the same bytes, for a row is read at once; of one thread.

    A row of `heads` begins with the word's bytes, padded with zeros (all zero: it is free), its hash, and how many rows
    of the matrix are in its sum (or NO_WORD). A row of `sums` has the sum from SUM on.
    """

    heads: npt.NDArray[np.uint64]
    sums: Floats


def memory(dimensions: int) -> Memory:
    """Return an empty memory of at most MEMORY_BYTES, or of one row."""
    width = SUM + dimensions + dimensions % 2
    rows = 1 << max(0, (MEMORY_BYTES // (4 * width)).bit_length() - 1)
    sums = np.zeros((rows, width), np.float32)
    return Memory(sums.view(np.uint64), sums)


def lookup(model: Model) -> Lookup:
    """Return the hash tables of a model."""
    entries = len(model.ends) - 1
    slots = np.full(_slots(entries), FREE, np.int32)
    _number_entries(model.letters, model.ends, slots)
    pairs = model.pruned if model.pruned is not None else np.empty((0, 2), np.int32)
    kept = np.full(_slots(len(pairs)), FREE, np.int64)
    bits = _filter(pairs[:, 0]) if model.pruned is not None else np.array([ALL_BITS])
    _number_buckets(pairs, model.words, kept)
    end = _find(model.letters, model.ends, slots, END_OF_LINE, 0, len(END_OF_LINE), hash_word(END_OF_LINE, 0, 4))
    return Lookup(model.letters, model.ends, slots, model.words, int(end), kept, bits, model.pruned is not None)


def _filter(buckets: Places) -> npt.NDArray[np.uint64]:
    """Return the bits of kept buckets, FILTER_BITS times as many, so that one of so many others shares one."""
    bits = np.zeros(_slots(len(buckets) * FILTER_BITS // 128), np.uint64)
    _set_bits(buckets, bits)
    return bits


def _slots(count: int) -> int:
    """Return the slots of a hash table that `count` keys fill to less than a half."""
    return 1 << (2 * count + 1).bit_length()


@inlined
def hash_word(data, begin, end):
    """Return fastText's hash of data[begin:end], below 2**32."""
    value = BASIS
    for at in range(begin, end):
        value = _absorb_byte(value, byte_at(data, at))
    return value


@inlined
def _absorb_byte(value, byte):
    wide = np.uint64(byte) | (SIGN_BITS if byte >= ASCII_END else np.uint64(0))
    return ((value ^ wide) * PRIME) & LOW_32


@compiled
def _find(letters, ends, slots, data, begin, end, value):
    """Return the number of the entry with the bytes data[begin:end], whose hash is `value`; FREE if there is none."""
    mask = np.uint64(len(slots) - 1)
    slot = value & mask
    while True:
        entry = np.int64(slots[slot])
        if entry == FREE or same_bytes(letters, ends[entry], ends[entry + 1], data, begin, end):
            return entry
        slot = (slot + np.uint64(1)) & mask


@compiled
def _number_entries(letters, ends, slots):
    """Fill the slots; of entries with the same bytes the last one counts, as in fastText."""
    mask = np.uint64(len(slots) - 1)
    for entry in range(len(ends) - 1):
        first, last = ends[entry], ends[entry + 1]
        slot = hash_word(letters, first, last) & mask
        while slots[slot] != FREE:
            other = np.int64(slots[slot])
            if same_bytes(letters, ends[other], ends[other + 1], letters, first, last):
                break
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = entry


@inlined
def _spread(bucket):
    """Return a hash of a bucket, below 2**32."""
    return (np.uint64(bucket) * GOLDEN) >> np.uint64(32)


@inlined
def _filter_bit(spread, bits):
    """Return the bit of a bucket by its hash, 0 or 1."""
    word = bits[np.int64((spread >> np.uint64(6)) & np.uint64(len(bits) - 1))]
    return np.int64((word >> (spread & np.uint64(63))) & np.uint64(1))


@compiled
def _set_bits(buckets, bits):
    for bucket in buckets:
        spread = _spread(bucket)
        bits[np.int64((spread >> np.uint64(6)) & np.uint64(len(bits) - 1))] |= np.uint64(1) << (spread & np.uint64(63))


@compiled
def _number_buckets(pairs, words, kept):
    """Fill the table of kept buckets; of pairs with the same bucket the last one counts."""
    mask = np.uint64(len(kept) - 1)
    for pair in range(len(pairs)):
        bucket, place = np.int64(pairs[pair, 0]), np.int64(pairs[pair, 1])
        if bucket < 0:
            continue
        slot = _spread(bucket) & mask
        while kept[slot] != FREE and kept[slot] >> 32 != bucket:
            slot = (slot + np.uint64(1)) & mask
        kept[slot] = bucket << 32 | (words + place)


@inlined
def _row_of(tables, bucket):
    """Return the row of a bucket in the input matrix; FREE if it was pruned."""
    if not tables.pruned:
        return np.int64(tables.words) + np.int64(bucket)
    mask = np.uint64(len(tables.kept) - 1)
    slot = _spread(bucket) & mask
    while True:
        pair = tables.kept[slot]
        if pair == FREE:
            return np.int64(FREE)
        if pair >> 32 == np.int64(bucket):
            return pair & np.int64(LOW_32)
        slot = (slot + np.uint64(1)) & mask


@inlined
def add_row(matrix, row, sums):
    """Add a row of a matrix to `sums`."""
    if len(matrix.codes) == 0:
        for column in range(len(sums)):
            sums[column] += matrix.dense[row, column]
        return
    norm, width, parts = matrix.norms[row], matrix.width, matrix.codes.shape[1]
    for part in range(parts):
        first = part * width
        columns = min(width, len(sums) - first)
        place = first * CENTROIDS + np.int64(matrix.codes[row, part]) * columns
        for column in range(columns):
            sums[first + column] += norm * matrix.centroids[place + column]


@compiled
def _decode(matrix, dense):
    dense[:] = np.float32(0)
    for row in range(len(dense)):
        add_row(matrix, row, dense[row])


def decoded(matrix: Matrix) -> Matrix:
    """Return a quantized matrix as a dense one, which is faster to read, unless that takes more than DENSE_BYTES."""
    rows, columns = len(matrix.codes), matrix.dense.shape[1]
    if rows == 0 or 4 * rows * columns > DENSE_BYTES:
        return matrix
    dense = np.empty((rows, columns), np.float32)
    _decode(matrix, dense)
    return matrix._replace(dense=dense, codes=matrix.codes[:0])


@inlined
def _add_rows(matrix, rows, count, sums):
    """Add rows[:count] of a matrix to `sums` in order; dense ones four at a time, so that their loads overlap."""
    place = 0
    if len(matrix.codes) == 0:
        while place + 4 <= count:
            first, second = matrix.dense[rows[place]], matrix.dense[rows[place + 1]]
            third, fourth = matrix.dense[rows[place + 2]], matrix.dense[rows[place + 3]]
            for column in range(len(sums)):
                sums[column] = (((sums[column] + first[column]) + second[column]) + third[column]) + fourth[column]
            place += 4
    while place < count:
        add_row(matrix, rows[place], sums)
        place += 1


@inlined
def _add_buckets(buckets, waiting, tables, matrix, sums):
    """Add the rows of buckets[:waiting], which it overwrites with them; return how many have one."""
    count = 0
    for place in range(waiting):
        row = _row_of(tables, buckets[place])
        if row != FREE:
            buckets[count] = row
            count += 1
    _add_rows(matrix, buckets, count, sums)
    return count


@inlined
def _add_ngrams(letters, size, tables, arguments, matrix, buckets, sums):
    """Add the rows of the n-grams of characters of letters[:size], a word with its marks; return how many.

    Most buckets of a pruned model have no row, and no branch foretells which: the filter packs `buckets` without one.
    """
    count, waiting = 0, 0
    for begin in range(size):
        if (byte_at(letters, begin) & 0xC0) == 0x80:
            continue
        value, at, length = BASIS, begin, 1
        while at < size and length <= arguments.longest:
            value = _absorb_byte(value, byte_at(letters, at))
            at += 1
            while at < size and (byte_at(letters, at) & 0xC0) == 0x80:
                value = _absorb_byte(value, byte_at(letters, at))
                at += 1
            if length >= arguments.shortest and not (length == 1 and (begin == 0 or at == size)):
                bucket = np.int64(np.uint32(value) % np.uint32(arguments.buckets))
                buckets[waiting] = bucket
                if not tables.pruned:
                    prefetch(matrix.dense, tables.words + bucket)
                waiting += _filter_bit(_spread(bucket), tables.filter)
                if waiting == BATCH:
                    count += _add_buckets(buckets, waiting, tables, matrix, sums)
                    waiting = 0
            length += 1
    return count + _add_buckets(buckets, waiting, tables, matrix, sums)


@inlined
def _sum_word(data, begin, end, value, tables, arguments, matrix, scratch, sums):
    """Set `sums` to the sum of the rows of a word; return how many, NO_WORD for a label."""
    letters, buckets = scratch
    sums[:] = np.float32(0)
    entry = _find(tables.letters, tables.ends, tables.slots, data, begin, end, value)
    if entry >= tables.words:
        return NO_WORD
    count = 0
    if entry != FREE:
        add_row(matrix, entry, sums)
        count = 1
    elif same_bytes(LABEL_MARK, 0, len(LABEL_MARK), data, begin, min(begin + len(LABEL_MARK), end)):
        return NO_WORD
    if arguments.longest > 0:
        size = end - begin + 2
        letters[0], letters[size - 1] = LESS, GREATER
        for step in range(end - begin):
            letters[step + 1] = byte_at(data, begin + step)
        count += _add_ngrams(letters, size, tables, arguments, matrix, buckets, sums)
    return count


@inlined
def separates(data, at, end, index, flags, everywhere):
    """Return the bytes of the separator of words at `at`, 0 if there is none; `everywhere`: Unicode's, too."""
    byte = byte_at(data, at)
    if byte <= BLANK:
        controls = everywhere and byte >= UNIT_SEPARATORS
        return 1 if byte in (BLANK, NUL) or TAB <= byte <= RETURN or controls else 0
    if byte < ASCII_END or not everywhere:
        return 0
    code, width = decode(data, at, end)
    return width if class_of(index, flags, code) & SPACE else 0


@inlined
def word_end(data, at, end, index, flags, everywhere):
    """Return the end of the word that begins at `at`."""
    high = HIGH_BITS if everywhere else np.uint64(0)
    while at < end:
        if at + 8 <= len(data):
            word = load_eight(data, at)
            marks = mark_blanks(word) | (word & high)
            if marks == np.uint64(0):
                at += 8
                continue
            at += first_marked(marks)
            if at >= end:
                return end
        if separates(data, at, end, index, flags, everywhere):
            return at
        at += 1
    return end


@inlined
def _eight(data, at, end):
    """Return the bytes data[at : min(at + 8, end)] as one number, padded with zeros."""
    if at >= end:
        return np.uint64(0)
    word = load_eight(data, at) if at + 8 <= len(data) else load_tail(data, at)
    return word if at + 8 <= end else keep_first(word, end - at)


@inlined
def _memory_row(heads, first, second, third, fourth):
    """Return (row, whether it has the word of these bytes); a row that does not is the one to take for it."""
    value = absorb(first, second)
    if third | fourth:
        value = absorb(absorb(value, third), fourth)
    mask = np.uint64(len(heads) - 1)
    home = (value * GOLDEN) >> np.uint64(32)
    for probe in range(PROBES):
        row = np.int64((home + np.uint64(probe)) & mask)
        head = heads[row]
        if head[0] == first and head[1] == second and head[2] == third and head[3] == fourth:
            return row, True
        if head[0] == np.uint64(0):
            return row, False
    return np.int64(home & mask), False


@inlined
def _add_sums(sums, total):
    for column in range(len(total)):
        total[column] += sums[column]


@inlined
def _add_joined(hashes, words, tables, arguments, matrix, sums, total):
    """Add the rows of the n-grams of words, each of two words and more; return how many."""
    count, buckets = 0, np.uint64(arguments.buckets)
    for first in range(words):
        value = with_sign(hashes[first])
        for last in range(first + 1, min(words, first + arguments.word_ngrams)):
            value = value * WORD_FACTOR + with_sign(hashes[last])
            row = _row_of(tables, value % buckets)
            if row != FREE:
                sums[:] = np.float32(0)
                add_row(matrix, row, sums)
                _add_sums(sums, total)
                count += 1
    return count


@inlined
def with_sign(value):
    """Return a hash of 32 bits as fastText widens it to 64: with its sign."""
    return value | ~LOW_32 if value >> np.uint64(31) else value


@inlined
def sum_line(data, begin, end, traits, everywhere, tables, arguments, matrix, remembered, scratch, total):
    """Set `total` to the sum of the rows of the line data[begin:end]; return how many, and whether it has any text.

    Words are parted by fastText's blanks, and by Unicode's white space if `everywhere`. The line ends with the word
    `</s>`, as it does within fastText, or before.
    """
    index, flags = traits
    word_scratch, sums, hashes = scratch
    total[:] = 0.0
    count, words, at, text = np.int64(0), 0, begin, False
    while at < end:
        width = separates(data, at, end, index, flags, everywhere)
        if width:
            text |= byte_at(data, at) == NUL
            at += width
            continue
        text = True
        first_byte, at = at, word_end(data, at, end, index, flags, everywhere)
        first = _eight(data, first_byte, at)
        if first == END_KEY and at - first_byte == len(END_OF_LINE):
            break
        if at - first_byte <= KEY_BYTES:
            second, third, fourth = np.uint64(0), np.uint64(0), np.uint64(0)
            if at - first_byte > 8:
                second = _eight(data, first_byte + 8, at)
                third, fourth = _eight(data, first_byte + 16, at), _eight(data, first_byte + 24, at)
            place, known = _memory_row(remembered.heads, first, second, third, fourth)
            head, known_sums = remembered.heads[place], remembered.sums[place, SUM:]
            if not known:
                value = hash_word(data, first_byte, at)
                head[0], head[1], head[2], head[3], head[HASH] = first, second, third, fourth, value
                head[COUNT] = _sum_word(
                    data, first_byte, at, value, tables, arguments, matrix, word_scratch, known_sums[: len(total)]
                )
            value, rows = head[HASH], np.int64(head[COUNT])  # NO_WORD comes back as it went in
            if rows > 0:
                _add_sums(known_sums, total)
        else:
            value = hash_word(data, first_byte, at)
            rows = np.int64(_sum_word(data, first_byte, at, value, tables, arguments, matrix, word_scratch, sums))
            if rows > 0:
                _add_sums(sums, total)
        if rows != NO_WORD:
            count += rows
            if arguments.word_ngrams > 1:
                hashes[words] = value
                words += 1
    if tables.end_of_line < tables.words:
        if tables.end_of_line != FREE:
            sums[:] = np.float32(0)
            add_row(matrix, tables.end_of_line, sums)
            _add_sums(sums, total)
            count += 1
        if arguments.word_ngrams > 1:
            hashes[words] = hash_word(END_OF_LINE, 0, len(END_OF_LINE))
            words += 1
    if words > 1:
        count += _add_joined(hashes, words, tables, arguments, matrix, sums, total)
    return count, text
