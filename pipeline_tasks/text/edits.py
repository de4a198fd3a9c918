"""Removes lines and citations from texts by the line rules of C4, and counts what was removed and why."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.text.compiled import compiled
from pipeline_tasks.text.letters import ASCII_END, DIGIT, SPACE, TERMINAL, WORD, class_of, classes, decode, trim
from pipeline_tasks.text.lines import next_break
from pipeline_tasks.text.words import MARKS, SPACY, SPLIT, STOPS, Floats, counted, cut, longest

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


OPENING, CLOSING = 0x5B, 0x5D


class LineRules(NamedTuple):
    """The line rules; numbers, so that the compiled loop takes them as they are.

    `sentences` says per text whether they are counted over the words of `words.SPACY`; None: nowhere.
    """

    max_word_length: float
    min_words: float
    require_terminal: bool
    remove_citations: bool
    drop_javascript: bool
    drop_policy: bool
    sentences: npt.NDArray[np.bool_] | None = None


@compiled
def _starts_with(data, at, end, phrases, begin, stop):  # type: ignore[no-untyped-def]
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


@compiled
def _found(data, begin, end, phrases, ends, first_letters):  # type: ignore[no-untyped-def]
    """Return a bit per phrase that occurs in data[begin:end]."""
    found = 0
    for at in range(begin, end):
        if first_letters[data[at]]:
            for phrase in range(len(ends) - 1):
                if _starts_with(data, at, end, phrases, ends[phrase], ends[phrase + 1]):
                    found |= 1 << phrase
    return found


@compiled
def _citation(data, at, end, markers, ends, index, flags):  # type: ignore[no-untyped-def]
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


@compiled
def _sentences(data, begin, end, index, flags):  # type: ignore[no-untyped-def]
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


@compiled
def _tokenized_sentences(words, kinds):  # type: ignore[no-untyped-def]
    """Return the sentences of SPACY words: each begins at the first word that is no punctuation after an end.

    As explosion/spaCy `spacy/pipeline/sentencizer.pyx`.
    """
    count, ended = min(words, 1), False
    for word in range(words):
        if kinds[word] & STOPS:
            ended = True
        elif ended and not kinds[word] & MARKS:
            count, ended = count + 1, False
    return count


@compiled
def _edit(offsets, data, rules, limits, tokenized, phrases, markers, table, kept, kept_offsets, out):  # type: ignore[no-untyped-def]
    """Write the kept lines of every text to `kept` and its counts to `out`."""
    max_word, min_words, terminal, citations, javascript, policy = limits
    index, flags = table
    letters, ends, firsts = phrases
    marker_letters, marker_ends = markers
    room = longest(offsets)
    lengths, hashes, kinds = np.empty(room, np.int32), np.empty(room, np.uint64), np.empty(room, np.uint8)
    size = 0
    for row in range(len(offsets) - 1):
        at, end = offsets[row], offsets[row + 1]
        text_begin = size
        while at < end:
            stop, following = next_break(data, at, end, index, flags)
            first, last = trim(data, at, stop, index, flags)
            at = following
            out[row, LINES] += 1
            if rules[row] == SPLIT:
                words, most = counted(data, first, last, index, flags)
            else:
                words = cut(data, first, last, rules[row], index, flags, lengths, hashes, kinds)
                most = lengths[:words].max() if words else 0
            if most > max_word:
                out[row, LONG_WORD] += 1
                continue
            begin = size
            if size > text_begin:
                kept[size] = 0x0A
                begin += 1
            tip, removed, place = begin, 0, first
            while place < last:
                if citations and data[place] == OPENING:
                    after = _citation(data, place, last, marker_letters, marker_ends, index, flags)
                    if after > place:
                        removed += 1
                        place = after
                        continue
                kept[tip] = data[place]
                tip += 1
                place += 1
            closed = tip > begin and kept[tip - 1] in (0x2E, 0x3F, 0x21, 0x22, 0x27)
            dotted = tip - begin >= 3 and kept[tip - 1] == 0x2E and kept[tip - 2] == 0x2E and kept[tip - 3] == 0x2E
            if terminal and (not closed or dotted):
                out[row, NO_TERMINAL] += 1
                continue
            if words < min_words:
                out[row, FEW_WORDS] += 1
                continue
            found = _found(kept, begin, tip, letters, ends, firsts)
            out[row, LOREM] += found & 1
            if javascript and found & 2:
                out[row, JAVASCRIPT] += 1
                continue
            out[row, CURLY] += found >> 2 & 1
            if policy and found >> 3:
                out[row, POLICY] += 1
                continue
            out[row, CITATIONS] += removed
            if tokenized[row]:
                words = cut(kept, begin, tip, SPACY, index, flags, lengths, hashes, kinds)
                out[row, SENTENCES] += _tokenized_sentences(words, kinds)
            else:
                out[row, SENTENCES] += _sentences(kept, begin, tip, index, flags)
            size = tip
        first, last = trim(kept, text_begin, size, index, flags)
        for place in range(last - first):
            kept[text_begin + place] = kept[first + place]
        size = text_begin + last - first
        kept_offsets[row + 1] = size


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
    tokenized = np.zeros(rows, np.bool_) if limits.sentences is None else limits.sentences
    phrases, numbers = (*_spelled(PHRASES), firsts), tuple(map(float, limits[:6]))
    _edit(offsets, data, rules, numbers, tokenized, phrases, _spelled(MARKERS), classes(), kept, kept_offsets, out)
    left = pa.py_buffer(kept[: kept_offsets[-1]].copy())
    return pa.LargeStringArray.from_buffers(rows, pa.py_buffer(kept_offsets), left), out


def _spelled(phrases: tuple[str, ...]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return the bytes of all phrases in a row, and where each ends."""
    ends = np.cumsum([0, *(len(phrase) for phrase in phrases)])
    return np.frombuffer("".join(phrases).encode(), np.uint8), ends.astype(np.int64)
