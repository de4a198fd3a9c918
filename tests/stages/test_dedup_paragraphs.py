"""Repeated paragraphs and lines: each stays once, every repetition is cut out, and spans rebuild the input."""

import json
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.stages.dedup_paragraphs import STAGE, Params, cut_parts, distinct_parts
from pipeline_tasks.text.edits import paragraphs
from tests import refining
from tests.documents import documents
from tests.examples import fewest_examples

NAME = "dedup_paragraphs"
BOUNDS: dict[str, Any] = {"unit": "paragraph", "min_chars": 4, "min_left": 3, "buckets": 2}


def numbered(texts: Sequence[str], snapshot: str = "d1") -> pa.Table:
    """Documents with ids in the order of their place, so that the first of equal texts is the winner."""
    table = documents(texts)
    for name, values in (
        ("id", [f"{snapshot}{at:030d}" for at in range(len(texts))]),
        ("snapshot", [snapshot] * len(texts)),
    ):
        table = table.set_column(table.schema.get_field_index(name), name, pa.array(values, pa.string()))
    return table


def dedup(
    root: Path, table: pa.Table, history: Sequence[str] = (), batch_rows: int = 4096, shards: int = 1, **params: Any
) -> tuple[str, Manifest]:
    cuts = [table.take(pa.array(range(start, table.num_rows, shards), pa.int64())) for start in range(shards)]
    parent = refining.commit_parent(root, cuts)
    return refining.refined(root, NAME, parent, BOUNDS | params, history=history, batch_rows=batch_rows)


def rows(root: Path, manifest: Manifest, part: str = "shards") -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in refining.rows(root, manifest, part).to_pylist()}


def minus(text: str, spans: Sequence[dict[str, Any]]) -> str:
    left, at = "", 0
    for span in spans:
        assert at <= span["start"] < span["end"] <= len(text)
        left, at = left + text[at : span["start"]], span["end"]
    return left + text[at:]


def test_a_paragraph_stays_where_it_is_first(tmp_path: Path) -> None:
    texts = ["first\n\nshared words\n\nlast", "shared words\n\nown", "other\n\nshared words", "tiny\n\nabc\n\nabc"]
    _, manifest = dedup(tmp_path, numbered(texts))
    by_id = rows(tmp_path, manifest)
    kept = [by_id[f"d1{at:030d}"] for at in range(4)]
    assert [row["text"] for row in kept] == [texts[0], "own", "other", texts[3]]
    assert [row["chars"] for row in kept] == [len(row["text"]) for row in kept]
    assert [row["cut_chars"] for row in kept] == [0, 14, 14, 0]
    (span,) = kept[1]["cut_spans"]
    assert (span["start"], span["end"], span["winner"], span["snapshot"]) == (0, 14, kept[0]["id"], "d1")
    assert kept[2]["cut_spans"][0]["start"] == len("other")
    assert manifest.rejected == {}


def test_a_document_repeats_itself(tmp_path: Path) -> None:
    _, manifest = dedup(tmp_path, numbered(["words here\n\nbetween\n\nwords here\n\nwords here"]))
    ((_, row),) = rows(tmp_path, manifest).items()
    assert row["text"] == "words here\n\nbetween"
    assert [(span["start"], span["end"], span["winner"]) for span in row["cut_spans"]] == [
        (19, 33, row["id"]),
        (33, 43, row["id"]),
    ]


def test_lines_are_parts_where_a_recipe_says_so(tmp_path: Path) -> None:
    texts = ["menu line\nown text one", "menu line\nown text two\nmenu line"]
    assert dedup(tmp_path, numbered(texts))[1].metrics["kept"]["cut_chars"]["sum"] == 0
    _, manifest = dedup(tmp_path, numbered(texts), unit="line")
    assert {row["text"] for row in rows(tmp_path, manifest).values()} == {texts[0], "own text two"}


def test_a_document_of_which_too_little_is_left_goes_as_it_came(tmp_path: Path) -> None:
    texts = ["shared words\n\nmore shared", "ab\n\nshared words\n\nmore shared"]
    _, manifest = dedup(tmp_path, numbered(texts))
    (row,) = rows(tmp_path, manifest, "rejects").values()
    assert row["reason"] == "dedup_paragraphs:too_little_left"
    assert (row["text"], row["chars"]) == (texts[1], len(texts[1]))
    assert json.loads(row["evidence"]) == {"bound": 3, "left": 2}
    assert minus(texts[1], row["cut_spans"]) == "ab"


def test_what_an_earlier_day_has_is_cut(tmp_path: Path) -> None:
    first, _ = dedup(tmp_path, numbered(["shared words\n\none", "later\n\nalso this"]))
    second, manifest = dedup(tmp_path, numbered(["shared words\n\nnews of today"], "d2"), [first])
    (row,) = rows(tmp_path, manifest).values()
    assert row["text"] == "news of today"
    assert (row["cut_spans"][0]["winner"], row["cut_spans"][0]["snapshot"]) == (f"d1{0:030d}", "d1")
    _, manifest = dedup(tmp_path, numbered(["news of today\n\nalso this\n\nnew"], "d3"), [first, second])
    (row,) = rows(tmp_path, manifest).values()
    assert row["text"] == "new"
    assert [span["snapshot"] for span in row["cut_spans"]] == ["d2", "d1"]
    assert sum(shard.rows for shard in manifest.history_shards) == 0


def test_a_history_of_another_bucket_count_cuts_the_same(tmp_path: Path) -> None:
    """`buckets` had to stay the same as long as there was history: another number was refused."""
    path, _ = dedup(tmp_path, numbered([f"paragraph {n}" for n in range(40)]), buckets=8)
    day = numbered([f"paragraph {n}\n\nnew words {n}" for n in range(30, 50)], "d2")
    outcomes = [rows(tmp_path, dedup(tmp_path, day, [path], buckets=n)[1]) for n in (8, 1, 3, 4, 32)]
    assert sum(len(row["cut_spans"]) for row in outcomes[0].values()) == 10
    assert outcomes == [outcomes[0]] * 5


def test_a_part_that_is_kept_must_be_enough_to_keep_its_document(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"min_left 5 .*min_chars 4"):
        dedup(tmp_path, numbered(["some words"]), min_left=5)


def test_documents_out_of_bucket_order_are_refused(tmp_path: Path) -> None:
    batch = numbered(["some words", "other words"]).combine_chunks().to_batches()[0]
    first, second = batch["id"].to_pylist()
    with pytest.raises(ContractError, match=f"{NAME}: document {first} "):
        list(distinct_parts(iter([batch.take(pa.array([1, 0]))]), params=Params(**BOUNDS)))
    assert first < second
    assert list(distinct_parts(iter([batch]), params=Params(**BOUNDS)))
    lost = pa.RecordBatch.from_pylist(
        [{"id": "elsewhere", "hash": 7, "check": 8, "winner": "w", "snapshot": "d1"}],
    )
    with pytest.raises(ContractError, match=NAME):
        list(cut_parts(iter([batch]), iter([lost]), params=Params(**BOUNDS)))
    assert list(cut_parts(iter([batch]), iter([lost.slice(0, 0)]), params=Params(**BOUNDS)))


HASHES = [4889943090428182287, 6553971091377485215, 1054030320199923195, 0]
CHECKS = [2379191871516399003, 1037944260968408393, 2949848018324600275, 0]


def test_hashes_are_frozen() -> None:
    """They are part of the history: other hashes would part every day from those before it."""
    parts = paragraphs.cut_parts(pa.array(["shared words\n\n12345678\n\n日本語です", None], pa.large_string()), 2, 1)
    assert parts.hash.tolist() == HASHES
    assert parts.check.tolist() == CHECKS
    assert np.array_equal(parts.points, [[0, 12, 14], [14, 22, 24], [24, 29, 29], [0, 0, 0]])


PARTS = st.sampled_from(["alpha words", "beta — words", "x", "", "gamma\nline", "ключ слова", "abc", "delta 𝄞 words"])
TEXTS = st.lists(st.lists(PARTS, max_size=5).map("\n\n".join), max_size=12)


@fewest_examples
@given(
    today=TEXTS,
    earlier=TEXTS,
    unit=st.sampled_from(["paragraph", "line"]),
    shards=st.sampled_from([1, 3]),  # two would be taken for the two buckets
    batch_rows=st.sampled_from([1, 3, 10_000]),
    shuffled=st.randoms(use_true_random=False),
)
def test_spans_rebuild_and_every_part_stays_once(
    today: list[str], earlier: list[str], unit: str, shards: int, batch_rows: int, shuffled: random.Random
) -> None:
    tables = [numbered(earlier), numbered(today, "d2")]
    order = list(range(len(today)))
    shuffled.shuffle(order)
    with TemporaryDirectory() as folder:
        root = Path(folder)
        before, first = dedup(root, tables[0], unit=unit)
        _, second = dedup(root, tables[1], [before], unit=unit)
        _, again = dedup(root, tables[1].take(pa.array(order, pa.int64())), [before], batch_rows, shards, unit=unit)
        assert refining.row_digests(root, second.shards) == refining.row_digests(root, again.shards)
        assert [shard.digest for shard in second.history_shards] == [shard.digest for shard in again.history_shards]
        counts: Counter[str] = Counter()
        for manifest, table in zip((first, second), tables, strict=True):
            texts = {row["id"]: row["text"] for row in table.to_pylist()}
            kept, gone = rows(root, manifest), rows(root, manifest, "rejects")
            assert kept.keys() | gone.keys() == texts.keys()
            assert len(kept) + len(gone) == len(texts)
            for name, row in kept.items():
                left = minus(texts[name], row["cut_spans"])
                assert row["text"] == minus(left, row["seam_spans"] or [])
                assert row["chars"] == len(row["text"])
                assert row["cut_chars"] == len(texts[name]) - len(left)
                counts.update(long(left, unit))
            for name, row in gone.items():
                assert row["text"] == texts[name]
                assert len(minus(row["text"], row["cut_spans"])) < 3
        assert counts == Counter(set(counts))
        assert set(counts) == {part for text in (*earlier, *today) for part in long(text, unit)}


def long(text: str, unit: str) -> list[str]:
    """The parts of a text that count, as Python's own tools cut them."""
    import re

    parts = re.split("\n\n+" if unit == "paragraph" else "\n+", text)
    return [part for part in parts if len(part) >= 4]


@pytest.mark.slow
@pytest.mark.parametrize("cluster", [pytest.param("spark", marks=pytest.mark.nightly), "ray"])
def test_every_engine_stores_the_same(cluster: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    draws = random.Random(7)
    days = [
        numbered(["\n".join(f"line number {draws.randrange(300)}" for _ in range(6)) for _ in range(40)], day)
        for day in ("d1", "d2")
    ]
    stored = []
    for on, address in (("local", ""), (cluster, request.getfixturevalue(cluster))):
        root, history = tmp_path / on, list[str]()
        for day in days:
            parent = refining.commit_parent(root, [day.slice(0, 13), day.slice(13, 0), day.slice(13)])
            how = {"history": history, "on": on, "address": address}
            path, manifest = refining.refined(root, NAME, parent, {"min_chars": 5, "min_left": 2, "buckets": 4}, **how)
            history.append(path)
            assert manifest.metrics["kept"]["cut_chars"]["sum"] > 0
        stored.append([(root / path).read_bytes() for path in history])
    assert stored[0] == stored[1]


def test_the_card_names_what_it_writes() -> None:
    assert [column.name for column in STAGE.writes][-4:] == ["cut_spans", "cut_chars", "seams", "seam_spans"]
