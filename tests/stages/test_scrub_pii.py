"""Personal data is found, replaced without a rest, and never shown in evidence."""

import gzip
import json
import pickle
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import phonenumbers
import pyarrow as pa
import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.gate.verdicts import judge
from pipeline_tasks.stage import Secret, replace_column
from pipeline_tasks.stages.scrub_pii import KEY_VARIABLE, PII, STAGE, Params, scrub
from pipeline_tasks.text.pii import (
    candidates,
    cards,
    credentials,
    digits,
    emails,
    ip_addresses,
    phone_forms,
    phone_surroundings,
    phones,
    scrubbing,
)
from pipeline_tasks.text.pii.candidates import Limits, Span
from pipeline_tasks.text.pii.findings import find_pii
from pipeline_tasks.text.pii.kinds import DEFAULT_KINDS, KINDS
from pipeline_tasks.text.pii.regions import regions_of
from tests.documents import documents
from tests.examples import few_examples
from tests.refining import commit_parent, refined

# Ratchets: these floors only go up.
RECALL = {"email": 27 / 28, "ip": 92 / 93, "phone": 130 / 135}
PHONE_RECALL_OF_COUNTRIES = 0.85
PRECISION = 1.0

KEYED = Params(action="pseudonymize", key=Secret.of("rotate me, rotate me"))
PIECES = [
    "a@b.com", "john.d@x.co.uk", "212-555-2368", "(212) 555-2368", "+44 20 7123 4567", "call 2125552368", "69.196.0.85",
    "2400:c401::5054:ff:fe1b:b031", "v", "version ", "@", ".", "-", "/", "+", " ", "1", "x", "é", "电", "<EMAIL>", "<CARD>", "4111 1111 1111 1111",
    "GB29 NWBK 6016 1331 9268 19", "536-22-1234", "AKIAQYLPMN5HHHFPZAM2", "529.982.247-25", "<PHONE>", "<IP>", "\n", ":", "tel ", "'", "ext. 5", "user_123456789abc@example.com",
]  # fmt: skip
TANGLES = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=12).map("".join)


def docs(*texts: str | None) -> pa.RecordBatch:
    lengths = [None if text is None else len(text) for text in texts]
    return pa.RecordBatch.from_arrays(
        [pa.array(texts, pa.large_string()), pa.array(lengths, pa.int64())], names=["text", "chars"]
    )


def scrubbed(params: Params, *texts: str | None) -> list[dict[str, object]]:
    (out,) = scrub(iter([docs(*texts)]), params=params)
    return out.to_pylist()


def counts(row: Mapping[str, Any]) -> dict[str, int]:
    """Return the counts above 0, by kind."""
    return {kind: row[f"pii_{kind}"] for kind in KINDS if row[f"pii_{kind}"]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Write to jane.doe@mail.example.org.", "Write to <EMAIL>."),
        ("'o'brien@firm.co.uk' or mailto:x_y@firm.de?", "'<EMAIL>' or mailto:<EMAIL>?"),
        ("Post an info@müller.de bitte", "Post an <EMAIL> bitte"),
        ("Call (212) 555-2368 or 212.555.2369 ext. 12 now", "Call <PHONE> or <PHONE> now"),
        ("Tel +49 30 1234567, +44 (20) 7123 4567", "Tel <PHONE>, <PHONE>"),
        ("my number, tel 2125552368", "my number, tel <PHONE>"),
        ("from 69.196.0.85:8080 and [2400:c401::5054:ff:fe1b:b031]", "from <IP>:8080 and [<IP>]"),
        ("电话212-555-2368", "电话<PHONE>"),
    ],
)
def test_replaces_what_identifies(text: str, expected: str) -> None:
    (row,) = scrubbed(Params(), text)
    assert (row["text"], row["chars"], row["reason"]) == (expected, len(expected), None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Jane <jane@example.org>, 5", "Jane <EMAIL>, 5"),
        ("a (jane@example.org) b", "a (<EMAIL>) b"),
        ("jane+tag=x@example.org is whole", "<EMAIL> is whole"),
        ("?a=b+c&email=jane@example.org", "?a=b+c&email=<EMAIL>"),
        ("clone git@example.org:tide/list and ssh://git@example.org/tide", "clone git@example.org:tide/list and ssh://git@example.org/tide"),
        ("mail git@example.org", "mail <EMAIL>"),
        ("5.6.31.1. Remarks\n\n224.0.0.251", "5.6.31.1. Remarks\n\n224.0.0.251"),
        ("HN88CABF00000000000250005469", "<IBAN>"),
        ("dckr_pat_HIlLIcZNY0ILBOF9T9I4fqpQOqI", "<CREDENTIAL>"),
    ],
)  # fmt: skip
def test_a_replacement_is_whole_and_closed(text: str, expected: str) -> None:
    (row,) = scrubbed(Params(), text)
    assert row["text"] == expected


def test_public_mail_is_kept_where_a_recipe_says_so() -> None:
    text = "debian-doc@lists.debian.org security@example.org jane@example.org"
    assert scrubbed(Params(), text)[0]["text"] == "<EMAIL> <EMAIL> <EMAIL>"
    assert scrubbed(Params(public_mail=("lists",)), text)[0]["text"] == "debian-doc@lists.debian.org <EMAIL> <EMAIL>"
    assert scrubbed(Params(public_mail=("lists", "roles")), text)[0]["text"] == f"{text[:48]} <EMAIL>"


def test_one_number_is_counted_once() -> None:
    (row,) = scrubbed(Params(regions=("US", "DE")), "tel +1-212-555-2368")
    assert (row["text"], row["pii_phone"]) == ("tel <PHONE>", 1)


def test_counts_kinds_and_keeps_clean_rows() -> None:
    first, empty, missing, last = scrubbed(Params(), "a@b.com c@d.org 69.196.0.85", "", None, "clean")
    assert counts(first) == {"email": 2, "ip": 1}
    assert {kind for kind in KINDS if first[f"pii_{kind}"] is None} == set(KINDS) - DEFAULT_KINDS
    assert (empty["text"], missing["text"], last["text"]) == ("", None, "clean")


def test_national_formats_follow_the_regions() -> None:
    text = "Telefon 030 1234567 oder 0532 123 45 67"
    assert scrubbed(Params(), text)[0]["text"] == text
    assert scrubbed(Params(regions=("DE",)), text)[0]["pii_phone"] == 2
    assert scrubbed(Params(regions=("US",), public_ips=False), "on 192.168.1.20")[0]["text"] == "on <IP>"


def test_same_value_same_pseudonym_in_any_order() -> None:
    first, second = scrubbed(KEYED, "A@b.com then 212-555-2368", "(212) 555-2368 then a@B.com")
    mail, phone = str(first["text"]).split(" then ")
    assert second["text"] == f"{phone} then {mail}"
    assert mail.endswith("@example.com")
    assert scrubbed(Params(action="pseudonymize", key=Secret.of("another")), "a@b.com")[0]["text"] != mail


@pytest.mark.parametrize("params", [Params(action="drop"), Params(max_spans=1)])
def test_dropped_documents_show_no_values(params: Params) -> None:
    kept, dropped = scrubbed(params, "clean", "jane@firm.org, 69.196.0.85")
    assert (kept["reason"], kept["evidence"]) == (None, None)
    assert dropped["reason"] == PII
    proof = json.loads(str(dropped["evidence"]))
    assert proof["spans"] == [["email", 0, 13], ["ip", 15, 26]]
    assert not {"jane", "69.196"} & {word for word in ("jane", "69.196") if word in str(dropped)}


@given(st.lists(TANGLES, min_size=1, max_size=4), st.sampled_from([Params(), KEYED, Params(regions=("DE", "US"))]))
def test_nothing_is_left_and_twice_is_once(texts: list[str], params: Params) -> None:
    limits = Limits(params.regions, keep_pseudonyms=params.action == "pseudonymize")
    clean = [str(row["text"]) for row in scrubbed(params, *texts)]
    assert [list(find_pii(text.encode(), limits)) for text in clean] == [[]] * len(texts)
    assert [row["text"] for row in scrubbed(params, *clean)] == clean


@few_examples
@given(st.lists(st.none() | TANGLES, min_size=1, max_size=8))
def test_batch_size_and_slicing_change_nothing(texts: list[str | None]) -> None:
    whole = docs("before@b.com", *texts, "after@b.com").slice(1, len(texts))
    pieces = pa.Table.from_batches(scrub(iter([whole.slice(at, 1) for at in range(len(texts))]), params=Params()))
    assert pieces.to_pylist() == next(scrub(iter([whole]), params=Params())).to_pylist()


def test_kernel_travels() -> None:
    kernel = pickle.loads(pickle.dumps(partial(scrub, params=KEYED)))
    assert next(kernel(iter([docs("a@b.com")]))).column("pii_email").to_pylist() == [1]


@pytest.mark.parametrize(
    ("params", "named"),
    [
        (Params(action="pseudonymize"), f"action .*pseudonymize.*{KEY_VARIABLE}"),
        (Params(action="hide"), "action .*'hide'"),  # type: ignore[arg-type]
        (Params(regions=("US", "XQ")), "regions .*XQ"),
    ],
)
def test_senseless_requests_are_refused(params: Params, named: str) -> None:
    with pytest.raises(RecipeError, match=rf"scrub_pii\.{named}"):
        STAGE.run((), params, None)  # type: ignore[arg-type]


def test_each_kind_has_its_action() -> None:
    kinds = {"email": "pseudonymize", "card": "drop", "mac": "redact", "ip": "keep"}
    params = Params(kinds=kinds, key=Secret.of("rotate me, rotate me"), key_name="2026")  # type: ignore[arg-type]
    text = "jane@firm.org 69.196.0.85 00:1b:63:84:45:e6 IBAN DE89 3704 0044 0532 0130 00"
    kept, dropped = scrubbed(params, text, "Card 4111 1111 1111 1111")
    assert re.fullmatch(r"user_[0-9a-f]{12}@2026\.example\.com 69\.196\.0\.85 <MAC> IBAN <IBAN>", str(kept["text"]))
    assert (kept["reason"], dropped["reason"]) == (None, PII)
    assert [each["action"] for each in kept["redactions"]] == ["pseudonymize", "redact", "redact"]  # type: ignore[attr-defined]
    assert (kept["pii_ip"], kept["pii_card"], kept["pii_mac"], kept["pii_gps"]) == (None, 0, 1, None)
    assert [each["action"] for each in dropped["redactions"]] == ["drop"]  # type: ignore[attr-defined]


def test_what_a_run_left_by_choice_or_wrote_itself_is_not_found_to_be_left() -> None:
    (written,) = scrub(iter([docs("Write to a@b.com or (212) 736-5000.", "Write to press@example.net.")]), params=KEYED)
    recorded = {"action": "pseudonymize", "regions": ["US"], "public_mail": ["roles"]}
    assert STAGE.spans
    assert STAGE.spans.left
    assert set(STAGE.spans.left(recorded, written).values()) == {0}
    raw = docs("Write to a@b.com or (212) 736-5000.", "Write to press@example.net.", "a@b.com", None)
    assert {kind: count for kind, count in STAGE.spans.left(recorded, raw).items() if count} == {"email": 2, "phone": 1}
    assert STAGE.spans.left(recorded | {"kinds": {"phone": "keep"}}, raw).get("phone") is None


def test_pseudonyms_of_a_kind_are_words_that_name_it_and_the_key() -> None:
    def card(name: str, key: str, text: str) -> str:
        params = Params(action="pseudonymize", key=Secret.of(key), key_name=name)
        return str(scrubbed(params, text)[0]["text"])

    first = card("", "rotate me, rotate me", "4111 1111 1111 1111")
    assert re.fullmatch("card_[a-p]{12}", first)
    assert card("", "rotate me, rotate me", "Visa 4111-1111-1111-1111!") == f"Visa {first}!"
    assert card("2026", "rotate me, rotate me", "4111 1111 1111 1111") == first.replace("_", "_2026_")
    assert card("", "another key, another", "4111 1111 1111 1111") != first


@pytest.mark.parametrize("fields", [{"kinds": {"name": "redact"}}, {"key_name": "No. 5"}])
def test_kinds_and_names_of_keys_that_do_not_exist_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(RecipeError, match=next(iter(fields))):
        Params(**fields)


def test_kinds_that_are_all_kept_are_idle() -> None:
    assert STAGE.idle is not None
    assert STAGE.idle(Params(), {}) == ()
    assert len(STAGE.idle(Params(kinds=dict.fromkeys(KINDS, "keep")), {})) == 1


def test_a_missed_canary_is_written_to_every_row(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [row["missed_canaries"] for row in scrubbed(Params(), "a", "b")] == [None, None]
    monkeypatch.setattr(cards, "luhn", lambda _: False)
    assert [row["missed_canaries"] for row in scrubbed(Params(), "a", "b")] == ["card", "card"]
    assert scrubbed(Params(kinds={"card": "keep"}), "a")[0]["missed_canaries"] is None


def test_the_gate_refuses_what_a_broken_finder_scrubbed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = commit_parent(tmp_path, [documents(["Card 4111 1111 1111 1111", "clean"])])
    path, _ = refined(tmp_path, "scrub_pii", given)
    assert "canary_recall" not in {failure.column for failure in judge(str(tmp_path), path).failures}
    monkeypatch.setattr(cards, "luhn", lambda _: False)
    path, _ = refined(tmp_path, "scrub_pii", given, {"max_spans": 9})
    verdict = judge(str(tmp_path), path)
    assert verdict.outcome == "refuse"
    failed = next(failure for failure in verdict.failures if failure.column == "canary_recall")
    assert (failed.severity, failed.observed) == ("critical", round(6 / 7, 6))


LABELS = {"EMAIL": "email", "EMAIL_ADDRESS": "email", "IP_ADDRESS": "ip"}
LABELS |= {"PHONE": "phone", "PHONE_NUMBER": "phone", "TR_PHONE_NUMBER": "phone"}


def test_recall_and_precision_on_labelled_cases(shared_data: Path) -> None:
    hits, gold, right, total = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    by_country: dict[str, list[bool]] = {}
    with gzip.open(shared_data / "pii" / "pii-cases.jsonl.gz", "rt") as lines:
        for case in map(json.loads, lines):
            text = case["text"].encode()
            limits = Limits(regions_of(case["lang"], "", ("US",)), public_ips=False)
            spans = [
                (len(text[: s.start].decode()), len(text[: s.end].decode()), s.kind) for s in find_pii(text, limits)
            ]
            truth = list(labelled(case))
            for start, end, kind in truth:
                hit = any(kind == k and s < end and start < e for s, e, k in spans)
                gold[kind] += 1
                hits[kind] += hit
                if kind == "phone":
                    by_country.setdefault(country(case["text"][start:end], case["lang"]), []).append(hit)
            if case["complete"]:
                total.update(kind for *_, kind in spans)
                right.update(
                    k for start, end, k in spans if any((k == kind) and s < end and start < e for s, e, kind in truth)
                )
    assert {kind: hits[kind] / gold[kind] >= RECALL[kind] for kind in RECALL} == dict.fromkeys(RECALL, True)
    assert {kind: right[kind] / total[kind] for kind in RECALL} == dict.fromkeys(RECALL, PRECISION)
    shares = {name: sum(found) / len(found) for name, found in by_country.items() if name}
    assert len(shares) > 10
    assert {name: share for name, share in shares.items() if share < PHONE_RECALL_OF_COUNTRIES} == {}


def labelled(case: Mapping[str, Any]) -> Iterator[tuple[int, int, str]]:
    labels = LABELS | ({"?": "phone"} if "phone" in case["source"] else {})
    for span in case["spans"]:
        if span["type"] in labels:
            yield span["start"], span["end"], labels[span["type"]]


def country(number: str, language: str) -> str:
    """Return the country of a labelled number, "" if its digits are of none."""
    try:
        parsed = phonenumbers.parse(number, "TR" if language == "tr" else "US")
    except phonenumbers.NumberParseException:
        return ""
    return str(phonenumbers.region_code_for_number(parsed) or "")


@pytest.mark.parametrize(
    ("language", "url", "text", "expected"),
    [
        ("de", "https://www.example.org/", "Jane, 030 12345678.", "Jane, <PHONE>."),
        ("en", "https://shop.example.de/a", "Jane, 030 12345678.", "Jane, <PHONE>."),
        ("en", "https://shop.example.org/a", "Jane, 01 42 68 53 00.", "Jane, 01 42 68 53 00."),
        (None, None, "Jane, 030 12345678 or 212-736-5000", "Jane, 030 12345678 or <PHONE>"),
        ("tr", "https://example.com.tr/", "0532 123 45 67", "<PHONE>"),
    ],
)
def test_regions_are_those_of_the_document(language: str | None, url: str | None, text: str, expected: str) -> None:
    batch = replace_column(docs(text), "language", pa.array([language], pa.string()))
    batch = replace_column(batch, "url", pa.array([url], pa.string()))
    (out,) = scrub(iter([batch]), params=Params())
    assert out.column("text").to_pylist() == [expected]
    (out,) = scrub(iter([batch]), params=Params(document_regions=False, regions=()))
    assert out.column("text").to_pylist() == [text]


def test_title_and_url_are_scrubbed() -> None:
    batch = replace_column(docs("clean", None), "title", pa.array(["Jane, jane@example.org", None], pa.string()))
    urls = ["https://example.org/u/jane%40example.org?x=jane@example.org", None]
    batch = replace_column(batch, "url", pa.array(urls, pa.string()))
    (out,) = scrub(iter([batch]), params=Params())
    assert out.column("title").to_pylist() == ["Jane, <EMAIL>", None]
    assert out.column("url").to_pylist() == ["https://example.org/u/<EMAIL>?x=<EMAIL>", None]
    assert out.schema.field("url").type == pa.string()


def test_redactions_say_where_and_never_what() -> None:
    text = "é jane@example.org, 69.196.0.85; Zoë"
    row, clean = scrubbed(Params(), text, "clean")
    assert row["redactions"] == [
        {"kind": "email", "start": 2, "end": 18, "at": 2, "action": "redact"},
        {"kind": "ip", "start": 20, "end": 31, "at": 11, "action": "redact"},
    ]
    assert clean["redactions"] == []
    kept = scrubbed(KEYED, text)[0]
    (mail, address) = [(str(kept["text"])[r["at"] :], text[r["start"] : r["end"]]) for r in kept["redactions"]]  # type: ignore[attr-defined]
    assert mail[0].startswith("user_")
    assert address == (address[0], "69.196.0.85")
    assert address[0].startswith("198.1")


@given(TANGLES, st.sampled_from([Params(), KEYED]))
def test_redactions_undo_the_scrubbing(text: str, params: Params) -> None:
    """Between the redactions both texts are equal; each count is the number of redactions of its kind."""
    (row,) = scrubbed(params, text)
    clean, redactions = str(row["text"]), list(row["redactions"])  # type: ignore[call-overload]
    place = at = 0
    for redaction in redactions:
        assert clean[at : redaction["at"]] == text[place : redaction["start"]]
        assert redaction["start"] < redaction["end"] <= len(text)
        token = re.match(
            r"<[A-Z_]+>|[a-z]+(?:_[a-z]+)*_[a-p]{12}|user_[0-9a-f]{12}@example\.com|\+1-\d{3}-555-01\d\d|[0-9a-f:.]+",
            clean[redaction["at"] :],
        )
        assert token
        place, at = redaction["end"], redaction["at"] + token.end()
    assert clean[at:] == text[place:] or params is KEYED
    assert counts(row) == Counter(redaction["kind"] for redaction in redactions)


VALUES = {
    "email": ["jane.doe@example.org", "müller@firma.de", "jane@iki.fi", "_jane@nic.in"],
    "phone": ["212-736-5000", "+44 20 7123 4567", "(212) 736-5000 x12", "+49 (0)30 1234567-0"],
    "ip": ["69.196.0.85", "2400:c401::5054:ff:fe1b:b031"],
}
PLANTED = st.sampled_from([(kind, value) for kind, values in VALUES.items() for value in values])
CONTEXTS = st.text(st.characters(categories=["L", "P", "Zs"], exclude_characters="@.%&'_-=+#$~/:\u2019"), max_size=30)


@given(CONTEXTS, PLANTED, CONTEXTS)
def test_planted_values_are_found_and_gone(ahead: str, planted: tuple[str, str], behind: str) -> None:
    kind, value = planted
    (row,) = scrubbed(Params(), f"{ahead} {value} {behind}")
    assert row[f"pii_{kind}"] == 1
    assert value not in str(row["text"])
    assert not {part for part in re.split(r"\W+", value) if len(part) > 3} & set(re.split(r"\W+", str(row["text"])))


@given(st.text(max_size=200))
def test_any_text_is_scrubbed_and_grows_little(text: str) -> None:
    (row,) = scrubbed(Params(), text)
    assert len(str(row["text"])) <= len(text) + len("<NATIONAL_ID>") * len(row["redactions"])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "a@",
        "a.",
        "@a.",
        "1 ",
        "12-",
        "1.2.3.4",
        "+1",
        "(",
        "a@b.com@",
        "00 ",
        "x=",
        "1:",
        '"',
        " at ",
        " dot ",
        "030 1234567 ",
        "tel. 1",
        "%40",
        "1",
        "+",
        "@",
        ".",
        '"@a',
        "+39 0474 492 390F ",
        "4111 1111 1111 1111 ",
        "4111 ",
        "DE89",
        "-----BEGIN PRIVATE KEY-----",
        "ghp_1234567890abcdefghijklmnopqrstuvwxyzAB ",
        "eyJabcdefghijk.",
        "SSN 536-22-1234 ",
        "\uff11\uff0d",
        "a\u200b@",
        "\uff14\uff11\uff11\uff11 ",
    ],
)
def test_work_grows_with_the_text(piece: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four times the text has at most about four times the patterns, of which each is linear."""
    bytes_searched = []
    for times in (500, 2000):
        count = CountedPatterns()
        for module in (candidates, emails, ip_addresses, phones, phone_forms, phone_surroundings, digits, credentials):
            monkeypatch.setattr(module, "pattern", count.pattern)
        find_pii((piece * times).encode(), Limits(("US", "DE")))
        bytes_searched.append(count.work)
    assert bytes_searched[1] <= 5 * bytes_searched[0] + 100_000


def test_no_text_is_read_more_often_than_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where each replacement uncovers a finding, forever."""
    read = []

    def uncovering(text: bytes, _: Limits) -> list[Span]:
        read.append(text)
        place = 100 - len(read)  # ahead of what was replaced
        return [Span(place, place + 1, "ip", "x")]

    monkeypatch.setattr(scrubbing, "find_pii", uncovering)
    result = scrubbing.scrub_text(b"x" * 100, Limits(), lambda _: b"<IP>")
    assert result.text.count(b"<IP>") == len(result.spans) == scrubbing.PASSES + 1
    assert len(read) == scrubbing.PASSES + 1


class CountedPatterns:
    """Counts the bytes that patterns are run over: of a match those up to its end, else all that are left."""

    def __init__(self) -> None:
        self.work = 0

    def pattern(self, expression: str) -> "CountedPattern":
        return CountedPattern(self, re2.compile(expression.encode()))


class CountedPattern:
    def __init__(self, count: CountedPatterns, compiled: Any) -> None:
        self.count, self.compiled = count, compiled

    def search(self, text: bytes, at: int = 0, stop: int | None = None) -> Any:
        stop = len(text) if stop is None else stop
        match = self.compiled.search(text, at, stop)
        self.count.work += (match.end() if match else stop) - at
        return match

    def match(self, text: bytes, at: int = 0, stop: int | None = None) -> Any:
        match = self.compiled.match(text, at, len(text) if stop is None else stop)
        self.count.work += (match.end() if match else at + 1) - at
        return match

    def finditer(self, text: bytes, at: int = 0, stop: int | None = None) -> Any:
        stop = len(text) if stop is None else stop
        self.count.work += stop - at
        return self.compiled.finditer(text, at, stop)

    def findall(self, text: bytes) -> Any:
        self.count.work += len(text)
        return self.compiled.findall(text)

    def sub(self, replacement: bytes, text: bytes) -> Any:
        self.count.work += len(text)
        return self.compiled.sub(replacement, text)
