"""Lines as one text: hyphens at their ends, scripts without spaces, paragraphs that go on elsewhere."""

import re
import unicodedata
from collections import Counter
from functools import cached_property
from itertools import pairwise

from refinery_files.pdf.blocks import SENTENCE_ENDS, Block, label_of, marker_of, unmarked
from refinery_files.pdf.lines import Line

_UNSPACED = "\u2e80-\u303f\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uff60\u0e00-\u0eff\u1780-\u17ff"
_NO_SPACE = re.compile(rf"[{_UNSPACED}]\n(?=[{_UNSPACED}])")
_HYPHENS = "-\u00ad\u2010"
_BROKEN = re.compile(rf"([^\W\d_][\w'\u2019]*)[{_HYPHENS}]\n([^\W\d_][\w'\u2019]*)")
_APOSTROPHE = re.compile("['\u2019]")
# two parts of a compound, which may have more
_COMPOUND = re.compile(r"(\w+)(?=[-\u2010](\w+))")
_WORD = re.compile(r"\w+")
# at the end of a line, signs that words begin with: of commands, options and brackets. Other signs end words
_SIGN = re.compile(r"(?<!\S)(\\|--|\?|[(\[{])\n(?=[^\W\d_])")
_SIGN_BEFORE = re.compile(r"(?<!\S)(\\|--|\?|[(\[{])( ?)(?=[^\W\d_])")
# and what is within a word for certain: the slash of a path before more of it, a hyphen before a number
_WITHIN = re.compile(r"(?<=[^\s/]/)\n(?=\w+[/._=?&-]\w)|(?<=\w\w-)\n(?=\d)")
# numbers in words have their hyphen, in English and French
_NUMBER = re.compile(
    r"(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)-"
    r"(?:one|two|three|four|five|six|seven|eight|nine|first|second|third|fourth|fifth|sixth|seventh|eighth|ninth)"
    r"|(?:vingt|trente|quarante|cinquante|soixante|quatre|dix)-"
    r"(?:deux|trois|quatre|cinq|six|sept|huit|neuf|dix|onze|douze|treize|quatorze|quinze|seize|vingts?)"
)
# signs touch the word behind them where they do so that many times as often as not
_HARDLY = 4
# of so many lines one ends in a hyphen where words are broken; texts in four languages have one of 5 to 60
_RARE = 60
# in sizes: the least height of a figure with the white around it
_FIGURE = 6.0
_LEADERS = re.compile(r"(?:\s*\.){5,}\s*")

# ligatures, and letters of Arabic and Hebrew in the forms that they are shown in
_FORMS = re.compile("[\ufb00-\ufb06\ufb13-\ufb17\ufb1d-\ufb4f\ufb50-\ufdfd\ufe70-\ufefc]+")


class Joiner:
    """Joins lines; what a document writes elsewhere decides on hyphens at ends of lines."""

    def __init__(self, lines: list[Line]) -> None:
        """Take the lines of a document, of which words are counted when they are asked for."""
        self._lines = lines

    @cached_property
    def _words(self) -> Counter[str]:
        return Counter(_WORD.findall(self._text))

    @cached_property
    def _compounds(self) -> Counter[tuple[str, str]]:
        return Counter(_COMPOUND.findall(self._text))

    @cached_property
    def _broken(self) -> list[tuple[str, str]]:
        return [_core(*parts) for parts in _BROKEN.findall(self._text)]

    @cached_property
    def _parts(self) -> Counter[str]:
        return Counter(part for parts in self._broken for part in parts)

    @cached_property
    def _text(self) -> str:
        return "\n".join(line.text for line in self._lines).lower()

    def joined(self, lines: list[Line]) -> str:
        """Return lines as one text."""
        return self.clean("\n".join(line.text for line in lines))

    def clean(self, text: str) -> str:
        """Return text with its lines joined."""
        if "\n" in text:
            text = _SIGN.sub(self._with_sign, _WITHIN.sub("", _BROKEN.sub(self._whole, text)))
        if "..." in text or ". . ." in text:
            text = _LEADERS.sub(" \u2026 ", text)
        if not text.isascii():
            text = _NO_SPACE.sub(lambda found: found[0][0], text).replace("\u00ad\n", "").replace("\u00ad", "")
            text = unicodedata.normalize("NFC", _FORMS.sub(lambda found: unicodedata.normalize("NFKC", found[0]), text))
        return " ".join(text.split())

    def _whole(self, found: re.Match[str]) -> str:
        before, after = found[1], found[2]
        is_soft = found[0][len(before)] == "\u00ad"
        whole, compound = before + after, f"{before}-{after}"
        if is_soft or not after[0].islower():
            return whole if is_soft else compound
        core = _core(before.lower(), after.lower())
        words, compounds = self._written(*core)
        if words != compounds:
            return whole if words > compounds else compound
        is_compound = self._has_compounds_alone and all(map(self._is_word, core))
        return compound if is_compound or _NUMBER.fullmatch("-".join(core)) else whole

    def _with_sign(self, found: re.Match[str]) -> str:
        """Return a sign, and a blank unless the document hardly has one behind it; a dash is no pair of hyphens."""
        sign = found[1]
        touching, apart = (self._signs[sign, blank] for blank in ("", " "))
        return sign if touching > _HARDLY * apart or (sign == "--" and not apart) else f"{sign} "

    @cached_property
    def _signs(self) -> Counter[tuple[str, str]]:
        return Counter(_SIGN_BEFORE.findall(self._text))

    def _is_word(self, part: str) -> bool:
        """Return whether a part of a broken word is a word of the document by itself."""
        return self._words[part] > self._parts[part]

    def _written(self, before: str, after: str) -> tuple[int, int]:
        """Return how often the document has two parts as a word within a line, and with a hyphen."""
        return self._words[before + after], self._compounds[before, after]

    @cached_property
    def _has_compounds_alone(self) -> bool:
        """Return whether hyphens at ends of lines are those of compounds: the document does not break words.

        No word that is broken is whole elsewhere, and one has its hyphen elsewhere or few lines end in one.
        """
        broken = [self._written(*parts) for parts in self._broken]
        if any(words > compounds for words, compounds in broken):
            return False
        return any(compounds for _, compounds in broken) or len(broken) * _RARE <= len(self._lines)


def _core(before: str, after: str) -> tuple[str, str]:
    """Return the parts of a broken word without an elided article before it, and without its ending behind it."""
    return _APOSTROPHE.split(before)[-1], _APOSTROPHE.split(after)[0]


def goes_on(before: Block, after: Block) -> bool:
    """Return whether a paragraph goes on in the next column or page."""
    is_rest = after.kind == "p" or _is_rest(before, after)
    if before.kind not in ("p", "li") or not is_rest or abs(before.size - after.size) > 0.08 * before.size:
        return False
    text, begin = before.lines[-1].text, after.lines[0].text
    if not text or not begin or SENTENCE_ENDS.search(text):
        return False
    first = begin.lstrip("\"'(\u201c\u2018\u00ab")[:1]
    if first.islower() or text[-1] in _HYPHENS:
        return True
    # words of scripts without small letters, and names and numbers: if the last line is full
    is_full = before.column[1] - before.lines[-1].right < 1.5 * before.size
    return is_full and not before.lines[-1].is_right_to_left and len(before.lines) > 1


def goes_on_below(before: Block, after: Block, *, are_apart: bool) -> bool:
    """Return whether a paragraph goes on below a figure, on its page or another one (`are_apart`).

    Its last line is full, and what follows begins within a sentence. What is declared is whole already.
    """
    last, first = before.lines[-1], after.lines[0]
    is_below = are_apart or (
        abs(first.left - before.left) < before.size and first.base - last.base > _FIGURE * last.size
    )
    is_full = before.column[1] - last.right < 1.5 * before.size and len(before.lines) > 2
    # what ends in a number is a row of figures
    is_within = first.text[:1].islower() and first.element < 0 and not last.text[-1:].isdigit()
    return is_below and is_full and is_within and _is_running(before) and _is_running(after) and goes_on(before, after)


def _is_running(block: Block) -> bool:
    """Return whether each line of a block is below the one before it: what stands side by side is a row."""
    return all(below.base - line.base > 0.4 * line.size for line, below in pairwise(block.lines))


def _is_rest(before: Block, after: Block) -> bool:
    """Return whether a declared item may be the rest of the one before it: of a list with labels, it has none."""
    if before.kind != "li" or after.kind != "li":
        return False
    return marker_of(label_of(before.lines)) is not None and marker_of(label_of(after.lines)) is None


def text_of(block: Block, joiner: Joiner) -> str:
    """Return the text of a block that is neither code nor a table."""
    text = joiner.joined(block.lines)
    return unmarked(text) if block.kind == "li" and not block.is_numbered else text
