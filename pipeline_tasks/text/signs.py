"""Counts characters by kind in one pass: what NeMo Curator's heuristics and the seed rules ask."""

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text import traits
from pipeline_tasks.text.compiled import compiled, inlined
from pipeline_tasks.text.phrases import ends_at, spelled
from pipeline_tasks.text.tokens import read, trait_of

COUNTS = ("points", "odd", "decimals", "in_urls", "blanks", "brackets", "punctuation", "code", "solid")
"""Code points; those not of `[a-zA-Z0-9\\n?!,.]`; decimal digits; characters of http(s) URLs; tab, newline, return,
backspace and space; `{}[]()` and angle brackets U+27E8 and U+27E9; punctuation (`traits.PUNCTUATION`); symbols of
program code; letters and digits of any script."""

CODE = "{}[]<>=;|&^~\\$@#`"
"""Symbols that programs are full of and prose is not."""

DECIMAL, PUNCTUATION, ALNUM = np.uint16(traits.DECIMAL), np.uint16(traits.PUNCTUATION), np.uint16(traits.ALNUM)


@inlined
def _url_end(data, at, end, schemes, ends):  # type: ignore[no-untyped-def]
    """Return where the URL that begins at `at` ends, `at` if none does.

    The characters are those of `regex_url` in NVIDIA/NeMo-Curator `nemo_curator/utils/constants.py`: ASCII letters,
    digits, `!` and the range from `$` to `_`.
    """
    for scheme in range(len(ends) - 1):
        size = ends[scheme + 1] - ends[scheme]
        if at + size > end or not ends_at(data, at, at + size, schemes, ends[scheme], ends[scheme + 1], 0):
            continue
        tip = at + size
        while tip < end and (0x24 <= data[tip] <= 0x5F or 0x61 <= data[tip] <= 0x7A or data[tip] == 0x21):
            tip += 1
        if tip > at + size:
            return tip
    return at


@compiled
def _measure(offsets, data, index, flags, schemes, code_letters, out):  # type: ignore[no-untyped-def]
    """Fill out[row] with the COUNTS."""
    letters, ends = schemes
    for row in range(len(offsets) - 1):
        at, end = offsets[row], offsets[row + 1]
        url = at
        while at < end:
            code, width = read(data, at, end)
            trait = trait_of(index, flags, code)
            if at >= url and code == 0x68:
                url = _url_end(data, at, end, letters, ends)
            latin = 0x30 <= code <= 0x39 or 0x41 <= code <= 0x5A or 0x61 <= code <= 0x7A
            out[row, 0] += 1
            out[row, 1] += not latin and code not in (0x0A, 0x3F, 0x21, 0x2C, 0x2E)
            out[row, 2] += (trait & DECIMAL) != 0
            out[row, 3] += at < url
            out[row, 4] += code in (0x08, 0x09, 0x0A, 0x0D, 0x20)
            out[row, 5] += code in (0x28, 0x29, 0x5B, 0x5D, 0x7B, 0x7D, 0x27E8, 0x27E9)
            out[row, 6] += (trait & PUNCTUATION) != 0
            out[row, 7] += code < 0x80 and code_letters[code]
            out[row, 8] += (trait & ALNUM) != 0
            at += width


def measure(offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8]) -> dict[str, npt.NDArray[np.float64]]:
    """Return the COUNTS of each text by name, shape (rows,) each."""
    code_letters = np.zeros(128, np.bool_)
    code_letters[[ord(letter) for letter in CODE]] = True
    out = np.zeros((len(offsets) - 1, len(COUNTS)))
    _measure(offsets, data, *traits.traits(), spelled(("https://", "http://")), code_letters, out)
    return dict(zip(COUNTS, out.T, strict=True))
