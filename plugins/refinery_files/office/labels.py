"""Writes the numbers of headings and items as files show them: `4.`, `iv)`, `1.2.3`, `B`."""

from collections.abc import Mapping

_ROMAN = tuple(
    zip(
        (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1),
        ("m", "cm", "d", "cd", "c", "xc", "l", "xl", "x", "ix", "v", "iv", "i"),
        strict=True,
    )
)
_MOST_ROMAN, _MOST_HAN = 5_000, 100
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_DIGITS = "\u3007\u4e00\u4e8c\u4e09\u56db\u4e94\u516d\u4e03\u516b\u4e5d"
_TEN = "\u5341"
_LATIN = {
    "lowerLetter": _LETTERS,
    "upperLetter": _LETTERS.upper(),
    "russianLower": "\u0430\u0431\u0432\u0433\u0434\u0435\u0436\u0437\u0438\u043a\u043b\u043c\u043d\u043e\u043f",
    "russianUpper": "\u0410\u0411\u0412\u0413\u0414\u0415\u0416\u0417\u0418\u041a\u041b\u041c\u041d\u041e\u041f",
}
_HAN = (
    "ideographDigital",
    "chineseCounting",
    "chineseCountingThousand",
    "japaneseCounting",
    "taiwaneseCounting",
    "taiwaneseCountingThousand",
)


def numeral(number: int, form: str) -> str:
    """Return a number in a form of Office Open XML (ECMA-376, part 1, 17.18.59); as digits in forms that are rare."""
    if form == "none":
        return ""
    if form in _LATIN and number > 0:
        letters = _LATIN[form]
        times, nth = divmod(number - 1, len(letters))
        return letters[nth] * (min(times, 9) + 1)
    if form in ("lowerRoman", "upperRoman"):
        text = _roman(number)
        return text.upper() if form == "upperRoman" else text
    if form == "decimalZero":
        return f"{number:02d}"
    if form in _HAN and 0 < number < _MOST_HAN:
        return _han(number)
    return str(number)


def _roman(number: int) -> str:
    if not 0 < number < _MOST_ROMAN:
        return str(number)
    text = ""
    for value, sign in _ROMAN:
        times, number = divmod(number, value)
        text += sign * times
    return text


def _han(number: int) -> str:
    tens, ones = divmod(number, 10)
    text = "" if not tens else _TEN if tens == 1 else _DIGITS[tens] + _TEN
    return text + (_DIGITS[ones] if ones else "")


class Counts:
    """How far a list has counted, by level."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}

    def count(self, level: int, starts: Mapping[int, int], step: int = 1) -> None:
        """Count one item of a level on, or from its start; deeper levels begin anew."""
        for deeper in [each for each in self._numbers if each > level]:
            del self._numbers[deeper]
        before = self._numbers.get(level)
        self._numbers[level] = starts.get(level, 1) if before is None else before + step
        for higher in range(level):
            self._numbers.setdefault(higher, starts.get(higher, 1))

    def restart(self, level: int) -> None:
        """Forget how far a level has counted."""
        self._numbers.pop(level, None)

    def number(self, level: int) -> int:
        """Return the number of a level, 1 where nothing was counted."""
        return self._numbers.get(level, 1)
