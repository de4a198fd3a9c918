"""A layer reads back as the rows that its kernel yielded, whatever it rests on, and stores none of them again."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline_tasks.engines.local import LocalEngine
from pipeline_tasks.errors import ContractError
from pipeline_tasks.run.tasks.task import StageIO
from pipeline_tasks.run.tracker import Tracker
from pipeline_tasks.stage import Batches, Layer, Shard, Shards, reject, replace_column
from pipeline_tasks.store.shards.file import ShardWriter
from pipeline_tasks.store.shards.layer_columns import ROW
from pipeline_tasks.store.shards.rows import facts_of, read_shard
from tests.examples import few_examples

ROWS = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("text", pa.large_string()),
        pa.field("chars", pa.int64()),
        pa.field("title", pa.string()),
    ]
)
LAYER = Layer(changes=("text", "chars", "title"))


def table(texts: Sequence[str | None]) -> pa.Table:
    columns = {
        "id": [f"{row:04x}" for row in range(len(texts))],
        "text": texts,
        "chars": [None if text is None else len(text) for text in texts],
        "title": [text and text[:3] for text in texts],
    }
    return pa.table(columns, schema=ROWS)


def engine(root: Path, name: str = "toy", batch_rows: int = 7) -> LocalEngine:
    return LocalEngine(Tracker(StageIO(str(root), f"{name}/f", profiled=("chars",), batch_rows=batch_rows)))


def stored(root: Path, rows: pa.Table) -> Shard:
    writer = ShardWriter(rows.schema)
    for batch in rows.to_batches(3):
        writer.write(batch)
    return writer.store(str(root), "base/f/data")


def edit(batches: Batches, *, seed: int) -> Batches:
    """Shorten some texts, null some titles, reject some rows, quarantine others, and add a column."""
    for batch in batches:
        ids = [int(value, 16) for value in batch.column("id").to_pylist()]
        turns = [(number * 7 + seed) % 5 for number in ids]
        texts = batch.column("text").to_pylist()
        texts = [text and (text[1:] + "!" if turn == 1 else text) for text, turn in zip(texts, turns, strict=True)]
        titles = [
            None if turn == 2 else title for title, turn in zip(batch.column("title").to_pylist(), turns, strict=True)
        ]
        batch = replace_column(batch, "text", pa.array(texts, pa.large_string()))  # noqa: PLW2901
        batch = replace_column(batch, "title", pa.array(titles, pa.string()))  # noqa: PLW2901
        batch = replace_column(batch, "chars", pc.utf8_length(batch.column("text")).cast(pa.int64()))  # noqa: PLW2901
        batch = replace_column(batch, f"turn_{seed}", pa.array(turns, pa.int64()))  # noqa: PLW2901
        reasons = [{3: "toy:three", 4: "error:four"}.get(turn) if seed else None for turn in turns]
        yield reject(batch, pa.array(reasons, pa.string())) if seed else batch


def whole(root: Path, shards: Shards | Sequence[Shard | None], **how: Any) -> pa.Table:
    batches = [batch for shard in shards if shard for batch in read_shard(str(root), shard, **how)]
    return pa.Table.from_batches(batches) if batches else pa.table({})


def every_row(root: Path, on: LocalEngine) -> list[pa.Table]:
    done = on.tracker.finished
    parts = [[shard for verb in done for shard in getattr(verb, part)] for part in ("shards", "rejects", "quarantine")]
    return [whole(root, shards) for shards in parts]


@few_examples
@given(
    texts=st.lists(st.one_of(st.none(), st.text(max_size=40)), max_size=40),
    seeds=st.lists(st.integers(0, 4), min_size=1, max_size=3),
    batch_rows=st.integers(1, 50),
)
@example(texts=[f"text number {number}" for number in range(40)], seeds=[1, 2, 3], batch_rows=3)
def test_layers_read_back_as_what_their_kernels_yielded(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str | None], seeds: list[int], batch_rows: int
) -> None:
    root = tmp_path_factory.mktemp("root")
    base: Shards = (stored(root, table(texts)),)
    plain, layered = base, base
    for turn, seed in enumerate(seeds):
        kernel = partial(edit, seed=seed)
        by_rows, by_layer = engine(root, f"plain{turn}", batch_rows), engine(root, f"layer{turn}", batch_rows)
        plain, layered = by_rows.map(kernel, plain), by_layer.map(kernel, layered, layer=LAYER)
        assert every_row(root, by_layer) == every_row(root, by_rows)
        [expected], [done] = by_rows.tracker.finished, by_layer.tracker.finished
        assert by_layer.rejected == by_rows.rejected
        assert done.schemas == expected.schemas
        assert (done.kept_profile, done.rejects_profile) == (expected.kept_profile, expected.rejects_profile)
        assert layered[0].rows == plain[0].rows
    rows = whole(root, plain)
    choices = (["text"], ["id", "title"], [f"turn_{seeds[0]}", "none"])
    assert [whole(root, layered, columns=columns) for columns in choices] == [
        rows.select([name for name in columns if name in rows.schema.names]) for columns in choices
    ]


def columns_of(root: Path, shard: Shard) -> list[str]:
    return list(pq.read_schema(root / shard.path).names)


def test_a_layer_has_the_new_columns_and_what_differs(tmp_path: Path) -> None:
    long = [("All work and no play. " * 400) + str(row) for row in range(50)]
    base = stored(tmp_path, table(long))
    (shard,) = engine(tmp_path).map(partial(edit, seed=1), (base,), layer=LAYER)
    assert columns_of(tmp_path, shard) == [ROW, "__changed_text", "__changed_chars", "__changed_title", "turn_1"]
    assert shard.below == base.bytes
    facts = facts_of(pq.read_schema(tmp_path / shard.path))
    assert facts is not None
    assert facts.below == base
    changed = pq.read_table(tmp_path / shard.path).column("__changed_text").combine_chunks()
    deltas = [value["value"] for value in changed.to_pylist() if value]
    assert len(deltas) == 10  # of 30 rows that are kept
    assert max(map(len, deltas)) < 100  # of texts of 8,800 characters


def test_what_a_kernel_is_to_store_tells_its_shards_apart(tmp_path: Path) -> None:
    base, on = stored(tmp_path, table(["one", "two", "three"])), engine(tmp_path)
    ways = (LAYER, None, Layer(changes=LAYER.changes, stores=("id",)))
    layer, rows, wider = (on.map(partial(edit, seed=0), (base,), layer=way)[0] for way in ways)
    assert columns_of(tmp_path, rows) == [*ROWS.names, "turn_0"]
    assert columns_of(tmp_path, layer)[0] == ROW
    assert set(columns_of(tmp_path, wider)) - set(columns_of(tmp_path, layer)) == {"id"}


def test_a_kernel_gets_the_columns_that_its_layer_reads_and_those_that_are_profiled(tmp_path: Path) -> None:
    seen: list[list[str]] = []

    def judge(batches: Batches) -> Batches:
        for batch in batches:
            seen.append(batch.schema.names)
            yield batch.append_column("even", pa.array([int(value, 16) % 2 == 0 for value in batch["id"].to_pylist()]))

    base = stored(tmp_path, table(["a", "b"]))
    shards = engine(tmp_path).map(judge, (base,), layer=Layer(reads=("id",)))
    assert seen == [["id", "chars"]]
    assert whole(tmp_path, shards).schema.names == [*ROWS.names, "even"]


def test_a_column_that_a_kernel_computes_again_may_have_no_numbers(tmp_path: Path) -> None:
    """NaN is not equal to itself: a kernel that read the column again looked as if it had changed it."""

    def read_again(batches: Batches) -> Batches:
        for batch in batches:
            scores = pa.array(batch["score"].to_pylist(), pa.float64())
            yield replace_column(batch, "score", scores).append_column("rank", pa.array(range(batch.num_rows)))

    scored = table(["a", "b", "c"]).append_column("score", pa.array([0.5, float("nan"), None]))
    base = stored(tmp_path, scored)
    (shard,) = engine(tmp_path).map(read_again, (base,), layer=Layer())
    assert columns_of(tmp_path, shard) == [ROW, "rank"]


NODES = pa.array([{"at": float("nan"), "n": 1}, {"at": 0.5, "n": 2}, None])


@pytest.mark.parametrize(
    ("again", "is_same"),
    [
        (pa.array([{"at": float("nan"), "n": 1}, {"at": 0.5, "n": 2}, None]), True),
        (pa.array([{"at": float("nan"), "n": 1}, {"at": 0.6, "n": 2}, None]), False),
        (pa.array([{"at": float("nan"), "n": 1}, {"at": 0.5, "n": 3}, None]), False),
        (pa.array([{"at": 0.0, "n": 1}, {"at": 0.5, "n": 2}, None]), False),
        (pa.array([{"at": float("nan"), "n": 1}, {"at": float("nan"), "n": 2}, None]), False),
        (pa.array([{"at": float("nan"), "n": 1}, {"at": 0.5, "n": 2}, {"at": 0.5, "n": 2}]), False),
        (pa.array([1, 2, None]), False),
        (pa.array(["a", "b", None]), False),
    ],
)
def test_a_column_that_a_kernel_changes_without_saying_so_is_refused(
    tmp_path: Path, again: pa.Array, is_same: bool
) -> None:
    def read_again(batches: Batches) -> Batches:
        for batch in batches:
            yield replace_column(batch, "node", again)

    base = stored(tmp_path, table(["a", "b", "c"]).append_column("node", NODES))
    if is_same:
        (shard,) = engine(tmp_path).map(read_again, (base,), layer=Layer())
        assert columns_of(tmp_path, shard) == [ROW]
        assert whole(tmp_path, [shard])["node"].is_null().to_pylist() == [False, False, True]
    else:
        with pytest.raises(ContractError, match=r"\bnode\b"):
            engine(tmp_path).map(read_again, (base,), layer=Layer())


def test_a_column_that_a_kernel_leaves_out_is_gone(tmp_path: Path) -> None:
    def drop(batches: Batches) -> Batches:
        for batch in batches:
            yield batch.drop_columns(["title"])

    base = stored(tmp_path, table(["a", "b"]))
    shards = engine(tmp_path).map(drop, (base,), layer=Layer(reads=("id", "title")))
    assert whole(tmp_path, shards).equals(table(["a", "b"]).drop_columns(["title"]))


def swallow(batches: Batches) -> Batches:
    for batch in batches:
        yield batch.slice(0, 1)


def repeat(batches: Batches) -> Batches:
    for batch in batches:
        yield batch
        yield batch


def overwrite(batches: Batches) -> Batches:
    for batch in batches:
        yield replace_column(batch, "id", pa.array(["x"] * batch.num_rows))


@pytest.mark.parametrize(
    ("kernel", "named"),
    [(swallow, "1 rows"), (repeat, "2 rows"), (overwrite, "id,")],
)
def test_a_kernel_that_breaks_its_layer_is_refused(
    tmp_path: Path, kernel: Callable[[Batches], Batches], named: str
) -> None:
    with pytest.raises(ContractError, match=rf"\b{named}"):
        engine(tmp_path).map(kernel, (stored(tmp_path, table(["a", "b"])),), layer=Layer())


def test_equal_verdicts_on_different_shards_are_different_layers(tmp_path: Path) -> None:
    bases = (stored(tmp_path, table(["a", "b"])), stored(tmp_path, table(["c", "d"])))

    def keep(batches: Batches) -> Iterator[pa.RecordBatch]:
        yield from batches

    shards = engine(tmp_path).map(keep, bases, layer=Layer())
    assert len({shard.digest for shard in shards}) == 2
    assert whole(tmp_path, shards).column("text").to_pylist() == ["a", "b", "c", "d"]


def test_a_layer_over_a_shard_with_fewer_rows_is_refused(tmp_path: Path) -> None:
    long, short = stored(tmp_path, table(["a", "b", "c"])), stored(tmp_path, table(["a"]))
    (shard,) = engine(tmp_path).map(partial(edit, seed=0), (long,), layer=LAYER)
    file = pq.read_table(tmp_path / shard.path)
    said = {key.decode(): value.decode() for key, value in file.schema.metadata.items()}
    said = {key: value.replace(long.digest, short.digest).replace(long.path, short.path) for key, value in said.items()}
    said = {key: value.replace(f'"bytes":{long.bytes}', f'"bytes":{short.bytes}') for key, value in said.items()}
    writer = ShardWriter(file.schema, said)
    for batch in file.to_batches():
        writer.write(batch)
    forged = writer.store(str(tmp_path), "toy/f/data")
    with pytest.raises(ContractError, match=re.escape(f"{tmp_path}/{forged.path} ") + f".*{re.escape(short.path)}"):
        list(read_shard(str(tmp_path), forged))
