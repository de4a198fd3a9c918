"""Finds the lines at the beginning and the end of texts, and the runs of them that a site repeats."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.text.base.ascii import is_letter
from pipeline_tasks.text.base.buffers import views
from pipeline_tasks.text.base.compiled import compiled
from pipeline_tasks.text.base.hashing import mix
from pipeline_tasks.text.edits.paragraphs import Flags, Ints, Parts

HEAD, TAIL = 1, 2
"""Sides of a text."""

LETTERS = 3
"""Letters of a line that can be a template: brackets and marks end code and tables, too."""


class Edges(NamedTuple):
    """The lines near a side of their text: which part, which side, and two hashes of site, side and line."""

    part: Ints
    side: npt.NDArray[np.uint8]
    hash: Ints
    check: Ints

    def of(self, kept: Flags) -> "Edges":
        """Return the lines that are `kept`."""
        return Edges(self.part[kept], self.side[kept], self.hash[kept], self.check[kept])


@compiled
def _letters(data, begin, end):
    """Return the letters of data[begin:end] up to LETTERS; each character that is not ASCII counts as one."""
    count, at = 0, begin
    while at < end and count < LETTERS:
        count += is_letter(data[at]) or data[at] >= np.uint8(0xC0)
        at += 1
    return count


@compiled
def _edges(data, doc, places, hashes, sites, depth, part, side, keys):
    """Write the edge lines of every text; return how many there are."""
    count, first = 0, 0
    while first < len(doc):
        last = first
        while last + 1 < len(doc) and doc[last + 1] == doc[first]:
            last += 1
        site = sites[doc[first]]
        for at in range(first, last + 1):
            if _letters(data, places[at, 0], places[at, 1]) < LETTERS:
                continue
            for of in (HEAD, TAIL):
                from_edge = at - first if of == HEAD else last - at
                if from_edge >= depth:
                    continue
                salt = mix(site + np.uint64(of))
                part[count], side[count] = at, of
                keys[0, count] = mix(np.uint64(hashes[0, at]) ^ salt)
                keys[1, count] = mix(np.uint64(hashes[1, at]) + salt)
                count += 1
        first = last + 1
    return count


def edge_lines(texts: pa.Array, parts: Parts, sites: npt.NDArray[np.uint64], depth: int) -> Edges:
    """Return the first and the last `depth` lines of each text that have letters; `sites` is a number per text."""
    _, data = views(texts)
    part, side = np.empty(2 * len(parts.doc), np.int64), np.empty(2 * len(parts.doc), np.uint8)
    keys = np.empty((2, 2 * len(parts.doc)), np.uint64)
    hashes = np.stack([parts.hash, parts.check])
    count = _edges(data, parts.doc, parts.bytes, hashes, sites, depth, part, side, keys)
    signed = keys[:, :count].view(np.int64)
    return Edges(part[:count], side[:count], signed[0], signed[1])


@compiled
def _runs(doc, points, at_head, at_tail, least_head, most, removed):
    """Mark the runs of templates from both sides of each text, unless they are more than a share of it."""
    first = 0
    while first < len(doc):
        last = first
        while last + 1 < len(doc) and doc[last + 1] == doc[first]:
            last += 1
        head, tail = first, last
        while head <= last and at_head[head]:
            head += 1
        if head - first < least_head:
            head = first
        while tail >= head and at_tail[tail]:
            tail -= 1
        cut = 0
        for at in range(first, last + 1):
            if at < head or at > tail:
                cut += points[at, 2] - points[at, 0]
        if cut <= most * (points[last, 2] - points[first, 0]):
            for at in range(first, last + 1):
                removed[at] = at < head or at > tail
        first = last + 1


def template_runs(parts: Parts, edges: Edges, repeated: Flags, least_head: int, most: float) -> Flags:
    """Return for every part whether it is in a run of `repeated` edge lines that begins at its side of the text.

    A run at the head has at least `least_head` lines: a single one may be the heading of what follows. Where the runs
    of a text have more than a share `most` of its code points, nothing of it is in a run.
    """
    sides = np.zeros((2, len(parts.doc)), np.bool_)
    for row, of in enumerate((HEAD, TAIL)):
        sides[row, edges.part[repeated & (edges.side == of)]] = True
    removed = np.zeros(len(parts.doc), np.bool_)
    _runs(parts.doc, parts.points, sides[0], sides[1], least_head, most, removed)
    return removed
