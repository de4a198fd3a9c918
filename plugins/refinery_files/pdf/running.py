"""Running heads, feet and page numbers: rows that pages repeat at the same height."""

import re

from refinery_files.pdf.lines import Line

# how many rows at either end of a page may be repeated ones
_ROWS = 4
# share of a page's height that heads are in, and feet
_ZONE = 0.16
# pages before and behind that may repeat a row: heads of left and right pages differ, those of chapters change
_NEAR = 4
# in points: repeated rows are not farther apart
_SHIFT = 2.5
# words of a sentence at least
_WORDS = 8
_DIGITS = re.compile(r"\d+")
_NUMBER = re.compile(r"\b(?:\d{1,5}|[ivxl]{1,7})\b", re.IGNORECASE)
_ROMAN = {"i": 1, "v": 5, "x": 10, "l": 50}


class Row:
    """The lines of a page on one baseline: their text, in which digits are equal, and numbers that may count pages."""

    __slots__ = ("base", "lines", "numbers", "text", "written")

    def __init__(self, lines: list[Line]) -> None:
        """Take the lines of a row."""
        self.lines = sorted(lines, key=lambda line: line.left)
        self.base = lines[0].base
        self.written = " ".join(line.text for line in self.lines)
        self.text = _DIGITS.sub("0", self.written)
        self.numbers = {_value(number) for number in _NUMBER.findall(self.written)}

    @property
    def is_sentence(self) -> bool:
        """Return whether it reads as a whole sentence, which running heads do only where it is always the same."""
        return self.written.endswith(".") and len(self.written.split()) >= _WORDS


def _value(number: str) -> int:
    if number.isdigit():
        return int(number)
    values = [_ROMAN[letter] for letter in number.lower()]
    return sum(-one if one < after else one for one, after in zip(values, [*values[1:], 0], strict=True))


def without_running(pages: list[list[Line]], heights: list[tuple[float, float]]) -> list[list[Line]]:
    """Return the lines of pages without heads, feet and page numbers; `heights` are upper and lower ends of pages."""
    if len(pages) < 2:
        return pages
    cut: set[int] = set()
    for is_head in (True, False):
        outer = [_outer(lines, *height, is_head) for lines, height in zip(pages, heights, strict=True)]
        for page, rows in enumerate(outer):
            for row in rows:
                if not _is_repeated(row, page, outer):
                    break
                cut.update(map(id, row.lines))
    return [[line for line in lines if id(line) not in cut] for lines in pages]


def _outer(lines: list[Line], top: float, bottom: float, is_head: bool) -> list[Row]:
    """Return the rows at one end of a page, the outermost first."""
    zone = _ZONE * (bottom - top)
    near = [line for line in lines if (line.base < top + zone if is_head else line.base > bottom - zone)]
    near.sort(key=lambda line: line.base if is_head else -line.base)
    rows: list[list[Line]] = []
    for line in near:
        if rows and abs(line.base - rows[-1][0].base) < 0.4 * line.size:
            rows[-1].append(line)
        elif len(rows) < _ROWS:
            rows.append([line])
        else:
            break
    return [Row(row) for row in rows]


def _is_repeated(row: Row, page: int, outer: list[list[Row]]) -> bool:
    """Return whether pages near to one have the same row at its height, or one whose number grows with the page.

    A whole sentence is repeated only with its numbers.
    """
    same = counts = others = 0
    is_sentence = row.is_sentence
    for other in range(max(0, page - _NEAR), min(len(outer), page + _NEAR + 1)):
        if other == page:
            continue
        others += 1
        at = [one for one in outer[other] if abs(one.base - row.base) < _SHIFT]
        same += any(one.written == row.written if is_sentence else one.text == row.text for one in at)
        counts += not is_sentence and any(number + other - page in one.numbers for one in at for number in row.numbers)
    return max(same, counts) >= min(2, others)
