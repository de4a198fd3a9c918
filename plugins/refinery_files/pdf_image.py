"""Draws a page of a PDF for people."""

import struct
import zlib

import numpy as np
import numpy.typing as npt

from refinery_files.pdf.opening import opened

_OF_GRAY = 2  # dimensions of pixels that have one number each

TALLEST = 3
"""A page is drawn up to so many times as tall as wide; one that is taller is drawn narrower."""


def draw(body: bytes, number: int, width: int) -> bytes:
    """Return a page, by its number from 1, as PNG, at most so many pixels wide.

    FileRefused for a file that cannot be opened, ValueError for a page that it has not.
    """
    document = opened(body).document
    if not 1 <= number <= len(document):
        message = f"it has {len(document)} pages"
        raise ValueError(message)
    page = document[number - 1]
    wide, tall = page.get_size()
    scale = min(width / max(wide, 1), TALLEST * width / max(tall, 1))
    pixels = page.render(scale=scale, rev_byteorder=True, prefer_bgrx=False).to_numpy()
    is_gray = pixels.ndim == _OF_GRAY
    return png(np.ascontiguousarray(pixels[:, :, None].repeat(3, 2) if is_gray else pixels[:, :, :3]))


def png(pixels: npt.NDArray[np.uint8]) -> bytes:
    """Return pixels (rows, columns, red green blue) as PNG; each row is filtered by none."""
    tall, wide, _ = pixels.shape
    rows = np.concatenate([np.zeros((tall, 1), np.uint8), pixels.reshape(tall, -1)], axis=1)
    header = struct.pack(">IIBBBBB", wide, tall, 8, 2, 0, 0, 0)
    chunks = (b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 6)), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*chunk) for chunk in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
