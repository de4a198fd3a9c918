"""Generates documents with known near duplicates: planted pairs, templates, chains, boilerplate, web-like prose."""

import gzip
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from random import Random

TEXTS = Path(__file__).parents[2] / "shared" / "data" / "text"

SENTENCES = range(6, 40)
"""Sentences per web-like document: 0.5 to 4 kB, 1.9 kB on average."""

COPIES = 0.2
"""Share of web-like documents that are edited copies of an earlier one."""


def web(count: int, seed: int = 1) -> list[str]:
    """Return distinct documents drawn from real sentences, a fifth of them edited copies of others.

    A copy has 0 to 12 % of its words replaced, so that its Jaccard similarity (word 5-grams) is between 0.3 and 1.
    """
    draws, pool = Random(seed), sentences()  # noqa: S311 -- the same documents every time
    documents: list[str] = []
    for number in range(count):
        if documents and draws.random() < COPIES:
            documents.append(edited(draws.choice(documents), draws.uniform(0, 0.12), draws) + f" Copy {number}.")
        else:
            documents.append(" ".join(draws.choices(pool, k=draws.choice(SENTENCES))) + f" Page {number}.")
    return documents


def numbered(numbers: Iterable[int], most: int = SENTENCES.stop) -> Iterator[str]:
    """Yield documents like those of `web`, of at most so many sentences, each made from its number alone.

    So millions of them need no memory, and those of a later day may be copies of any of an earlier one.
    """
    pool, lengths = sentences(), range(SENTENCES.start, min(SENTENCES.stop, most + 1))
    for number in numbers:
        yield _numbered(number, pool, lengths)


def _numbered(number: int, pool: Sequence[str], lengths: range) -> str:
    draws = Random(number)  # noqa: S311 -- the same documents every time
    if number and draws.random() < COPIES:
        original = _numbered(draws.randrange(number), pool, lengths)
        return edited(original, draws.uniform(0, 0.12), draws) + f" Copy {number}."
    return " ".join(draws.choices(pool, k=draws.choice(lengths))) + f" Page {number}."


def sentences() -> list[str]:
    """Return distinct sentences of real prose: of ../shared/data/text, or where it is absent of the demo's."""
    texts = (re.split(r"(?<=[.!?])\s+|\n+", text) for text in _prose())
    distinct = dict.fromkeys(sentence.strip() for parts in texts for sentence in parts)
    return [sentence for sentence in distinct if len(sentence.split()) > 3]  # noqa: PLR2004 -- shorter ones are labels


def _prose() -> Iterator[str]:
    if not TEXTS.is_dir():
        from pipeline_tasks.demo.prose import english

        yield from (text for texts in english().values() for text in texts)
        return
    for path in sorted(TEXTS.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            yield from (json.loads(line).get("text") or "" for line in lines)


def edited(text: str, share: float, draws: Random) -> str:
    """Return the text with this share of its words replaced, at random places."""
    words = text.split(" ")
    for at in draws.sample(range(len(words)), round(share * len(words))):
        words[at] = f"w{draws.getrandbits(32):x}"
    return " ".join(words)


def pairs(count: int, similarities: Sequence[float], seed: int = 1, size: int = 120) -> list[tuple[str, str]]:
    """Return `count` pairs of documents, each pair about as similar as one of `similarities`, in turn.

    The second of a pair is the first with single words replaced until their Jaccard similarity (word 5-grams) is as
    low as requested; different pairs share nothing.
    """
    draws, planted = Random(seed), []  # noqa: S311 -- the same documents every time
    for number in range(count):
        words = [f"w{draws.getrandbits(40):x}" for _ in range(size)]
        copy, common, grams = list(words), size - 4, size - 4
        places = draws.sample(range(size), size)
        while common / (2 * grams - common) > similarities[number % len(similarities)]:
            copy[places.pop()] = f"w{draws.getrandbits(40):x}"
            common = sum(words[at : at + 5] == copy[at : at + 5] for at in range(grams))
        planted.append((" ".join(words), " ".join(copy)))
    return planted


def template(count: int, start: int = 0) -> list[str]:
    """Return documents that differ in two words of a hundred: one cluster, every pair of it similar."""
    base = " ".join(f"w{n}" for n in range(100))
    return [f"{base} x{n} y{n}" for n in range(start, start + count)]


def chain(count: int) -> list[str]:
    """Return documents, each similar (0.90) to the next only: a window that moves by five words."""
    words = [f"w{n}" for n in range(5 * count + 100)]
    return [" ".join(words[5 * n : 5 * n + 100]) for n in range(count)]


def boilerplate(count: int, seed: int = 1) -> list[str]:
    """Return documents, every other one with the same passage (Jaccard 0.45): they share bands only."""
    draws = Random(seed)  # noqa: S311 -- the same documents every time
    common = " ".join(f"c{n}" for n in range(100))
    own = [" ".join(f"w{draws.getrandbits(40):x}" for _ in range(60)) for _ in range(count)]
    return [f"{common} {text}" if n % 2 else text for n, text in enumerate(own)]
