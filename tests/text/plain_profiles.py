"""The signals of other projects again, one text at a time in plain Python, straight from their definitions."""

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence

from pipeline_tasks.text.edits.inline_urls import domains

Gram = tuple[str, ...]

DOMAIN = "|".join(sorted(map(re.escape, domains()), key=len, reverse=True))
PATH = r"[a-zA-Z0-9()@:%_+.~#?&/=-]*"
INLINE_URL = re.compile(rf"\s{{0,10}}((https?|ftp)://)?[a-zA-Z0-9@:%._+~#=-]{{1,256}}\.({DOMAIN})\b{PATH}")
ADDRESS = re.compile(rf"\s{{0,10}}\b((https?|ftp)://)?([0-2]?[0-9]{{1,2}}\.){{3}}[0-2]?[0-9]{{1,2}}{PATH}")
BEGINS = re.compile(DOMAIN, re.IGNORECASE)


def without_urls(text: str) -> str:
    return ADDRESS.sub("", INLINE_URL.sub("", text) if BEGINS.match(text) else text)


def fasttext_words(text: str) -> int:
    return sum(word[0].isalnum() for word in re.split("[ \n\r\t\v\f\0]+", text) if word)


def grams(words: Sequence[str], n: int) -> list[Gram]:
    return [tuple(words[at : at + n]) for at in range(len(words) - n + 1)]


def letters(words: Sequence[str]) -> int:
    return sum(map(len, words))


def dclm_grams(words: Sequence[str], n: int) -> float:
    counts = Counter(grams(words, n))
    best = max(counts.values(), default=1)
    if best == 1:
        return 0.0
    if n <= 4:
        return best * max(letters(gram) for gram, times in counts.items() if times == best) / letters(words)
    inside = {at + step for at, gram in enumerate(grams(words, n)) if counts[gram] > 1 for step in range(n)}
    return sum(len(words[at]) for at in inside) / letters(words)


def dolma_grams(words: Sequence[str], n: int) -> float:
    counts = Counter(grams(words, n))
    if not counts:
        return 0.0
    if n <= 4:
        gram, times = counts.most_common(1)[0]
        return times * letters(gram) / letters(words)
    repeated = sum(times * letters(gram) for gram, times in counts.items() if times > 1)
    return repeated / sum(times * letters(gram) for gram, times in counts.items())


def nemo_grams(text: str, n: int) -> float:
    words = text.split()
    if len(words) < n:
        return 1.0
    if n <= 4:
        top = " ".join(Counter(grams(words, n)).most_common(1)[0][0])
        return (len(text) - len(text.replace(top, ""))) / len(text)
    seen: set[Gram] = set()
    taken = overlap = 0
    for gram in grams(words, n):
        if gram in seen:
            taken += letters(gram[overlap:]) + min(n - overlap, n - 1)
            overlap = n
        seen.add(gram)
        overlap = max(overlap - 1, 0)
    return taken / len(text)


def parts(text: str, newlines: int, cut: int) -> list[float]:
    whole = text.split("\n" * newlines)
    if cut:
        whole = [part for part in whole if part.strip()]
    if cut == 2:
        whole = [part.strip() for part in whole]
    counts = Counter(whole)
    again = [part for part in whole if counts[part] > 1]
    return [len(whole), letters(whole), len(again), letters(again), len(counts), letters(list(counts))]


def edges(text: str, starts: tuple[str, ...], finishes: tuple[str, ...], *, bare: bool) -> list[int]:
    lines = [(line if bare else line.strip()).lower() for line in text.split("\n")]
    return [sum(line.startswith(starts) for line in lines), sum(line.endswith(finishes) for line in lines)]


URL = re.compile(r"https?://(?:[\w$@.&+/:=?#~!*(),-]|%[0-9A-Fa-f]{2})+", re.ASCII)


def signs(text: str) -> dict[str, int]:
    return {
        "points": len(text),
        "odd": len(re.sub(r"[a-zA-Z0-9\n?!,.]", "", text)),
        "digits": sum(letter in string.digits for letter in text),
        "in_urls": letters(URL.findall(text)),
        "blanks": sum(letter in "\t\n\r\b " for letter in text),
        "brackets": sum(letter in "{}[]()⟨⟩" for letter in text),
        "punctuation": sum(letter in string.punctuation or unicodedata.category(letter)[0] == "P" for letter in text),
        "code": sum(letter in "{}[]<>=;|&^~\\$@#`" for letter in text),
        "solid": sum(letter.isalnum() for letter in text),
    }


COUNTER = re.compile(
    r"^\W*\d(?:,|\.|\d)*[kmb]?\s+(?:likes|shares|comments|retweets|reposts|quotes|bookmarks|upvotes|downvotes"
    r"|downloads|views|followers)\W*$"
)


def _lines(text: str, stays: Callable[[str], object], *, strip: bool = True) -> str:
    kept = "\n".join(line for line in text.split("\n") if not line or stays(line))
    return kept.strip() if strip else kept


def _without(text: str, pattern: str) -> str:
    lines = []
    for line in text.split("\n"):
        left = re.sub(pattern, "", line, flags=re.IGNORECASE) if len(line.split()) <= 10 else line
        if not line or left.strip():
            lines.append(left)
    return "\n".join(lines).strip()


def modified(text: str) -> str:
    text = re.sub("\n{3,}", "\n\n", text)
    text = _lines(text, lambda line: sum(letter.isupper() for letter in line) / len(line) <= 0.5)
    text = _lines(text, lambda line: sum(letter.isdigit() for letter in line) / len(line) <= 0.999999)
    text = _lines(text, lambda line: not COUNTER.search(line.lower()))
    text = _lines(text, lambda line: len(line.split()) >= 2, strip=False)
    for pattern in (r"\s?items in cart", r"\s?read more...$", r"^sign-in\s?"):
        text = _without(text, pattern)
    return text
