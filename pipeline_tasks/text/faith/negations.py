"""Finds sentences that deny what their source affirms, or affirm what it denies."""

import re
from typing import NamedTuple

from pipeline_tasks.text.faith.overlap import content
from pipeline_tasks.text.faith.vocabulary import WORD, Vocabulary, bare, sentences

LEAST_COMMON = 2
"""Stems that two sentences have in common at least, so that one says what the other does."""

LEAST_SHARE = 0.3
"""Share of the stems of the shorter sentence that the other one has at least."""


class _Sentence(NamedTuple):
    start: int
    end: int
    stems: set[str]
    denied: int  # words that deny
    negative: int  # those, and words by which one may deny without them


def find_changed(source: str, written: str, words: Vocabulary) -> list[tuple[int, int]]:
    """Return the bounds of the sentences of a plain text whose negations its source has not, or has more of.

    A sentence is compared with those of the other text that have most of its stems in common. Words by which one may
    deny without a negation stand for one.
    """
    if not words.negations:
        return []
    before, after = _read(source, words), _read(written, words)
    changed: list[tuple[int, int]] = []
    for sentence in after:
        if sentence.denied and (matched := _matched(sentence, before)) and sum(m.negative for m in matched) < sentence.denied:
            changed.append((sentence.start, sentence.end))
    for sentence in before:
        if sentence.denied and (matched := _matched(sentence, after)) and not sum(m.negative for m in matched):
            changed.append((matched[0].start, matched[0].end))
    return sorted(set(changed))


def _read(text: str, words: Vocabulary) -> list[_Sentence]:
    return [
        _Sentence(start, end, content(text[start:end], words), *_counts(text[start:end], words))
        for start, end in sentences(text)
    ]


def _counts(sentence: str, words: Vocabulary) -> tuple[int, int]:
    if not words.spaced:
        denied = len(re.findall("|".join(sorted(words.negations, key=len, reverse=True)), sentence))
        return denied, denied + sum(sentence.count(word) for word in words.negatives)
    found = [word[0].casefold() for word in WORD.finditer(sentence)]
    denied = sum(word in words.negations or word.endswith("n't") for word in found)
    plain = [word for word in found if word not in words.function or word in words.negatives]
    others = sum(_is_negative(word, words) for word in plain if word not in words.negations)
    return denied, denied + others


def _is_negative(word: str, words: Vocabulary) -> bool:
    if word in words.negatives or bare(word) in words.negatives:
        return True
    has_prefix = any(word.startswith(prefix) and len(word) > len(prefix) + 3 for prefix in words.negative_prefixes)
    return has_prefix or any(word.endswith(end) and len(word) > len(end) + 2 for end in words.negative_suffixes)


def _matched(sentence: _Sentence, others: list[_Sentence]) -> list[_Sentence]:
    """Return the sentence that has most in common with this one, and others that have nearly as much."""
    common = [(len(sentence.stems & other.stems), other) for other in others]
    most = max((count for count, _ in common), default=0)
    if most < LEAST_COMMON:
        return []
    best = [other for count, other in common if count >= max(LEAST_COMMON, most - 1)]
    shortest = min(len(sentence.stems), min(len(other.stems) for other in best))
    return best if most >= LEAST_SHARE * shortest else []
