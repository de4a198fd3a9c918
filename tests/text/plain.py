"""The signals of `pipeline_tasks.text` again, one text at a time in plain Python, straight from their definitions."""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

from pipeline_tasks.text.base import characters

TERMINALS = {
    chr(code) for first, last in characters.parse_ranges(characters.TERMINALS) for code in range(first, last + 1)
}
SYMBOLS = TERMINALS | {
    chr(code) for first, last in characters.parse_ranges(characters.SYMBOLS) for code in range(first, last + 1)
}
UNSPACED = {
    chr(c) for first, last in characters.parse_ranges(characters.UNSPACED_SCRIPTS) for c in range(first, last + 1)
}
OTHER_TERMINALS = "".join(sorted(mark for mark in TERMINALS if not mark.isascii()))
SENTENCE_END = re.compile(rf"[.?!][.?!\"')\]\u2019\u201d]*(?=\s|\Z)|[{OTHER_TERMINALS}]")
CITATION = re.compile(r"\[\d*]|\[edit]|\[citation needed]")
POLICY = ("terms of use", "privacy policy", "cookie policy", "uses cookies", "use of cookies", "use cookies")


def unicode_words(text: str) -> list[str]:
    """Letters, marks, digits and `_` in runs, unspaced scripts in pairs, all else alone."""
    words: list[str] = []
    before = 0
    for letter in text:
        wordlike = letter.isalnum() or letter == "_" or unicodedata.category(letter)[0] == "M"
        group = 2 if letter in UNSPACED else 1 if wordlike else 0
        if letter.isspace():
            before = -1
            continue
        joins = group == before and (group == 1 or (group == 2 and len(words[-1]) < 2))
        if joins:
            words[-1] += letter
        else:
            words.append(letter)
        before = group
    return words


def pair_words(text: str) -> list[str]:
    """As `str.split`, unspaced scripts in pairs; a new word begins where letters change between the two kinds."""
    words: list[str] = []
    for run in text.split():
        before = 0
        for at, letter in enumerate(run):
            wordlike = letter.isalnum() or letter == "_" or unicodedata.category(letter)[0] == "M"
            group = 2 if letter in UNSPACED else 1 if wordlike else 0
            begins = group and ((before and group != before) or (group == 2 and at and len(words[-1]) >= 2))
            if begins or at == 0:
                words.append(letter)
            else:
                words[-1] += letter
            before = group or before
    return words


CUTS = (str.split, unicode_words, pair_words)
"""How each rule of `text.words` cuts, at its number."""


def word_signals(words: Sequence[str], stops: Sequence[str]) -> list[float]:
    solid = [word for word in words if any(letter not in SYMBOLS for letter in word)]
    alpha = sum(any(letter.isalpha() for letter in word) for word in words)
    return [len(solid), len(words), sum(map(len, solid)), alpha, len(set(words) & set(stops))]


def top_gram(words: Sequence[str], n: int) -> int:
    grams = Counter(" ".join(words[at : at + n]) for at in range(len(words) - n + 1))
    return max((len(gram) * times for gram, times in grams.most_common(1)), default=0)


def repeated_grams(words: Sequence[str], n: int) -> int:
    seen: set[tuple[str, ...]] = set()
    repeated = at = 0
    while at < len(words) - n + 1:
        gram = tuple(words[at : at + n])
        if gram in seen:
            repeated, at = repeated + sum(map(len, gram)), at + n
        else:
            seen.add(gram)
            at += 1
    return repeated


def said_before(parts: Sequence[str]) -> list[int]:
    repeats = [part for at, part in enumerate(parts) if part in parts[:at]]
    return [len(repeats), sum(map(len, repeats))]


def repeats(text: str) -> list[int]:
    paragraphs, lines = re.split(r"\n{2,}", text.strip()), re.split(r"\n+", text)
    return [len(paragraphs), *said_before(paragraphs), len(lines), *said_before(lines), len(text)]


def shapes(text: str) -> list[int]:
    lines = text.splitlines()
    bullets = sum(line.lstrip().startswith(("•", "-")) for line in lines)
    trailing = sum(line.rstrip().endswith(("...", "…")) for line in lines)
    return [len(lines), bullets, trailing, text.count("#"), text.count("...") + text.count("…")]


def prose(text: str, short: float) -> list[int]:
    lines = [line for line in text.split("\n") if line.strip()]
    ends = sum(line[-1] in TERMINALS for line in lines)
    shorts = sum(len(line) <= short for line in lines)
    return [len(lines), ends, shorts, said_before(lines)[1], len(text.replace("\n", "")), text.count("\n")]


def sentences(line: str) -> int:
    blank = TERMINALS | set("\"')]\u2019\u201d")
    parts = SENTENCE_END.split(line)
    return sum(any(not letter.isspace() and letter not in blank for letter in part) for part in parts)


def c4(text: str, *, terminal: bool) -> tuple[str, list[int]]:
    lines = text.splitlines()
    counts, kept = Counter(lines=len(lines)), []
    for raw in lines:
        words = raw.split()
        line = CITATION.sub("", raw.strip())
        lower = "".join(letter.lower() if letter.isascii() else letter for letter in line)
        counts["lorem"] += 0
        if any(len(word) > 1000 for word in words):
            counts["long_word"] += 1
        elif terminal and (not line.endswith((".", "?", "!", '"', "'")) or line.endswith("...")):
            counts["no_terminal"] += 1
        elif len(words) < 3:
            counts["few_words"] += 1
        else:
            counts["lorem"] += "lorem ipsum" in lower
            if "javascript" in lower:
                counts["javascript"] += 1
                continue
            counts["curly"] += "{" in line
            if any(phrase in lower for phrase in POLICY):
                counts["policy"] += 1
                continue
            counts["citations"] += len(CITATION.findall(raw.strip()))
            counts["sentences"] += sentences(line)
            kept.append(line)
    order = (
        "lines",
        "long_word",
        "no_terminal",
        "few_words",
        "javascript",
        "policy",
        "citations",
        "lorem",
        "curly",
        "sentences",
    )
    return "\n".join(kept).strip(), [counts[name] for name in order]
