"""Counts the sentences of lines that C4 keeps, by terminal marks or by the words of spaCy."""

import numpy as np

from pipeline_tasks.text.base.characters import ASCII_END, BLANK, SPACE, TERMINAL, WORD, class_of, decode
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.base.eight_bytes import byte_at
from pipeline_tasks.text.words.cutting import ALL_PUNCTUATION, SENTENCE_END
from pipeline_tasks.text.words.outline import CLOSERS, ENDS, VISIBLE
from pipeline_tasks.text.words.spacy_chunks import chunk_end, is_letters, skip_space


@inlined
def count_sentences(data, begin, end, index, flags):
    """Return the number of sentences in data[begin:end].

    A sentence ends at a run of terminal marks: an ASCII one only before white space or the end (quotes and brackets
    may be between), any other always. Visible text after the last end is one more sentence.
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
        elif bits & TERMINAL and code >= ASCII_END:
            count += text
            text, ended = False, False
        elif bits & TERMINAL:
            ended = text
        elif bits & SPACE:
            count += ended
            text, ended = text and not ended, False
        elif code not in CLOSERS:
            text, ended = True, False
        at += width
    return count + text


@inlined
def count_outlined_sentences(kinds, first, last):
    """Return the sentences of words of an outline, as `count_sentences` does where all ends are ASCII."""
    count, text = 0, 0
    for word in range(first, last):
        kind = byte_at(kinds, word)
        text |= (kind & VISIBLE) != 0
        ended = text & ((kind & ENDS) != 0)
        count += ended
        text ^= ended
    return count + text


@inlined
def is_spacy_word(data, begin, end):
    """Return whether the white space data[begin:end] is a word to spaCy: it is unless it is nothing or one blank."""
    return end - begin > 1 or (end > begin and byte_at(data, begin) != BLANK)


@inlined
def _count_begun(words, first, last, ended):
    """Return (sentences that begin within the words first:last, whether the one that they end in has ended)."""
    count = 0
    for word in range(first, last):
        if words.kinds[word] & SENTENCE_END:
            ended = True
        elif ended and not words.kinds[word] & ALL_PUNCTUATION:
            count, ended = count + 1, False
    return count, ended


@compiled
def _count_spacy_text(row, end, at, data, words, outline, index, flags):
    """Return (sentences that begin in a text after its first, whether the last one has ended)."""
    count, ended, first = 0, False, words.at[row]
    next_break, last_break = outline.breaks_at[row], outline.breaks_at[row + 1]
    for word in range(outline.words_at[row], outline.words_at[row + 1]):
        begin = skip_space(data, at, end, index, flags)
        stop = begin + outline.lengths[word]
        if not is_letters(data, begin, stop):
            stop = chunk_end(data, begin, end, index, flags)
        # each line is a document of its own: white space at its end can begin a sentence, which ends with the line
        while next_break < last_break and outline.places[next_break] < begin:
            line_end = outline.places[next_break]
            count += ended and is_spacy_word(data, at, line_end)
            at, ended = line_end + outline.widths[next_break], False
            next_break += 1
        if ended and is_spacy_word(data, at, begin):
            count, ended = count + 1, False
        more, ended = _count_begun(words, first, words.ends[word], ended)
        count, first, at = count + more, words.ends[word], stop
    return count, ended


@compiled
def count_spacy_sentences(offsets, data, words, outline, wanted, kept_lines, tails, table, out):
    """Write the sentences of SPACY words to out[row] of the texts that are `wanted`.

    As explosion/spaCy `spacy/pipeline/sentencizer.pyx`: each begins at the first word that is no punctuation after an
    end. Every one of the `kept_lines` is a document of its own, and has a sentence even if it is empty.
    """
    index, flags = table
    for row in range(len(wanted)):
        if wanted[row]:
            end = offsets[row + 1]
            count, ended = _count_spacy_text(row, end, offsets[row], data, words, outline, index, flags)
            out[row] = kept_lines[row] + count + (ended and tails[row])
