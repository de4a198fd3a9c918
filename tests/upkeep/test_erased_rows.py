"""A blank row says nothing but where it came from, and what a document said is found in pages however it is written."""

import gzip
import html
import json

import pyarrow as pa
import pytest
import zstandard
from refinery_rights.erasing.samples import Probes

from pipeline_tasks.schema import GENERATED
from pipeline_tasks.upkeep.rewriting.rows import ADDRESS, blanked, blanked_entries, can_say, sayable, saying

ROWS = pa.RecordBatch.from_pylist(
    [
        {
            "id": "ab",
            "file": "a.warc.gz",
            "offset": 7,
            "url": "https://a.example/jane",
            "text": "Jane lives here",
            "title": "Jane",
            "tokens": [5, 6, 7],
            "signals": {"words": 3, "first": "Jane"},
            "numbers": [0.5, float("nan")],
            "names": ["Jane"],
            "reason": "filter_quality:words",
            "evidence": '{"word":"Jane"}',
        }
    ]
    * 2,
    schema=pa.schema(
        [
            ("id", pa.string()),
            ("file", pa.string()),
            ("offset", pa.int64()),
            ("url", pa.string()),
            ("text", pa.large_string()),
            ("title", pa.string()),
            ("tokens", pa.list_(pa.int32())),
            ("signals", pa.struct([("words", pa.int64()), ("first", pa.string())])),
            ("numbers", pa.list_(pa.float32())),
            ("names", pa.list_(pa.string())),
            ("reason", pa.string()),
            ("evidence", pa.string()),
        ]
    ),
)
FIRST = pa.array([{"url": "http://a.example/"}, None], ADDRESS)


def test_a_blank_row_says_nothing_and_is_counted_as_before() -> None:
    after = blanked(ROWS, FIRST)
    assert after.schema == ROWS.schema
    first, second = after.to_pylist()
    assert first == {
        "id": "ab",
        "file": "a.warc.gz",
        "offset": 7,
        "url": "http://a.example/",
        "text": "",
        "title": None,
        "tokens": [0, 0, 0],
        "signals": {"words": 3, "first": None},
        "numbers": [0.0, 0.0],
        "names": None,
        "reason": "filter_quality:words",
        "evidence": None,
    }
    assert repr(second) == repr(ROWS.to_pylist()[1])


def test_a_blank_row_stays_as_it_is() -> None:
    assert saying(ROWS, FIRST) == 1
    assert saying(blanked(ROWS, FIRST), FIRST) == 0


@pytest.mark.parametrize(
    ("reason", "kept"), [("dedup_minhash:near_duplicate", True), ("extract:taken_down", True), ("c4:word", False)]
)
def test_evidence_stays_where_it_names_documents_alone(reason: str, kept: bool) -> None:
    at = ROWS.schema.get_field_index("reason")
    rows = ROWS.set_column(at, "reason", pa.array([reason, reason]))
    assert (blanked(rows, FIRST).column("evidence")[0].as_py() is not None) == kept


def test_tables_of_hashes_and_ids_are_left_alone() -> None:
    assert not can_say(
        pa.schema([("id", pa.string()), ("shingles", pa.large_binary()), ("keys", pa.list_(pa.int64()))])
    )
    assert sayable(pa.schema([("id", pa.string()), ("tokens", pa.list_(pa.int32()))])) == ["tokens"]
    assert sayable(pa.schema([("key", pa.string()), ("url", pa.string())]), segment=True) == ["url"]


TEXT = 'J\u00e4ne Roe\u2019s house is <b>behind</b> the old mill,\nand her "second" garden & shed are on the other side of it.'


@pytest.mark.parametrize(
    "body",
    [
        TEXT.encode(),
        html.escape(TEXT).encode(),
        html.escape(TEXT).replace("mill", "<em>mill</em>").encode(),
        json.dumps({"text": TEXT}).encode(),
        gzip.compress(TEXT.encode()),
        zstandard.compress(TEXT.encode()),
        f"<td>{html.escape(TEXT[:110])} \u2026</td>".encode(),
    ],
    ids=["plain", "escaped", "marked", "json", "gzip", "zstd", "cut"],
)
def test_a_text_is_found_however_it_is_written(body: bytes) -> None:
    probes = Probes()
    probes.add(html.unescape(TEXT.replace("<b>", "").replace("</b>", "")) if b"<em>" in body else TEXT)
    assert probes.are_in(body)
    assert not probes.are_in(b"The old mill is behind the house, and on its other side are a garden and a shed." * 3)


def test_an_address_is_found_whole() -> None:
    probes = Probes(urls={"https://a.example/1"})
    assert probes.are_in(b"<td>https://a.example/1</td>", urls=True)
    assert not probes.are_in(b"<td>https://a.example/10</td> <td>https://a.example/1/x</td>", urls=True)
    assert not probes.are_in(b"<td>https://a.example/1</td>")


def test_tokens_are_found_in_packed_ids_of_any_width() -> None:
    import numpy as np

    probes, ids = Probes(), list(range(100, 140))
    probes.add_tokens(ids)
    for dtype in ("<u2", "<u4"):
        assert probes.tokens_in(np.array([1, 2, *ids, 3], dtype).tobytes())
        assert not probes.tokens_in(np.array([*ids[::-1], 1], dtype).tobytes())
    blank = Probes()
    blank.add_tokens([0] * 40)
    assert not blank.tokens_in(bytes(400)), "an erased document has no tokens to look for"


def test_lists_of_generated_texts_keep_their_lengths_which_others_count() -> None:
    made = {"prompt": "qa", "text": "Jane lived here", "seed": 7, "stop": "stop"}
    lists = pa.array([[made, made], [], None], pa.list_(GENERATED))
    rows = pa.record_batch({"id": ["a", "b", "c"], "file": ["f"] * 3, "generated": lists})
    after = blanked(rows, pa.array([{"url": None}, {"url": None}, None], ADDRESS))["generated"]
    assert [each and [entry["text"] for entry in each] for each in after.to_pylist()] == [[None, None], [], None]
    assert [entry["seed"] for entry in after[0].as_py()] == [7, 7]


def test_one_generated_text_of_several_is_blanked() -> None:
    lists = pa.array([[{"text": "one"}, {"text": "two"}], None, [{"text": "three"}]], pa.list_(GENERATED))
    after = blanked_entries(lists, [[1], [], []]).to_pylist()
    assert [each and [entry["text"] for entry in each] for each in after] == [["one", None], None, ["three"]]
