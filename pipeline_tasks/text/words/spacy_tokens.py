"""Cuts English words as spaCy's blank English tokenizer does: exceptions, prefixes, suffixes, infixes, URLs.

The algorithm is that of explosion/spaCy 3.8 `spacy/tokenizer.pyx` (MIT), written anew over bytes. Left out: letters of
title case next to signs (U+01C5), top-level domains beyond U+FFFF, marks and digits beyond ASCII in schemes, ports and
IP numbers, and exceptions that upstream leaves cut apart because the word before them begins another one
(`well) :)then`). spaCy fails on some texts that name its attribute IS_ALPHA, which datatrove then removes from them.
"""

import numpy as np

from pipeline_tasks.text.base.ascii import is_alphanumeric
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.words.spacy_affixes import infix_size, prefix_size, suffix_size
from pipeline_tasks.text.words.spacy_exceptions import LONGEST, exception_parts
from pipeline_tasks.text.words.spacy_urls import is_url

MOST_MERGED = 11
"""Most adjacent words that are merged to an exception: affixes cut the longest one into so many."""


@compiled
def cut_chunk(data, begin, end, index, flags, ends, count):
    """Write where each word of data[begin:end], which has no white space, ends; return how many `ends` then has.

    `ends` must have room for a word per byte after the `count` words that it has.
    """
    held = count
    count = _cut_affixes(data, begin, end, index, flags, ends, count, excepting=True)
    if count - held > 1 and _may_merge(data, begin, ends, held, count):
        return _merge(data, begin, index, flags, ends, held, count)
    return count


@inlined
def _cut_affixes(data, begin, end, index, flags, ends, count, excepting):
    """Cut prefixes, suffixes and infixes off as `cut_chunk` does; `excepting` keeps exceptions that this lays bare.

    Suffixes are cut off from the last to the first, so their ends are kept at the end of `ends` until then.
    """
    first, last, suffixes, size = begin, end, 0, -1
    room = len(ends)
    # cut one prefix and one suffix at a time, until there is none or an exception is left
    while first < last and last - first != size:
        if _is_exception(data, first, last, excepting):
            break
        size = last - first
        before = prefix_size(data, first, last, index, flags)
        if before and _is_exception(data, first + before, last, excepting):
            first += before
            ends[count] = first
            count += 1
            break
        after = suffix_size(data, first + before, last, index, flags)
        if after:
            suffixes += 1
            ends[room - suffixes] = last
            last -= after
            if _is_exception(data, first, last, excepting):
                break
        if before:
            first += before
            ends[count] = first
            count += 1
    if first < last:
        count = _cut_rest(data, first, last, index, flags, ends, count, excepting)
    for place in range(suffixes, 0, -1):
        ends[count] = ends[room - place]
        count += 1
    return count


@inlined
def _is_exception(data, begin, end, excepting):
    """Return whether data[begin:end] is an exception that is to be kept."""
    return excepting and exception_parts(data, begin, end) != 0


@inlined
def _cut_rest(data, first, last, index, flags, ends, count, excepting):
    """Cut what affixes leave: an exception into its parts, all else at infixes."""
    parts = exception_parts(data, first, last) if excepting else 0
    if parts:
        return _write_parts(parts, first, ends, count)
    return _cut_infixes(data, first, last, index, flags, ends, count)


@inlined
def _write_parts(parts, start, ends, count):
    """Write where the parts of an exception that begins at `start` end; return the words in `ends` then."""
    while parts:
        start += parts & 255
        parts >>= 8
        ends[count] = start
        count += 1
    return count


@inlined
def _has_sign(data, begin, end):
    """Return whether some byte is no ASCII letter or digit: only such an exception can have been cut by affixes."""
    for at in range(begin, end):
        if not is_alphanumeric(data[at]):
            return True
    return False


@inlined
def _merged_parts(data, begin, end):
    """Return the packed part sizes of an exception that several words may spell, 0 for none."""
    parts = exception_parts(data, begin, end)
    return parts if parts and _has_sign(data, begin, end) else 0


@inlined
def _may_merge(data, begin, ends, held, count):
    """Return whether some adjacent words spell an exception."""
    for read in range(held, count - 1):
        other = read + 1
        while other < count and ends[other] - begin <= LONGEST:
            if _merged_parts(data, begin, ends[other]):
                return True
            other += 1
        begin = ends[read]
    return False


@compiled
def _merge(data, begin, index, flags, ends, held, count):
    """Merge adjacent words that together spell an exception, and cut it into its parts; return the words in `ends`.

    The words are merged if affixes alone would cut the exception as they are cut. The longest exception is merged
    first, the earliest of equals. As upstream, an exception that overlaps a merged one stays cut, and so does one that
    overlaps that.
    """
    words = count - held
    starts, spare = np.empty(words + 1, np.int64), np.empty(2 * LONGEST, np.int64)
    merged, sizes, taken = np.zeros(words, np.int64), np.ones(words, np.int64), np.zeros(words, np.bool_)
    starts[0] = begin
    for place in range(words):
        starts[place + 1] = ends[held + place]
    for size in range(min(words, MOST_MERGED), 1, -1):
        for at in range(words + 1 - size):
            first, last = starts[at], starts[at + size]
            parts = _merged_parts(data, first, last) if last - first <= LONGEST else 0
            if parts and _cut_affixes(data, first, last, index, flags, spare, 0, excepting=False) == size:
                same, free = True, not (taken[at] or taken[at + size - 1])
                for place in range(size):
                    same &= spare[place] == starts[at + place + 1]
                if same and free:
                    merged[at], sizes[at] = parts, size
                if same:
                    taken[at : at + size] = True
    at, count = 0, held
    while at < words:
        if merged[at]:
            count = _write_parts(merged[at], starts[at], ends, count)
        else:
            ends[count] = starts[at + 1]
            count += 1
        at += sizes[at]
    return count


@inlined
def _cut_infixes(data, first, last, index, flags, ends, count):
    """Write the ends of the words between infixes, and of infixes; a URL stays whole."""
    start, at, url_checked = first, first, False
    while at < last:
        if is_alphanumeric(data[at]):
            at += 1
            continue
        width = infix_size(data, first, at, last, index, flags)
        if width == 0:
            at += 1
            while at < last and (data[at] & 0xC0) == 0x80:
                at += 1
            continue
        if at > first:
            if not url_checked:
                url_checked = True
                if is_url(data, first, last, index, flags):
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
