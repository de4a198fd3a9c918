"""The texts of pages that a model read as images: each joins the text of its file where its page is."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.page.block_evidence import CERTAIN, END, KEPT, PAGE, SCORE, START, WORDS, unpacked
from pipeline_tasks.text.page.file_reading import BETWEEN
from pipeline_tasks.text.page.sandbox_messages import Result

_Rows = npt.NDArray[np.int32]


def with_images(result: Result, texts: Mapping[int, str]) -> Result:
    """Return the result of a file with the texts of pages that it could not read, by their numbers, each in its place.

    Pages without a text stay unread.
    """
    found = {number: text.strip().encode("utf-8", "ignore") for number, text in texts.items() if text.strip()}
    data, rows = bytes(result.text), unpacked(result.blocks or b"").copy()
    for number in sorted(found.keys() & {*result.unread}):
        data, rows = _inserted(data, rows, number, found[number])
    unread = tuple(number for number in result.unread if number not in found)
    return result._replace(text=data, blocks=rows.tobytes(), unread=unread)


def _inserted(data: bytes, rows: _Rows, number: int, text: bytes) -> tuple[bytes, _Rows]:
    """Return text and blocks with those of a page before the first block of a later page."""
    nth = int(np.searchsorted(rows[:, PAGE], number, side="right"))
    later = rows[nth:, START]
    at = int(later[later >= 0][0]) if (later >= 0).any() else len(data)
    before = BETWEEN if at == len(data) and data else b""
    piece = before + text + (b"" if at == len(data) else BETWEEN)
    moved = rows[nth:, START : END + 1]
    moved += np.where(moved >= 0, len(piece), 0).astype(np.int32)
    row = np.zeros((1, rows.shape[1]), np.int32)
    start = at + len(before)
    row[0, [SCORE, WORDS, KEPT]] = CERTAIN, len(text.split()), 1
    row[0, [START, END, PAGE]] = start, start + len(text), number
    return data[:at] + piece + data[at:], np.concatenate([rows[:nth], row, rows[nth:]])
