"""Keeps what was decided on each block of a page: its score, whether it was kept, and where the text has it."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.schema import BLOCK
from pipeline_tasks.text.base.ascii import NEWLINE, starts_character
from pipeline_tasks.text.base.buffers import views
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.blocks.model import POINT
from pipeline_tasks.text.page.normal_form import normalize
from pipeline_tasks.text.page.sandbox_messages import Result

STEPS = 6
"""Binary digits of a stored score behind the point: 64 is a log-odds of 1, as finely as the choice tells scores."""

_FIELDS = 6
SCORE, WORDS, KEPT, START, END, PAGE = range(_FIELDS)

CERTAIN = ((1 << 15) - 1) << (POINT - STEPS)
"""The score of a block that is text by whatever choice: one of a file, and not of a page."""

_AHEAD = 1000  # lines that are looked through for a block: as many as a recipe's lists can add before one


def packed(
    scores: npt.NDArray[np.int32], words: npt.NDArray[np.int32], starts: npt.NDArray[np.int64], size: int
) -> npt.NDArray[np.int32]:
    """Return a row for each block: score, words, 1 if its text is written, the bytes [start, end) that it has, no page.

    `starts` are those in a text of `size` bytes, -1 of blocks that it does not have; they ascend.
    """
    kept = starts >= 0
    ends = np.full(len(starts), -1, np.int64)
    ends[kept] = np.append(starts[kept], size)[1:]
    return np.stack([scores, words, kept, starts, ends, np.full(len(starts), -1)], 1).astype(np.int32)


def moved(rows: npt.NDArray[np.int32], text: bytes, longer: bytes) -> npt.NDArray[np.int32]:
    """Return the rows of a text's blocks for a text that has lines besides; -1 where a block was parted by them."""
    rows, at = rows.copy(), 0
    for row in np.flatnonzero(rows[:, KEPT]):
        piece = text[rows[row, START] : rows[row, END]].rstrip(b"\n")
        found = longer.find(piece, at)
        at = found + len(piece) if found >= 0 else at
        rows[row, [START, END]] = (found, at) if found >= 0 else -1
    return rows


def unpacked(blocks: bytes | memoryview) -> npt.NDArray[np.int32]:
    """Return the rows of `packed` of their bytes."""
    return np.frombuffer(blocks, np.int32).reshape(-1, _FIELDS)


def block_column(results: Sequence[Result], texts: pa.Array) -> pa.Array:
    """Return the blocks of each page as `schema.BLOCK`, null where another method than `blocks` read it.

    `texts` are those of the results in normal form. A block that was changed or cut since it was written has no place
    there. Takes time linear in the texts.
    """
    chosen = [result for result in results if result.blocks is not None]
    if not chosen:
        return pa.nulls(len(results), pa.list_(BLOCK))
    counts = np.array([-1 if result.blocks is None else len(result.blocks) // (4 * _FIELDS) for result in results])
    rows = unpacked(b"".join(result.blocks or b"" for result in chosen))
    docs = np.repeat(np.arange(len(results)), np.maximum(counts, 0))
    bases = np.cumsum([0, *(len(result.text) if result.blocks is not None else 0 for result in results)])
    written = np.flatnonzero(rows[:, START] >= 0)
    places = np.full((len(rows), 2), -1, np.int32)
    bounds = (rows[written, START : END + 1] + bases[docs[written], None]).reshape(-1)
    if len(written):
        pieces = _normal(b"".join(result.text for result in chosen), bounds)
        _find(written, docs, *views(texts), *views(pieces), places)
    return _lists(rows, places, counts)


def _normal(data: bytes, bounds: npt.NDArray[np.int64]) -> pa.Array:
    """Return data[bounds[0] : bounds[1]] and so on in normal form: pieces, with what is between them."""
    parts = pa.LargeStringArray.from_buffers(len(bounds) - 1, pa.py_buffer(bounds.astype(np.int64)), pa.py_buffer(data))
    return normalize(parts).texts


@compiled
def _find(blocks, docs, offsets, data, bounds, pieces, places):
    """Write where each text has the pieces of its blocks, in order, as code points: every other one is a block's."""
    doc, at, points = -1, 0, 0
    for nth in range(len(blocks)):
        if docs[blocks[nth]] != doc:
            doc, points = docs[blocks[nth]], 0
            at = offsets[doc]
        first, last = bounds[2 * nth], bounds[2 * nth + 1]
        found = _found(data, at, offsets[doc + 1], pieces, first, last)
        if found < 0:
            continue
        points += _points(data, at, found)
        places[blocks[nth], 0] = points
        at = found + last - first
        points += _points(data, found, at)
        places[blocks[nth], 1] = points


@inlined
def _found(data, at, end, pieces, first, last):
    """Return where a piece is whole lines of data[at:end]; -1 if it is nowhere, or is empty."""
    lines = 0
    while first < last and at + last - first <= end and lines < _AHEAD:
        same = 0
        while first + same < last and data[at + same] == pieces[first + same]:
            same += 1
        if first + same == last and (at + same == end or data[at + same] == NEWLINE):
            return at
        while at < end and data[at] != NEWLINE:
            at += 1
        while at < end and data[at] == NEWLINE:
            at += 1
        lines += 1
    return -1


@inlined
def _points(data, start, end):
    count = 0
    for at in range(start, end):
        count += starts_character(data[at])
    return count


def _lists(rows: npt.NDArray[np.int32], places: npt.NDArray[np.int32], counts: npt.NDArray[np.int64]) -> pa.ListArray:
    """Return the rows as lists of `schema.BLOCK`, so many each; -1 is null."""
    scores = np.clip(rows[:, SCORE] >> (POINT - STEPS), -(1 << 15), (1 << 15) - 1).astype(np.int16)
    is_lost = places[:, 0] < 0
    fields = [
        pa.array(scores),
        pa.array(rows[:, WORDS]),
        pa.array(rows[:, KEPT] > 0),
        *(pa.array(places[:, side], mask=is_lost) for side in (0, 1)),
        pa.array(rows[:, PAGE], mask=rows[:, PAGE] < 0),
    ]
    offsets = np.append(0, np.cumsum(np.maximum(counts, 0))).astype(np.int32)
    starts = pa.array(offsets, mask=np.append(counts < 0, False))
    return pa.ListArray.from_arrays(starts, pa.StructArray.from_arrays(fields, fields=list(BLOCK)))
