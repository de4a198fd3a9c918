"""Drives a snapshot from landing to a published version by the requests that Airflow's tasks make."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, get_args, is_typeddict

from pipeline_tasks.cards import stage_card
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.recipe import Recipe, load_recipe, parse_recipe
from pipeline_tasks.run.request import RefineRequest, Request
from pipeline_tasks.sealed import path_of
from pipeline_tasks.service.handle import handle
from pipeline_tasks.service.requests.wire import Wire, decode, encode
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import read_manifest, read_shards
from tests.course import Course

PROJECT = Path(__file__).parents[1]

Place = tuple[str, int]
"""A landed record: its file and the offset in it."""


@dataclass(frozen=True, slots=True)
class Chain:
    """One refined snapshot: the path of each stage's sealed manifest, and the version they were published as."""

    root: str
    version: version_log.Version

    def manifest(self, stage: str) -> Manifest:
        return read_manifest(self.root, self.version.manifests[stage])

    def stages(self) -> list[str]:
        """Every stage after `land`, in the recipe's order."""
        return [step.stage for step in load_recipe(self.version.recipe).steps]

    def rows(self, stage: str, part: str = "shards", columns: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """Rows that a stage kept (`shards`), rejected (`rejects`) or quarantined (`quarantine`)."""
        shards = getattr(self.manifest(stage), part)
        return [row for batch in read_shards(self.root, shards, columns) for row in batch.to_pylist()]

    def rejected_rows(self, stage: str, columns: Sequence[str]) -> list[dict[str, Any]]:
        return [*self.rows(stage, "rejects", columns), *self.rows(stage, "quarantine", columns)]

    def by_place(self, stage: str, columns: Sequence[str], part: str = "shards") -> dict[Place, dict[str, Any]]:
        """Rows of a stage by the landed record they were read from."""
        return {(row["file"], row["offset"]): row for row in self.rows(stage, part, ["file", "offset", *columns])}

    def outcomes(self) -> dict[Place, str]:
        """`kept`, or the reason, of every landed record; AssertionError if one has no outcome, or two."""
        outcomes = [(_place(row), "kept") for row in self.rows(self.stages()[-1], columns=["file", "offset"])]
        for stage in self.stages():
            if stage_card(stage).conserves == "rows":
                columns = ["file", "offset", "reason"]
                outcomes += [(_place(row), row["reason"]) for row in self.rejected_rows(stage, columns)]
        places = dict(outcomes)
        assert len(places) == len(outcomes), "a record has two outcomes"
        assert len(places) == self.manifest("ingest").rows_in, "a record has no outcome"
        return places

    def sealed(self) -> dict[str, str]:
        """SHA-256 of every sealed manifest."""
        store = storage.connect(self.root)
        paths = {stage: path_of(self.version.manifests[stage]) for stage in self.stages()}
        return {name: hashlib.sha256(store.read(path)).hexdigest() for name, path in paths.items()}


def _place(row: Mapping[str, Any]) -> Place:
    return row["file"], row["offset"]


@dataclass(frozen=True, slots=True)
class How:
    """How a chain runs; `recipe` is a name or a path; `changes` are params that differ from the recipe's, by stage."""

    recipe: str = "web"
    on: str = "local"
    address: str = ""
    partitions: int = 1
    changes: Mapping[str, Mapping[str, Any]] | None = None
    turns: Iterator[tuple[str, str]] | None = None
    """Name and address of the engine of each stage, one after the other, in place of `on` and `address`."""

    poison: Mapping[str, int] | None = None
    """Stages of which one partition failed every try, with its number from 0."""


def refined(root: str, uri: str, how: How | None = None) -> Chain:
    """Land, refine by every stage of the recipe with all earlier snapshots as history, and publish."""
    how = how or How()
    course = Course(root, _recipe(how), partial(_send, how=how), how.on, how.address, override=None)
    begun = course.begun(reply("land", root=root, input=uri))
    course.publish(begun, course.stages(begun))
    return Chain(root, version_log.current(root, course.recipe.name, begun.snapshot))


def _recipe(how: How) -> Recipe:
    """Return the recipe of a chain, by the name of its file."""
    recipe, changes = load_recipe(how.recipe), how.changes or {}
    steps = tuple(replace(step, params={**step.params, **changes.get(step.stage, {})}) for step in recipe.steps)
    return replace(recipe, name=Path(how.recipe).stem, steps=steps)


def built(root: str, recipe: Recipe, on: str = "local") -> version_log.Version:
    """Build by the requests that the tasks of the DAG make; return the version of the dataset."""
    course = Course(root, recipe, answered, on, override=None)
    begun = course.composed()
    course.publish(begun, course.stages(begun))
    return version_log.current(root, recipe.name)


def build_of(recipe: str, tokenize: Mapping[str, Any], length: int = 64) -> Recipe:
    """Return a small recipe that builds the dataset `corpus` from versions of another."""
    stages = {"tokenize": tokenize, "select": {}, "shuffle": {"buckets": 2}, "pack": {"length": length}}
    return parse_recipe({"name": "corpus", "versions": {"recipe": recipe}, "stages": stages}, "corpus.yaml")


def reply(verb: str, **fields: Any) -> Wire:
    """The reply to a request that is given as its JSON; AssertionError unless it has the keys of its type."""
    return answered(decode({"verb": verb, **fields}))


def answered(request: Request[Any]) -> Wire:
    """The reply to a request; AssertionError unless it has the keys of its type."""
    replied: Wire = handle(request)
    assert_typed(type(request), replied)
    return replied


def assert_typed(kind: type[Request[Any]], replied: Wire) -> None:
    """AssertionError unless a reply has the keys that the type of its request's reply has."""
    if is_typeddict(typed := reply_type(kind)):
        assert typed.__required_keys__ <= replied.keys() <= typed.__required_keys__ | typed.__optional_keys__


def reply_type(kind: type[Request[Any]]) -> Any:
    """The type of the reply to requests of a kind."""
    [base] = vars(kind)["__orig_bases__"]
    return get_args(base)[0]


def requests(common: Mapping[str, Any], how: How) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each stage of the recipe with its request, which still lacks verb, parent and history."""
    recipe = _recipe(how)
    where = {"engine": how.on, "address": how.address, "error_budget": asdict(recipe.error_budget)}
    for step in recipe.steps:
        yield step.stage, {**common, **where, "stage": step.stage, "params": dict(step.params)}


def _send(request: Request[Any], how: How) -> Wire:
    """The reply to a request; a stage is refined by partitions, and each request is sent as JSON."""
    written = json.loads(json.dumps(encode(request)))
    verb = written.pop("verb")
    if verb != RefineRequest.verb:
        return reply(verb, **written)
    if how.turns is not None:
        written["engine"], written["address"] = next(how.turns)
    return _refined(written, how)


def _refined(request: dict[str, Any], how: How) -> dict[str, Any]:
    if how.partitions == 1 or not stage_card(request["stage"]).splits:
        return reply("refine", **request)
    spans = cut(request, how.partitions)
    failed = (how.poison or {}).get(request["stage"])
    for rank, span in reversed(list(enumerate(spans))):  # mapped tasks end in any order
        if rank == failed:
            reply("quarantine", stage={**request, "span": span})
        else:
            reply("refine", **{**request, "span": span})
    return reply("seal", stage=request, spans=spans, poison=[] if failed is None else [spans[failed]])


def cut(request: Mapping[str, Any], partitions: int) -> list[list[int]]:
    spans: list[list[int]] = reply(
        "spans", root=request["root"], parent=request["parent"], stage=request["stage"], partitions=partitions
    )["spans"]
    return spans


def program(folder: Path, request: object, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Answer a request in a process of its own, as a cluster does."""
    path = folder / "request.json"
    path.write_text(json.dumps(request))
    return command("-m", "pipeline_tasks", str(path), **environment)


def command(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run this Python with arguments from the project's folder."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=PROJECT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
