"""Reads images by RapidOCR: networks of PaddleOCR in ONNX, which its package carries, for Chinese and Latin letters."""

from collections.abc import Sequence
from typing import Any

from pipeline_tasks.errors import RecipeError


class RapidReader:
    """Reads images one by one, so that a text follows from its image alone."""

    def __init__(self, engine: Any) -> None:  # noqa: ANN401 -- shipped without types
        self._engine = engine

    def read(self, images: Sequence[bytes]) -> list[str]:
        """Return the lines of each image (PNG) in the order in which RapidOCR finds them."""
        return ["\n".join(self._engine(image).txts or ()) for image in images]


def load(_folder: str) -> RapidReader:
    """Load the networks; RecipeError if the library is not installed."""
    try:
        from rapidocr import RapidOCR
    except ImportError as error:
        message = "read_images: the model rapidocr needs the library of that name; install the extra `ocr`"
        raise RecipeError(message) from error
    return RapidReader(RapidOCR())
