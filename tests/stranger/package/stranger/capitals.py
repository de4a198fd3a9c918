"""A model that reads images: capital letters of one font, by which of its letters each cell looks like most."""

import struct
import zlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

_FONT = """
A7E1111117E B7F49494936 C3E41414122 D7F4141221C E7F49494941 F7F09090901 G3E4149497A H7F0808087F I00417F4100 J2040413F01
K7F08142241 L7F40404040 M7F020C027F N7F0408107F O3E4141413E P7F09090906 Q3E4151215E R7F09192946 S4649494931 T01017F0101
U3F4040403F V1F2040201F W3F4038403F X6314081463 Y0708700807 Z6151494543
"""
GLYPHS = {word[0]: word[1:] for word in _FONT.split()}
"""The letters of a font of 5 by 7 dots: a byte for each column, the lowest bit on top."""

TALL, WIDE, PITCH = 7, 5, 6

Dots = npt.NDArray[np.bool_]


def dots(letter: str) -> Dots:
    """Return the dots of a letter, those of a blank for any other character."""
    columns = np.frombuffer(bytes.fromhex(GLYPHS.get(letter, "00" * WIDE)), np.uint8)
    return np.unpackbits(columns[:, None], axis=1, bitorder="little")[:, :TALL].T.astype(bool)


def drawn(lines: Sequence[str], scale: int) -> npt.NDArray[np.uint8]:
    """Return lines of capital letters as gray pixels, black on white, with a margin of ten dots."""
    most = max(map(len, lines))
    page = np.zeros((20 + 10 * len(lines), 20 + PITCH * most), bool)
    for row, line in enumerate(lines):
        for at, letter in enumerate(line):
            top, left = 10 + 10 * row, 10 + PITCH * at
            page[top : top + TALL, left : left + WIDE] = dots(letter)
    return np.where(page, np.uint8(0), np.uint8(255)).repeat(scale, 0).repeat(scale, 1)


class Capitals:
    """Reads lines of capital letters."""

    def read(self, images: Sequence[bytes]) -> list[str]:
        """Return the text of each image."""
        return [_text(_ink(image)) for image in images]


def load(_folder: str) -> Capitals:
    """Return the model: its font is all that it has."""
    return Capitals()


def _ink(image: bytes) -> Dots:
    """Return where an image (PNG of red, green and blue, unfiltered rows) is dark."""
    wide, tall = struct.unpack_from(">II", image, 16)
    start = image.index(b"IDAT") + 4
    (size,) = struct.unpack_from(">I", image, start - 8)
    rows = np.frombuffer(zlib.decompress(image[start : start + size]), np.uint8).reshape(tall, 1 + 3 * wide)
    ink: Dots = rows[:, 1::3] < 128
    return ink


def _text(ink: Dots) -> str:
    rows, columns = np.flatnonzero(ink.any(1)), np.flatnonzero(ink.any(0))
    if not len(rows):
        return ""
    bands = np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1)
    dot = (rows[-1] + 1 - rows[0]) / (10 * (len(bands) - 1) + TALL)
    return "\n".join(_line(ink[band[0] : band[-1] + 1, columns[0] : columns[-1] + 1], dot) for band in bands)


def _line(ink: Dots, dot: float) -> str:
    """Return the letters of a line whose dots are so many pixels wide."""
    down = ((np.arange(TALL) + 0.5) * dot).astype(int)
    letters = []
    for at in range(round(ink.shape[1] / dot + 1) // PITCH + 1):
        across = ((np.arange(WIDE) + PITCH * at + 0.5) * dot).astype(int)
        cell = ink[np.ix_(down, across[across < ink.shape[1]])]
        cell = np.pad(cell, ((0, 0), (0, WIDE - cell.shape[1])))
        likest = min(" " + "".join(GLYPHS), key=lambda letter: int((dots(letter) != cell).sum()))
        letters.append(likest)
    return "".join(letters).strip()
