"""Finds names in a text: words with capitals inside sentences, acronyms, and what stands for them without capitals."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from pipeline_tasks.text.faith.vocabulary import WINDOWS, WORD, Vocabulary, bare, sentences, vocabulary

_LEAST_STEM = 4
_ENDING = 3
"""Letters that a form of a word may differ in at its end (`Germany`, `German`)."""

_COMMON_GERMAN = re.compile(
    r"(?:ung|heit|keit|schaft|tion|tät|nis|ismus|ment|chen|lein|tum|ling|enz|anz|ik|ur|werk|haus|zeit|zahl|gen|ern|el)s?$"
)
_DERIVED_GERMAN = re.compile(r"(?:ung|heit|keit|schaft|tion|tät|nis|ismus|ment|chen|lein)(?:en|s)?$")
_PLURAL_GERMAN = re.compile(r"(?:en|er|e|eln|s)$")
_ADJECTIVE_GERMAN = re.compile(r"(?:e|en|er|es|em)$")
_LATIN = re.compile(r"[A-Za-z][A-Za-z0-9'-]+")
_FOREIGN = re.compile(r"[\u4e00-\u9fff]+(?:[·・][\u4e00-\u9fff]+)+|[\u30a1-\u30fa\u30fc]{3,}")


class Name(NamedTuple):
    """A word that is a name, or a part of one, and its bounds in code points."""

    word: str
    start: int
    end: int


class Known:
    """What a source names: asked whether a word of a rewrite is one of it, in this or another form."""

    def __init__(self, text: str, language: str) -> None:
        self._text = text
        words = [(found[0], bare(found[0])) for found in WORD.finditer(text)]
        parts = {part for _, word in words for part in word.split("-")}
        self._words = {word for _, word in words} | parts
        self._stems = {
            word[: max(_LEAST_STEM, len(word) - _ENDING)] for word in self._words if len(word) >= _LEAST_STEM
        }
        self._compounds = " ".join(sorted(self._words)) if vocabulary(language).nouns else ""
        self._acronyms = {word.rstrip("s") for word, _ in words if len(word) > 1 and word.rstrip("s").isupper()}
        self._initials = "".join(word[0] for word, _ in words if word[0].isupper())

    def has(self, word: str) -> bool:
        """Return whether the source has this word, a form of it or, for an acronym, words with its initials."""
        small = bare(word)
        if small in self._words or all(part in self._words for part in small.split("-")):
            return True
        if word.isupper() and word.rstrip("s") in self._initials and len(word) > 1:
            return True
        if self._compounds and len(small) >= 5 and small in self._compounds:
            return True
        shortest = max(_LEAST_STEM, len(small) - _ENDING)
        return any(small[:length] in self._stems for length in range(shortest, len(small) + 1))

    def has_signs(self, signs: str) -> bool:
        """Return whether the source has this row of characters."""
        return signs in self._text

    def has_acronym(self, words: list[str]) -> bool:
        """Return whether the source has the initials of these words as an acronym."""
        return "".join(word[0] for word in words if word[0].isupper()) in self._acronyms


@lru_cache(WINDOWS)
def known(text: str, language: str) -> Known:
    """Return what a plain text names."""
    return Known(text, language)


def find_new(text: str, language: str, source: Known, skipped: bytes) -> list[Name]:
    """Return the names of a plain text that its source does not have; nothing is looked for where `skipped` is 1."""
    words = vocabulary(language)
    if not words.spaced:
        return [*_unspaced(text, words, source, skipped)]
    new: list[Name] = []
    for start, end in sentences(text):
        new += _in_sentence(text, (start, end), words, source, skipped)
    return new


class _Token(NamedTuple):
    word: str
    start: int
    end: int
    opens: bool  # it begins a sentence, a quotation or what stands behind a colon


_OPENING = re.compile(r"(?:^|[:\"(\[*#>|/-])\s*$")


def _in_sentence(
    text: str, bounds: tuple[int, int], words: Vocabulary, source: Known, skipped: bytes
) -> Iterator[Name]:
    start, end = bounds
    tokens = [
        _Token(
            found[0],
            *found.span(),
            bool(_OPENING.search(text, max(start, found.start() - 3), found.start())) or found.start() == start,
        )
        for found in WORD.finditer(text, start, end)
    ]
    if tokens:
        tokens[0] = tokens[0]._replace(opens=True)
    is_ended = text[start:end].rstrip()[-1:] in (".", "!", "?")
    if not is_ended and _is_title(tokens, words):
        return
    for run in _runs(tokens, words, text):
        if source.has_acronym([token.word for token in run]) and len(run) > 1:
            continue
        for place, token in enumerate(run):
            if token.opens and len(run) == 1 and not _is_acronym(token.word):
                continue
            if skipped[token.start] or source.has(token.word) or len(bare(token.word)) < 2:
                continue
            if words.nouns and not _is_german_name(text, tokens, token, place, run, words):
                continue
            yield Name(token.word, token.start, token.end)


def _is_acronym(word: str) -> bool:
    return len(word) > 1 and word.isupper()


def _is_title(tokens: list[_Token], words: Vocabulary) -> bool:
    """Return whether a line is a heading in capitals: its capitals name nothing."""
    long = [token.word for token in tokens if len(token.word) > 3]
    return not words.nouns and len(long) >= 4 and sum(word[0].isupper() for word in long) / len(long) > 0.7


def _runs(tokens: list[_Token], words: Vocabulary, text: str) -> Iterator[list[_Token]]:
    """Yield words with capitals that stand in a row; words of grammar that begin a sentence are left out."""
    run: list[_Token] = []
    for token in tokens:
        is_capital = token.word[0].isupper() and bare(token.word) not in words.function and token.word != "I"
        if not is_capital or (run and text[run[-1].end : token.start] not in (" ", ". ", "-")):
            if run:
                yield run
            run = []
        if is_capital:
            run.append(token)
    if run:
        yield run


def _is_german_name(
    text: str, tokens: list[_Token], token: _Token, place: int, run: list[_Token], words: Vocabulary
) -> bool:
    """Return whether a German noun is a name: it stands without article or adjective, or right behind a noun.

    Nouns that need no article (`words.bare`), plurals and endings that make nouns of other words are none.
    """
    small = token.word.casefold()
    if _is_acronym(token.word):
        return True
    if small in words.bare or small in words.units or small in words.numbers:
        return False
    last = run[place - 1].word.casefold() if place else ""
    if last and not any(last in known for known in (words.units, words.months, words.bare)):
        return not _DERIVED_GERMAN.search(small)
    if _COMMON_GERMAN.search(small):
        return False
    at = next(index for index, other in enumerate(tokens) if other.start == token.start)
    before = tokens[at - 1].word if at else ""
    small_before = before.casefold()
    if not before or before[0].isdigit() or small_before in words.units or small_before in words.months:
        return False
    if small_before in _DETERMINERS or (
        before[0].islower() and small_before not in words.function and _ADJECTIVE_GERMAN.search(before)
    ):
        return False
    is_place = small_before in (
        "in",
        "nach",
        "aus",
        "bei",
        "von",
        "bis",
        "durch",
        "für",
        "mit",
        "und",
        "sagte",
        "sagt",
        "so",
        "laut",
        "an",
    )
    if text[tokens[at - 1].end : token.start] != " ":
        return False
    following = tokens[at + 1].word if at + 1 < len(tokens) else ""
    is_bare = not _PLURAL_GERMAN.search(small) or small_before in ("aus", "nach") or following[:1].isupper()
    return is_place and is_bare


_DETERMINERS = frozenset(
    [
        "der",
        "die",
        "das",
        "den",
        "dem",
        "des",
        "ein",
        "eine",
        "einer",
        "einem",
        "einen",
        "eines",
        "kein",
        "keine",
        "keinen",
        "keinem",
        "keiner",
        "mein",
        "meine",
        "sein",
        "seine",
        "seinen",
        "seinem",
        "seiner",
        "ihr",
        "ihre",
        "ihren",
        "ihrem",
        "ihrer",
        "unser",
        "unsere",
        "dieser",
        "diese",
        "dieses",
        "diesen",
        "diesem",
        "jeder",
        "jede",
        "jedes",
        "jeden",
        "jedem",
        "alle",
        "allen",
        "viele",
        "vielen",
        "einige",
        "einigen",
        "mehrere",
        "mehreren",
        "zwei",
        "drei",
        "im",
        "am",
        "zum",
        "zur",
        "beim",
        "vom",
        "ins",
        "ans",
        "beide",
        "beiden",
        "wenige",
        "wenigen",
        "manche",
        "solche",
        "welche",
        "zwischen",
        "ohne",
        "als",
        "pro",
        "je",
    ]
)


def _unspaced(text: str, words: Vocabulary, source: Known, skipped: bytes) -> Iterator[Name]:
    """Yield names of a text without blanks: Latin words, transcriptions, surnames with what follows, and places."""
    for pattern in (_LATIN, _FOREIGN):
        for found in pattern.finditer(text):
            if not skipped[found.start()] and not source.has(found[0]) and not source.has_signs(found[0]):
                yield Name(found[0], *found.span())
    for at, sign in enumerate(text):
        if sign in words.surnames and at + 1 < len(text) and not skipped[at] and _is_surname(text, at):
            yield from _unless_known(text, at, min(at + 2, len(text)), source)
        elif sign in words.places and at >= 2 and not skipped[at]:
            start = at - 2
            signs = text[start : at + 1]
            if re.fullmatch(r"[\u4e00-\u9fff]{3}", signs) and signs[1:] not in words.places_common:
                yield from _place(text, start, at, source)


_HAN = re.compile(r"[\u4e00-\u9fff]")
_BEFORE_NAME = "，。、：；“”\"'(（和与同跟由对向给让叫请据说是在从被把为以及师生长授员士问答见 \n"


def _is_surname(text: str, at: int) -> bool:
    """Return whether a surname begins a name: a name is behind a pause, a particle or a title."""
    is_behind = at == 0 or text[at - 1] in _BEFORE_NAME
    return bool(_HAN.match(text, at + 1)) and (is_behind or bool(_SPEAKING.match(text, at + 2)))


def _unless_known(text: str, start: int, end: int, source: Known) -> Iterator[Name]:
    if not source.has_signs(text[start:end]):
        yield Name(text[start:end], start, end)


_SPEAKING = re.compile(r"[\u4e00-\u9fff]?(?:说|表示|称|认为|指出|率领|担任|先生|女士|教授|等人)")

_GRAMMAR = frozenset(
    "的了在是和与及或从到往向对把被将为以于之其这那该此本每各某一二三四五六七八九十百千万几多条座个大小新老旧全整中上下内外前后东西南北沿过经进出穿越流入有无不也都就还又很最并而但且则若如因由当至"
)


def _place(text: str, start: int, at: int, source: Known) -> Iterator[Name]:
    """Yield the two characters before the kind of a place, unless the source has them or grammar is in them."""
    signs = text[start:at]
    if set(signs) & _GRAMMAR or source.has_signs(signs) or source.has_signs(signs[1] + text[at]):
        return
    yield Name(text[start : at + 1], start, at + 1)
