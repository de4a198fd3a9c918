"""Finds the lines at the beginning and the end of texts, and the runs of them that a site repeats."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.text.base.ascii import COLON, DOT, HYPHEN, ZERO, is_digit
from pipeline_tasks.text.base.buffers import views
from pipeline_tasks.text.base.characters import classes
from pipeline_tasks.text.base.compiled import compiled
from pipeline_tasks.text.base.hashing import absorb, mix
from pipeline_tasks.text.edits.line_kinds import CODE, PROSE, ROW, SHORT, WORDY, is_item, kind_of
from pipeline_tasks.text.edits.paragraphs import Flags, Ints, Parts

HEAD, TAIL = 1, 2
"""Sides of a text."""

NUMBERS = 3
"""Numbers in a row, parted by dots, hyphens or colons, from which on they are a version or a time, as in `2.24.1`."""


class Edges(NamedTuple):
    """The lines near a side of their text: which part, which side, two hashes of site, side and line, has a version."""

    part: Ints
    side: npt.NDArray[np.uint8]
    hash: Ints
    check: Ints
    versioned: Flags

    def of(self, kept: Flags) -> "Edges":
        """Return the lines that are `kept`."""
        return Edges(self.part[kept], self.side[kept], self.hash[kept], self.check[kept], self.versioned[kept])


@compiled
def _numbers_end(data, at, end):
    """Return where the numbers that begin at `at` end, and how many they are."""
    count = 0
    while at < end and is_digit(data[at]):
        while at < end and is_digit(data[at]):
            at += 1
        count += 1
        parts = at + 1 < end and (data[at] == DOT or data[at] == HYPHEN or data[at] == COLON)
        if not parts or not is_digit(data[at + 1]):
            break
        at += 1
    return at, count


@compiled
def _folded(data, begin, end, folds):
    """Return two hashes of data[begin:end], with every version as the same if it `folds`, and whether it has one."""
    key, check, at, versioned = np.uint64(0), ~np.uint64(0), begin, False
    while at < end:
        byte, after = data[at], at + 1
        if is_digit(byte):
            stop, count = _numbers_end(data, at, end)
            if folds and count >= NUMBERS:
                byte, after, versioned = np.uint8(ZERO), stop, True
        key = absorb(key, np.uint64(byte))
        check = mix(check ^ np.uint64(byte))
        at = after
    return mix(key), mix(check), versioned


@compiled
def _edges(data, doc, places, sites, depth, index, flags, part, side, keys, versions):
    """Write the edge lines of every text that can be a template; return how many there are."""
    count, first = 0, 0
    while first < len(doc):
        last = first
        while last + 1 < len(doc) and doc[last + 1] == doc[first]:
            last += 1
        site = sites[doc[first]]
        for at in range(first, last + 1):
            if min(at - first, last - at) >= depth:
                continue
            kind = kind_of(data, places[at, 0], places[at, 1], index, flags)
            if kind & (WORDY | SHORT) != WORDY | SHORT or kind & (PROSE | ROW | CODE):
                continue
            for of in (HEAD, TAIL):
                from_edge = at - first if of == HEAD else last - at
                if from_edge >= depth:
                    continue
                key, check, versioned = _folded(data, places[at, 0], places[at, 1], of == TAIL)
                salt = mix(site + np.uint64(of))
                part[count], side[count], versions[count] = at, of, versioned
                keys[0, count] = mix(key ^ salt)
                keys[1, count] = mix(check + salt)
                count += 1
        first = last + 1
    return count


def edge_lines(texts: pa.Array, parts: Parts, sites: npt.NDArray[np.uint64], depth: int) -> Edges:
    """Return those of the first and last `depth` lines of each text that can be templates; `sites` is its number.

    That is a short line with letters which is no sentence of prose, no row of a table and no code. Last lines that
    differ in a version or a time alone are equal; first ones may be headlines.
    """
    _, data = views(texts)
    room = 2 * len(parts.doc)
    part, side, versions = np.empty(room, np.int64), np.empty(room, np.uint8), np.empty(room, np.bool_)
    keys = np.empty((2, room), np.uint64)
    count = _edges(data, parts.doc, parts.bytes, sites, depth, *classes(), part, side, keys, versions)
    signed = keys[:, :count].view(np.int64)
    return Edges(part[:count], side[:count], signed[0], signed[1], versions[:count])


@compiled
def _run_end(data, places, at, stop, step, is_template):
    """Return the line behind the run of templates that begins at `at`; a list is in it as a whole, or not at all."""
    while at != stop and is_template[at]:
        after = at
        while after != stop and is_item(data, places[after, 0], places[after, 1]) and is_template[after]:
            after += step
        if after == at:
            at += step
        elif after != stop and is_item(data, places[after, 0], places[after, 1]):
            break
        else:
            at = after
    return at


@compiled
def _runs(data, doc, places, points, at_head, at_tail, versioned, least_head, most, removed):
    """Mark the runs of templates from both sides of each text, unless they are more than a share of it."""
    first = 0
    while first < len(doc):
        last = first
        while last + 1 < len(doc) and doc[last + 1] == doc[first]:
            last += 1
        head = _run_end(data, places, first, last + 1, 1, at_head)
        if head - first < least_head:
            head = first
        tail = last
        if tail > head and versioned[tail] and at_tail[tail - 1]:
            above = tail - 1
            tail -= not at_tail[tail] and not is_item(data, places[above, 0], places[above, 1])
        tail = _run_end(data, places, tail, head - 1, -1, at_tail)
        cut = 0
        for at in range(first, last + 1):
            if at < head or at > tail:
                cut += points[at, 2] - points[at, 0]
        if cut <= most * (points[last, 2] - points[first, 0]):
            for at in range(first, last + 1):
                removed[at] = at < head or at > tail
        first = last + 1


def template_runs(texts: pa.Array, parts: Parts, edges: Edges, repeated: Flags, least_head: int, most: float) -> Flags:
    """Return for every part whether it is in a run of `repeated` edge lines that begins at its side of the text.

    A run at the head has at least `least_head` lines: a single one may be the heading of what follows. A last line with
    a version is in the run that ends above it. A list of which a line is no template is in no run. Where the runs of a
    text have more than a share `most` of its code points, nothing of it is in a run.
    """
    sides = np.zeros((3, len(parts.doc)), np.bool_)
    for row, of in enumerate((HEAD, TAIL)):
        sides[row, edges.part[repeated & (edges.side == of)]] = True
    sides[2, edges.part[edges.versioned]] = True
    removed = np.zeros(len(parts.doc), np.bool_)
    _runs(views(texts)[1], parts.doc, parts.bytes, parts.points, *sides, least_head, most, removed)
    return removed
