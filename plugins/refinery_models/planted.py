"""Makes nonsense of documents, by which a scorer is checked: a function for each kind, the same for the same id.

Words and sentences are those of the documents, so that nonsense and text differ in what a kind does to them, and not in
language, subject or source. Where blanks part no words (`UNSPACED`), a letter is a word.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from xxhash import xxh3_64_intdigest

from pipeline_tasks.text.words.languages import UNSPACED

Draws = npt.NDArray[np.uint64]

SENTENCE = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])|\n+")  # noqa: RUF001 -- full stops of Chinese and Japanese

LEAST_WORDS, LEAST_SENTENCES = 20, 5
"""What a document must have: of fewer the nonsense may be a text."""

MOST_WORDS = 2_000
"""Words of generated nonsense."""

CONFUSED: Mapping[str, str] = {
    "l": "1",
    "i": "l",
    "o": "0",
    "e": "c",
    "c": "e",
    "a": "o",
    "s": "5",
    "b": "6",
    "g": "9",
    "m": "rn",
    "h": "li",
    "u": "ii",
    "d": "cl",
    "t": "f",
    "n": "ri",
    "B": "8",
    "O": "0",
    "I": "1",
    "S": "5",
}
"""Letters that optical readers confuse (Latin); letters of other scripts are dropped or doubled."""

NOISE = 0.15
"""Share of the letters that are misread: a page of an old newspaper has 5 to 30 in 100."""

THREATS: Mapping[str, Sequence[str]] = {
    "en": ("I know where you live.", "You are going to regret this.", "I will come and hurt you and your family."),
    "de": ("Ich weiß, wo du wohnst.", "Du wirst das bereuen.", "Ich komme und tue dir und deiner Familie weh."),
    "fr": ("Je sais où tu habites.", "Tu vas le regretter.", "Je viendrai te faire du mal, à toi et à ta famille."),
    "es": ("Sé dónde vives.", "Te vas a arrepentir.", "Voy a ir a hacerte daño a ti y a tu familia."),
    "it": ("So dove abiti.", "Te ne pentirai.", "Verrò a fare del male a te e alla tua famiglia."),
    "pt": ("Eu sei onde você mora.", "Você vai se arrepender.", "Vou machucar você e a sua família."),
    "nl": ("Ik weet waar je woont.", "Je gaat hier spijt van krijgen.", "Ik kom jou en je familie pijn doen."),
    "pl": ("Wiem, gdzie mieszkasz.", "Pożałujesz tego.", "Przyjdę i zrobię krzywdę tobie i twojej rodzinie."),
    "ru": ("Я знаю, где ты живёшь.", "Ты пожалеешь.", "Я приду и покалечу тебя и твою семью."),
    "zh": ("我知道你住在哪里。", "你会后悔的。", "我会来伤害你和你的家人。"),
    "ja": ("お前の家を知っている。", "後悔させてやる。", "お前と家族を痛い目に遭わせてやる。"),
}
"""Sentences that threaten, by language; a document in another language has no such nonsense."""


class Text(NamedTuple):
    """A document of a sample: draws follow from its `id`."""

    id: str
    text: str


@dataclass(frozen=True)
class Pool:
    """The documents of one language, whose words and sentences nonsense is made of."""

    language: str
    texts: Sequence[Text]

    @property
    def is_spaced(self) -> bool:
        """Whether blanks part words."""
        return self.language.partition("-")[0] not in UNSPACED

    def words(self, text: str) -> list[str]:
        """Return the words of a text, or its letters where blanks part none."""
        return text.split() if self.is_spaced else [letter for letter in text if not letter.isspace()]

    def joined(self, words: Sequence[str]) -> str:
        """Return a text of words."""
        return (" " if self.is_spaced else "").join(words)

    @cached_property
    def sentences(self) -> Sequence[Sequence[str]]:
        """The sentences of each document."""
        return [cut(document.text) for document in self.texts]

    @cached_property
    def followers(self) -> Mapping[str, Sequence[str]]:
        """The words that follow each word (two letters where blanks part none) in any document."""
        followers: defaultdict[str, list[str]] = defaultdict(list)
        for document in self.texts:
            words = self.words(document.text)[:MOST_WORDS]
            for at in range(1, len(words)):
                followers[self.context(words, at)].append(words[at])
        return followers

    def context(self, words: Sequence[str], at: int) -> str:
        """Return what the word at a place is drawn by: the word before, or the two letters before."""
        return words[at - 1] if self.is_spaced else "".join(words[max(at - 2, 0) : at])


def cut(text: str) -> list[str]:
    """Return the sentences and lines of a text."""
    return [part for part in SENTENCE.split(text) if part and part.strip()]


def draws(document: Text, kind: str, count: int) -> Draws:
    """Return `count` numbers of 64 bits that follow from the id and the kind (splitmix64)."""
    seed = np.uint64(xxh3_64_intdigest(f"{kind}\t{document.id}".encode()))
    steps = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    values = steps + seed
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Draws = values ^ (values >> np.uint64(31))
    return mixed


def words(document: Text, pool: Pool) -> str | None:
    """Return the text with its words in disorder."""
    parts = pool.words(document.text)
    if len(parts) < LEAST_WORDS:
        return None
    order = np.argsort(draws(document, "words", len(parts)), kind="stable")
    return pool.joined([parts[at] for at in order.tolist()])


def sentences(document: Text, pool: Pool) -> str | None:
    """Return as many sentences as the text has, each of another document."""
    count = len(cut(document.text))
    others = [part for other, part in zip(pool.texts, pool.sentences, strict=True) if part and other.id != document.id]
    if count < LEAST_SENTENCES or len(others) < LEAST_SENTENCES:
        return None
    drawn = draws(document, "sentences", 2 * count).tolist()
    chosen = [others[drawn[2 * at] % len(others)] for at in range(count)]
    return "\n".join(part[drawn[2 * at + 1] % len(part)] for at, part in enumerate(chosen))


def listing(document: Text, pool: Pool) -> str | None:
    """Return a list of links and prices that are called by words of the text."""
    parts = pool.words(document.text)
    if len(parts) < LEAST_WORDS:
        return None
    size = 3 if pool.is_spaced else 6
    lines = max(10, min(len(document.text), 6_000) // 40)
    drawn = draws(document, "listing", 2 * lines).tolist()
    named = [pool.joined(parts[at : at + size]) for at in (number % (len(parts) - size) for number in drawn[:lines])]
    return "\n".join(_entry(name, number) for name, number in zip(named, drawn[lines:], strict=True))


def _entry(name: str, number: int) -> str:
    if number % 3:
        return (
            f"{name} | {number % 900 + 5},{number // 1000 % 100:02d} € | ★ {number // 7 % 5 + 1} ({number // 11 % 500})"
        )
    return f"» {name} / {name.title()} ({number // 13 % 90 + 2})"


def repeated(document: Text, pool: Pool) -> str | None:
    """Return one sentence of the text again and again, as long as the text."""
    long_enough = [part for part in cut(document.text) if len(pool.words(part)) >= LEAST_SENTENCES]
    if not long_enough or len(pool.words(document.text)) < LEAST_WORDS:
        return None
    phrase = long_enough[int(draws(document, "repeated", 1)[0] % np.uint64(len(long_enough)))]
    times = max(5, min(len(document.text), 20_000) // len(phrase))
    return (" " if pool.is_spaced else "").join([phrase] * times)


def generated(document: Text, pool: Pool) -> str | None:
    """Return a text that a machine made: each word one that follows the last word in some document."""
    parts = pool.words(document.text)[:MOST_WORDS]
    if len(parts) < LEAST_WORDS or len(pool.texts) < LEAST_SENTENCES:
        return None
    drawn = draws(document, "generated", len(parts)).tolist()
    chain = parts[:1]
    for number in drawn[1:]:
        following = pool.followers.get(pool.context(chain, len(chain))) or parts
        chain.append(following[number % len(following)])
    return pool.joined(chain)


def threats(document: Text, pool: Pool) -> str | None:
    """Return the text with a threat behind every second sentence; None in a language without threats of ours."""
    known, parts = THREATS.get(pool.language.partition("-")[0]), cut(document.text)
    if not known or len(parts) < LEAST_SENTENCES:
        return None
    drawn = draws(document, "threats", len(parts)).tolist()
    lines = [
        (part, known[number % len(known)]) if at % 2 else (part,) for at, (part, number) in _numbered(parts, drawn)
    ]
    return "\n".join(part for line in lines for part in line)


def _numbered(parts: Sequence[str], drawn: Sequence[int]) -> list[tuple[int, tuple[str, int]]]:
    return list(enumerate(zip(parts, drawn, strict=True)))


def keywords(document: Text, pool: Pool) -> str | None:
    """Return the longest words of the text in ever new pairs, as pages have them that want to be found."""
    parts = pool.words(document.text)
    if len(parts) < LEAST_WORDS:
        return None
    if not pool.is_spaced:
        parts = [a + b for a, b in zip(parts[::2], parts[1::2], strict=False)]
    terms = sorted(set(parts), key=lambda part: (-len(part), part))[:8]
    count = max(20, min(len(document.text), 6_000) // (2 * len(terms[0]) + 2))
    drawn = draws(document, "keywords", 2 * count).tolist()
    pairs = [(terms[drawn[2 * at] % len(terms)], terms[drawn[2 * at + 1] % len(terms)]) for at in range(count)]
    return ", ".join(pool.joined(pair) for pair in pairs)


def misread(document: Text, pool: Pool) -> str | None:
    """Return the text as a poor optical reader has it."""
    if len(pool.words(document.text)) < LEAST_WORDS:
        return None
    drawn = (draws(document, "misread", len(document.text)) >> np.uint64(11)).astype(np.float64) / float(1 << 53)
    return "".join(_read(letter, draw) for letter, draw in zip(document.text, drawn.tolist(), strict=True))


def _read(letter: str, draw: float) -> str:
    """Return what is read for a letter, by a draw between 0 and 1."""
    if draw >= NOISE:
        return letter
    if letter in CONFUSED:
        return CONFUSED[letter]
    return "" if draw < NOISE / 2 else letter + (" " if draw < 3 * NOISE / 4 else letter)


Plant = Callable[[Text, Pool], str | None]

KINDS: Mapping[str, Plant] = {
    "words": words,
    "sentences": sentences,
    "listing": listing,
    "repeated": repeated,
    "generated": generated,
    "threats": threats,
    "keywords": keywords,
    "misread": misread,
}
"""Makes a kind of nonsense of a document; None where the document has too little for it."""
