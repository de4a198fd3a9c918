"""Every kind of the table is found where it is, left alone where it only looks so, and checked by its canaries."""

import gzip
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.stages.scrub_pii import STAGE
from pipeline_tasks.text.pii import base58
from pipeline_tasks.text.pii.canaries import missed_canaries
from pipeline_tasks.text.pii.candidates import Limits
from pipeline_tasks.text.pii.findings import find_pii
from pipeline_tasks.text.pii.kinds import BY_MODEL, COUNTS, FOUND_IN_ORDER, KINDS, PLACEHOLDERS, TABLE
from pipeline_tasks.text.pii.regions import regions_of

ALL = frozenset(KINDS)
MADE_UP = Path(__file__).with_name("made_up.jsonl")
"""Written by `benchmarks/pii_values.py`, whose check digits are python-stdnum's."""

NEW = [kind for kind in KINDS if TABLE[kind].forms]
LABELS = {"CREDIT_CARD": "card", "CREDIT_CARD_NUMBER": "card", "IBAN_CODE": "iban", "MAC_ADDRESS": "mac"}
LABELS |= dict.fromkeys(("US_SSN", "SSN", "SOCIAL_SECURITY_NUMBER", "UK_NINO", "DE_TAX_ID"), "national_id")
LABELS |= dict.fromkeys(("NATIONAL_INSURANCE_NUMBER", "IT_FISCAL_CODE"), "national_id")
LABELS |= dict.fromkeys(("BIRTH_DATE", "DATE_OF_BIRTH"), "birth_date")

# Ratchets: these floors only go up. Of the persons' numbers two have a wrong check letter, three have no word ahead.
RECALL = {"card": 1.0, "iban": 1.0, "national_id": 33 / 38, "mac": 15 / 16, "birth_date": 10 / 11}


def spans_of(text: str, language: str, **limits: Any) -> list[tuple[str, int, int]]:
    """Return kind, start and end, in code points, of what is found of all kinds."""
    body = text.encode()
    spans = find_pii(body, Limits(regions_of(language, "", ("US",)), kinds=ALL, **limits))
    return [(span.kind, len(body[: span.start].decode()), len(body[: span.end].decode())) for span in spans]


def new(spans: Iterable[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    return [span for span in spans if span[0] in NEW]


def made_up() -> Iterator[dict[str, Any]]:
    yield from map(json.loads, MADE_UP.read_text(encoding="utf-8").splitlines())


def test_made_up_values_are_found_whole_and_nothing_else_is() -> None:
    rules = Counter[str]()
    wrong = []
    for case in made_up():
        spans = [tuple(span) for span in case["spans"]]
        rules.update([case["rule"]] if spans else [])
        if new(spans_of(case["text"], case["lang"])) != spans:
            wrong.append(case)
    assert wrong == []
    assert len(rules) > 15
    assert min(rules.values()) > 10


def test_labelled_cases(shared_data: Path) -> None:
    gold, hits, total, right = (Counter[str]() for _ in range(4))
    with gzip.open(shared_data / "pii" / "pii-cases.jsonl.gz", "rt") as lines:
        for case in map(json.loads, lines):
            spans = new(spans_of(case["text"], case["lang"], public_ips=False))
            labels = [(LABELS[s["type"]], s["start"], s["end"]) for s in case["spans"] if s["type"] in LABELS]
            gold.update(kind for kind, *_ in labels)
            hits.update(label[0] for label in labels if any(map(overlap_of(label), spans)))
            if case["complete"]:
                total.update(kind for kind, *_ in spans)
                right.update(span[0] for span in spans if any(map(overlap_of(span), labels)))
    assert {kind for kind, floor in RECALL.items() if hits[kind] / gold[kind] < floor} == set()
    assert right == total
    assert right["card"] > 70


def overlap_of(span: tuple[str, int, int]) -> Any:
    kind, start, end = span
    return lambda other: other[0] == kind and other[1] < end and start < other[2]


def test_each_kind_follows_from_the_table() -> None:
    assert set(COUNTS) <= set(STAGE.writes.names)
    assert set(COUNTS) <= set(STAGE.profiled)
    assert len(set(PLACEHOLDERS.values())) == len(KINDS) == len(TABLE)
    assert sorted(kind for group in FOUND_IN_ORDER for kind in group) == sorted(set(KINDS) - BY_MODEL)
    ways = {kind: (bool(TABLE[kind].finders), bool(TABLE[kind].forms), kind in BY_MODEL) for kind in KINDS}
    assert [kind for kind, found_by in ways.items() if sum(found_by) != 1] == []
    assert {kind for kind in KINDS if not TABLE[kind].canaries} == BY_MODEL


@pytest.mark.parametrize(
    "kinds", [ALL, *(frozenset([kind]) for kind in KINDS)], ids=lambda kinds: "+".join(sorted(kinds))[:12]
)
def test_no_canary_is_missed(kinds: frozenset[Any]) -> None:
    assert missed_canaries(kinds) == ()


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Card 4111 1111 1111 1112", "a wrong check digit"),
        ("4111111111111111 1234 5678", "more groups behind"),
        ("key -----BEGIN PUBLIC KEY-----\nMIIBVQIBADANBgkqhkiG9w0BAQEFAASCAT8w", "a public key"),
        ("AKIAAAAAAAAAAAAAAAAA", "a mask"),
        ("the DNI is 12345678A", "a wrong letter"),
        ("SSN 000-12-3456 or 666-12-3456 or 912-12-3456", "areas that are not given"),
        ("call 536-22-12345", "a longer number"),
        ("https://example.org/a/536-22-1234", "a page"),
    ],
)
def test_lookalikes_are_left_alone(text: str, left: str) -> None:
    assert new(spans_of(text, "en")) == [], left


def test_a_private_key_is_found_whole_and_a_cut_one_as_far_as_it_goes() -> None:
    line = "MIIBVQIBADANBgkqhkiG9w0BAQEFAASCAT8wggE7AgEAAkEAq7BFUpkGp3LQmlQ"
    whole = f"-----BEGIN RSA PRIVATE KEY-----\n{line}\n{line}\n-----END RSA PRIVATE KEY-----"
    assert spans_of(f"a\n{whole}\nb", "en") == [("credential", 2, 2 + len(whole))]
    cut = f"-----BEGIN RSA PRIVATE KEY-----\n{line}"
    assert spans_of(f"{cut}\nand prose", "en") == [("credential", 0, len(cut))]


def test_national_forms_need_their_country_or_a_word() -> None:
    assert new(spans_of("12345678Z", "es")) == [("national_id", 0, 9)]
    assert new(spans_of("12345678Z", "en")) == []
    assert new(spans_of("536-22-1234", "en")) == [("national_id", 0, 11)]
    assert find_pii(b"536-22-1234", Limits(("DE",))) == []


def test_keccak_is_that_of_its_reference() -> None:
    assert base58.keccak_256(b"").hex() == "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"
    assert base58.is_eip55("5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed")
    assert not base58.is_eip55("5aaeb6053F3E94C9b9A09f33669435E7Ef1BeAed")
