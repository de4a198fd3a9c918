"""Reads lexicons, and makes one table of them for compiled loops: words of any language in a tree of folded letters.

A lexicon is a text file. A line is `LABEL WEIGHT: ENTRY, ENTRY, ...`; a line that begins with blanks goes on with the
line before, and `#` begins a comment. An entry is a word or a phrase. `fuck*` is every word that begins so; `dick?`
counts in company only (`mentions`). `none:` lists words and phrases that are no hits though they contain or begin like
one, and `mention:` the cues of texts that speak about words, or about what was said. In a language that is written
without blanks the longest entry that begins at a place is found, wherever; entries have no blanks and no `*` there.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.text.toxicity.folding import ALPHABET, number_of
from pipeline_tasks.text.words.wordlist import read_content

LABELS = ("obscene", "threat", "insult", "identity_hate", "adult")
"""What an entry is: labels of Jigsaw's toxic comments (2018), from which its other two follow, and adult content."""

NONE, MENTION = "none", "mention"
WEIGHTS = (1, 2, 3)
SEVERE = 3
"""The weight of what is severe."""

NO_WORD = -1
LONGEST_UNSPACED = 32
"""Letters of an entry in a language without blanks, at most."""

LONGEST = 8
"""Words of a phrase, at most."""

SHORTEST_JOINED = 8
"""Letters of a phrase that is found without its blanks, too."""


class Entry(NamedTuple):
    """A word or phrase of a lexicon; `label` is NONE, MENTION or one of LABELS."""

    words: tuple[str, ...]
    label: str
    weight: int
    is_prefix: bool
    is_unsure: bool


class Table(NamedTuple):
    """Lexicons for loops. A node of the tree has a row of `children`, by the number of a letter, NO_WORD for none.

    `roots` is the root of each language, and `unspaced` whether it is written without blanks: the letters of its tree
    are then halves of the bytes of UTF-8. `ends` is the word that ends at a node, `openings` the one that every word
    has which begins so. Of a word, `entries` is what it is alone, `cues` its number as a cue, and `phrases` the range
    of the phrases that begin with it, the longest first. Of a phrase, `phrase_words` are its words. Of an entry,
    `labels` is the place in LABELS.
    """

    roots: npt.NDArray[np.int32]
    unspaced: npt.NDArray[np.bool_]
    children: npt.NDArray[np.int32]
    ends: npt.NDArray[np.int32]
    openings: npt.NDArray[np.int32]
    entries: npt.NDArray[np.int32]
    cues: npt.NDArray[np.int32]
    phrases: npt.NDArray[np.int32]
    phrase_words: npt.NDArray[np.int32]
    phrase_entries: npt.NDArray[np.int32]
    labels: npt.NDArray[np.int32]
    weights: npt.NDArray[np.int32]
    unsure: npt.NDArray[np.int32]


def read_lexicon(path: str, *, is_unspaced: bool = False) -> tuple[Entry, ...]:
    """Return the entries of a lexicon; RecipeError, naming the line, if the file is none.

    `is_unspaced` says that its language is written without blanks.
    """
    read = _unspaced_entry if is_unspaced else _entry
    listed: dict[tuple[tuple[str, ...], bool, bool], Entry] = {}
    label, weight = "", 0
    for number, line in enumerate(read_content(path).decode().splitlines(), 1):
        text = line.partition("#")[0].rstrip()
        if not text:
            continue
        if not text[0].isspace():
            head, _, text = text.partition(":")
            label, weight = _section(head, f"lexicon {path}, line {number}")
        for item in filter(None, (item.strip() for item in text.split(","))):
            entry = read(item, label, weight, f"lexicon {path}, line {number}")
            key = (entry.words, entry.is_prefix, label == MENTION)  # a word may be a hit and a cue
            if listed.setdefault(key, entry) != entry or not label:
                message = f"lexicon {path}, line {number}: {_shown(item)} has two labels, or none; leave one"
                raise RecipeError(message)
    if not any(entry.label in LABELS for entry in listed.values()):
        message = f"lexicon {path} has no entry of {', '.join(LABELS)}; bring the file whole, or leave it out"
        raise RecipeError(message)
    return tuple(listed.values())


def _section(head: str, where: str) -> tuple[str, int]:
    label, _, weight = head.strip().partition(" ")
    if label in (NONE, MENTION) and not weight:
        return label, 0
    if label in LABELS and weight in map(str, WEIGHTS):
        return label, int(weight)
    known = ", ".join(f"{name} 1 to 3" for name in LABELS)
    message = f"{where}: a line begins with LABEL WEIGHT: ({known}), none: or mention:, and goes on after blanks"
    raise RecipeError(message)


_SIGNS = ("", "*", "?", "*?")


def _entry(item: str, label: str, weight: int, where: str) -> Entry:
    plain = item.rstrip("*?")
    sign, words = item[len(plain) :], tuple(plain.split())
    is_plain = words and all(number_of(letter) for word in words for letter in word)
    if not is_plain or len(words) > LONGEST or sign not in _SIGNS or ("*" in sign and len(words) > 1):
        message = (
            f"{where}: {_shown(item)} is no entry: words of letters of {ALPHABET}, at most {LONGEST}, and `*` behind a "
            "single word, `?` behind both"
        )
        raise RecipeError(message)
    return Entry(words, label, weight, "*" in sign, "?" in sign)


def _unspaced_entry(item: str, label: str, weight: int, where: str) -> Entry:
    plain = item.rstrip("?")
    if len(item) - len(plain) > 1 or not plain.isalpha() or len(plain) > LONGEST_UNSPACED:
        message = (
            f"{where}: {_shown(item)} is no entry of a language without blanks: at most {LONGEST_UNSPACED} letters in "
            "a row, and `?` behind them"
        )
        raise RecipeError(message)
    return Entry((plain,), label, weight, is_prefix=False, is_unsure=plain != item)


def _shown(item: str) -> str:
    """Return an entry as messages have it: no message repeats a slur."""
    return f"the entry of {len(item)} characters that begins with {item[:1]!r}"


@lru_cache(maxsize=4)
def table_of(
    paths: tuple[str, ...],
    _stamps: tuple[tuple[int, ...], ...] = (),
    unspaced: tuple[bool, ...] = (),
) -> Table:
    """Return the table of lexicons, one per language, in their order; cached as long as the `stamps` of files hold.

    `unspaced` says of each whether its language is written without blanks; left out, of none.
    """
    build = _Building()
    for path, is_unspaced in zip(paths, unspaced or (False,) * len(paths), strict=True):
        build.add(read_lexicon(path, is_unspaced=is_unspaced), is_unspaced=is_unspaced)
    return build.table()


class _Building:
    """A table that grows by a language at a time."""

    def __init__(self) -> None:
        self.roots: list[int] = []
        self.unspaced: list[bool] = []
        self.children: list[list[int]] = []
        self.words: list[tuple[int, bool]] = []  # node, and whether all words that begin so are meant
        self.numbers: dict[tuple[int, bool], int] = {}
        self.entries: dict[int, int] = {}
        self.cues: dict[int, int] = {}
        self.phrases: list[tuple[list[int], int]] = []
        self.facts: list[tuple[int, int, int]] = []

    def add(self, listed: tuple[Entry, ...], *, is_unspaced: bool) -> None:
        self.roots.append(self._node())
        self.unspaced.append(is_unspaced)
        first = len(self.words)
        for entry in listed:
            words = [self._word(word, is_prefix=entry.is_prefix) for word in entry.words]
            if entry.label == MENTION:
                self.cues.update((word, words[0]) for word in words)
                continue
            label = LABELS.index(entry.label) if entry.label in LABELS else 0
            self.facts.append((label, entry.weight, entry.is_unsure))
            if len(words) == 1:
                self.entries[words[0]] = len(self.facts) - 1
            else:
                self.phrases.append((words, len(self.facts) - 1))
                whole = "".join(entry.words)
                if len(whole) >= SHORTEST_JOINED and not entry.is_unsure:  # spelled apart, or a hashtag
                    self.entries.setdefault(self._word(whole, is_prefix=False), len(self.facts) - 1)
        self._inherit(first)

    def _node(self) -> int:
        self.children.append([NO_WORD] * (len(ALPHABET) + 1))
        return len(self.children) - 1

    def _word(self, word: str, *, is_prefix: bool) -> int:
        node = self.roots[-1]
        for number in halves_of(word) if self.unspaced[-1] else map(number_of, word):
            row = self.children[node]
            if row[number] == NO_WORD:
                row[number] = self._node()
            node = row[number]
        key = (node, is_prefix)
        if key not in self.numbers:
            self.numbers[key] = len(self.words)
            self.words.append(key)
        return self.numbers[key]

    def _inherit(self, first: int) -> None:
        """Let each word that is no entry, or no cue, of its own be what the longest opening of it is."""
        parents = {child: node for node, row in enumerate(self.children) for child in row if child != NO_WORD}
        for number in range(first, len(self.words)):
            node: int | None = self.words[number][0]
            while node is not None:
                opening = self.numbers.get((node, True))
                if opening is not None:
                    for facts in (self.entries, self.cues):
                        if opening in facts:
                            facts.setdefault(number, facts[opening])
                node = parents.get(node)

    def table(self) -> Table:
        count = len(self.words)
        ordered = sorted(self.phrases, key=lambda phrase: (phrase[0][0], -len(phrase[0]), phrase[0]))
        phrases = np.zeros((count, 2), np.int32)
        phrase_words = np.full((max(len(ordered), 1), LONGEST), NO_WORD, np.int32)
        for place, (words, _) in enumerate(ordered):
            phrase_words[place, : len(words)] = words
            phrases[words[0]] = (phrases[words[0], 0] if phrases[words[0], 1] else place, place + 1)
        ends, openings = np.full((2, len(self.children)), NO_WORD, np.int32)
        for number, (node, is_prefix) in enumerate(self.words):
            (openings if is_prefix else ends)[node] = number
        labels, weights, unsure = np.array(self.facts, np.int32).T
        return Table(
            np.array(self.roots, np.int32),
            np.array(self.unspaced, np.bool_),
            np.array(self.children, np.int32),
            ends.copy(),
            openings.copy(),
            _by_number(self.entries, count),
            _by_number(self.cues, count),
            phrases,
            phrase_words,
            np.array([entry for _, entry in ordered] or [0], np.int32),
            labels.copy(),
            weights.copy(),
            unsure.copy(),
        )


def halves_of(word: str) -> list[int]:
    """Return the halves of the bytes of a word, the higher one first, from 1 to 16: letters of a small alphabet."""
    return [half + 1 for byte in word.encode() for half in (byte >> 4, byte & 15)]


def _by_number(facts: Mapping[int, int], count: int) -> npt.NDArray[np.int32]:
    values = np.full(count, NO_WORD, np.int32)
    for number, value in facts.items():
        values[number] = value
    return values
