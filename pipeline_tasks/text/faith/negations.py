"""Finds sentences that deny what their source affirms, or affirm what it denies."""

import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from pipeline_tasks.text.faith.overlap import content, stem
from pipeline_tasks.text.faith.vocabulary import WINDOWS, WORD, WORDS, Vocabulary, bare, sentences

LEAST_COMMON = 2
"""Stems that a denial and what it is compared with have in common at least."""

RESTATED = 0.6
"""Share of the stems of a denial, at least, that a sentence has which restates it, in a text that leaves things out."""

_CLAUSE = re.compile(r"[,;:()，；：、]|\s-\s")


class _Part(NamedTuple):
    """A sentence, or a clause that denies: its stems, and what it denies by, explicitly and otherwise."""

    start: int
    end: int
    stems: frozenset[str]
    denied: Counter[str]
    negative: Counter[str]


def find_changed(source: str, written: str, words: Vocabulary, *, is_whole: bool) -> list[tuple[int, int]]:
    """Return the bounds of the sentences of a plain text whose negations its source has not, or has more of.

    A clause that denies is compared with the sentences of the other text that have its stems, and where there are none
    with all of it. Of a text that is not `is_whole`, which leaves things out, a sentence must restate what is denied:
    else the denial may be what it left out. Words that both have do
    not count; of what is left, words by which one may deny without a negation stand for one.
    """
    if not words.negations or not source.strip():
        return []
    roots = frozenset(content(source, words) | content(written, words))
    before, after = _read(source, words, roots), _read(written, words, roots)
    changed: set[tuple[int, int]] = set()
    for sentence in after:
        for clause in _denials(written, sentence, words, roots):
            matched = _cover(clause.stems, before, LEAST_COMMON) or _cover(sentence.stems, before, LEAST_COMMON)
            related = matched or [part for part in before if part.stems & sentence.stems]
            if _exceeds(sentence, related, clause) or (not related and len(sentence.stems) >= LEAST_COMMON):
                changed.add((sentence.start, sentence.end))
    for sentence in before:
        for clause in _denials(source, sentence, words, roots):
            matched = _cover(clause.stems, after, 1) if is_whole else _restated(clause.stems, after)
            if matched and _exceeds(sentence, matched, clause):
                changed.add((matched[0].start, matched[0].end))
            elif is_whole and not matched and _exceeds(sentence, after, clause):
                changed.add((0, len(written)))
    return sorted(changed)


def _exceeds(sentence: _Part, matched: list[_Part], clause: _Part) -> bool:
    """Return whether a clause denies by more than the other text does, without the words that both have."""
    if not matched:
        return False
    nearest, *rest = matched
    others = sum((part.denied for part in rest), nearest.negative)
    left = clause.denied - others
    return left.total() > (others - sentence.negative).total()


def _read(text: str, words: Vocabulary, roots: frozenset[str]) -> list[_Part]:
    return [_part(text, (start, end), words, roots) for start, end in sentences(text)]


def _part(text: str, bounds: tuple[int, int], words: Vocabulary, roots: frozenset[str]) -> _Part:
    start, end = bounds
    denied, negative = _counts(text[start:end], words, roots)
    return _Part(start, end, content(text[start:end], words), denied, negative)


def _denials(text: str, sentence: _Part, words: Vocabulary, roots: frozenset[str]) -> Iterator[_Part]:
    """Yield the clauses of a sentence that have a negation."""
    if not sentence.denied:
        return
    start = sentence.start
    ends = [found.start() for found in _CLAUSE.finditer(text, sentence.start, sentence.end)]
    for end in (*ends, sentence.end):
        clause = _part(text, (start, end), words, roots)
        if clause.denied:
            yield clause if words.spaced else _behind(text, (start, end), clause, words, roots)
        start = end


def _behind(text: str, bounds: tuple[int, int], clause: _Part, words: Vocabulary, roots: frozenset[str]) -> _Part:
    """Return a clause without what stands before its negation, where enough follows: that is what it denies."""
    start, end = bounds
    places = [at for word in words.negations if (at := text.find(word, start, end)) >= 0]
    behind = _part(text, (min(places, default=start), end), words, roots)
    return behind if behind.denied and len(behind.stems) >= _BEHIND else clause


_BEHIND = 3
"""Pairs of characters behind a negation that say what it denies."""


def _counts(part: str, words: Vocabulary, roots: frozenset[str]) -> tuple[Counter[str], Counter[str]]:
    """Return the negations of a part, and these with the other words by which it may deny, each by what it says."""
    said = _said(part, words)
    denied = Counter({"not": said.denials} if said.denials else {})
    others = (word.says for word in said.others if not word.roots or not roots.isdisjoint(word.roots))
    return denied, denied + Counter(others)


class _Word(NamedTuple):
    """What a word says by which one may deny, and the stems of which a text has one where it does."""

    says: str
    roots: frozenset[str]


class _Said(NamedTuple):
    denials: int
    others: tuple[_Word, ...]


@lru_cache(16 * WINDOWS)
def _said(part: str, words: Vocabulary) -> _Said:
    """Return how often a part denies, and the words by which it may do so without a negation."""
    bare_part = re.sub(words.limits, " ", part, flags=re.IGNORECASE) if words.limits else part
    if not words.spaced:
        pattern = "|".join(sorted(words.negations, key=len, reverse=True))
        others = (
            _Word(f"~{group}", frozenset())
            for word, group in words.negatives.items()
            for _ in range(bare_part.count(word))
        )
        return _Said(len(re.findall(pattern, bare_part)), tuple(others))
    found = [word.casefold() for word in WORD.findall(bare_part)]
    denials = sum(word in words.negations or word.endswith("n't") for word in found)
    rest = (_negative(word, words) for word in found if word not in words.negations)
    return _Said(denials, tuple(word for word in rest if word))


@lru_cache(WORDS)
def _negative(word: str, words: Vocabulary) -> _Word | None:
    """Return what a word says by which one may deny without a negation, None for any other.

    A prefix or suffix denies a word that one of the texts has (`unhurt`, and not `university`).
    """
    if word in words.negatives:
        return _Word(f"~{words.negatives[word]}", frozenset())
    if word in words.function:
        return None
    cut = [word[len(prefix) :] for prefix in words.negative_prefixes if word.startswith(prefix)]
    cut += [word[: -len(suffix)] for suffix in words.negative_suffixes if word.endswith(suffix)]
    roots = frozenset(stem(bare(root)) for root in cut if len(root) > 2)
    return _Word(stem(bare(word)), roots) if roots else None


def _restated(stems: frozenset[str], others: list[_Part]) -> list[_Part]:
    """Return the part that has most of these stems, if it says the same."""
    nearest = max(others, key=lambda other: len(stems & other.stems), default=None)
    least = max(LEAST_COMMON, RESTATED * len(stems))
    return [nearest] if nearest and len(stems & nearest.stems) >= least else []


def _cover(stems: frozenset[str], others: list[_Part], least: int) -> list[_Part]:
    """Return the parts that have most of these stems, then those that have most of the others, and so on."""
    left, cover = set(stems), list[_Part]()
    while left:
        counts = [len(left & other.stems) for other in others]
        most = max(counts, default=0)
        if most < (least if not cover else 1):
            break
        chosen = [other for other, count in zip(others, counts, strict=True) if count == most]
        cover += chosen
        for other in chosen:
            left -= other.stems
    return cover
