"""Repeated stretches: those that a naive finder has, each stays somewhere, and spans name the same letters elsewhere."""

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.errors import ContractError
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.stages.dedup_substrings import FOUND, Params, batch_keys, cut_repeated, find_repeated, windows
from pipeline_tasks.stages.dedup_substrings.cutting import Span, whole_words
from tests import refining
from tests.examples import few_examples, fewest_examples
from tests.stages.test_dedup_paragraphs import minus, numbered

NAME = "dedup_substrings"
SHARED = "the same words are here"
BOUNDS: dict[str, Any] = {"min_chars": 12, "action": "cut", "min_left": 3, "buckets": 2}

Found = set[tuple[int, int, int, int]]
"""Windows that another place has before: the text, the code point, and those of the first one."""


def dedup(root: Path, table: pa.Table, batch_rows: int = 4096, shards: int = 1, **params: Any) -> Manifest:
    cuts = [table.take(pa.array(range(start, table.num_rows, shards), pa.int64())) for start in range(shards)]
    parent = refining.commit_parent(root, cuts)
    return refining.refined(root, NAME, parent, BOUNDS | params, batch_rows=batch_rows)[1]


def rows(root: Path, manifest: Manifest, part: str = "shards") -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in refining.rows(root, manifest, part).to_pylist()}


def naive(texts: Sequence[str], width: int) -> Found:
    """Look every window up among all before it; one that overlaps its first is none."""
    first: dict[str, tuple[int, int]] = {}
    found: Found = set()
    for doc, text in enumerate(texts):
        for at in range(len(text) - width + 1):
            owner, place = first.setdefault(text[at : at + width], (doc, at))
            if owner != doc or place + width <= at:
                found.add((doc, at, owner, place))
    return found


def found_by_kernels(texts: Sequence[str], width: int, batch_rows: int) -> Found:
    """What kernels find of pieces that come as `group` sorts them."""
    pieces = windows.cut_pieces(texts, width)
    table = [
        {"key": key, "id": f"{doc:09}", "at": at, "piece": texts[doc][at : at + count + width - 1]}
        for doc, at, count, key in zip(*(column.tolist() for column in pieces), strict=True)
    ]
    table.sort(key=lambda row: (row["key"], row["id"], row["at"]))
    schema = pa.schema([("key", pa.int64()), ("id", pa.string()), ("at", pa.int64()), ("piece", pa.large_string())])
    batches = pa.Table.from_pylist(table, schema).to_batches(max_chunksize=batch_rows)
    found = find_repeated(iter(batches or [pa.RecordBatch.from_pylist([], schema)]), params=Params(min_chars=width))
    return {
        (int(row["id"]), row["start"] + at, int(row["winner"]), row["winner_start"] + at)
        for batch in found
        for row in batch.to_pylist()
        if row["winner"]
        for at in range(row["end"] - row["start"] - width + 1)
    }


LETTERS = st.lists(st.text("ab\U0001d11eé ", max_size=30), max_size=8)


@few_examples
@given(texts=LETTERS, width=st.integers(2, 9), batch_rows=st.sampled_from([1, 2, 1000]), block=st.integers(1, 20))
def test_windows_are_those_that_a_naive_finder_has(texts: list[str], width: int, batch_rows: int, block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windows, "BLOCK", block)
        patch.setattr(windows, "COMPARED", block)
        assert found_by_kernels(texts, width, batch_rows) == naive(texts, width)


@few_examples
@given(texts=LETTERS, width=st.integers(2, 9), batch_rows=st.sampled_from([1, 1000]))
def test_windows_of_equal_hashes_are_compared_letter_by_letter(texts: list[str], width: int, batch_rows: int) -> None:
    hashes = windows.window_hashes
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windows, "window_hashes", lambda points, size: hashes(points, size) & np.uint64(3))
        assert found_by_kernels(texts, width, batch_rows) == naive(texts, width)


PARTS = st.sampled_from(
    ["alpha words", "ключ слова", "x", "e\u0301te\u0301 𝄞", "日本語の文章です。", "aaaaaaaa", "\n\n", ": "]
)
TEXTS = st.lists(st.lists(PARTS, max_size=6).map(" ".join), max_size=8)


@fewest_examples
@given(
    texts=TEXTS,
    width=st.integers(2, 14),
    min_left=st.integers(0, 12),
    shards=st.sampled_from([1, 3]),
    batch_rows=st.sampled_from([1, 3, 10_000]),
    shuffled=st.randoms(use_true_random=False),
)
def test_every_letter_that_is_cut_stays_elsewhere(
    texts: list[str], width: int, min_left: int, shards: int, batch_rows: int, shuffled: random.Random
) -> None:
    table = numbered(texts)
    order = list(range(len(texts)))
    shuffled.shuffle(order)
    how = {"min_chars": width, "min_left": min_left}
    with TemporaryDirectory() as folder:
        root = Path(folder)
        whole = dedup(root, table, **how)
        again = dedup(root, table.take(pa.array(order, pa.int64())), batch_rows, shards, **how, buckets=4)
        kept, gone = rows(root, whole), rows(root, whole, "rejects")
        assert (kept, gone) == (rows(root, again), rows(root, again, "rejects"))
        assert len(kept) + len(gone) == len(texts)
    names = {f"d1{at:030d}": text for at, text in enumerate(texts)}
    lost = covered(texts, width)
    left_out: dict[tuple[str, int], tuple[str, int]] = {}
    for name, row in (kept | gone).items():
        for span in row["substring_spans"]:
            piece = names[name][span["start"] : span["end"]]
            if span["winner"] is None:
                assert not piece.strip()
                continue
            place = span["winner_start"]
            assert names[span["winner"]][place : place + len(piece)] == piece
            for at in range(len(piece)):
                assert (name, span["start"] + at) in lost
                left_out[name, span["start"] + at] = (span["winner"], place + at)
        left = minus(names[name], row["substring_spans"])
        assert row["substring_chars"] == len(names[name]) - len(left)
        if name in gone:
            assert row["text"] == names[name]
            assert len(left) < min_left
        else:
            assert row["text"] == minus(left, row["seam_spans"] or [])
    for origin in left_out.values():
        while origin in left_out:  # what has it first may have lost it, too, to one before
            origin = left_out[origin]  # noqa: PLW2901 -- it is followed to its end
        assert origin[0] in kept


def covered(texts: Sequence[str], width: int) -> set[tuple[str, int]]:
    """Every code point of a window that another place has before."""
    return {(f"d1{doc:030d}", at + inside) for doc, at, _, _ in naive(texts, width) for inside in range(width)}


def test_a_stretch_stays_where_it_is_first(tmp_path: Path) -> None:
    texts = [f"One. {SHARED}, once.", f"Two begins so: {SHARED}; and ends.", f"{SHARED} third"]
    by_id = rows(tmp_path, dedup(tmp_path, numbered(texts)))
    kept = [by_id[f"d1{at:030d}"] for at in range(3)]
    assert [row["text"] for row in kept[:2]] == [texts[0], "Two begins so: ; and ends."]
    (span,) = kept[1]["substring_spans"]
    assert (span["start"], span["end"], span["winner_start"]) == (15, 15 + len(SHARED), 5)
    assert span["winner"] == kept[0]["id"]
    assert [row["substring_chars"] for row in kept[:2]] == [0, len(SHARED)]


def test_a_document_repeats_itself(tmp_path: Path) -> None:
    text = f"A {SHARED}. Between. B {SHARED}."
    ((name, row),) = rows(tmp_path, dedup(tmp_path, numbered([text]))).items()
    assert row["text"] == f"A {SHARED}. Between. B"
    assert [span["winner"] for span in row["substring_spans"]] == [None, name]


def test_a_document_of_which_too_little_is_left_goes_as_it_came(tmp_path: Path) -> None:
    texts = [f"one {SHARED}", f"ab {SHARED}"]
    (row,) = rows(tmp_path, dedup(tmp_path, numbered(texts)), "rejects").values()
    assert (row["reason"], row["text"]) == (f"{NAME}:too_little_left", texts[1])
    assert json.loads(row["evidence"]) == {"bound": 3, "left": 2, "winner": f"d1{0:030d}"}
    assert minus(texts[1], row["substring_spans"]) == "ab"
    assert row["substring_spans"][-1]["winner"] == f"d1{0:030d}"


def test_who_has_first_what_others_lose_is_never_rejected(tmp_path: Path) -> None:
    """The second has `own end` first, and is short without the rest; the third loses it for that."""
    texts = [SHARED, f"{SHARED} own end", f"more of it: {SHARED} own end"]
    manifest = dedup(tmp_path, numbered(texts), min_left=9)
    assert not manifest.rejected
    assert [rows(tmp_path, manifest)[f"d1{at:030d}"]["text"] for at in range(2)] == [SHARED, "own end"]


def test_a_recipe_that_marks_changes_no_text(tmp_path: Path) -> None:
    texts = [f"one {SHARED}", f"ab {SHARED}"]
    manifest = dedup(tmp_path, numbered(texts), action="mark")
    kept = [rows(tmp_path, manifest)[f"d1{at:030d}"] for at in range(2)]
    assert [row["text"] for row in kept] == texts
    assert kept[1]["substring_chars"] == len(SHARED) + 1
    assert "seams" not in kept[0]
    assert not manifest.rejected


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("half a wo[rd is sha]red", "half a word shared"),
        ("the end. [Shared words.]\n\nNext", "the end.\n\nNext"),
        ("[Shared words.] Next", "Next"),
        ("one[ shared ]two", "one two"),
        ("one-[shared-]two", "one-two"),
        ("don[']t", "don't"),
        ("e[\u0301t]e", "e\u0301te"),
        ("前[日本]後", "前後"),
        ("a[ b] [c ]d", "a d"),
    ],
)
def test_cuts_take_whole_words_and_leave_one_space(text: str, left: str) -> None:
    whole = text.replace("[", "").replace("]", "")
    spans = [Span(start, end, "w", 0) for start, end in bracketed(text)]
    cut = [{"start": span.start, "end": span.end} for span in whole_words(whole, spans)]
    assert minus(whole, cut) == left


def bracketed(text: str) -> Iterator[tuple[int, int]]:
    """Where brackets are, in the text without them."""
    places = [at - number for number, at in enumerate(at for at, sign in enumerate(text) if sign in "[]")]
    yield from zip(places[::2], places[1::2], strict=True)


def test_documents_out_of_bucket_order_are_refused() -> None:
    batch = numbered(["some words", "other words"]).combine_chunks().to_batches()[0]
    with pytest.raises(ContractError, match=f"{NAME}: document .* is not in id order"):
        list(batch_keys(iter([batch.take(pa.array([1, 0]))]), params=Params()))
    elsewhere = {"id": "elsewhere", "start": 0, "end": 9, "winner": "w", "winner_start": 0}
    with pytest.raises(ContractError, match="not in their buckets"):
        list(cut_repeated(iter([batch]), iter([pa.RecordBatch.from_pylist([elsewhere], FOUND)]), params=Params()))


def test_a_key_of_equal_pieces_is_not_kept_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A notice of ten thousand pages: of those that came before, one is looked at with each batch."""
    schema = pa.schema([("key", pa.int64()), ("id", pa.string()), ("at", pa.int64()), ("piece", pa.large_string())])
    table = pa.Table.from_pylist([{"key": 7, "id": f"{at:09}", "at": 0, "piece": SHARED} for at in range(1000)], schema)
    seen: list[int] = []
    find_first = windows.find_first

    def counted(pieces: Sequence[str], width: int) -> tuple[windows.Matches, npt.NDArray[np.int64]]:
        seen.append(len(pieces))
        return find_first(pieces, width)

    monkeypatch.setattr(windows, "find_first", counted)
    list(find_repeated(iter(table.to_batches(max_chunksize=100)), params=Params(min_chars=12)))
    assert seen == [100, *[101] * 9]


@pytest.mark.slow
@pytest.mark.parametrize("cluster", ["spark", "ray"])
def test_every_engine_stores_the_same(cluster: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    draws = random.Random(7)
    sentences = [f"Sentence {at} is one that some of the pages have." for at in range(60)]
    table = numbered([" ".join(draws.choices(sentences, k=6)) for _ in range(40)])
    stored = []
    for on, address in (("local", ""), (cluster, request.getfixturevalue(cluster))):
        root = tmp_path / on
        parent = refining.commit_parent(root, [table.slice(0, 13), table.slice(13, 0), table.slice(13)])
        params = {"min_chars": 40, "action": "cut", "min_left": 20, "buckets": 4}
        path, manifest = refining.refined(root, NAME, parent, params, on=on, address=address)
        assert manifest.metrics["kept"]["substring_chars"]["sum"] > 0
        stored.append((root / path).read_bytes())
    assert stored[0] == stored[1]
