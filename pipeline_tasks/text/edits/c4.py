"""Removes lines and citations from texts by the line rules of C4, and counts what was removed and why."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.text.base.ascii import NEWLINE
from pipeline_tasks.text.base.buffers import views
from pipeline_tasks.text.base.characters import (
    ASCII_END,
    BLANK,
    DIGIT,
    SPACE,
    TERMINAL,
    WORD,
    class_of,
    classes,
    decode,
    trim,
)
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.base.eight_bytes import byte_at, copy
from pipeline_tasks.text.base.phrases import encode_phrases
from pipeline_tasks.text.words import cutting, outline
from pipeline_tasks.text.words.cutting import ALL_PUNCTUATION, SENTENCE_END, SPACY, SPLIT, Floats, cut_text, next_word
from pipeline_tasks.text.words.outline import ENDS, ODD_BREAK, VISIBLE, WIDE_STOP, read_text

PHRASES = (
    "lorem ipsum",
    "javascript",
    "{",
    "terms of use",
    "privacy policy",
    "cookie policy",
    "uses cookies",
    "use of cookies",
    "use cookies",
)
"""What C4 looks for in a line, in lower case; the last six are the policy phrases."""

MARKERS = ("edit]", "citation needed]")
"""What may follow `[` in a citation, beside digits and `]`."""

COUNTS = (
    "lines",
    "long_word",
    "no_terminal",
    "few_words",
    "javascript",
    "policy",
    "citations",
    "lorem",
    "curly",
    "sentences",
)
LINES, LONG_WORD, NO_TERMINAL, FEW_WORDS, JAVASCRIPT, POLICY, CITATIONS, LOREM, CURLY, SENTENCES = range(len(COUNTS))


OPENING, CLOSING, CURLY_BRACKET = 0x5B, 0x5D, 0x7B

PHRASED, CITED = 1, 2
"""Bits of what a text may hold: one of PHRASES; a `[`."""

BLOCK = 512
"""Bytes that are searched for phrases at once: only lines in a block that may hold one are read again."""


class LineRules(NamedTuple):
    """The line rules; numbers, so that the compiled loop takes them as they are.

    `sentences` is the word rule per text by which they are counted where it is `words.SPACY`; None: nowhere.
    """

    max_word_length: float
    min_words: float
    require_terminal: bool
    remove_citations: bool
    drop_javascript: bool
    drop_policy: bool
    sentences: npt.NDArray[np.uint8] | None = None


@inlined
def _starts_with(data, at, end, phrases, begin, stop):
    """Return whether data[at:end] starts with the lower-case ASCII phrases[begin:stop], whatever its own case."""
    if at + stop - begin > end:
        return False
    for place in range(begin, stop):
        letter = data[at + place - begin]
        if 0x41 <= letter <= 0x5A:
            letter |= 0x20
        if letter != phrases[place]:
            return False
    return True


@inlined
def _found(data, begin, end, phrases, ends, first_letters):
    """Return a bit per phrase that occurs in data[begin:end]."""
    found = 0
    for at in range(begin, end):
        if first_letters[data[at]]:
            for phrase in range(len(ends) - 1):
                if _starts_with(data, at, end, phrases, ends[phrase], ends[phrase + 1]):
                    found |= 1 << phrase
    return found


@inlined
def citation_end(data, at, end, markers, ends, index, flags):
    """Return where the citation that begins with the `[` at `at` ends, or `at` if it is none."""
    for marker in range(len(ends) - 1):
        size = ends[marker + 1] - ends[marker]
        if at + 1 + size <= end:
            same = True
            for place in range(size):
                same &= data[at + 1 + place] == markers[ends[marker] + place]
            if same:
                return at + 1 + size
    place = at + 1
    while place < end:
        code, width = decode(data, place, end)
        if not class_of(index, flags, code) & DIGIT:
            return place + 1 if code == CLOSING else at
        place += width
    return at


@inlined
def _sentences(data, begin, end, index, flags):
    """Return the number of sentences in data[begin:end].

    A sentence ends at a run of terminal marks: an ASCII one only before white space or the end (quotes and brackets
    may stand between), any other always. Visible text after the last end is one more sentence.
    """
    count, at = 0, begin
    text = False
    ended = False
    while at < end:
        code, width = np.int64(data[at]), 1
        if code >= ASCII_END:
            code, width = decode(data, at, end)
        bits = class_of(index, flags, code)
        if bits & WORD:
            text, ended = True, False
            at += width
            continue
        closing = code in (0x22, 0x27, 0x29, 0x5D, 0x2019, 0x201D)
        if bits & TERMINAL:
            if code >= ASCII_END:
                count += text
                text, ended = False, False
            else:
                ended = text
        elif bits & SPACE:
            if ended:
                count += 1
                text = False
            ended = False
        elif not closing or not ended:
            ended = False
            if not closing:
                text = True
        at += width
    return count + text


@inlined
def _is_word(data, begin, end):
    """Tell whether the white space data[begin:end] is a word to spaCy: it is unless it is nothing or one blank."""
    return end - begin > 1 or (end > begin and byte_at(data, begin) != BLANK)


@inlined
def _begun(words, first, last, ended):
    """Return (sentences that begin within the words first:last, whether the one that they end in has ended)."""
    count = 0
    for word in range(first, last):
        if words.kinds[word] & SENTENCE_END:
            ended = True
        elif ended and not words.kinds[word] & ALL_PUNCTUATION:
            count, ended = count + 1, False
    return count, ended


@compiled
def _tokenized_sentences(offsets, data, words, found, asked, tails, table, out):
    """Write the sentences of SPACY words to `out`, of the texts that are asked.

    As explosion/spaCy `spacy/pipeline/sentencizer.pyx`: each begins at the first word that is no punctuation after an
    end. Every line that was kept is a document of its own, and has a sentence even if nothing is left of it.
    """
    index, flags = table
    for row in range(len(asked)):
        if not asked[row]:
            continue
        at, count = offsets[row], out[row, LINES] - out[row, LONG_WORD : POLICY + 1].sum()
        first, ended = words.at[row], False
        next_break, last_break = found.breaks_at[row], found.breaks_at[row + 1]
        for word in range(found.words_at[row], found.words_at[row + 1]):
            begin, end = next_word(data, at, offsets[row + 1], index, flags)
            while next_break < last_break and found.places[next_break] < begin:
                place = found.places[next_break]
                count += ended and _is_word(data, at, place)
                at, ended = place + found.widths[next_break], False
                next_break += 1
            if ended and _is_word(data, at, begin):
                count, ended = count + 1, False
            more, ended = _begun(words, first, words.ends[word], ended)
            count, first, at = count + more, words.ends[word], end
        out[row, SENTENCES] = count + (ended and tails[row])


@compiled
def _suspects(text):
    """Return bits of what may be in `text`: a phrase of PHRASES (by four letters of it, of either case), a citation."""
    found = np.uint8(0)
    for at in range(len(text) - 3):
        a, b, c, d = text[at], text[at + 1] | 0x20, text[at + 2] | 0x20, text[at + 3] | 0x20
        e = a | 0x20
        hit = (e == 0x6D) & (b == 0x20) & (c == 0x69) & (d == 0x70)  # loreM IPsum
        hit |= (e == 0x76) & (b == 0x61) & (c == 0x73) & (d == 0x63)  # jaVASCript
        hit |= (e == 0x65) & (b == 0x72) & (c == 0x6D) & (d == 0x73)  # tERMS of use
        hit |= (e == 0x76) & (b == 0x61) & (c == 0x63) & (d == 0x79)  # priVACY policy
        hit |= (e == 0x6F) & (b == 0x6B) & (c == 0x69) & (d == 0x65)  # coOKIEs
        hit |= a == CURLY_BRACKET
        found |= np.uint8(hit) | np.uint8(a == OPENING) << np.uint8(1)
    for at in range(max(len(text) - 3, 0), len(text)):
        found |= np.uint8(text[at] == CURLY_BRACKET) | np.uint8(text[at] == OPENING) << np.uint8(1)
    return found


@compiled
def _mark(text, marks):
    """Write the `_suspects` of every BLOCK bytes of `text` to `marks`; return those of all."""
    found = np.uint8(0)
    for block in range((len(text) + BLOCK - 1) // BLOCK):
        marks[block] = _suspects(text[block * BLOCK : (block + 1) * BLOCK + 3])
        found |= marks[block]
    return found


@inlined
def _visible_sentences(kinds, word, end):
    """Return the sentences of words (see `outline`), as `_sentences` finds them where all its ends are ASCII."""
    count, text = 0, 0
    for at in range(word, end):
        kind = byte_at(kinds, at)
        text |= (kind & VISIBLE) != 0
        ended = text & ((kind & ENDS) != 0)
        count += ended
        text ^= ended
    return count + text


@inlined
def _cut_citations(data, at, end, markers, table, kept, size):
    """Copy data[at:end] without citations; return (where it ends, citations cut)."""
    letters, ends = markers
    index, flags = table
    removed = 0
    while at < end:
        if data[at] == OPENING:
            after = citation_end(data, at, end, letters, ends, index, flags)
            if after > at:
                removed += 1
                at = after
                continue
        kept[size] = data[at]
        size += 1
        at += 1
    return size, removed


@inlined
def _move_words(found, begin, end, told, stop):
    """Copy the words begin:end of `found` to `told`, where they end at `stop`."""
    to = stop - end + begin
    copy(found.lengths, begin, end - begin, told.lengths, to)
    copy(found.hashes, begin, end - begin, told.hashes, to)
    copy(found.kinds, begin, end - begin, told.kinds, to)


@compiled
def _edit(offsets, data, rules, limits, phrases, markers, table, outlines, kept, kept_offsets, tails, out):
    """Write the kept lines of every text to `kept`, their outline to the second of `outlines`, its counts to `out`.

    `tails` tells whether white space that is a word to spaCy was trimmed off the last line that is not blank.
    """
    max_word, min_words, terminal, citations, javascript, policy = limits
    index, flags = table
    found, told = outlines
    letters, ends, firsts = phrases
    room, longest = 1, 1
    for row in range(len(offsets) - 1):
        longest = max(longest, offsets[row + 1] - offsets[row])
        if rules[row] != SPLIT:
            room = max(room, offsets[row + 1] - offsets[row])
    marks = np.empty(longest // BLOCK + 1, np.uint8)
    lengths, hashes, kinds = np.empty(room, np.int32), np.empty(room, np.uint64), np.empty(room, np.uint8)
    size, all_words, all_breaks = 0, 0, 0
    for row in range(len(offsets) - 1):
        at, end = offsets[row], offsets[row + 1]
        text_begin, words_begin, breaks_begin, same = size, all_words, all_breaks, True
        row_begin, suspects = at, _mark(data[at:end], marks)
        row_words = found.words_at[row + 1]
        longest = found.lengths[found.words_at[row] : row_words].max() if row_words > found.words_at[row] else 0
        wide_stops = found.traits[row] & WIDE_STOP
        next_word = run_begin = run_end = found.words_at[row]
        for line in range(found.breaks_at[row], found.breaks_at[row + 1] + 1):
            last_line = line == found.breaks_at[row + 1]
            if last_line and at == end:
                break
            stop = end if last_line else found.places[line]
            first, last = trim(data, at, stop, index, flags)
            at = end if last_line else stop + found.widths[line]
            word = next_word
            next_word = row_words if last_line else found.first_words[line]
            out[row, LINES] += 1
            words, most = next_word - word, 0
            if rules[row] != SPLIT:
                words = cut_text(data, first, last, rules[row], index, flags, lengths, hashes, kinds)
                most = lengths[:words].max() if words else 0
            elif longest > max_word and words:
                most = found.lengths[word:next_word].max()
            if most > max_word:
                out[row, LONG_WORD] += 1
                continue
            begin, removed = size, 0
            if size > text_begin:
                kept[size] = NEWLINE
                begin += 1
            likely = np.uint8(0)
            if suspects and first < last:
                for block in range((first - row_begin) // BLOCK, (last - 1 - row_begin) // BLOCK + 1):
                    likely |= marks[block]
            if citations and likely & CITED:
                tip, removed = _cut_citations(data, first, last, markers, table, kept, begin)
            else:
                copy(data, first, last - first, kept, begin)
                tip = begin + last - first
            closed = tip > begin and kept[tip - 1] in (0x2E, 0x3F, 0x21, 0x22, 0x27)
            dotted = tip - begin >= 3 and kept[tip - 1] == 0x2E and kept[tip - 2] == 0x2E and kept[tip - 3] == 0x2E
            if terminal and (not closed or dotted):
                out[row, NO_TERMINAL] += 1
                continue
            if words < min_words:
                out[row, FEW_WORDS] += 1
                continue
            if removed or likely & PHRASED:
                said = _found(kept, begin, tip, letters, ends, firsts)
                out[row, LOREM] += said & 1
                if javascript and said & 2:
                    out[row, JAVASCRIPT] += 1
                    continue
                out[row, CURLY] += said >> 2 & 1
                if policy and said >> 3:
                    out[row, POLICY] += 1
                    continue
            out[row, CITATIONS] += removed
            if removed or wide_stops:
                out[row, SENTENCES] += _sentences(kept, begin, tip, index, flags)
            else:
                out[row, SENTENCES] += _visible_sentences(found.kinds, word, next_word)
            if begin > size:
                told.places[all_breaks], told.widths[all_breaks], told.first_words[all_breaks] = size, 1, all_words
                all_breaks += 1
            same &= removed == 0
            if same:
                if word != run_end:
                    _move_words(found, run_begin, run_end, told, all_words)
                    run_begin = word
                run_end = next_word
                all_words += next_word - word
            size = tip
        _move_words(found, run_begin, run_end, told, all_words)
        first, last = trim(kept, text_begin, size, index, flags)
        told.traits[row] = found.traits[row] & ~ODD_BREAK
        tail = last
        while tail < size and kept[tail] != NEWLINE:
            tail += 1
        tails[row] = _is_word(kept, last, tail)
        if not same or first > text_begin or last < size:
            for place in range(last - first):
                kept[text_begin + place] = kept[first + place]
            size = text_begin + last - first
            all_words, all_breaks, told.traits[row] = read_text(
                kept, text_begin, size, index, flags, told, words_begin, breaks_begin
            )
        kept_offsets[row + 1], told.words_at[row + 1], told.breaks_at[row + 1] = size, all_words, all_breaks


def edit(
    offsets: npt.NDArray[np.int64],
    data: npt.NDArray[np.uint8],
    rules: npt.NDArray[np.uint8],
    limits: LineRules,
) -> tuple[pa.Array, Floats]:
    """Return the texts without the lines that `limits` forbids, and per text the COUNTS, shape (rows, 10).

    Lines are those of `str.splitlines`, stripped, and joined again by a newline. Per line, in this order: a word too
    long drops it, citations are cut out, no terminal punctuation drops it, too few words (counted before the cut)
    drop it, `lorem ipsum` is counted, `javascript` drops it, `{` is counted, a policy phrase drops it.
    """
    rows = len(offsets) - 1
    firsts = np.zeros(256, np.bool_)
    for phrase in PHRASES:
        firsts[[ord(phrase[0]), ord(phrase[0].upper())]] = True
    kept = np.empty(int(offsets[-1] - offsets[0]) + 1, np.uint8)
    kept_offsets, out = np.zeros(rows + 1, np.int64), np.zeros((rows, len(COUNTS)))
    tails = np.zeros(rows, np.bool_)
    phrases, numbers = (*encode_phrases(PHRASES), firsts), tuple(map(float, limits[:6]))
    found = outline.outline_of(offsets, data)
    told = outline.empty_outline(rows, len(found.lengths), len(found.places))
    given = rules, numbers, phrases, encode_phrases(MARKERS), classes()
    _edit(offsets, data, *given, (found, told), kept, kept_offsets, tails, out)
    left = pa.py_buffer(kept).slice(0, int(kept_offsets[-1]))
    edited = pa.LargeStringArray.from_buffers(rows, pa.py_buffer(kept_offsets), left)
    read_edited = outline.set_outline(*views(edited), outline.trim_outline(told))
    if limits.sentences is not None:
        words = cutting.words_of(*views(edited), limits.sentences)
        asked = limits.sentences == SPACY
        _tokenized_sentences(*views(edited), words, read_edited, asked, tails, classes(), out)
    return edited, out
