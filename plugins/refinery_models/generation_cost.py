"""Foretells what it costs to have a model write of documents: a real sample is written, and kept for the run."""

import hashlib
import heapq
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.binding import bind
from pipeline_tasks.cards import stage_card
from pipeline_tasks.conditions import columns_read
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.generators import kinds
from pipeline_tasks.generators.prompt import read_prompts
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.recipe import Recipe, Step
from pipeline_tasks.run.plan import resources_of
from pipeline_tasks.run.recipe_faults import local_params
from pipeline_tasks.run.tasks.model_budget import HOUR, NO_HOURS, ModelBudget
from pipeline_tasks.run.tasks.row_cache import KnownRows
from pipeline_tasks.run.tasks.row_parts import RowParts
from pipeline_tasks.run.tasks.task import StageIO
from pipeline_tasks.run.tracker import Tracker
from pipeline_tasks.schema import N_GENERATED
from pipeline_tasks.stage import Parts, Shard
from pipeline_tasks.stages import rephrase
from pipeline_tasks.stages.rephrase.writing import Asked, digest_of_model, written_of
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import commit_slot, read_manifest, read_shards

pc: Any = pyarrow.compute


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a sample says of all documents of a manifest.

    Of its `documents`, `chosen` meet the conditions, with `chars` characters. Of those `sampled` were written of:
    `requests`, of which `known` were known before and took no time. What is not of the sample is `expected` of all that
    are chosen, by their characters; `seconds` are of one model, without the seconds that it takes to `load`. They are
    None if all was known.
    """

    manifest: str
    documents: int
    chosen: int
    chars: int
    sampled: int
    requests: int
    known: int
    failed: int
    load: float
    hardware: str
    model: str
    expected_requests: int
    expected_tokens_in: int
    expected_tokens_out: int
    expected_seconds: float | None

    @property
    def seconds_per_thousand(self) -> float | None:
        """Seconds for 1,000 documents that are chosen."""
        return None if self.expected_seconds is None else self.expected_seconds / max(self.chosen, 1) * 1000

    @property
    def hours(self) -> float | None:
        """Hours of one model for all."""
        return None if self.expected_seconds is None else self.expected_seconds / HOUR


class _Drawn(NamedTuple):
    """How many documents there are and are chosen, their characters, and the texts of the sample."""

    documents: int
    chosen: int
    chars: int
    texts: list[str]


def writing_step(recipe: Recipe) -> Step:
    """Return the step that has a model write; RecipeError for a recipe without one."""
    step = next((step for step in recipe.steps if N_GENERATED in stage_card(step.stage).writes.names), None)
    if step is None:
        message = f"recipe {recipe.name} has no stage that has a model write; add `{rephrase.STAGE.name}`"
        raise RecipeError(message)
    return step


def newest_input(root: str, recipe: Recipe) -> str:
    """Return the newest committed manifest of the stage before; RecipeError where there is none."""
    before = recipe.steps[[step.stage for step in recipe.steps].index(writing_step(recipe).stage) - 1].stage
    store = storage.connect(root)
    entries = {entry.path: entry.modified for entry in store.list(before)}
    slots = {commit_slot(store, before, path.split("/")[1]) for path in entries if path.count("/") > 1}
    committed = sorted(path for path in slots if path in entries)
    if not committed:
        message = f"{root} has no manifest of {before}, whose documents are read; run the recipe up to there first"
        raise RecipeError(message)
    return max(committed, key=lambda path: entries[path])


def estimate(root: str, recipe: Recipe, path: str, count: int, seed: int) -> Estimate:
    """Write of a sample of the documents of a manifest, and return what all of them would take."""
    step, manifest = writing_step(recipe), read_manifest(root, path)
    params: Any = local_params(step)
    drawn = _drawn(root, manifest, params, count, seed)
    began = time.perf_counter()
    generator = kinds.load(params.generator, params.sampling)
    load, digest = time.perf_counter() - began, digest_of_model(generator)
    plan = rephrase.plan_of(params, read_prompts(params.prompts))
    asked = [plan.asked(text, digest) for text in drawn.texts]
    kept = _kept_rows(root, step, generator.hardware)
    known = _count_known(kept, asked)
    began = time.perf_counter()
    written = [each for document in written_of(generator, asked, kept) for each in document]
    seconds = time.perf_counter() - began
    kept.store()
    fresh = len(written) - known
    scale = drawn.chars / max(sum(map(len, drawn.texts)), 1)
    return Estimate(
        manifest=path,
        documents=drawn.documents,
        chosen=drawn.chosen,
        chars=drawn.chars,
        sampled=len(drawn.texts),
        requests=len(written),
        known=known,
        failed=sum(each["text"] is None for each in written),
        load=load,
        hardware=generator.hardware,
        model=generator.name,
        expected_requests=round(len(written) * scale),
        expected_tokens_in=round(sum(each["tokens_in"] for each in written) * scale),
        expected_tokens_out=round(sum(each["tokens_out"] for each in written) * scale),
        expected_seconds=seconds / fresh * len(written) * scale if fresh else None,
    )


def _kept_rows(root: str, step: Step, hardware: str) -> RowParts:
    """Return the cache of the stage's model: what the sample costs, the run does not pay again."""
    card = stage_card(step.stage)
    params, resources = resources_of(card, bind(card, step.params))
    stage_io = StageIO(root, f"{step.stage}/cost", files=tuple(resources.items()))
    state = Tracker(stage_io).state(rephrase.loading(params), Parts(rephrase.CACHE))
    return RowParts(root, state.cache, "cost", KnownRows(root, state.known), hardware, ModelBudget(root, NO_HOURS))


def _count_known(kept: RowParts, asked: Sequence[Sequence[Asked]]) -> int:
    keys = pa.array([each.key for document in asked for each in document], pa.large_string())
    return int(pc.sum(kept.rows(keys).column("known")).as_py() or 0)


def _drawn(root: str, manifest: Manifest, params: rephrase.Params, count: int, seed: int) -> _Drawn:
    """Return the documents with the lowest hashes of their ids among those that meet the conditions."""
    columns = list(dict.fromkeys(("id", "text", *columns_read(params.where))))
    lowest: list[tuple[bytes, str]] = []
    documents = chosen = chars = 0
    for key, text, is_chosen in _documents(root, manifest.shards, columns, params):
        documents += 1
        if is_chosen and text.strip():
            chosen, chars = chosen + 1, chars + len(text)
            rank = hashlib.blake2b(f"{seed} {key}".encode(), digest_size=8).digest()
            lowest.append((rank, text))
            if len(lowest) >= 2 * count:
                lowest = heapq.nsmallest(count, lowest)
    return _Drawn(documents, chosen, chars, [text for _, text in heapq.nsmallest(count, lowest)])


def _documents(
    root: str, shards: Sequence[Shard], columns: list[str], params: rephrase.Params
) -> Iterator[tuple[str, str, bool]]:
    """Yield the id and the text of each document, and whether it meets the conditions."""
    for batch in read_shards(root, shards, columns):
        texts = batch.column("text").to_pylist()
        is_chosen = rephrase.chosen(batch, params.where)
        yield from zip(batch.column("id").to_pylist(), (text or "" for text in texts), is_chosen, strict=True)
