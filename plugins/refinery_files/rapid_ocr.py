"""Reads images by RapidOCR: networks of PaddleOCR in ONNX, which its package carries, for Chinese and Latin letters."""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from pipeline_tasks.errors import RecipeError

_HYPHEN = re.compile(r"(?<=[^\W\d_])-\Z")
_UNSPACED = re.compile(r"[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]\Z")  # scripts whose words are not parted


class Line(NamedTuple):
    """A line of an image: its text, and its sides in pixels."""

    text: str
    left: float
    top: float
    right: float
    bottom: float

    @property
    def height(self) -> float:
        """Its height in pixels."""
        return self.bottom - self.top


class Found(Protocol):
    """What RapidOCR finds on an image: lines of text, and the four corners of each (x, y); None if there are none."""

    txts: Sequence[str] | None
    boxes: npt.NDArray[np.float32] | None


class RapidReader:
    """Reads images one by one, so that a text follows from its image alone."""

    def __init__(self, engine: Callable[[bytes], Found]) -> None:
        self._engine = engine

    def read(self, images: Sequence[bytes]) -> list[str]:
        """Return the paragraphs of each image (PNG), its lines in the order in which RapidOCR finds them."""
        return ["\n\n".join(paragraphs(_lines(self._engine(image)))) for image in images]


def _lines(found: Found) -> list[Line]:
    if found.boxes is None or found.txts is None:
        return []
    sides = [(*box.min(0).tolist(), *box.max(0).tolist()) for box in found.boxes]
    return [Line(text, *its) for text, its in zip(found.txts, sides, strict=True)]


def paragraphs(lines: Sequence[Line]) -> Iterator[str]:
    """Yield the paragraphs of lines: the next line goes on where the line before reaches the right side, close below.

    A hyphen between letters at the end of a line goes where the next one begins with a small letter.
    """
    if not lines:
        return
    right = max(line.right for line in lines)
    joined = lines[0].text
    for before, line in pairwise(lines):
        is_close = line.top - before.bottom < before.height
        is_full = before.right > right - 3 * before.height
        if not (is_close and is_full):
            yield joined
            joined = line.text
        elif _HYPHEN.search(joined) and line.text[:1].islower():
            joined = joined[:-1] + line.text
        else:
            joined += ("" if _UNSPACED.search(joined) else " ") + line.text
    yield joined


def load(_folder: str) -> RapidReader:
    """Load the networks; RecipeError if the library is not installed."""
    try:
        from rapidocr import RapidOCR
    except ImportError as error:
        message = "read_images: the model rapidocr needs the library of that name; install the extra `ocr`"
        raise RecipeError(message) from error
    return RapidReader(RapidOCR())
