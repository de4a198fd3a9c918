"""White text on a white page, which nobody sees."""

import ctypes

import numpy as np
import pypdfium2 as pdfium2
from pypdfium2 import raw

from refinery_files.pdf import pdfium

# pages of a document that are drawn to see whether white text has a ground; on others it stays
_MOST_DRAWN = 30
# objects of a page that is drawn, and its area in square points, which are pixels
_MOST_OBJECTS, _MOST_PIXELS = 20_000, 4_000_000
# what is darker is seen
_LIGHT = 250
# the share of a text's box that is seen at least: letters fill a fifth of it
_SEEN = 0.1
_WHITE = 0xFFFFFF


class Sight:
    """Sees what of a document's pages is hidden; it draws a page only where white text stands on nothing dark."""

    def __init__(self) -> None:
        """Begin a document."""
        self._left = _MOST_DRAWN

    def hidden(self, page: pdfium2.PdfPage, texts: list[int], of: np.ndarray, boxes: np.ndarray) -> np.ndarray:
        """Return which characters of a page are white on white.

        `texts` are the addresses of its text objects, `of` the index in them of each character, and `boxes` left, top,
        right, bottom of each. PDFium calls patterns white, too: where the page, as it is drawn, has ink, text is seen.
        Invisible text, as layers of scanned pages are, is not white.
        """
        white = pdfium.fills_of(texts) == _WHITE
        white[white] = pdfium.modes_of([texts[at] for at in np.flatnonzero(white)]) == raw.FPDF_TEXTRENDERMODE_FILL
        if not white.any() or not self._left:
            return np.zeros(len(of), bool)
        white[white] = ~_is_covered(page, boxes, of, np.flatnonzero(white))
        width, height = page.get_size()
        is_large = width * height > _MOST_PIXELS or raw.FPDFPage_CountObjects(page.raw) > _MOST_OBJECTS
        if not white.any() or is_large:
            return np.zeros(len(of), bool)
        self._left -= 1
        white &= ~_is_seen(page, boxes, of, len(texts))
        found: np.ndarray = white[of]
        return found


def _is_covered(page: pdfium2.PdfPage, boxes: np.ndarray, of: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return whether the middle of each text is in an image, a form, or an area that is not white."""
    objects = pdfium.objects_of(pdfium.address(page.raw), raw.FPDFPage_CountObjects(page.raw))
    kinds = pdfium.types_of(objects)
    grounds = kinds != raw.FPDF_PAGEOBJ_TEXT
    paths = np.flatnonzero(kinds == raw.FPDF_PAGEOBJ_PATH)
    grounds[paths] = pdfium.fills_of([objects[one] for one in paths.tolist()]) != _WHITE
    places = pdfium.bounds_of([objects[one] for one in np.flatnonzero(grounds).tolist()])
    first = np.searchsorted(of, at)
    x, y = boxes[first][:, [0, 2]].mean(1), boxes[first][:, [1, 3]].mean(1)
    return np.array(
        [
            bool(((places[:, 0] <= a) & (a <= places[:, 2]) & (places[:, 1] <= b) & (b <= places[:, 3])).any())
            for a, b in zip(x, y, strict=True)
        ],
        bool,
    )


def _is_seen(page: pdfium2.PdfPage, boxes: np.ndarray, of: np.ndarray, count: int) -> np.ndarray:
    """Return whether the page, as it is drawn, has ink in the boxes of each text's characters."""
    pixels = page.render(scale=1, grayscale=True).to_numpy()
    pixels = pixels.reshape(pixels.shape[0], pixels.shape[1], -1)[:, :, 0]
    ink = np.zeros((pixels.shape[0] + 1, pixels.shape[1] + 1), np.int64)
    ink[1:, 1:] = (pixels < _LIGHT).cumsum(0).cumsum(1)
    origin, across, up = (_at(page, pixels.shape, x, y) for x, y in ((0, 0), (1000, 0), (0, 1000)))
    turned = np.column_stack((across - origin, up - origin)) / 1000
    ends = np.stack((boxes[:, :2] @ turned.T, boxes[:, 2:] @ turned.T)) + origin
    tall, wide = pixels.shape
    left, top = np.floor(ends.min(0)).astype(int).clip(0, (wide, tall)).T
    right, bottom = np.ceil(ends.max(0)).astype(int).clip(0, (wide, tall)).T
    inked = ink[bottom, right] - ink[top, right] - ink[bottom, left] + ink[top, left]
    area = (right - left) * (bottom - top)
    seen: np.ndarray = np.bincount(of, inked, count) > _SEEN * np.bincount(of, area, count)
    return seen


def _at(page: pdfium2.PdfPage, shape: tuple[int, ...], x: float, y: float) -> np.ndarray:
    """Return the pixel of a point of a page that is drawn."""
    across, down = ctypes.c_int(), ctypes.c_int()
    raw.FPDF_PageToDevice(page.raw, 0, 0, shape[1], shape[0], 0, x, y, across, down)
    return np.array((across.value, down.value), float)
