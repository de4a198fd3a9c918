"""Whether a text speaks of its source: how many of its stems the source has, and sentences that come from elsewhere."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from pipeline_tasks.text.faith.overlap import COPIED, content, ngrams, units_of
from pipeline_tasks.text.faith.vocabulary import WINDOWS, Vocabulary, sentences

KNOWN = 0.3
"""Share of a sentence's stems that its source has, at least.

Sentences of the faithful rewrites that it was chosen on have a third or more, those of rewrites of other sources none
in the median.
"""

MERGED, NEAR = 0.25, 3
"""What of a sentence's stems beside a copied stretch another sentence of the source has, at least, where a text merges
the two, and how many sentences these are apart at most. A stem weighs less by the number of sentences that have it.
Of copied sentences that were merged with faithful ones of the same source, 4 % fail it, and 30 % did at 0.75 unweighed.
"""

LEAST = 3
"""Stems of which a share says something."""

SIGNS = 2
"""Characters of a word, at most, of a language without blanks: stems there are characters, and two weigh as one."""


class Grounds(NamedTuple):
    """Share of a text's stems that its source has, None of a text without; and bounds of its invented sentences."""

    share: float | None
    invented: tuple[tuple[int, int], ...]


class _Source(NamedTuple):
    """The stems of each sentence of a source, how many sentences have each, and which have each n-gram."""

    sentences: Sequence[frozenset[str]]
    counts: Mapping[str, int]
    places: Mapping[tuple[str, ...], Sequence[int]]


def grounds(source: str, written: str, words: Vocabulary, quantities: Iterable[tuple[int, int]] = ()) -> Grounds:
    """Return what of a plain text its source has.

    Stems of its `quantities` that the source has not are left out: they may be written otherwise, and are judged by
    what they are worth. A sentence is invented if the source has less than `KNOWN` of its stems, or if it copies
    `COPIED` words in a row of a sentence that has less than `KNOWN` of the stems it sets beside them, unless it merges
    this one with a neighbor.
    """
    least = LEAST * _weight(words)
    signs = [*written]
    for start, end in quantities:
        signs[start:end] = " " * (end - start)
    said = "".join(signs)
    known = _stems(source, words)
    stems = _stems(said, words) | (_stems(written, words) & known)
    invented = []
    for start, end in sentences(written):
        own = _stems(said[start:end], words) | (_stems(written[start:end], words) & known)
        if len(own) < least:
            continue
        if len(own & known) < KNOWN * len(own) or _is_grafted(written[start:end], own, source, words):
            invented.append((start, end))
    return Grounds(len(stems & known) / len(stems) if stems else None, tuple(invented))


def _is_grafted(sentence: str, stems: frozenset[str], source: str, words: Vocabulary) -> bool:
    """Return whether a sentence sets beside a copied stretch what the sentence that it is copied from does not say."""
    known = _read(source, words)
    size = COPIED * _weight(words)
    units = units_of(sentence, words)
    hits = {at: known.places[gram] for at, gram in enumerate(ngrams(units, size)) if gram in known.places}
    copied = {at + place for at in hits for place in range(size)}
    blank = " " if words.spaced else ""
    beside = stems - _stems(blank.join(units[at] for at in sorted(copied)), words)
    if not hits or len(beside) < LEAST * _weight(words):
        return False
    origins = {place for places in hits.values() for place in places}
    said = beside & frozenset().union(*(known.sentences[place] for place in origins))
    near = {at for place in origins for at in range(max(0, place - NEAR), place + NEAR + 1)} & {
        *range(len(known.sentences))
    }
    merged = (sum(1 / known.counts[stem] for stem in beside & known.sentences[at]) for at in near)
    return len(said) < KNOWN * len(beside) and max(merged) < MERGED * len(beside)


def _weight(words: Vocabulary) -> int:
    return 1 if words.spaced else SIGNS


def _stems(text: str, words: Vocabulary) -> frozenset[str]:
    return content(text, words) if words.spaced else frozenset(units_of(text, words)) - _particles(words)


@cache
def _particles(words: Vocabulary) -> frozenset[str]:
    """Return the characters that are words of grammar."""
    return frozenset(word for word in words.function | words.negations if len(word) == 1)


@lru_cache(WINDOWS)
def _read(source: str, words: Vocabulary) -> _Source:
    parts = [source[start:end] for start, end in sentences(source)]
    stems = [_stems(part, words) for part in parts]
    places: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for place, part in enumerate(parts):
        for gram in ngrams(units_of(part, words), COPIED * _weight(words)):
            places[gram].append(place)
    return _Source(stems, Counter(stem for part in stems for stem in part), dict(places))
