"""Packing: expected sequences spelled out, and no token lost, repeated or moved for any sharding."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.exports.sequences import Packing
from pipeline_tasks.stages.pack import PLACED
from pipeline_tasks.stages.pack.sequences import SEQUENCE
from pipeline_tasks.store.reading import read_manifest, read_shards
from tests.examples import few_examples
from tests.refining import commit_parent, refined, rows

Doc = tuple[str, list[int]]
Piece = tuple[str, int, int, int]
KEYS = ("id", "doc_start", "start", "length")


def table(docs: Sequence[Doc]) -> pa.Table:
    ids, tokens = [name for name, _ in docs], [ids_ for _, ids_ in docs]
    return pa.table(
        {
            "id": pa.array(ids, pa.string()),
            "tokens": pa.array(tokens, pa.list_(pa.int32())),
            "n_tokens": pa.array([len(some) for some in tokens], pa.int64()),
        }
    )


def packed(root: Path, shards: Sequence[Sequence[Doc]], length: int, batch_rows: int = 4096) -> list[dict[str, object]]:
    parent = commit_parent(root, [table(docs) for docs in shards])
    _, manifest = refined(root, "pack", parent, {"length": length, "pad_id": 0}, batch_rows=batch_rows)
    measured = manifest.metrics["kept"].get("n_tokens", {"sum": 0})
    assert measured["sum"] == sum(len(some) for docs in shards for _, some in docs)
    assert rows(root, manifest).schema.equals(PLACED)
    documents = read_manifest(str(root), parent).shards
    shards_ = [
        Packing(str(root), shard, documents[at:], length, 0, carried=True).batches()
        for at, shard in enumerate(manifest.shards)
    ]
    out = pa.concat_tables([SEQUENCE.empty_table(), *(pa.Table.from_batches(batches) for batches in shards_)])
    sequences_: list[dict[str, object]] = out.to_pylist()
    return sequences_


def piece(name: str, doc_start: int, start: int, length: int) -> dict[str, object]:
    return {"id": name, "doc_start": doc_start, "start": start, "length": length, "copy": 0}


def test_sequences_of_two_shards(tmp_path: Path) -> None:
    shards = [[("a", [1, 2, 9]), ("b", [3, 9])], [("c", [4, 5, 6, 7, 8, 9]), ("d", [9])]]
    assert packed(tmp_path, shards, 4) == [
        {"sequence": 0, "tokens": [1, 2, 9, 3], "n_tokens": 4, "pieces": [piece("a", 0, 0, 3), piece("b", 0, 3, 1)]},
        {"sequence": 1, "tokens": [9, 4, 5, 6], "n_tokens": 4, "pieces": [piece("b", 1, 0, 1), piece("c", 0, 1, 3)]},
        {"sequence": 2, "tokens": [7, 8, 9, 9], "n_tokens": 4, "pieces": [piece("c", 3, 0, 3), piece("d", 0, 3, 1)]},
    ]


def test_the_last_sequence_is_padded_and_says_so(tmp_path: Path) -> None:
    assert packed(tmp_path, [[("a", [1, 2, 3, 4, 5])]], 4)[1] == {
        "sequence": 1,
        "tokens": [5, 0, 0, 0],
        "n_tokens": 1,
        "pieces": [piece("a", 4, 0, 1)],
    }


def test_one_sequence_may_span_many_shards(tmp_path: Path) -> None:
    shards = [[("a", [1])], [], [("b", [2, 3])], [("c", [])], [("d", [4, 5])]]
    sequences_ = packed(tmp_path, shards, 4)
    assert [sequence["tokens"] for sequence in sequences_] == [[1, 2, 3, 4], [5, 0, 0, 0]]
    assert sequences_[0]["pieces"] == [piece("a", 0, 0, 1), piece("b", 0, 1, 2), piece("d", 0, 3, 1)]


def test_nothing_in_gives_nothing_out(tmp_path: Path) -> None:
    assert packed(tmp_path, [[("a", [])], [("b", [])]], 4) == []


def test_an_id_in_two_shards_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="pack: document a "):
        packed(tmp_path, [[("a", [1])], [("a", [1])]], 4)


def test_a_sequence_of_no_tokens_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"pack: length .*0"):
        packed(tmp_path, [[("a", [1])]], 0)


def test_documents_of_the_same_id_keep_their_places(tmp_path: Path) -> None:
    docs = [("b", [1, 2]), ("a", [3]), ("a", [4, 5]), ("a", [6])]
    sequences_ = packed(tmp_path, [docs], 4)
    assert [sequence["tokens"] for sequence in sequences_] == [[1, 2, 3, 4], [5, 6, 0, 0]]
    assert sequences_[1]["pieces"] == [piece("a", 1, 0, 1), piece("a", 0, 1, 1)]


@pytest.mark.parametrize(
    ("others", "missing"),
    [
        ([("a", [1, 2]), ("c", [4]), ("b", [3])], "b"),
        ([("a", [1, 2]), ("b", [3])], "c"),
        ([("a", [1, 2]), ("b", [3]), ("d", [5])], "c"),
        ([("a", [1, 2]), ("b", [3, 4]), ("c", [5])], "c"),
        ([("b", [3]), ("c", [4])], "a"),
    ],
)
def test_other_documents_than_those_of_the_sequences_are_refused(
    tmp_path: Path, others: list[Doc], missing: str
) -> None:
    parent = commit_parent(tmp_path, [table([("a", [1, 2]), ("b", [3]), ("c", [4])])])
    _, manifest = refined(tmp_path, "pack", parent, {"length": 3})
    documents = read_manifest(str(tmp_path), commit_parent(tmp_path, [table(others)], "others")).shards
    with pytest.raises(ContractError, match=f": document {missing} "):
        list(Packing(str(tmp_path), manifest.shards[0], documents, 3, 0, carried=True).batches())


DOCS = st.lists(st.integers(0, 13), max_size=12).map(
    lambda lengths: [(f"d{rank}", [100 * rank + at + 1 for at in range(size)]) for rank, size in enumerate(lengths)]
)


@few_examples
@given(docs=DOCS, borders=st.lists(st.integers(0, 12), max_size=4), length=st.integers(1, 9), batch=st.integers(1, 5))
def test_any_sharding_gives_the_same_sequences(
    tmp_path_factory: pytest.TempPathFactory, docs: list[Doc], borders: list[int], length: int, batch: int
) -> None:
    edges = [0, *sorted(min(border, len(docs)) for border in borders), len(docs)]
    shards = [docs[start:stop] for start, stop in pairwise(edges)]
    apart = packed(tmp_path_factory.mktemp("apart"), shards, length, batch)
    assert apart == packed(tmp_path_factory.mktemp("whole"), [docs], length)
    assert [sequence["sequence"] for sequence in apart] == list(range(len(apart)))
    stream = [token for _, tokens in docs for token in tokens]
    assert [token for sequence in apart for token in sequence["tokens"]][: len(stream)] == stream  # type: ignore[attr-defined]
    assert unpacked(apart) == {name: tokens for name, tokens in docs if tokens}


def unpacked(sequences: Sequence[dict[str, object]]) -> dict[str, list[int]]:
    """Put documents together again from their pieces, as a reader of the lineage would."""
    docs: dict[str, list[int]] = {}
    for sequence in sequences:
        for part in sequence["pieces"]:  # type: ignore[attr-defined]
            tokens = docs.setdefault(part["id"], [])
            assert part["doc_start"] == len(tokens)
            tokens += sequence["tokens"][part["start"] : part["start"] + part["length"]]  # type: ignore[index]
    return docs


# --- Tails of shards ---------------------------------------------------------------------------------------------


def by_shard(root: Path, shards: Sequence[Sequence[Doc]], length: int, tail: str) -> tuple[Manifest, list[list[Piece]]]:
    """Pack each shard by itself; return the manifest and the kept sequences, as their pieces."""
    parent = commit_parent(root, [table(docs) for docs in shards])
    _, manifest = refined(root, "pack", parent, {"length": length, "tail": tail})
    assert len(manifest.shards) == len(shards)
    out = rows(root, manifest)
    assert out.schema.equals(PLACED)
    return manifest, [
        [(part["id"], part["doc_start"], part["start"], part["length"]) for part in row["pieces"]]
        for row in out.to_pylist()
    ]


TAILS = [[("a", [1, 2, 9]), ("b", [3, 9])], [], [("c", [4, 5, 6, 7]), ("d", [])], [("e", [1])]]


def test_each_shard_is_padded_at_its_end(tmp_path: Path) -> None:
    manifest, sequences = by_shard(tmp_path, TAILS, 4, "pad")
    assert sequences == [[("a", 0, 0, 3), ("b", 0, 3, 1)], [("b", 1, 0, 1)], [("c", 0, 0, 4)], [("e", 0, 0, 1)]]
    assert [shard.rows for shard in manifest.shards] == [2, 0, 1, 1]
    assert dict(manifest.rejected) == {}


def test_a_tail_is_dropped_with_its_reason(tmp_path: Path) -> None:
    manifest, sequences = by_shard(tmp_path, TAILS, 4, "drop")
    assert sequences == [[("a", 0, 0, 3), ("b", 0, 3, 1)], [("c", 0, 0, 4)]]
    assert dict(manifest.rejected) == {"pack:tail": 2}
    [left, other] = [row for batch in read_shards(str(tmp_path), manifest.rejects) for row in batch.to_pylist()]
    assert (left["pieces"], left["n_tokens"]) == ([piece("b", 1, 0, 1)], 1)
    assert other["pieces"] == [piece("e", 0, 0, 1)]


@few_examples
@given(shards=st.lists(DOCS, min_size=1, max_size=3), length=st.integers(1, 9))
def test_a_padded_tail_is_the_stream_of_its_shard_and_a_dropped_tail_is_its_last_sequence(
    tmp_path_factory: pytest.TempPathFactory, shards: list[list[Doc]], length: int
) -> None:
    shards = [[(f"{number}{name}", tokens) for name, tokens in docs] for number, docs in enumerate(shards)]
    plain = [packed(tmp_path_factory.mktemp("alone"), [docs], length) for docs in shards]
    pieces = [[[tuple(part[key] for key in KEYS) for part in row["pieces"]] for row in own] for own in plain]  # type: ignore[attr-defined]
    _, padded = by_shard(tmp_path_factory.mktemp("padded"), shards, length, "pad")
    assert padded == [sequence for own in pieces for sequence in own]
    manifest, kept = by_shard(tmp_path_factory.mktemp("dropped"), shards, length, "drop")
    full = [row["n_tokens"] == length for own in plain for row in own]
    assert kept == [sequence for sequence, whole in zip(padded, full, strict=True) if whole]
    assert sum(manifest.rejected.values()) == full.count(False)


def test_best_fit_has_no_tails(tmp_path: Path) -> None:
    parent = commit_parent(tmp_path, [table([("a", [1])])])
    with pytest.raises(RecipeError, match=r"pack: tail: drop .*method: concat"):
        refined(tmp_path, "pack", parent, {"method": "best_fit", "tail": "drop"})
