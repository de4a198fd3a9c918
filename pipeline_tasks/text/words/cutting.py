"""Cut texts into words by the rule of each text; return their lengths, hashes and kinds, and counts of them."""

import threading
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base.buffers import Bytes, Offsets
from pipeline_tasks.text.base.characters import (
    ALPHA,
    ASCII_END,
    MARK,
    SPACE,
    TERMINAL,
    UNSPACED,
    WORD,
    class_of,
    classes,
    decode,
    parse_ranges,
)
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.base.eight_bytes import copy, hash_bytes
from pipeline_tasks.text.words import outline, spacy_chunks
from pipeline_tasks.text.words.outline import SOLID
from pipeline_tasks.text.words.spacy_chunks import (
    chunk_end,
    is_one_word,
    keep,
    skip_space,
    slot_of,
    write_kept,
    write_one_word,
)
from pipeline_tasks.text.words.spacy_tokens import cut_chunk

SPLIT, UNICODE, PAIRS, SPACY = 0, 1, 2, 3
"""The rules for what a word is.

SPLIT: what `str.split` gives. UNICODE: runs of letters, marks, digits and `_`; every other visible character is a
word of its own (so punctuation counts as words, as with the spaCy words of huggingface/datatrove); runs of scripts
written without spaces are cut in pairs of code points, because their words are about two long. PAIRS: as SPLIT, and
runs of those scripts are cut in pairs; punctuation belongs to the word before it, as it does in SPLIT. SPACY: the
words of spaCy's blank English tokenizer (`spacy_tokens`), as huggingface/datatrove counts them.
"""

OTHER, SPACED_SCRIPT, UNSPACED_SCRIPT = 0, 1, 2
"""Scripts that rules compare: punctuation and signs; letters, marks and digits; letters of UNSPACED scripts."""

PAIR = 2
"""Code points of a word in an UNSPACED script."""

LOW_BYTE = np.uint64(0xFF)
"""The bits of a hash that rule out most words that are no stop words."""

SENTENCE_END, ALL_PUNCTUATION = 1 << 6, 1 << 7
"""Bits of the kind of a SPACY word: it is one character that ends sentences; all of it is punctuation in Unicode."""

NO_SENTENCE_ENDS = np.array(
    [
        code
        for first, last in parse_ranges(
            "61D-61E 837 839 83D-83E 17D4-17D6 17D9-17DA 1B7D-1B7E 2E53-2E54 10F55-10F59 10F86-10F89 11944 11946 "
            "11EF7-11EF8 11F43-11F44 16E98"
        )
        for code in range(first, last + 1)
    ]
)
"""Of TERMINAL, what explosion/spaCy `spacy/pipeline/sentencizer.pyx` does not end sentences at."""

Floats = npt.NDArray[np.float64]
Hashes = npt.NDArray[np.uint64]


@compiled
def cut_text(data, begin, end, rule, index, flags, lengths, hashes, kinds):
    """Write code points, hash and kind of every word of data[begin:end]; return the number of words.

    A kind has ALPHA if any character is a letter and SOLID if any is no punctuation.
    """
    count, length, script, kind, at = 0, 0, OTHER, 0, begin
    first = begin
    while at < end:
        code, width = decode(data, at, end)
        bits = class_of(index, flags, code)
        ends, script = _boundary(rule, bits, script, length)
        if ends and length:
            lengths[count], hashes[count], kinds[count] = length, hash_bytes(data, first, at), kind
            count, length, kind = count + 1, 0, 0
        if not bits & SPACE:
            if not length:
                first = at
            length += 1
            kind |= (bits & ALPHA) | (SOLID & ~bits)
        at += width
    if length:
        lengths[count], hashes[count], kinds[count] = length, hash_bytes(data, first, end), kind
        count += 1
    return count


@inlined
def _boundary(rule, bits, script, length):
    """Return whether a word of `length` code points ends before a character, and the script before the next one."""
    space = (bits & SPACE) != 0
    if rule == SPLIT:
        return space, script
    here = UNSPACED_SCRIPT if bits & UNSPACED else (SPACED_SCRIPT if bits & WORD else OTHER)
    if rule == UNICODE:
        return space or here != script or here == OTHER or (here == UNSPACED_SCRIPT and length == PAIR), here
    if space or here == OTHER:
        return space, OTHER if space else script
    return script not in (OTHER, here) or (here == UNSPACED_SCRIPT and length >= PAIR), here


@compiled
def cut_spacy(data, begin, end, index, flags, lengths, hashes, kinds):
    """Write the words as `cut` does, by the rule SPACY."""
    ends = np.empty(512, np.int64)
    count, at = 0, begin
    while at < end:
        code, width = decode(data, at, end)
        if class_of(index, flags, code) & SPACE:
            at += width
            continue
        stop = at
        while stop < end:
            code, width = decode(data, stop, end)
            if class_of(index, flags, code) & SPACE:
                break
            stop += width
        if 2 * (stop - at) > len(ends):
            ends = np.empty(2 * (stop - at), np.int64)
        pieces = cut_chunk(data, at, stop, index, flags, ends, 0)
        for piece in range(pieces):
            _write_word(data, at, ends[piece], index, flags, lengths, hashes, kinds, count)
            count += 1
            at = ends[piece]
        at = stop
    return count


@inlined
def _ends_sentences(code):
    """Return whether a TERMINAL ends sentences in spaCy."""
    if code >= ASCII_END:
        for place in range(len(NO_SENTENCE_ENDS)):
            if NO_SENTENCE_ENDS[place] == code:
                return False
    return True


@inlined
def _write_word(data, begin, end, index, flags, lengths, hashes, kinds, count):
    """Write length, hash and kind of the word data[begin:end]."""
    any_bits, all_bits, lacks = np.int64(0), np.int64(0xFFFF), np.int64(0)
    length, at, code = 0, begin, np.int64(0)
    while at < end:
        code, width = decode(data, at, end)
        bits = np.int64(class_of(index, flags, code))
        any_bits |= bits
        all_bits &= bits
        lacks |= ~bits
        length += 1
        at += width
    kind = (any_bits & ALPHA) | (SOLID & lacks)
    if all_bits & MARK:
        kind |= ALL_PUNCTUATION
    if length == 1 and any_bits & TERMINAL and _ends_sentences(code):
        kind |= SENTENCE_END
    lengths[count], hashes[count], kinds[count] = length, hash_bytes(data, begin, end), kind


class Words(NamedTuple):
    """The words of texts: text i has words `at[i]:at[i + 1]`; per word code points, hash and kind.

    `ends` says for each word of the texts' outline where its pieces end, in texts that are cut by the rule SPACY.
    """

    at: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int32]
    hashes: Hashes
    kinds: npt.NDArray[np.uint8]
    ends: npt.NDArray[np.int64]


class _Last(threading.local):
    """What a thread has cut last: another's may change between two looks at it."""

    cut: tuple[outline.Outline, npt.NDArray[np.uint8], Words] | None = None


_last = _Last()


def words_of(offsets: Offsets, data: Bytes, rules: npt.NDArray[np.uint8]) -> Words:
    """Return the words of texts, cut by the rule of each; those of the last call are not cut again."""
    text_outline = outline.outline_of(offsets, data)
    if not rules.any():
        words_at, lengths, hashes, kinds = text_outline[:4]
        return Words(words_at, lengths, hashes, kinds, np.empty(0, np.int64))
    last = _last.cut
    if last is not None and last[0] is text_outline and np.array_equal(last[1], rules):
        return last[2]
    room = _room(offsets, rules, text_outline.words_at)
    words = Words(
        np.zeros(len(offsets), np.int64),
        np.empty(room, np.int32),
        np.empty(room, np.uint64),
        np.empty(room, np.uint8),
        np.empty(len(text_outline.lengths), np.int64),
    )
    if (rules == SPACY).any():  # whose loops take seconds to compile
        with spacy_chunks.held_memory() as memory:
            _cut_some_spacy(offsets, data, rules, text_outline, memory, *classes(), words)
    else:
        _cut_all(offsets, data, rules, text_outline, *classes(), words)
    count = int(words.at[-1])
    words = Words(words.at, words.lengths[:count], words.hashes[:count], words.kinds[:count], words.ends)
    _last.cut = (text_outline, rules, words)
    return words


@compiled
def _room(offsets, rules, words_at):
    """Return an upper bound of the number of words: a word has a byte."""
    size = 1
    for row in range(len(offsets) - 1):
        size += words_at[row + 1] - words_at[row] if rules[row] == SPLIT else offsets[row + 1] - offsets[row]
    return size


@compiled
def _cut_row(row, offsets, data, rules, text_outline, index, flags, words, count):
    """Write the words of a text after the first `count`, by its rule, which is not SPACY; return how many there are."""
    if rules[row] != SPLIT:
        room = words.lengths[count:], words.hashes[count:], words.kinds[count:]
        return cut_text(data, offsets[row], offsets[row + 1], rules[row], index, flags, *room)
    begin, size = text_outline.words_at[row], text_outline.words_at[row + 1] - text_outline.words_at[row]
    copy(text_outline.lengths, begin, size, words.lengths, count)
    copy(text_outline.hashes, begin, size, words.hashes, count)
    copy(text_outline.kinds, begin, size, words.kinds, count)
    return size


@compiled
def _cut_spacy_row(row, offsets, data, text_outline, memory, index, flags, words, count):
    """Write the words of a text after the first `count`, by the rule SPACY; return how many there are then."""
    at, end = offsets[row], offsets[row + 1]
    word, last = text_outline.words_at[row], text_outline.words_at[row + 1]
    while True:
        word, at, count = _write_known(word, last, at, end, data, text_outline, memory, index, flags, words, count)
        if word == last:
            return count
        stop = chunk_end(data, at, end, index, flags)
        count += _cut_and_keep(data, at, stop, text_outline.hashes[word], memory, index, flags, words, count)
        words.ends[word] = count
        word, at = word + 1, stop


@inlined
def _write_known(word, last, at, end, data, text_outline, memory, index, flags, words, count):
    """Write the words of chunks from `word` on that are letters or in memory; return (next chunk, its place, count).

    Most chunks of prose are letters, and most others occurred before: a look-up is far cheaper than a cut.
    """
    while word < last:
        at = skip_space(data, at, end, index, flags)
        stop, value = at + text_outline.lengths[word], text_outline.hashes[word]
        if is_one_word(data, at, stop):
            write_one_word(words, count, text_outline.lengths[word], value)
            count += 1
        else:
            slot = slot_of(memory, value)
            if memory.rows[slot, 0] != value:
                return word, at, count
            stop = chunk_end(data, at, end, index, flags)
            count += write_kept(memory, slot, words, count)
        words.ends[word], at = count, stop
        word += 1
    return word, at, count


@compiled
def _cut_and_keep(data, at, stop, value, memory, index, flags, words, count):
    """Write the words of a chunk after the first `count`, and keep them in memory; return how many there are."""
    room = words.lengths[count:], words.hashes[count:], words.kinds[count:]
    pieces = cut_spacy(data, at, stop, index, flags, *room)
    keep(memory, value, words, count, pieces)
    return pieces


@compiled
def _cut_all(offsets, data, rules, text_outline, index, flags, words):
    """Fill `words` text by text, where no rule is SPACY."""
    for row in range(len(offsets) - 1):
        count = words.at[row]
        words.at[row + 1] = count + _cut_row(row, offsets, data, rules, text_outline, index, flags, words, count)


@compiled
def _cut_some_spacy(offsets, data, rules, text_outline, memory, index, flags, words):
    """Fill `words` text by text, where some rule is SPACY."""
    for row in range(len(offsets) - 1):
        count = words.at[row]
        if rules[row] == SPACY:
            count = _cut_spacy_row(row, offsets, data, text_outline, memory, index, flags, words, count)
        else:
            count += _cut_row(row, offsets, data, rules, text_outline, index, flags, words, count)
        words.at[row + 1] = count


@compiled
def _measure(words, stops, out):
    """Fill out[row] with what `measure` returns."""
    likely = np.zeros(int(LOW_BYTE) + 1, np.bool_)
    for stop in range(len(stops)):
        likely[stops[stop] & LOW_BYTE] = True
    for row in range(len(words.at) - 1):
        solid, points, alpha, seen = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
        for word in range(words.at[row], words.at[row + 1]):
            kind = np.int64(words.kinds[word])
            is_solid = kind // SOLID & 1
            solid += is_solid
            points += words.lengths[word] * is_solid
            alpha += kind // ALPHA & 1
            if likely[words.hashes[word] & LOW_BYTE]:
                for stop in range(len(stops)):
                    if words.hashes[word] == stops[stop]:
                        seen |= 1 << stop
        out[row, 0], out[row, 1], out[row, 2], out[row, 3] = solid, words.at[row + 1] - words.at[row], points, alpha
        for stop in range(len(stops)):
            out[row, 4] += seen >> stop & 1


def count_words(offsets: Offsets, data: Bytes, rules: npt.NDArray[np.uint8]) -> Floats:
    """Return the number of words per text, shape (rows,); `rules` as for `measure`."""
    return np.diff(words_of(offsets, data, rules).at).astype(np.float64)


def word_signals(offsets: Offsets, data: Bytes, rules: npt.NDArray[np.uint8], stops: Hashes) -> Floats:
    """Return per text: solid words, all words, code points of solid words, words with a letter, distinct stop words.

    Shape (rows, 5). A solid word has a character that is no punctuation. `rules` is SPLIT, UNICODE, PAIRS or SPACY
    per text, `stops` at most 63 hashes of `hashes_of`.
    """
    out = np.zeros((len(offsets) - 1, 5))
    _measure(words_of(offsets, data, rules), stops, out)
    return out


def hash_words(words: tuple[str, ...]) -> Hashes:
    """Return the hashes that `cut` gives these words."""
    encoded = [np.frombuffer(word.encode(), np.uint8) for word in words]
    return np.array([hash_bytes(letters, 0, len(letters)) for letters in encoded], np.uint64)
