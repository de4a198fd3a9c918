"""Quality against gold that people made: floors are in `ratchet.json`, and only ever go up.

A change that makes extraction or language identification better raises them:
`REFINERY_RATCHET=raise pytest tests/golden/test_ratchet.py` writes what was measured wherever it is above the floor.
"""

import gzip
import json
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from hashlib import sha1
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lxml.html import HTMLParser, fromstring

from pipeline_tasks.schema import PAGE
from pipeline_tasks.stages import filter_language
from pipeline_tasks.stages.extract import METHODS, Params, extract_pages
from tests.archives import read
from tests.documents import documents

FLOORS = Path(__file__).parent / "ratchet.json"
RAISE = "REFINERY_RATCHET"
DIGITS = 4

Gold = list[dict[str, Any]]
Texts = Sequence[str]

pytestmark = pytest.mark.slow


def judged(floors: Mapping[str, float], measured: Mapping[str, float]) -> list[str]:
    """Return what is below its floor, or has none."""
    low = [f"{name}: {value:.4f} < {floors[name]}" for name, value in measured.items() if value < floors.get(name, 0)]
    return low + [f"{name}: {value:.4f} has no floor" for name, value in measured.items() if name not in floors]


def raised(floors: Mapping[str, float], measured: Mapping[str, float]) -> dict[str, float]:
    """Return the floors raised to the measured values, rounded down; no floor gets lower."""
    rounded = {name: math.floor(value * 10**DIGITS) / 10**DIGITS for name, value in measured.items()}
    return {name: max(floors.get(name, 0), rounded.get(name, 0)) for name in sorted({*floors, *rounded})}


def hold(measured: Mapping[str, float]) -> None:
    floors = json.loads(FLOORS.read_text())
    if os.environ.get(RAISE) == "raise":
        floors = raised(floors, measured)
        FLOORS.write_text(json.dumps(floors, indent=2) + "\n")
    print(json.dumps(measured))
    low = judged(floors, measured)
    assert not low, (
        f"{'; '.join(low)}. Mend it; if it is new or better, {RAISE}=raise writes floors; they never go down"
    )


def test_floors_only_go_up() -> None:
    floors = {"a": 0.5, "b": 0.5}
    assert raised(floors, {"a": 0.4, "b": 0.60009, "c": 0.1}) == {"a": 0.5, "b": 0.6, "c": 0.1}
    assert judged(floors, {"a": 0.4999, "b": 0.5, "c": 1}) == ["a: 0.4999 < 0.5", "c: 1.0000 has no floor"]
    assert judged(floors, raised(floors, {"a": 0.4, "b": 0.6})) == []


def test_formulas_are_read_unless_they_are_pictures_with_hidden_sources() -> None:
    shown = b"<p>of <math><mi>k</mi></math> and <img alt=pier></p>"
    hidden = b'<span style="display: none;"><math><mi>k</mi></math></span><img alt="{k}">'
    assert without_pictured_formulas(b"<p>of " + hidden + b" days</p>" + shown) == b"<p>of  days</p>" + shown


# --- Extraction, scored as the sets' own projects do ------------------------------------------------------------


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
                pages[sha1(row["payload"]).hexdigest()] = {name: row[name] for name in PAGE.names}
    return pages


@pytest.mark.parametrize("method", METHODS)
def test_extraction_keeps_its_level(shared_data: Path, method: str) -> None:
    pages, measured = pages_of(shared_data), {}
    for name, score in SCORES.items():
        gold = [page for page in lines(shared_data / "gold" / f"{name}.jsonl.gz") if page["payload_sha1"] in pages]
        assert len(gold) > 30
        rows = [pages[page["payload_sha1"]] for page in gold]
        if name in READ:
            rows = [{**row, "payload": READ[name](row["payload"])} for row in rows]
        table = pa.Table.from_pylist(rows, PAGE)
        extracted = pa.Table.from_batches(extract_pages(iter(table.to_batches()), params=Params(method, seconds=60)))
        whole = [text or "" for text in extracted["text"].to_pylist()]
        texts = [body(text, row["payload"]) for row, text in zip(rows, whole, strict=True)]
        measured[f"extract.{method}.{name}"] = score(gold, texts)
        if name in WORDS:
            measured[f"extract.{method}.{name}.words"] = word_f1(texts, WORDS[name](gold))
        if name == "fundus-articles":
            measured[f"extract.{method}.{name}.headline"] = headline_share(gold, whole)
    hold(measured)


CODES = dict(
    re.findall(
        r"(\w+):(\w+)",
        """
    afr:af als:sq amh:am arb:ar azj:az bel:be ben:bn bod:bo bos:bs bre:br bul:bg cat:ca ces:cs chv:cv cmn:zh cos:co
    cym:cy dan:da deu:de div:dv ekk:et ell:el eng:en epo:eo eus:eu fin:fi fra:fr fry:fy gla:gd gle:ga glg:gl glv:gv
    guj:gu hat:ht heb:he hin:hi hrv:hr hun:hu hye:hy ido:io ina:ia ind:id isl:is ita:it jav:jv jpn:ja kan:kn kat:ka
    kaz:kk khk:mn khm:km kir:ky kmr:ku kor:ko lao:lo lat:la lit:lt ltz:lb lvs:lv mal:ml mar:mr mkd:mk mlt:mt mya:my
    nb:no nld:nl nno:nn nob:no npi:ne oci:oc oss:os pan:pa pbu:ps pes:fa plt:mg pol:pl por:pt que:qu roh:rm ron:ro
    rus:ru san:sa sin:si slk:sk slv:sl som:so spa:es src:sc srp:sr sun:su swa:sw swe:sv swh:sw tam:ta tat:tt tel:te
    tgk:tg tgl:tl tha:th tuk:tk tur:tr uig:ug ukr:uk urd:ur uzn:uz vie:vi wln:wa ydd:yi yor:yo zlm:ms
        """,
    )
)
"""ISO 639-3 codes of the gold, and the codes that lid.176 has for the same languages."""

UNKNOWN = ("lg", "mi", "om", "sn", "st", "ti", "tn", "ts", "xh", "zu")
"""Languages of the sentences that lid.176 does not know: they are not scored."""


def test_languages_keep_their_level(shared_data: Path) -> None:
    every = lines(shared_data / "lid" / "lid-sentences.jsonl.gz")
    gold = [
        line for line in every if line["lang"] in CODES or (line["code"] == "iso639-1" and line["lang"] not in UNKNOWN)
    ]
    table = documents([line["text"] for line in gold]).combine_chunks()
    identified = pa.Table.from_batches(
        filter_language.identify(iter(table.to_batches()), params=filter_language.Params(keep=()))
    )
    languages = [CODES.get(line["lang"], line["lang"]) for line in gold]
    right = [
        expected == language for expected, language in zip(languages, identified["language"].to_pylist(), strict=True)
    ]
    kinds = {line["kind"] for line in gold}
    assert len(kinds) > 1
    measured = {
        f"language.{kind}": mean(
            float(correct) for line, correct in zip(gold, right, strict=True) if line["kind"] == kind
        )
        for kind in kinds
    }
    hold(measured)
