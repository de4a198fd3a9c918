"""A part that breaks a promise fails the suite of its kind, which says what is wrong."""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from refinery_exports import formats
from refinery_exports.format import Format
from refinery_exports.parts import an_export, test_an_export
from refinery_exports.stretch import Stretch
from refinery_exports.testing import check_export
from refinery_sources.parts import a_source
from refinery_sources.source import Flow, Part, Received
from refinery_sources.testing import check_source
from refinery_sources.web import Web
from refinery_sources.whole_part import write_whole

from pipeline_tasks import stages
from pipeline_tasks.demo.parts import a_filter, a_stage
from pipeline_tasks.facets import DEAREST
from pipeline_tasks.filters import Computed
from pipeline_tasks.stage import Batches, Engine, Shards, Stage, reject, replace_column
from pipeline_tasks.testing.filters import check_filter
from pipeline_tasks.testing.stages import check_stage
from pipeline_tasks.testing.training_dataset import Packed

# --- Stages -----------------------------------------------------------------------------------------------------------

TEXTS = pa.table({"text": pa.array(["one", "two\nlines", "long " * 20, "four"], pa.large_string())})


def with_lines(batch: pa.RecordBatch, lines: pa.Array) -> pa.RecordBatch:
    return reject(replace_column(batch, "n_lines", lines), pa.nulls(len(batch), pa.string()))


def dropping(batches: Batches) -> Batches:
    for batch in batches:
        yield with_lines(batch, pa.array([1] * len(batch), pa.int64())).slice(0, max(len(batch) - 1, 0))


def by_the_batch(batches: Batches) -> Batches:
    for batch in batches:
        yield with_lines(batch, pa.array([len(batch)] * len(batch), pa.int64()))


def by_the_shard(batches: Batches) -> Batches:
    whole = pa.Table.from_batches(batches).combine_chunks()
    for batch in whole.to_batches() or [pa.RecordBatch.from_pylist([], whole.schema)]:
        yield with_lines(batch, pa.array([len(whole)] * len(batch), pa.int64()))


def never_the_same(batches: Batches, drawn: np.random.Generator = np.random.default_rng()) -> Batches:  # noqa: B008 -- the fault
    for batch in batches:
        yield with_lines(batch, pa.array(drawn.integers(0, 1 << 60, len(batch)), pa.int64()))


def rejecting(batches: Batches, why: str, proof: str | None) -> Batches:
    for batch in batches:
        counted = replace_column(batch, "n_lines", pa.array([1] * len(batch), pa.int64()))
        yield reject(counted, pa.array([why] * len(batch)), pa.array([proof] * len(batch), pa.string()))


def without_the_column(batches: Batches) -> Batches:
    for batch in batches:
        yield reject(batch, pa.nulls(len(batch), pa.string()))


def with_other_texts(batches: Batches) -> Batches:
    for batch in batches:
        yield of_length(replace_column(batch, "text", pc.utf8_upper(batch["text"])))


def of_texts(batches: Batches) -> Batches:
    yield from map(of_length, batches)


def of_length(batch: pa.RecordBatch) -> pa.RecordBatch:
    return with_lines(batch, pc.utf8_length(batch["text"]).cast(pa.int64()))


def run(shards: Shards, params: a_stage.Params, on: Engine, kernel: Any) -> Shards:
    del params
    return on.map(kernel, shards)


BAD_STAGES = {
    "drops rows": (dropping, {}, "rows"),
    "other rows for another batch": (by_the_batch, {}, "batches of 1 row"),
    "no parts": (by_the_shard, {}, "in two parts"),
    "other values again": (never_the_same, {}, "again"),
    "a reason that no card has": (partial(rejecting, why="bad:why", proof="{}"), {}, "bad:why"),
    "no evidence": (partial(rejecting, why="a_stage:long", proof=None), {}, "no evidence"),
    "a quarantined row": (partial(rejecting, why="error:odd", proof="{}"), {}, "quarantined"),
    "no column that it promises": (without_the_column, {}, "n_lines"),
    "other texts": (with_other_texts, {}, "lacks columns that it changes: .'text'"),
    "made of other columns": (of_texts, {"derived_from": ("url",)}, "`derived_from`"),
    "no cost": (by_the_shard, {"cost": DEAREST}, "`cost`"),
    "no word as a reason": (by_the_shard, {"reasons": ("long",)}, "what:why"),
}


def planted(card: Stage[Any], patch: pytest.MonkeyPatch) -> str:
    patch.setattr(stages, "NAMES", (*stages.NAMES, card.name))
    patch.setitem(sys.modules, f"pipeline_tasks.stages.{card.name}", SimpleNamespace(STAGE=card))
    return card.name


@pytest.mark.parametrize("bad", BAD_STAGES)
def test_a_bad_stage_fails(bad: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, changes, says = BAD_STAGES[bad]
    card = replace(a_stage.STAGE, **{"run": partial(run, kernel=kernel), **changes})
    with pytest.raises(AssertionError, match=says):
        check_stage(planted(card, monkeypatch), TEXTS)


def test_a_good_stage_passes_and_says_what_it_made(monkeypatch: pytest.MonkeyPatch) -> None:
    checked = check_stage(planted(a_stage.STAGE, monkeypatch), TEXTS, {"max_chars": 20})
    assert checked.kept["n_lines"].to_pylist() == [1, 2, 1]
    assert checked.rejects["reason"].to_pylist() == ["a_stage:long"]


def test_a_stage_that_is_not_installed_is_told_so() -> None:
    with pytest.raises(AssertionError, match="pip install"):
        check_stage("a_stage", TEXTS)


# --- Filters ----------------------------------------------------------------------------------------------------------

GOOD = a_filter.FILTER


def signals_by(value: Any) -> Any:
    def compute_signals(texts: pa.Array, languages: pa.Array, words: int, limits: a_filter.Limits) -> Computed:
        del languages, words
        texts = pc.fill_null(texts, "")
        return Computed(np.array(value(texts, limits), np.float64).reshape(-1, 1), texts)

    return replace(GOOD, compute_signals=compute_signals)


BAD_FILTERS = {
    "no number": (signals_by(lambda texts, _: [np.nan] * len(texts)), "finite"),
    "a negative number": (signals_by(lambda texts, _: [-1] * len(texts)), "negative"),
    "a share above 1": (signals_by(lambda texts, _: [2] * len(texts)), "above 1"),
    "by the batch": (signals_by(lambda texts, _: [1 / (1 + len(texts))] * len(texts)), "alone"),
    "by the place": (signals_by(lambda texts, _: [at / 100 for at in range(len(texts))]), "another order"),
    "one row too few": (signals_by(lambda texts, _: [0] * (len(texts) - 1)), "shape"),
    "a bound that changes a signal": (
        signals_by(lambda texts, limits: [0.5 + limits.max_shouted] * len(texts)),
        "bound",
    ),
    "a rule that never fails": (signals_by(lambda texts, _: [0] * len(texts)), "allowed"),
    "no such signal": (replace(GOOD, signals=("other",), shares=()), "no signal"),
    "no such limit": (replace(GOOD, rules=(replace(GOOD.rules[0], limit="most"),)), "no field"),
    "no rules": (replace(GOOD, rules=()), "no rules"),
    "a reason with spaces": (replace(GOOD, name="a filter"), "no reason"),
}


@pytest.mark.parametrize("bad", BAD_FILTERS)
def test_a_bad_filter_fails(bad: str) -> None:
    card, says = BAD_FILTERS[bad]
    with pytest.raises(AssertionError, match=says):
        check_filter(card, {"shouts": "Buy now!!! Only today!!!"})


def test_each_rule_of_a_filter_has_a_text_that_fails_it() -> None:
    check_filter(GOOD, {"shouts": "Buy now!!!"})
    for failing, says in (({}, "shouts"), ({"shouts": "calm"}, "calm"), ({"shouts": "!!!", "more": "!"}, "more")):
        with pytest.raises(AssertionError, match=says):
            check_filter(GOOD, failing)


# --- Exports ----------------------------------------------------------------------------------------------------------


def lines_of(stretch: Stretch) -> Iterator[dict[str, list[int]]]:
    offsets = stretch.offsets
    for at, ids in enumerate(stretch.ids):
        yield {"ids": ids.tolist(), "borders": stretch.borders[offsets[at] : offsets[at + 1]].tolist()}


def write_rows(folder: Path, stem: str, rows: list[dict[str, list[int]]]) -> None:
    (folder / f"{stem}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_without_one(stretch: Stretch, folder: Path, stem: str) -> None:
    write_rows(folder, stem, [*lines_of(stretch)][1:])


def write_without_borders(stretch: Stretch, folder: Path, stem: str) -> None:
    write_rows(folder, stem, [{**row, "borders": [0, len(row["ids"])]} for row in lines_of(stretch)])


def write_other_ids(stretch: Stretch, folder: Path, stem: str) -> None:
    write_rows(folder, stem, [{**row, "ids": row["ids"][::-1]} for row in lines_of(stretch)])


def write_by_chance(stretch: Stretch, folder: Path, stem: str) -> None:
    write_rows(folder, stem, [*lines_of(stretch)])
    (folder / f"{stem}.note").write_text(str(id(stretch)) + str(np.random.default_rng().integers(1 << 60)))


BAD_EXPORTS = {
    write_without_one: "sequences",
    write_without_borders: "borders",
    write_other_ids: "ids",
    write_by_chance: "again",
}


def read(folder: Path, packed: Packed) -> Iterator[tuple[list[int], list[int]]]:
    for path in sorted((folder / "data").glob("*.note")):
        path.rename(folder / path.name)  # of no format
    yield from test_an_export.read(folder, packed)


def plant(card: Format, patch: pytest.MonkeyPatch) -> None:
    """Have a part of every name, which is a card of a test."""
    patch.setattr(formats, "part_of", lambda _seam, _name: SimpleNamespace(load=lambda *_kinds: card))


@pytest.mark.parametrize("write", BAD_EXPORTS)
def test_a_bad_export_fails(write: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(replace(an_export.EXPORT, write=write), monkeypatch)
    with pytest.raises(AssertionError, match=BAD_EXPORTS[write]):
        check_export("bad", read)


def test_a_good_export_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(an_export.EXPORT, monkeypatch)
    check_export("good", test_an_export.read)


# --- Sources ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Believing(a_source.Query):
    """It says of each part what was promised, whatever it has written."""

    def receive(self, web: Web, part: Part, partial: Path, flow: Flow) -> Received:
        return replace(a_source.Query.receive(self, web, part, partial, flow), rows=part.rows)


@dataclass(frozen=True, slots=True)
class Changing(a_source.Query):
    """Each pull has other bytes."""

    def receive(self, web: Web, part: Part, partial: Path, flow: Flow) -> Received:
        del web
        text = str(np.random.default_rng().integers(1 << 60))
        return replace(write_whole(json.dumps({"text": text}).encode() + b"\n", part, partial, flow), rows=1)


@dataclass(frozen=True, slots=True)
class Silent(a_source.Query):
    """It tells nothing of the bytes that it writes."""

    def receive(self, web: Web, part: Part, partial: Path, flow: Flow) -> Received:
        del flow
        return a_source.Query.receive(self, web, part, partial, Flow())


@dataclass(frozen=True, slots=True)
class Unproven(a_source.Query):
    """Its parts promise nothing."""

    def parts(self, web: Web) -> list[Part]:
        return [Part(part.name, part.address) for part in a_source.Query.parts(self, web)]


BAD_SOURCES = {Believing(3): "not whole", Changing(3): "differ", Silent(3): "on_bytes", Unproven(3): "promises no rows"}


@pytest.mark.parametrize("source", BAD_SOURCES, ids=lambda source: type(source).__name__)
def test_a_bad_source_fails(source: a_source.Query) -> None:
    with pytest.raises(AssertionError, match=BAD_SOURCES[source]):
        check_source(source)


def test_a_source_of_nothing_fails() -> None:
    with pytest.raises(AssertionError, match="no file"):
        check_source(a_source.Query(0))


def test_a_cut_query_has_to_be_refused() -> None:
    with pytest.raises(AssertionError, match="not whole"):
        check_source(a_source.Query(3), cut=a_source.Query(2))
