"""Scores extraction against gold that people made, as the sets' own projects do."""

import gzip
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from hashlib import sha1
from pathlib import Path
from typing import Any

import pyarrow as pa
from lxml.html import HTMLParser, fromstring

from pipeline_tasks.schema import PAGE
from pipeline_tasks.stages.extract import Params, extract_pages
from tests.archives import read

Gold = list[dict[str, Any]]
Texts = Sequence[str]

FORMULA = re.compile(r"\\\((.*?)\\\)|\\\[(.*?)\\\]")
SIGN = re.compile(r"\\text\{(\w+)\}|\\(?:begin|end)\{\w+\}|\\[a-z]+|([^\s_^{}])")


def words_of(text: str) -> list[str]:
    """Return the words of a text as readers see them: soft hyphens and zero-width spaces part none.

    TeX is read sign by sign, without its commands: the gold sets have the signs of MathML, with blanks between them.
    """
    text = FORMULA.sub(lambda formula: f" {signs_of(formula[1] or formula[2])} ", text)
    return re.findall(r"\w+", re.sub("[\u00ad\u200b\u2060]", "", text))


def signs_of(tex: str) -> str:
    return " ".join(word or sign for word, sign in SIGN.findall(tex))


def grams(text: str) -> Counter[tuple[str, ...]]:
    """Return the word 4-grams of a text, or all its words where it has fewer."""
    words = words_of(text)
    return Counter(zip(*(words[at:] for at in range(4)), strict=False)) or Counter([tuple(words)] if words else [])


def four_gram_f1(texts: Texts, wanted: Texts) -> float:
    """Return the harmonic mean of mean precision and mean recall of 4-grams, as article-extraction-benchmark does."""
    pairs = [(grams(text), grams(gold)) for text, gold in zip(texts, wanted, strict=True)]
    precision = mean(
        (text_grams & gold_grams).total() / text_grams.total() for text_grams, gold_grams in pairs if text_grams
    )
    recall = mean(
        (text_grams & gold_grams).total() / gold_grams.total() for text_grams, gold_grams in pairs if gold_grams
    )
    return 2 * precision * recall / (precision + recall)


def mean(values: Iterable[float]) -> float:
    listed = list(values)
    return math.fsum(listed) / len(listed)


def fundus(gold: Gold, texts: Texts) -> float:
    return four_gram_f1(texts, ["\n".join(page["paragraphs"]) for page in gold])


def readability(gold: Gold, texts: Texts) -> float:
    """Score against what Readability.js gave, which no person has annotated."""
    return four_gram_f1(texts, [page["expected_text"] for page in gold])


def trafilatura_segments(gold: Gold, texts: Texts) -> float:
    """Return F1 over segments: wanted segments that occur verbatim, unwanted ones that do not."""
    hit = miss = false = 0
    for page, text in zip(gold, texts, strict=True):
        hits = sum(part in text for part in page["must_contain"])
        hit, miss = hit + hits, miss + len(page["must_contain"]) - hits
        false += sum(part in text for part in page["must_not_contain"])
    return 2 * hit / (2 * hit + miss + false)


def goose3(gold: Gold, texts: Texts) -> float:
    """Return the mean share of a gold beginning's 4-grams; nothing is known of the rest of these pages."""
    pairs = [(grams(text), grams(page["cleaned_text_prefix"])) for page, text in zip(gold, texts, strict=True)]
    return mean(
        (text_grams & gold_grams).total() / gold_grams.total() for text_grams, gold_grams in pairs if gold_grams
    )


def recipe_fields(gold: Gold, texts: Texts) -> float:
    """Return the share of ingredients and instructions in the texts, without white space; about 0.85 are visible."""
    parts = [
        flat(part) in flat(text)
        for page, text in zip(gold, texts, strict=True)
        for part in (*page["must_contain_ingredients"], *page["must_contain_instructions"])
    ]
    return mean(map(float, parts))


def flat(text: str) -> str:
    return " ".join(re.sub("[\u00ad\u200b\u2060]", "", text).split())


def body(text: str, payload: bytes) -> str:
    """Return a text without the headline that it begins with: people marked the bodies of these pages."""
    first, _, rest = text.partition("\n\n")
    page = HTMLParser(encoding="utf-8")
    headings = fromstring(payload, parser=page).xpath("//h1") if payload.strip() else ()
    said = ["".join(heading.xpath(".//text()[not(ancestor::rt or ancestor::style)]")) for heading in headings]
    return rest if "".join(words_of(first)) in {"".join(words_of(heading)) for heading in said} else text


def headline_share(gold: Gold, texts: Texts) -> float:
    """Return the mean share of the words of people's headlines in the first words of texts, twice as many."""
    shares = []
    for page, text in zip(gold, texts, strict=True):
        wanted = Counter(words_of(page["title"]))
        shares.append((wanted & Counter(words_of(text)[: 2 * wanted.total()])).total() / wanted.total())
    return mean(shares)


PICTURED = re.compile(rb"(?is)<span\b[^<>]*display:\s*none[^<>]*>\s*<math\b.*?</math>\s*</span>\s*<img\b[^<>]*>")


def without_pictured_formulas(payload: bytes) -> bytes:
    """Return a page without the formulas that it draws as pictures, beside their hidden MathML, as Wikipedia does.

    Readability.js gives the text of nodes that are shown, so its gold has holes at these places ("denoted by , then").
    A text that has the formulas is not worse; `tests/text/page/test_rendering.py` holds them.
    """
    return PICTURED.sub(b"", payload)


READ: dict[str, Callable[[bytes], bytes]] = {"readability": without_pictured_formulas}
"""What is read of the pages of a set whose gold cannot have all that a page shows."""

SCORES: dict[str, Callable[[Gold, Texts], float]] = {
    "fundus-articles": fundus,
    "readability": readability,
    "trafilatura-segments": trafilatura_segments,
    "goose3": goose3,
    "recipe-fields": recipe_fields,
}


def lines(path: Path) -> Gold:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def word_f1(texts: Texts, wanted: Texts) -> float:
    """Return the mean over pages of the F1 of their words, with repetition."""
    pairs = [(Counter(words_of(text)), Counter(words_of(gold))) for text, gold in zip(texts, wanted, strict=True)]
    return mean(2 * (words & gold).total() / (words.total() + gold.total()) for words, gold in pairs if gold)


WORDS: dict[str, Callable[[Gold], Texts]] = {
    "fundus-articles": lambda gold: ["\n".join(page["paragraphs"]) for page in gold],
    "readability": lambda gold: [page["expected_text"] for page in gold],
}
"""Sets that have whole texts."""


@cache
def pages_of(data: Path) -> dict[str, dict[str, Any]]:
    """Return the pages of all snapshots by the SHA-1 of their payload."""
    pages = {}
    for path in sorted((data / "snapshots").glob("*/*-web-*.warc.gz")):
        for row in read(path.read_bytes(), path.name):
            if row["payload"]:
                pages[sha1(row["payload"]).hexdigest()] = {name: row.get(name) for name in PAGE.names}
    return pages


def extracted(rows: list[dict[str, Any]], params: Params) -> list[str]:
    """Return the text of each page, empty where there is none."""
    table = pa.Table.from_pylist(rows, PAGE)
    batches = extract_pages(iter(table.to_batches(1024)), params=params)
    return [text or "" for text in pa.Table.from_batches(list(batches))["text"].to_pylist()]


def read_gold(data: Path, name: str, params: Params) -> tuple[Gold, list[str], list[str]]:
    """Return the pages of a set, their texts, and these without the headline."""
    pages = pages_of(data)
    gold = [page for page in lines(data / "gold" / f"{name}.jsonl.gz") if page["payload_sha1"] in pages]
    rows = [pages[page["payload_sha1"]] for page in gold]
    if name in READ:
        rows = [{**row, "payload": READ[name](row["payload"])} for row in rows]
    whole = extracted(rows, params)
    return gold, whole, [body(text, row["payload"]) for row, text in zip(rows, whole, strict=True)]


def gold_scores(data: Path, method: str) -> dict[str, float]:
    """Return the scores of a method on each set; those of libraries with the others as fallback."""
    measured: dict[str, float] = {}
    fallback = () if method == "blocks" else ("trafilatura", "justext")
    for name, score in SCORES.items():
        gold, whole, texts = read_gold(data, name, Params(method, fallback=fallback, seconds=60))
        measured[name] = score(gold, texts)
        if name in WORDS:
            measured[f"{name}.words"] = word_f1(texts, WORDS[name](gold))
        if name == "fundus-articles":
            measured[f"{name}.headline"] = headline_share(gold, whole)
    return measured
