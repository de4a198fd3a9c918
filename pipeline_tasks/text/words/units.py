"""Cut texts into the units of a language model: words of letters, or single letters in scripts without spaces."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.text.base import character_traits as kinds
from pipeline_tasks.text.base.buffers import views
from pipeline_tasks.text.base.characters import class_of, decode
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.base.eight_bytes import hash_bytes
from pipeline_tasks.text.base.hashing import absorb, mix

ALPHA, UPPER, EXTEND, SHIFT = np.uint16(kinds.ALPHA), np.uint16(kinds.UPPER), kinds.EXTEND, kinds.KIND_SHIFT
_CAPITAL, _SMALL, _BLOCK = np.uint64(0xC1), np.uint64(0x51), np.uint64(0xB1)
_BLOCK_BITS = np.uint64(8)

Hashes = npt.NDArray[np.uint64]


class Units(NamedTuple):
    """Units of all texts in a row: text i has those of `bounds[i]:bounds[i + 1]`; each as spelled, and its class.

    The class of a word is its last two code points and whether it begins with a capital: it stands for words that are
    rare or new, whose endings still say what may follow. The class of a letter is its block of 256 code points.
    """

    bounds: npt.NDArray[np.int64]
    spelled: Hashes
    classes: Hashes


@inlined
def _word_class(capital, before, last):
    """Return the hash of a word's class."""
    value = absorb(_CAPITAL if capital else _SMALL, np.uint64(before))
    return mix(absorb(value, np.uint64(last)))


@compiled
def _cut(offsets, data, letters, index, flags, bounds, spelled, classes):
    """Fill `bounds`, and the hashes as far as there is room; return the number of units."""
    count, room = 0, len(spelled)
    for row in range(len(offsets) - 1):
        at, end = offsets[row], offsets[row + 1]
        begin, capital, before, last = at, False, np.int64(0), np.int64(0)
        inside = False
        while at < end:
            code, width = decode(data, at, end)
            trait = class_of(index, flags, code)
            alpha = (trait & ALPHA) != 0
            if alpha and letters:
                if count < room:
                    spelled[count] = hash_bytes(data, at, at + width)
                    classes[count] = mix(absorb(_BLOCK, np.uint64(code) >> _BLOCK_BITS))
                count += 1
            elif alpha or (inside and np.int64(trait) >> SHIFT == EXTEND):
                if not inside:
                    inside, begin, capital, last = True, at, (trait & UPPER) != 0, np.int64(0)
                before, last = last, np.int64(code)
            elif inside:
                if count < room:
                    spelled[count], classes[count] = hash_bytes(data, begin, at), _word_class(capital, before, last)
                count, inside = count + 1, False
            at += width
        if inside:
            if count < room:
                spelled[count], classes[count] = hash_bytes(data, begin, end), _word_class(capital, before, last)
            count += 1
        bounds[row + 1] = count
    return count


def cut_units(texts: pa.Array, *, letters: bool) -> Units:
    """Return the units of each text: its single letters with `letters`, else its words; digits and signs are none."""
    offsets, data = views(texts)
    bounds = np.zeros(len(texts) + 1, np.int64)
    traits = kinds.traits()
    nothing = np.zeros(0, np.uint64)
    count = _cut(offsets, data, letters, *traits, bounds, nothing, nothing) if len(texts) else 0
    spelled, classes = np.zeros(count, np.uint64), np.zeros(count, np.uint64)
    if count:
        _cut(offsets, data, letters, *traits, bounds, spelled, classes)
    return Units(bounds, spelled, classes)
