"""The rules that a page draws: horizontal and vertical lines, and sides of boxes."""

import ctypes
from typing import NamedTuple

import numpy as np
from pypdfium2 import raw

from refinery_files.pdf import pdfium

# in points: what is thinner is a line
_THIN = 3.0
_SHORT = 4.0
# a page of more paths is a drawing
_MOST_PATHS = 5_000
_MOST_SEGMENTS = 2_000
# a path of more segments is more than a box
_BOX_SEGMENTS = 6


class Rules(NamedTuple):
    """Horizontal rules as rows of (left, right, y), and vertical ones as rows of (top, bottom, x); y is downwards."""

    across: np.ndarray
    down: np.ndarray


NONE = Rules(np.zeros((0, 3)), np.zeros((0, 3)))


def read_rules(objects: list[int], kinds: np.ndarray) -> Rules:
    """Return the rules that a page's objects draw."""
    paths = [one for one, kind in zip(objects, kinds.tolist(), strict=True) if kind == raw.FPDF_PAGEOBJ_PATH]
    if not paths or len(paths) > _MOST_PATHS:
        return NONE
    left, bottom, right, top = pdfium.bounds_of(paths).astype(float).T
    width, height = right - left, top - bottom
    is_across = (height <= _THIN) & (width > _SHORT)
    is_down = (width <= _THIN) & (height > _SHORT)
    across = [np.column_stack((left, right, -(top + bottom) / 2))[is_across]]
    down = [np.column_stack((-top, -bottom, (left + right) / 2))[is_down]]
    boxes = (width > _SHORT) & (height > _SHORT)
    for at in np.flatnonzero(boxes).tolist():
        path = ctypes.cast(paths[at], raw.FPDF_PAGEOBJECT)
        count = raw.FPDFPath_CountSegments(path)
        if count <= _BOX_SEGMENTS:
            across.append(np.array([(left[at], right[at], -top[at]), (left[at], right[at], -bottom[at])]))
            down.append(np.array([(-top[at], -bottom[at], left[at]), (-top[at], -bottom[at], right[at])]))
        elif count <= _MOST_SEGMENTS:
            for lines, found in zip((across, down), _segments(path, count), strict=True):
                lines.append(found)
    return Rules(np.concatenate(across), np.concatenate(down))


def _segments(path: object, count: int) -> Rules:
    """Return the rules that a path of many segments draws."""
    matrix = raw.FS_MATRIX()
    raw.FPDFPageObj_GetMatrix(path, matrix)
    x, y = ctypes.c_float(), ctypes.c_float()
    points = np.zeros((count, 2))
    lines = np.zeros(count, bool)
    for at in range(count):
        segment = raw.FPDFPath_GetPathSegment(path, at)
        raw.FPDFPathSegment_GetPoint(segment, x, y)
        points[at] = x.value, y.value
        lines[at] = raw.FPDFPathSegment_GetType(segment) == raw.FPDF_SEGMENT_LINETO
    turned = points @ np.array([[matrix.a, matrix.b], [matrix.c, matrix.d]]) + (matrix.e, matrix.f)
    begin, end = turned[:-1][lines[1:]], turned[1:][lines[1:]]
    low, high = np.minimum(begin, end), np.maximum(begin, end)
    width, height = (high - low).T
    across = np.column_stack((low[:, 0], high[:, 0], -low[:, 1]))[(height < 1) & (width > _SHORT)]
    down = np.column_stack((-high[:, 1], -low[:, 1], low[:, 0]))[(width < 1) & (height > _SHORT)]
    return Rules(across, down)
