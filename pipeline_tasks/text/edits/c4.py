"""Removes lines and citations from texts by the line rules of C4, and counts what was removed and why."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.text.base.ascii import APOSTROPHE, DOT, EXCLAMATION_MARK, NEWLINE, QUESTION_MARK, QUOTE
from pipeline_tasks.text.base.buffers import views
from pipeline_tasks.text.base.characters import classes, trim
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.base.eight_bytes import copy
from pipeline_tasks.text.base.newlines import line_end
from pipeline_tasks.text.base.phrases import encode_phrases
from pipeline_tasks.text.edits.c4_phrases import (
    BLOCK,
    BRACE,
    CITED,
    JAVASCRIPT_PHRASE,
    LOREM_IPSUM,
    PHRASED,
    POLICY_PHRASES,
    find_phrases,
    mark_blocks,
    marked,
    searched,
)
from pipeline_tasks.text.edits.c4_sentences import (
    count_outlined_sentences,
    count_sentences,
    count_spacy_sentences,
    is_spacy_word,
)
from pipeline_tasks.text.edits.citations import MARKERS, copy_without_citations
from pipeline_tasks.text.words import cutting, outline
from pipeline_tasks.text.words.cutting import SPACY, SPLIT, Floats, cut_text
from pipeline_tasks.text.words.outline import ODD_BREAK, WIDE_STOP, read_text

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
"""Columns of COUNTS; those from LONG_WORD to POLICY are also the marks of lines that the rules remove."""

KEPT = 0
"""The mark of a line that is kept."""


class Edited(NamedTuple):
    """Texts without the lines that the rules remove, their COUNTS (rows, 10), and the mark of each line before."""

    texts: pa.Array
    counts: Floats
    removed: pa.ListArray


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
def _longest(lengths, first, last):
    """Return the code points of the longest of the words first:last, 0 if there are none."""
    longest = 0
    for word in range(first, last):
        longest = max(longest, lengths[word])
    return longest


@inlined
def _ends_like_sentence(data, begin, end):
    """Return whether a line ends with a terminal mark or a quote, and not with three dots."""
    if end == begin:
        return False
    if end - begin >= 3 and data[end - 1] == DOT and data[end - 2] == DOT and data[end - 3] == DOT:
        return False
    return data[end - 1] in (DOT, QUESTION_MARK, EXCLAMATION_MARK, QUOTE, APOSTROPHE)


@inlined
def _mark_of_phrases(phrases, javascript, policy, counts):
    """Count what a line has of phrases (bits of `find_phrases`) that do not remove it; return the mark of the line."""
    counts[LOREM] += (phrases & LOREM_IPSUM) != 0
    if javascript and phrases & JAVASCRIPT_PHRASE:
        return JAVASCRIPT
    counts[CURLY] += (phrases & BRACE) != 0
    return POLICY if policy and phrases & POLICY_PHRASES else KEPT


@inlined
def _write_line(data, first, last, words, likely, limits, search, table, kept, begin, counts):
    """Write the line data[first:last] to kept[begin:]; return (its mark, where it ends, citations cut).

    `words` are those before citations were cut; `likely` has the bits PHRASED and CITED of what the line can have.
    """
    _, min_words, terminal, citations, javascript, policy = limits
    phrases, markers = search
    end, cut = begin + last - first, 0
    if citations and likely & CITED:
        end, cut = copy_without_citations(data, first, last, markers, table, kept, begin)
    else:
        copy(data, first, last - first, kept, begin)
    if terminal and not _ends_like_sentence(kept, begin, end):
        return NO_TERMINAL, begin, 0
    if words < min_words:
        return FEW_WORDS, begin, 0
    if cut or likely & PHRASED:
        bits = find_phrases(kept, begin, end, phrases)
        mark = _mark_of_phrases(bits, javascript, policy, counts)
        if mark != KEPT:
            return mark, begin, 0
    counts[CITATIONS] += cut
    return KEPT, end, cut


@inlined
def _copy_words(source, begin, end, target, stop):
    """Copy the words begin:end of outline `source` to `target`, where they end at `stop`."""
    to = stop - end + begin
    copy(source.lengths, begin, end - begin, target.lengths, to)
    copy(source.hashes, begin, end - begin, target.hashes, to)
    copy(source.kinds, begin, end - begin, target.kinds, to)


@inlined
def _line_ends(source, line, is_last, end, last_word):
    """Return where a line of the outline ends, where the next one begins, and the first word of the next one."""
    if is_last:
        return end, end, last_word
    stop = source.places[line]
    return stop, stop + source.widths[line], source.first_words[line]


@inlined
def _count_line_sentences(kept, begin, end, kinds, word, next_word, is_outlined, table):
    """Return the sentences of the line kept[begin:end], of the words word:next_word if these are still all of it."""
    if is_outlined:
        return count_outlined_sentences(kinds, word, next_word)
    index, flags = table
    return count_sentences(kept, begin, end, index, flags)


@compiled
def _edit_lines(row, begin, end, data, rule, limits, search, table, outlines, kept, written, room, counts, removed):
    """Write the kept lines of data[begin:end]; return (bytes, words, breaks written so far, whether lines are whole).

    `removed` gets the mark of each line.

    The outline of a text whose lines are not all whole is not written to its end; it has to be read anew.
    """
    index, flags = table
    source, target = outlines
    marks, lengths, hashes, kinds = room
    size, all_words, all_breaks = written
    text_begin, whole = size, True
    any_marked = mark_blocks(data[begin:end], marks)
    longest = _longest(source.lengths, source.words_at[row], source.words_at[row + 1])
    last_line, row_words = source.breaks_at[row + 1], source.words_at[row + 1]
    has_wide_stops = (source.traits[row] & WIDE_STOP) != 0
    at = begin
    next_word = run_begin = run_end = source.words_at[row]
    for line in range(source.breaks_at[row], last_line + 1):
        if line == last_line and at == end:
            break
        # where the line and its words begin and end
        word, line_begin = next_word, at
        stop, at, next_word = _line_ends(source, line, line == last_line, end, row_words)
        first, last = trim(data, line_begin, stop, index, flags)
        counts[LINES] += 1
        # the words as the rule counts them
        words, line_longest = next_word - word, 0
        if rule != SPLIT:
            words = cut_text(data, first, last, rule, index, flags, lengths, hashes, kinds)
            line_longest = _longest(lengths, 0, words)
        elif longest > limits[0]:
            line_longest = _longest(source.lengths, word, next_word)
        nth = line - source.breaks_at[row]
        if line_longest > limits[0]:
            removed[nth] = LONG_WORD
            counts[LONG_WORD] += 1
            continue
        # the line itself, behind a newline unless it is the first
        line_begin = size
        if size > text_begin:
            kept[size] = NEWLINE
            line_begin = size + 1
        likely = marked(marks, first - begin, last - begin) if any_marked else np.uint8(0)
        mark, tip, cut = _write_line(data, first, last, words, likely, limits, search, table, kept, line_begin, counts)
        removed[nth] = mark
        if mark != KEPT:
            counts[mark] += 1
            continue
        counts[SENTENCES] += _count_line_sentences(
            kept, line_begin, tip, source.kinds, word, next_word, cut == 0 and not has_wide_stops, table
        )
        # its outline: runs of words that follow each other are copied at once
        if line_begin > size:
            target.places[all_breaks], target.widths[all_breaks], target.first_words[all_breaks] = size, 1, all_words
            all_breaks += 1
        whole &= cut == 0
        if whole:
            if word != run_end:
                _copy_words(source, run_begin, run_end, target, all_words)
                run_begin = word
            run_end = next_word
            all_words += next_word - word
        size = tip
    _copy_words(source, run_begin, run_end, target, all_words)
    return size, all_words, all_breaks, whole


@inlined
def _trim_text(row, kept, begin, size, table, tails):
    """Return the text kept[begin:size] without white space at its ends, and note what was trimmed in `tails`."""
    index, flags = table
    first, last = trim(kept, begin, size, index, flags)
    tails[row] = is_spacy_word(kept, last, line_end(kept, last, size))
    return first, last


@compiled
def _room(offsets, rules):
    """Return the bytes of the longest text, and of the longest that is not cut by SPLIT, at least 1."""
    longest, longest_cut = 1, 1
    for row in range(len(rules)):
        size = offsets[row + 1] - offsets[row]
        longest = max(longest, size)
        if rules[row] != SPLIT:
            longest_cut = max(longest_cut, size)
    return longest, longest_cut


@compiled
def _edit(offsets, data, rules, limits, search, table, outlines, kept, kept_offsets, tails, out, removed):
    """Write the kept lines of every text to `kept`, their outline to the second of `outlines`, its counts to `out`.

    `removed` gets the mark of each line, text by text. `tails` gets whether white space that is a word to spaCy was
    trimmed off the last line that is not blank.
    """
    index, flags = table
    source, target = outlines
    longest, longest_cut = _room(offsets, rules)
    marks = np.empty(longest // BLOCK + 1, np.uint8)
    lengths, hashes, kinds = (
        np.empty(longest_cut, np.int32),
        np.empty(longest_cut, np.uint64),
        np.empty(longest_cut, np.uint8),
    )
    room = marks, lengths, hashes, kinds
    size, words, breaks, lines = 0, 0, 0, 0
    for row in range(len(rules)):
        begin, words_begin, breaks_begin = size, words, breaks
        size, words, breaks, whole = _edit_lines(
            row, offsets[row], offsets[row + 1], data, rules[row], limits, search, table, outlines, kept,
            (size, words, breaks), room, out[row], removed[lines:],
        )  # fmt: skip
        lines += int(out[row, LINES])
        first, last = _trim_text(row, kept, begin, size, table, tails)
        target.traits[row] = source.traits[row] & ~ODD_BREAK
        if not whole or first > begin or last < size:
            for at in range(last - first):
                kept[begin + at] = kept[first + at]
            size = begin + last - first
            words, breaks, target.traits[row] = read_text(
                kept, begin, size, index, flags, target, words_begin, breaks_begin
            )
        kept_offsets[row + 1], target.words_at[row + 1], target.breaks_at[row + 1] = size, words, breaks


def edit(
    offsets: npt.NDArray[np.int64],
    data: npt.NDArray[np.uint8],
    rules: npt.NDArray[np.uint8],
    limits: LineRules,
) -> Edited:
    """Remove the lines that `limits` forbids.

    Lines are those of `str.splitlines`, stripped, and joined again by a newline. Per line, in this order: a word too
    long drops it, citations are cut out, no terminal punctuation drops it, too few words (counted before the cut)
    drop it, `lorem ipsum` is counted, `javascript` drops it, `{` is counted, a policy phrase drops it.
    """
    rows = len(offsets) - 1
    kept = np.empty(int(offsets[-1] - offsets[0]) + 1, np.uint8)
    kept_offsets, out = np.zeros(rows + 1, np.int64), np.zeros((rows, len(COUNTS)))
    tails = np.zeros(rows, np.bool_)
    source = outline.outline_of(offsets, data)
    target = outline.empty_outline(rows, len(source.lengths), len(source.places))
    search = searched(), encode_phrases(MARKERS)
    numbers = tuple(map(float, limits[:6]))
    removed = np.zeros(len(source.places) + rows, np.uint8)
    _edit(offsets, data, rules, numbers, search, classes(), (source, target), kept, kept_offsets, tails, out, removed)
    buffer = pa.py_buffer(kept).slice(0, int(kept_offsets[-1]))
    edited = pa.LargeStringArray.from_buffers(rows, pa.py_buffer(kept_offsets), buffer)
    outlined = outline.set_outline(*views(edited), outline.trim_outline(target))
    if limits.sentences is not None:
        words = cutting.words_of(*views(edited), limits.sentences)
        kept_lines = out[:, LINES] - out[:, LONG_WORD : POLICY + 1].sum(axis=1)
        wanted, sentences = limits.sentences == SPACY, out[:, SENTENCES]
        count_spacy_sentences(*views(edited), words, outlined, wanted, kept_lines, tails, classes(), sentences)
    ends = np.concatenate([np.zeros(1), np.cumsum(out[:, LINES])]).astype(np.int32)
    return Edited(edited, out, pa.ListArray.from_arrays(pa.array(ends), pa.array(removed[: ends[-1]])))
