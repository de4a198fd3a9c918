"""The compiled loops find what the patterns find: on labelled cases, on real texts, and on any tangle of pieces."""

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline_tasks.text.pii.candidates import Limits
from pipeline_tasks.text.pii.findings import find_pii
from pipeline_tasks.text.pii.suspects import suspects
from tests.text.pii import plain_finders

LIMITS = (
    Limits(),
    Limits(("US", "GB", "DE", "FR", "TR", "IN")),
    Limits(("DE", "TR"), public_ips=False),
    Limits(("US", "GB", "AU"), keep_pseudonyms=True),
)
MARKS = list(" .-/()+:,;#%@\n\"'=<>[]{}&_\x01\x02\u00a0\u2007\u2009\u202f\u200b\u2010\u2013\u2015\u2016\uff20")
DIGITS = ["0", "1", "2", "5", "7", "9", "00", "12", "20", "49", "030", "212", "736", "555", "2026", "5000", "1234567"]
OTHER_DIGITS = ["\u0661", "\u06f3", "\u0967", "\uff11", "\u00b2", "\U0001d7d8", "\u4e00"]
NUMBERS = [
    "+49 30 1234567", "212-736-5000", "(212) 736-5000", "030 12345678", "+1 212 736 5000", "0049 30 1234567", "0532 123 45 67",
    "2026-11-20", "20.11.2026", "1999-2003", "1 000 000", "02110-1301", "1.2.3.4", "69.196.0.85", "2400:c401::5054:ff:fe1b:b031", "12:30:45",
    "::", "a:b", "fe80::1%eth0", "::ffff:69.196.0.85", "785 8949", "212-736-5000/5001",
]  # fmt: skip
WORDS = [
    "tel ", "call ", "phone: ", "fax ", "order ", " office", " x12", " ext. 5", " \u0434\u043e\u0431. 7", "x", "F", "\u7535\u8bdd", "v", "IP ",
    "4111 1111 1111 1111", "5555555555554444", "DE89 3704 0044 0532 0130 00", "536-22-1234", "AZ 12 34 56 A", "SSN ", "X1234567L",
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a", "RSSMRA85T10A562S", "529.982.247-25", "<CARD>", "<NATIONAL_ID>", " AT ", "mail",
    "<PHONE>", "<IP>", "<EMAIL>", "jane", "example.org", "a@b.com", "@", "%40", "%2540", '"jane doe"@', "@[192.0.2.1]", " [at] ", " (AT)", " dot ",
    " at ", "\u00e4t", "{\u00c4t}", "[arroba]", "m\u00fcller@", "\u90ae\u7bb1", "-", "com", "b.com@c.org",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(MARKS + DIGITS + OTHER_DIGITS + NUMBERS + WORDS) | st.text(max_size=2), max_size=25)
RUNS = st.lists(st.sampled_from(MARKS[:7] * 2 + MARKS[21:31] + DIGITS * 3 + WORDS[:8]), max_size=60)


@given((TEXTS | RUNS).map("".join), st.sampled_from(LIMITS))
@example("(+1 212 736 5000) (2125552368) 1 (212) 736-5000", LIMITS[0])
@example("++49 30 1234567 ((030) 12345678", LIMITS[1])
@example("tel 785 8949/ 785 8950, 785 8951", LIMITS[0])
@example("call 785 8949 212736500, 785 8950", LIMITS[0])
@example('x"@a.com "j d"@example.org"k l"@example.org', LIMITS[0])
@example("2018-11-16 16.11.2018 00.11.2018 2018-2019 (2018) 2019 39.11.2018", LIMITS[1])
def test_any_text(text: str, limits: Limits) -> None:
    spans = plain_finders.find_pii(text.encode(), limits)
    assert find_pii(text.encode(), limits) == spans
    if spans:
        assert suspects(pa.array([None, "", text])).to_pylist() == [False, False, True]


def test_real_texts(shared_data: Path) -> None:
    with gzip.open(shared_data / "text" / "redpajama-pile-samples.jsonl.gz", "rt") as lines:
        texts = [json.loads(line)["text"] for line in lines]
    spans = [find_pii(text.encode(), LIMITS[1]) for text in texts]
    assert sum(map(len, spans)) > 20
    assert spans == [plain_finders.find_pii(text.encode(), LIMITS[1]) for text in texts]
    marks = suspects(pa.array(texts)).to_pylist()
    assert not [row for row, found in enumerate(spans) if found and not marks[row]]
    assert not all(marks)


@pytest.mark.parametrize(
    "piece",
    [
        "1",
        "+",
        "@",
        ".",
        "(",
        "-",
        ":",
        "%40",
        "1 ",
        "12 ",
        "+1",
        "1.",
        "a@",
        '"@a',
        "0 ",
        "\u0661",
        " dot ",
        "(at",
        "1:",
        "<IP>",
        "tel 1234 ",
    ],
)
def test_long_texts_of_one_piece(piece: str) -> None:
    text = (piece * 300).encode()
    assert find_pii(text, LIMITS[1]) == plain_finders.find_pii(text, LIMITS[1])
