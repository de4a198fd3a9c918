"""Toy stages that write and unfold generated texts, as the real ones do, without a model: workers import them from here.

A record of the site `MACHINE` stands for a document that is made of another, whose address has the same last part: it
gets its place and address, and its text with each word written backwards.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline_tasks.schema import GENERATED, GENERATED_TEXTS, GENERATION, LOCATOR, N_GENERATED, OFFSPRING
from pipeline_tasks.stage import Batches, Engine, Layer, Shards, Stage, replace_column
from tests.brought import site

WRITES = "toy_writes"
UNFOLDS = "toy_unfolds"
MACHINE = "//machine.example/"
MODEL, PROMPT = "small@0123456789abcdef", "backwards"


@dataclass(frozen=True, slots=True)
class Params:
    """Nothing to choose."""


def written(text: str) -> str:
    """Return what is generated of a text."""
    return " ".join(word[::-1] for word in text.split())


def write(docs: Batches) -> Batches:
    for batch in docs:
        lists = [[] if is_made(row) else [generated(str(row["text"]))] for row in batch.to_pylist()]
        made = replace_column(batch, GENERATED_TEXTS, pa.array(lists, pa.list_(GENERATED)))
        yield replace_column(made, N_GENERATED, pa.array([len(each) for each in lists], pa.int64()))


def is_made(row: Mapping[str, Any]) -> bool:
    return MACHINE in str(row["url"])


def part_of(row: Mapping[str, Any]) -> str:
    return str(row["url"]).rpartition("/")[2]


def generated(text: str) -> dict[str, Any]:
    own = {"prompt": PROMPT, "prompt_digest": "ab" * 16, "start": 0, "end": len(text), "model": MODEL, "seed": 7}
    counts = {"tokens_in": 9, "tokens_out": 8, "model_license": "Apache-2.0", "stop": "stop", "detail": None}
    return {**own, **counts, "text": written(text)}


def unfold(docs: Batches) -> Batches:
    """Yield the rows of a shard, in which parents are: those that are made of others as their offspring."""
    table = pa.Table.from_batches([*docs])
    rows = table.to_pylist()
    parents = {part_of(row): row for row in rows if not is_made(row)}
    made = [_offspring(row, parents[part_of(row)]) if is_made(row) else _source(row) for row in rows]
    left = [field for field in table.schema if field.name not in (GENERATED_TEXTS, N_GENERATED)]
    yield pa.RecordBatch.from_pylist(made, pa.schema([*left, *OFFSPRING]))


def _source(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**row, "origin": "source", "parent": None, "generation": None}


def _offspring(row: Mapping[str, Any], parent: Mapping[str, Any]) -> dict[str, Any]:
    [made] = parent[GENERATED_TEXTS]
    name = sha256(f"{parent['id']} {made['text']}".encode()).hexdigest()[:32]
    own = {"id": name, "text": made["text"], "title": None, "chars": len(made["text"] or "")}
    own |= {"origin": "generated", "parent": parent["id"]}
    of = {field.name: made[field.name] for field in GENERATION}
    return {**row, **{field.name: parent[field.name] for field in LOCATOR}, **own, "generation": of}


def run_write(shards: Shards, _: Params, on: Engine) -> Shards:
    return on.map(write, shards, layer=Layer(reads=("url", "text"), stores=(GENERATED_TEXTS, N_GENERATED)))


def run_unfold(shards: Shards, _: Params, on: Engine) -> Shards:
    return on.map(unfold, shards)


_READS = pa.schema([*LOCATOR, pa.field("id", pa.string()), pa.field("text", pa.large_string())])

WRITING: Stage[Params] = Stage(
    WRITES,
    run_write,
    Params,
    _READS,
    pa.schema([*_READS, pa.field(GENERATED_TEXTS, pa.list_(GENERATED)), pa.field(N_GENERATED, pa.int64())]),
    1,
    splits=True,
    engine="local",
)

UNFOLDING: Stage[Params] = Stage(
    UNFOLDS, run_unfold, Params, _READS, pa.schema([*_READS, *OFFSPRING]), 1, splits=True, engine="local"
)


@contextmanager
def installed(folder: Path) -> Iterator[None]:
    """Bring the stages as a package of another distribution does, as long as this lasts."""
    with site(folder) as place:
        points = {WRITES: "brought_offspring:WRITING", UNFOLDS: "brought_offspring:UNFOLDING"}
        code = "from tests.offspring_toys import UNFOLDING, WRITING\n"
        place.install("offspring", "refinery.stages", points, code)
        yield
