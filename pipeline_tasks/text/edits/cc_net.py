"""Normalizes lines to the form in which cc_net compares them, and keeps the first of equal lines of a text."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.text.base.ascii import NEWLINE
from pipeline_tasks.text.base.buffers import views
from pipeline_tasks.text.base.characters import classes, trim
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.base.eight_bytes import hash_and_points, hash_bytes
from pipeline_tasks.text.base.newlines import line_end
from pipeline_tasks.text.base.numbering import number_distinct, numbering_table
from pipeline_tasks.text.base.replacing import replace_invalid_utf8

MARKS = {
    "\uff0c": ",", "\u3002": ".", "\u3001": ",", "\u201e": '"', "\u201d": '"', "\u201c": '"', "\u00ab": '"',
    "\u00bb": '"', "\uff11": '"', "\u300d": '"', "\u300c": '"', "\u300a": '"', "\u300b": '"', "\u00b4": "'",
    "\u2236": ":", "\uff1a": ":", "\uff1f": "?", "\uff01": "!", "\uff08": "(", "\uff09": ")", "\uff1b": ";",
    "\u2013": "-", "\u2014": " - ", "\uff0e": ". ", "\uff5e": "~", "\u2019": "'", "\u2026": "...", "\u2501": "-",
    "\u3008": "<", "\u3009": ">", "\u3010": "[", "\u3011": "]", "\uff05": "%", "\u25ba": "-",
}  # fmt: skip
"""Punctuation of facebookresearch/cc_net `cc_net/text_normalizer.py` and its ASCII; the fullwidth 1 is theirs."""

ANY_MARK = f"[{''.join(MARKS)}]"
DROPPED = rf"[{''.join(MARKS)}\x00-\x09\x0b-\x1f\x7f-\x{{9f}}]"
"""Marks and control characters, but newlines, which separate the lines."""

WHITE = r"[\t\v\f\r\x1c-\x1f\x{85}\p{Z}]+"
MARGINS = rf"(?m)^{WHITE}|{WHITE}$"
"""What `str.strip` removes from lines."""

UNLIKE_ARROW = "[\u0130\u03a3]"
"""Letters that `str.lower` writes as two, or by their neighbors; `utf8_lower` has one small letter for each."""


def ascii_marks(texts: pa.Array) -> pa.Array:
    """Return texts with Unicode punctuation as ASCII (`replace_unicode_punct`)."""
    matches = pc.match_substring_regex(texts, ANY_MARK)
    if pc.any(matches).as_py():
        for mark, plain in MARKS.items():
            texts = pc.replace_substring(texts, mark, plain)
    return texts


def zero_digits(texts: pa.Array) -> pa.Array:
    """Return texts with every decimal digit of any script as 0."""
    return pc.replace_substring_regex(texts, r"\p{Nd}", "0")


def line_keys(texts: pa.Array) -> pa.Array:
    """Return texts whose lines are equal where cc_net takes them to be equal (`normalize_for_dedup`).

    Stripped, in lower case, digits as 0, without marks and control characters. The number of lines does not change.
    """
    stripped = pc.replace_substring_regex(texts, MARGINS, "")
    return pc.replace_substring_regex(zero_digits(_lower(stripped)), DROPPED, "")


def _lower(texts: pa.Array) -> pa.Array:
    """Return texts as `str.lower` has them."""
    lower, unlike = pc.utf8_lower(texts), pc.match_substring_regex(texts, UNLIKE_ARROW)
    lowered = [text.lower() for text in texts.filter(unlike).to_pylist()]
    return pc.replace_with_mask(lower, unlike, pa.array(lowered, lower.type))


@inlined
def _hash_lines(data, at, end, key_data, key, key_end, index, flags, hashes):
    """Write the hash of the key of every line of data[at:end] that is not blank; return how many, and their points."""
    count, points = 0, 0
    while at <= end:
        stop, key_stop = line_end(data, at, end), line_end(key_data, key, key_end)
        first, last = trim(data, at, stop, index, flags)
        if first < last:
            hashes[count] = hash_bytes(key_data, key, key_stop)
            points += hash_and_points(data, first, last)[1]
            count += 1
        at, key = stop + 1, key_stop + 1
    return count, points


@compiled
def _remove_repeats(offsets, data, key_offsets, key_data, table, kept, kept_offsets, out, marks):
    """Write the texts without repeated lines to `kept`; fill out[row] with lines, their length, and repeated lines.

    Unless `marks` has no room, it gets 1 for every byte of a repeated line and the newline before it, 2 for a newline
    that is not needed, 0 for what is kept.
    """
    index, flags = table
    size, traced = 0, len(marks) > 0
    for row in range(len(offsets) - 1):
        at, end, key, key_end = offsets[row], offsets[row + 1], key_offsets[row], key_offsets[row + 1]
        room = 1
        for byte in range(at, end):
            room += data[byte] == NEWLINE
        hashes, names = np.empty(room, np.uint64), np.empty(room, np.int32)
        count, points = _hash_lines(data, at, end, key_data, key, key_end, index, flags, hashes)
        number_distinct(hashes, count, numbering_table(count), names)
        begin, tail, line, different = size, at, 0, 0
        while at <= end:
            stop = line_end(data, at, end)
            first, last = trim(data, at, stop, index, flags)
            repeats = False
            if first < last:
                repeats = names[line] < different
                different += not repeats
                line += 1
            if traced and repeats:
                marks[tail:stop] = 1
            elif traced and size == begin:
                marks[tail:at] = 2
            if not repeats:
                if size > begin:
                    kept[size] = NEWLINE
                    size += 1
                kept[size : size + stop - at] = data[at:stop]
                size += stop - at
            at, tail = stop + 1, stop
        out[row, 0], out[row, 1], out[row, 2] = count, points + max(count - 1, 0), count - different
        kept_offsets[row + 1] = size


def remove_repeats(texts: pa.Array) -> tuple[pa.Array, npt.NDArray[np.float64]]:
    """Return texts without the lines equal (by `line_keys`) to an earlier one, and per text counts, shape (rows, 3).

    Counts: lines that are not blank, their code points (stripped, joined by newlines), and those that repeat one.
    Blank lines are kept.
    """
    edited, counts, _ = _edit(texts, traced=False)
    return edited, counts


def mark_repeats(texts: pa.Array) -> npt.NDArray[np.uint8]:
    """Return 1 for every byte removed with a repeated line, 2 for a newline before all other bytes, else 0."""
    return _edit(texts, traced=True)[2]


def _edit(texts: pa.Array, *, traced: bool) -> tuple[pa.Array, npt.NDArray[np.float64], npt.NDArray[np.uint8]]:
    offsets, data = views(texts)
    key_offsets, key_data = views(line_keys(pc.fill_null(replace_invalid_utf8(texts).cast(pa.large_string()), "")))
    rows = len(offsets) - 1
    kept = np.empty(int(offsets[-1] - offsets[0]) + 1, np.uint8)
    kept_offsets, out = np.zeros(rows + 1, np.int64), np.zeros((rows, 3))
    marks = np.zeros(len(data) if traced else 0, np.uint8)
    _remove_repeats(offsets, data, key_offsets, key_data, classes(), kept, kept_offsets, out, marks)
    buffer = pa.py_buffer(kept[: kept_offsets[-1]].copy())
    return pa.LargeStringArray.from_buffers(rows, pa.py_buffer(kept_offsets), buffer), out, marks
