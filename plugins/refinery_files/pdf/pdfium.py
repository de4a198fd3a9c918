"""PDFium's functions for single characters, called in C loops: a call of each costs a quarter of a microsecond."""

import ctypes
import re
from collections import deque
from collections.abc import Callable
from itertools import repeat

import numpy as np
from pypdfium2 import raw

_POINTER = ctypes.c_void_p
_INT = ctypes.c_int


def _function(of: object, result: type | None, *arguments: type) -> Callable[..., int]:
    """Return a function of PDFium that takes addresses as numbers and keeps the interpreter's lock."""
    address = ctypes.cast(of, _POINTER).value  # type: ignore[arg-type]
    return ctypes.PYFUNCTYPE(result, *arguments)(address or 0)


_UNICODE = _function(raw.FPDFText_GetUnicode, ctypes.c_uint, _POINTER, _INT)
_ORIGIN = _function(raw.FPDFText_GetCharOrigin, _INT, _POINTER, _INT, _POINTER, _POINTER)
_BOX = _function(raw.FPDFText_GetLooseCharBox, _INT, _POINTER, _INT, _POINTER)
_ANGLE = _function(raw.FPDFText_GetCharAngle, ctypes.c_float, _POINTER, _INT)
_TEXT_OBJECT = _function(raw.FPDFText_GetTextObject, _POINTER, _POINTER, _INT)
_FONT = _function(raw.FPDFTextObj_GetFont, _POINTER, _POINTER)
_EMBEDDED = _function(raw.FPDFFont_GetIsEmbedded, _INT, _POINTER)
_FONT_SIZE = _function(raw.FPDFText_GetFontSize, ctypes.c_double, _POINTER, _INT)
_MATRIX = _function(raw.FPDFText_GetMatrix, _INT, _POINTER, _INT, _POINTER)
_GENERATED = _function(raw.FPDFText_IsGenerated, _INT, _POINTER, _INT)
_UNMAPPED = _function(raw.FPDFText_HasUnicodeMapError, _INT, _POINTER, _INT)
_MARKED = _function(raw.FPDFPageObj_GetMarkedContentID, _INT, _POINTER)
_FILL = _function(raw.FPDFPageObj_GetFillColor, _INT, _POINTER, _POINTER, _POINTER, _POINTER, _POINTER)
_MODE = _function(raw.FPDFTextObj_GetTextRenderMode, _INT, _POINTER)
_OBJECT = _function(raw.FPDFPage_GetObject, _POINTER, _POINTER, _INT)
_INNER_OBJECT = _function(raw.FPDFFormObj_GetObject, _POINTER, _POINTER, ctypes.c_ulong)
_TYPE = _function(raw.FPDFPageObj_GetType, _INT, _POINTER)
_MARKS = _function(raw.FPDFPageObj_CountMarks, _INT, _POINTER)
_MARK = _function(raw.FPDFPageObj_GetMark, _POINTER, _POINTER, ctypes.c_ulong)
_MARK_TYPE = _function(raw.FPDFPageObjMark_GetParamValueType, _INT, _POINTER, ctypes.c_char_p)
_BOUNDS = _function(raw.FPDFPageObj_GetBounds, _INT, _POINTER, _POINTER, _POINTER, _POINTER, _POINTER)


def address(handle: object) -> int:
    """Return the address that a handle of pypdfium2 points to."""
    return ctypes.cast(handle, _POINTER).value or 0  # type: ignore[arg-type]


def codes(page: object, count: int) -> np.ndarray:
    """Return the code point of each character of a page's text."""
    units = (ctypes.c_ushort * (count + 1))()
    if raw.FPDFText_GetText(page, 0, count, units) == count + 1:
        found: np.ndarray = np.frombuffer(memoryview(units).cast("B"), np.uint16)[:count].astype(np.uint32)
        if not ((found >= 0xD800) & (found < 0xE000)).any():
            return found
    # a character above U+FFFF takes two units, one that is left out none
    return np.fromiter(map(_UNICODE, repeat(address(page)), range(count)), np.uint32, count)


def origins(page: int, count: int) -> np.ndarray:
    """Return x and y of the baseline's begin of each character, in points from the lower left corner."""
    found = np.zeros((count, 2))
    at = found.ctypes.data
    ends = at + 16 * count
    deque(map(_ORIGIN, repeat(page), range(count), range(at, ends, 16), range(at + 8, ends + 8, 16)), 0)
    return found


def boxes(page: int, count: int) -> np.ndarray:
    """Return left, top, right, bottom of each character's advance and its font's height."""
    found = np.zeros((count, 4), np.float32)
    at = found.ctypes.data
    deque(map(_BOX, repeat(page), range(count), range(at, at + 16 * count, 16)), 0)
    return found


def angles(page: int, at: list[int]) -> np.ndarray:
    """Return the angle of the characters at some indices, in radians."""
    return np.fromiter(map(_ANGLE, repeat(page), at), np.float32, len(at))


def text_objects(page: int, at: list[int]) -> list[int]:
    """Return the addresses of the objects that draw the characters at some indices; 0 if none does."""
    return [found or 0 for found in map(_TEXT_OBJECT, repeat(page), at)]


def fonts_of(objects: list[int]) -> list[int]:
    """Return the addresses of the fonts of text objects; 0 if there is none."""
    return [found or 0 for found in map(_FONT, objects)]


def is_embedded(font: int) -> bool:
    """Return whether a font is in the file; what stands for one that is missing is not."""
    return _EMBEDDED(font) == 1


def sizes_of(page: int, at: list[int]) -> np.ndarray:
    """Return the sizes of the characters at some indices: their fonts' sizes, scaled by their matrices."""
    sizes = np.fromiter(map(_FONT_SIZE, repeat(page), at), float, len(at))
    matrices = np.zeros((len(at), 6), np.float32)
    begin = matrices.ctypes.data
    deque(map(_MATRIX, repeat(page), at, range(begin, begin + 24 * len(at), 24)), 0)
    scaled: np.ndarray = np.abs(sizes) * np.hypot(matrices[:, 2], matrices[:, 3])
    return scaled


def generated(page: int, at: list[int]) -> np.ndarray:
    """Return which of some characters are not in the file: blanks that PDFium adds."""
    return np.fromiter(map(_GENERATED, repeat(page), at), np.int32, len(at)) > 0


def unmapped(page: int, at: list[int]) -> np.ndarray:
    """Return which of some characters have no code point in the file: their glyphs' numbers stand for it."""
    return np.fromiter(map(_UNMAPPED, repeat(page), at), np.int32, len(at)) > 0


def marks_of(objects: list[int]) -> list[int]:
    """Return the identifiers of marked content of text objects; -1 if there is none."""
    return list(map(_MARKED, objects))


def text_mark(drawn: int) -> int:
    """Return the address of the mark that says the text of an object, which all that it encloses share, or 0."""
    count = _MARKS(drawn)
    mark = (_MARK(drawn, count - 1) or 0) if count > 0 else 0
    return mark if mark and _MARK_TYPE(mark, b"ActualText") else 0


def fills_of(objects: list[int]) -> np.ndarray:
    """Return the colors that objects are filled with, as 0xRRGGBB; 0 if there is none."""
    found = np.zeros((len(objects), 4), np.uint32)
    at = found.ctypes.data
    ends = at + 16 * len(objects)
    places = (range(at + 4 * part, ends + 4 * part, 16) for part in range(4))
    deque(map(_FILL, objects, *places), 0)
    colors: np.ndarray = found[:, :3] @ np.array([1 << 16, 1 << 8, 1], np.uint32)
    return colors


def modes_of(objects: list[int]) -> np.ndarray:
    """Return how text objects are drawn (`FPDF_TEXTRENDERMODE_*`)."""
    return np.fromiter(map(_MODE, objects), np.int32, len(objects))


def objects_of(page: int, count: int) -> list[int]:
    """Return the addresses of a page's objects."""
    return list(map(_OBJECT, repeat(page), range(count)))


def objects_inside(form: int, count: int) -> list[int]:
    """Return the addresses of the objects of a form."""
    return list(map(_INNER_OBJECT, repeat(form), range(count)))


def types_of(objects: list[int]) -> np.ndarray:
    """Return the types of objects (`FPDF_PAGEOBJ_*`)."""
    return np.fromiter(map(_TYPE, objects), np.int32, len(objects))


def bounds_of(objects: list[int]) -> np.ndarray:
    """Return left, bottom, right, top of objects."""
    found = np.zeros((len(objects), 4), np.float32)
    at = found.ctypes.data
    ends = at + 16 * len(objects)
    places = (range(at + 4 * side, ends + 4 * side, 16) for side in range(4))
    deque(map(_BOUNDS, objects, *places), 0)
    return found


class Font:
    """A font of a page: whether it is bold, and of fixed pitch."""

    __slots__ = ("is_bold", "is_mono")

    def __init__(self, at: int) -> None:
        """Read a font at an address."""
        font = ctypes.cast(at, raw.FPDF_FONT)
        name = ctypes.create_string_buffer(256)
        raw.FPDFFont_GetBaseFontName(font, name, 256)
        flags = raw.FPDFFont_GetFlags(font)
        lowered = name.value.decode("utf-8", "replace").lower()
        self.is_bold = bool(flags & _FORCED_BOLD) or _BOLD.search(lowered) is not None
        self.is_mono = bool(flags & 1) or _MONO.search(lowered) is not None


_FORCED_BOLD = 1 << 18
# CMBX and SFBX are TeX's bold fonts, Medi those of URW
_BOLD = re.compile("bold|black|heavy|demi|(?:cm|sf|cmss)bx|-medi(?!um)|-bd")
_MONO = re.compile("mono|courier|consol|(?:cm|sf)tt|typewriter|menlo|monaco")
