"""Toy stages that generate: one says how many texts each document brings, the next makes documents of them.

A third judges them all. A package brings them as `toy_write`, `toy_unfold` and `toy_judge` (`installed`).
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.cards import SEAM
from pipeline_tasks.facets import UnitCost
from pipeline_tasks.schema import DOCUMENT, LOCATOR, N_GENERATED, OF_GENERATOR, OF_SOURCE, OFFSPRING
from pipeline_tasks.sealed import digest_of
from pipeline_tasks.stage import Batches, Engine, Layer, Shards, Stage, reject, replace_column
from pipeline_tasks.text.base.tables import unchanged
from tests.brought import site

WRITER, UNFOLDER, JUDGE = "toy_write", "toy_unfold", "toy_judge"
"""The names of the stages."""

MOST = 3
"""Texts that a document brings, at most; each third one is rejected."""


@dataclass(frozen=True, slots=True)
class WriteParams:
    """How many texts documents bring: none with `nothing`."""

    nothing: bool = False


def brought(document: str) -> int:
    """Return how many texts a document brings, by its id."""
    return int(document, 16) % (MOST + 1)


def write(batches: Batches, params: WriteParams) -> Batches:
    for batch in batches:
        numbers = [0 if params.nothing else brought(row) for row in batch.column("id").to_pylist()]
        yield replace_column(batch, N_GENERATED, pa.array(numbers, pa.int64()))


def run_write(shards: Shards, params: WriteParams, on: Engine) -> Shards:
    return on.map(partial(write, params=params), shards, layer=Layer(reads=("id",)))


@dataclass(frozen=True, slots=True)
class UnfoldParams:
    """Which documents go on, and what the stage does wrong.

    `lose` loses an offspring of each, `unread` reads no number, `blind` reads it and makes nothing of it, `raise` raises
    on a text with the word poison.
    """

    keep: Literal["both", "generated"] = "both"
    fault: Literal["", "lose", "unread", "blind", "raise"] = ""


def keep_sources(batches: Batches, params: UnfoldParams) -> Batches:
    for batch in batches:
        rows = batch.num_rows
        sources = replace_column(batch.drop_columns([N_GENERATED]), "origin", pa.repeat(pa.scalar(OF_SOURCE), rows))
        for name in ("parent", "generation"):
            sources = replace_column(sources, name, pa.nulls(rows, OFFSPRING.field(name).type))
        reasons = pa.repeat(pa.scalar("toy_unfold:source" if params.keep == "generated" else None, pa.string()), rows)
        yield reject(
            sources, reasons, pa.repeat(pa.scalar("{}" if params.keep == "generated" else None, pa.string()), rows)
        )


def unfold(batches: Batches, params: UnfoldParams) -> Batches:
    for batch in batches:
        numbers = batch.column(N_GENERATED).to_pylist()
        fewer = params.fault == "lose"
        places = [(at, of) for at, number in enumerate(numbers) for of in range(max(number - fewer, 0))]
        yield _offspring(batch.take(pa.array([at for at, _ in places], pa.int64())), [of for _, of in places], params)


def _offspring(parents: pa.RecordBatch, numbers: list[int], params: UnfoldParams) -> pa.RecordBatch:
    if params.fault == "raise" and any(text and "poison" in text for text in parents.column("text").to_pylist()):
        message = "poison"
        raise LookupError(message)
    ids = parents.column("id").to_pylist()
    texts = [f"Generated {of} of {row}." for row, of in zip(ids, numbers, strict=True)]
    made = {
        "id": pa.array([digest_of([row, of], 32) for row, of in zip(ids, numbers, strict=True)], pa.string()),
        "text": pa.array(texts, pa.large_string()),
        "chars": pa.array(map(len, texts), pa.int64()),
        "origin": pa.repeat(pa.scalar(OF_GENERATOR), len(ids)),
        "parent": parents.column("id"),
        "generation": pa.array([{"prompt": "toy", "model": "toy@0"}] * len(ids), OFFSPRING.field("generation").type),
    }
    kept = {*LOCATOR.names, "language"}
    columns = {
        field.name: parents.column(field.name) if field.name in kept else pa.nulls(len(ids), field.type)
        for field in parents.schema
        if field.name != N_GENERATED
    }
    columns |= made
    rows = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
    thirds = pa.array(["toy_unfold:third" if of == MOST - 1 else None for of in numbers], pa.string())
    return reject(rows, thirds, pc.if_else(pc.is_valid(thirds), "{}", pa.scalar(None, pa.string())))


def run_unfold(shards: Shards, params: UnfoldParams, on: Engine) -> Shards:
    if params.fault == "unread":
        return on.map(unchanged, shards, reads=tuple(DOCUMENT.names))
    sources = on.map(partial(keep_sources, params=params), shards, layer=Layer(reads=("id", N_GENERATED)))
    if params.fault == "blind":
        shards = on.map(blinded, shards)
    return tuple(chain.from_iterable(zip(sources, on.map(partial(unfold, params=params), shards), strict=True)))


def blinded(batches: Batches) -> Iterator[pa.RecordBatch]:
    """Yield every row as if it brought no text."""
    for batch in batches:
        yield replace_column(batch, N_GENERATED, pa.repeat(pa.scalar(0, pa.int64()), batch.num_rows))


@dataclass(frozen=True, slots=True)
class JudgeParams:
    """The id of a document on which the kernel raises."""

    poison: str = ""


def judge(batches: Batches, params: JudgeParams) -> Batches:
    for batch in batches:
        if params.poison in batch.column("id").to_pylist():
            raise LookupError(params.poison)
        yield batch


def run_judge(shards: Shards, params: JudgeParams, on: Engine) -> Shards:
    return on.map(partial(judge, params=params), shards, layer=Layer(reads=("id",)))


COST = UnitCost(0.01, 1.0, 1.0, 2)

COUNTED = pa.schema([pa.field(N_GENERATED, pa.int64())])

WRITE = Stage(WRITER, run_write, WriteParams, DOCUMENT, COUNTED, 1, splits=True, engine="local", cost=COST)
UNFOLD = Stage(
    UNFOLDER,
    run_unfold,
    UnfoldParams,
    pa.schema([*DOCUMENT, *COUNTED]),
    OFFSPRING,
    1,
    splits=True,
    engine="local",
    cost=COST,
    conserves="offspring",
    reasons=("toy_unfold:third", "toy_unfold:source"),
    replaces=("toy_unfold:source",),
)
JUDGED = Stage(JUDGE, run_judge, JudgeParams, DOCUMENT, pa.schema([]), 1, splits=True, engine="local", cost=COST)


def ids_of(count: int) -> list[str]:
    """Return ids of documents."""
    return [digest_of(["document", number], 32) for number in range(count)]


def documents(ids: Sequence[str], text: str = "") -> pa.Table:
    """Return documents of these ids, each of a record of its own; those of two tables are of two files."""
    found = [
        {"source": "crawl", "snapshot": "day", "file": ids[0], "offset": at, "id": row, "text": text or f"text {row}"}
        for at, row in enumerate(ids)
    ]
    return pa.Table.from_pylist(found, schema=DOCUMENT)


@contextmanager
def installed(folder: Path) -> Iterator[None]:
    """Have the stages brought by a package, whose metadata is in a new folder."""
    with site(folder) as packages:
        packages.install(
            "offspring",
            SEAM,
            {WRITER: f"{__name__}:WRITE", UNFOLDER: f"{__name__}:UNFOLD", JUDGE: f"{__name__}:JUDGED"},
        )
        yield
