"""Finds what a model says to its reader, in place of a text or around it: refusals, openings, marks of a chat."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from pipeline_tasks.text.faith.overlap import content, ngrams, places_of, units_of
from pipeline_tasks.text.faith.vocabulary import WINDOWS, WORD, Vocabulary, sentences

MARKS = re.compile(
    r"<\|[^|<>\n]{1,40}\|>|\[/?INST\]|<</?SYS>>|</?s>|<(?:start|end)_of_turn>|</?think>"
    r"|(?m:^(?:#+ *)?(?:assistant|user|system|human|instruction|response)\s*:)",
    re.IGNORECASE,
)
"""Marks by which chat formats set off turns, and names of who speaks at the start of a line."""

TASK = 0.34
"""Share of a sentence's stems, at least, that are the prompt's and not the source's where it speaks of the task."""

LABEL = 3
"""Words before a first colon, at least, that speak to the reader: fewer are a label (`Question:`)."""

TOLD = 6
"""Words in a row that a text has of its prompt and not of its source where it repeats the prompt."""

LETTERS = 4
"""Letters or characters of a word of a prompt, where words are not told apart: a prompt may be in English."""

ALIEN = 0.34
"""Share of a line's stems, at most, that its source has, where the line is no text of it."""


def leaks(source: str, written: str, words: Vocabulary, prompt: Iterable[str] = ()) -> list[tuple[int, int]]:
    """Return the bounds of marks of a chat, and of a first or last line or sentence that speaks to the reader.

    Such a line has a word of those who speak or are spoken to that the source has not, or ends with a colon, and hardly
    shares a stem with the source. `prompt` are sentences that the model was given and that are none of the source: a
    stretch of `TOLD` of their words is a leak, and so is a first or last sentence that has stems of theirs and none of
    the source's.
    """
    told = tuple(prompt)
    found = [mark.span() for mark in MARKS.finditer(written) if mark[0] not in source]
    known = content(source, words)
    own = _persons(source, words)
    orders = frozenset().union(*(content(sentence, words) for sentence in told)) - known
    parts = sentences(written)
    for place in sorted({0, len(parts) - 1}) if parts else ():
        start, end = parts[place]
        part = written[start:end]
        opening, colon, _ = part.partition(":")
        if (
            colon
            and place == 0
            and len(units_of(opening, words)) >= LABEL
            and _speaks(opening + ":", known, own, words)
        ):
            found.append((start, start + len(opening) + 1))
        elif _speaks(part, known, own, words) or _obeys(content(part, words), known, orders):
            found.append((start, end))
    found += _told(source, written, words, told)
    return sorted(set(found))


def _obeys(stems: frozenset[str], known: frozenset[str], orders: frozenset[str]) -> bool:
    """Return whether a sentence speaks of the task: it has stems of the prompt, and hardly one of the source."""
    return len(stems & orders) >= TASK * max(1, len(stems)) and len(stems & known) <= ALIEN * len(stems)


def _told(source: str, written: str, words: Vocabulary, prompt: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    """Yield the bounds of the stretches that a text has of its prompt; each ends where the next begins or before."""
    size = TOLD if words.spaced else LETTERS * TOLD
    told = {gram for sentence in prompt for gram in ngrams(units_of(sentence, words), size)}
    places = places_of(written, words) if told else []
    hits = {at for at, gram in enumerate(ngrams([unit.said for unit in places], size)) if gram in told}
    hits -= {at for at in hits if written[places[at].start : places[at + size - 1].end] in source}
    start = end = -1
    for at in sorted(hits):
        if at > end:
            if end >= 0:
                yield places[start].start, places[end].end
            start = at
        end = at + size - 1
    if end >= 0:
        yield places[start].start, places[end].end


def refuses(source: str, written: str, words: Vocabulary) -> bool:
    """Return whether a text says that its writer will not write: it denies, speaks of itself, and not of the source."""
    parts = sentences(written)
    if not parts:
        return False
    known, own = content(source, words), _persons(source, words)
    first = written[: parts[min(1, len(parts) - 1)][1]]
    denies = _has(first, words.negations, words)
    whole = content(written, words)
    is_alien = len(whole & known) <= ALIEN * max(1, len(whole))
    return denies and is_alien and bool(_persons(first, words) - own)


def _speaks(part: str, known: frozenset[str], own: frozenset[str], words: Vocabulary) -> bool:
    stems = content(part, words)
    if len(stems & known) > ALIEN * max(1, len(stems)):
        return False
    return bool(_persons(part, words) - own) or (part.rstrip().endswith((":", "：")) and len(part) > 8)


@lru_cache(WINDOWS)
def _persons(text: str, words: Vocabulary) -> frozenset[str]:
    if not words.spaced:
        return frozenset(person for person in words.persons if person in text)
    small = text.casefold()
    tokens = {*WORD.findall(small), *re.findall(r"[^\W\d_]+", small)}
    return frozenset(person for person in words.persons if person in (tokens if " " not in person else small))


def _has(text: str, wanted: Iterable[str], words: Vocabulary) -> bool:
    if not words.spaced:
        return any(word in text for word in wanted)
    return any(found[0].casefold() in wanted or found[0].casefold().endswith("n't") for found in WORD.finditer(text))
