"""Finds what a model says to its reader, in place of a text or around it: refusals, openings, marks of a chat."""

import re
from collections.abc import Iterable

from pipeline_tasks.text.faith.overlap import content, units_of
from pipeline_tasks.text.faith.vocabulary import WORD, Vocabulary, sentences

MARKS = re.compile(
    r"<\|[^|<>\n]{1,40}\|>|\[/?INST\]|<</?SYS>>|</?s>|<(?:start|end)_of_turn>|</?think>"
    r"|(?m:^(?:#+ *)?(?:assistant|user|system|human|instruction|response)\s*:)",
    re.IGNORECASE,
)
"""Marks by which chat formats set off turns, and names of who speaks at the start of a line."""

LABEL = 3
"""Words before a first colon, at least, that speak to the reader: fewer are a label (`Question:`)."""

ALIEN = 0.34
"""Share of a line's stems, at most, that its source has, where the line is no text of it."""


def leaks(source: str, written: str, words: Vocabulary, prompt: Iterable[str] = ()) -> list[tuple[int, int]]:
    """Return the bounds of marks of a chat, and of a first or last line or sentence that speaks to the reader.

    Such a line has a word of those who speak or are spoken to that the source has not, or ends with a colon, and hardly
    shares a stem with the source. `prompt` are sentences that the model was given and that are none of the source.
    """
    found = [mark.span() for mark in MARKS.finditer(written) if mark[0] not in source]
    known = content(source, words)
    own = _persons(source, words)
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
        elif _speaks(part, known, own, words):
            found.append((start, end))
    for sentence in prompt:
        at = written.find(sentence)
        if at >= 0 and sentence not in source:
            found.append((at, at + len(sentence)))
    return sorted(set(found))


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


def _speaks(part: str, known: set[str], own: set[str], words: Vocabulary) -> bool:
    stems = content(part, words)
    if len(stems & known) > ALIEN * max(1, len(stems)):
        return False
    return bool(_persons(part, words) - own) or (part.rstrip().endswith((":", "：")) and len(part) > 8)


def _persons(text: str, words: Vocabulary) -> set[str]:
    if not words.spaced:
        return {person for person in words.persons if person in text}
    small = text.casefold()
    tokens = {found[0] for found in WORD.finditer(small)} | {found[0] for found in re.finditer(r"[^\W\d_]+", small)}
    return {person for person in words.persons if person in (tokens if " " not in person else small)}


def _has(text: str, wanted: Iterable[str], words: Vocabulary) -> bool:
    if not words.spaced:
        return any(word in text for word in wanted)
    return any(found[0].casefold() in wanted or found[0].casefold().endswith("n't") for found in WORD.finditer(text))
