"""The identity of a text: a 128-bit hash that ignores how its white space is laid out and nothing else."""

import unicodedata

import numpy as np
import pyarrow as pa
from xxhash import xxh3_128_hexdigest

from pipeline_tasks.text.buffers import views
from pipeline_tasks.text.compiled import compiled

_NEWLINE, _SPACE = 0x0A, 0x20
_STRIDE = 32


def identity(text: str) -> str:
    """Return 32 hex digits: XXH3-128, seed 0, of `text` in NFC, runs of white space as one space, stripped, as UTF-8.

    Case, punctuation and everything else count. The digits are frozen by tests: stored ids depend on them.
    """
    name: str = xxh3_128_hexdigest(unicodedata.normalize("NFC", " ".join(text.split())).encode())
    return name


def identities(texts: pa.Array) -> list[str]:
    """Return the same of each text of a column that `normal.normalize` has made, whose only white space is ASCII's."""
    offsets, data = views(texts)
    scratch = np.empty(int(np.diff(offsets).max(initial=0)), np.uint8)
    flat = memoryview(scratch.data)
    ends = offsets.tolist()
    return [xxh3_128_hexdigest(flat[: _flatten(data, ends[row], ends[row + 1], scratch)]) for row in range(len(texts))]


@compiled
def _flatten(data, at, end, out):  # type: ignore[no-untyped-def]
    """Write data[at:end] to `out`, white space in a row as one space, none at either side; return its length."""
    to = 0
    while at < end:
        while at + _STRIDE < end and _is_flat(data[at : at + _STRIDE + 1]):
            there, here = out[to : to + _STRIDE], data[at : at + _STRIDE]
            for nth in range(_STRIDE):
                there[nth] = _SPACE if here[nth] == _NEWLINE else here[nth]
            to, at = to + _STRIDE, at + _STRIDE
        for _ in range(min(_STRIDE, end - at)):
            if data[at] != _SPACE and data[at] != _NEWLINE:
                out[to] = data[at]
                to += 1
            elif to and out[to - 1] != _SPACE:
                out[to] = _SPACE
                to += 1
            at += 1
        while at < end and (data[at] == _SPACE or data[at] == _NEWLINE):  # so that a stride begins with a sign
            if to and out[to - 1] != _SPACE:
                out[to] = _SPACE
                to += 1
            at += 1
    return to - 1 if to and out[to - 1] == _SPACE else to


@compiled
def _is_flat(part):  # type: ignore[no-untyped-def]
    """Tell whether no two of these bytes in a row are white space, and the first is none."""
    double = np.uint8(0)
    for at in range(_STRIDE):
        here = (part[at] == _SPACE) | (part[at] == _NEWLINE)
        double |= np.uint8(here & ((part[at + 1] == _SPACE) | (part[at + 1] == _NEWLINE)))
    return double == 0 and part[0] != _SPACE and part[0] != _NEWLINE
