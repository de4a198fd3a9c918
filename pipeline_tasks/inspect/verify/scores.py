"""Scores a sample of documents again by the models that a version names, and compares with what is stored."""

import hashlib
import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import inf, isnan, nan
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.binding import bind
from pipeline_tasks.errors import RecipeError, RefineryError
from pipeline_tasks.inspect.verify.findings import Findings, Problem
from pipeline_tasks.inspect.verify.manifests import Committed
from pipeline_tasks.manifest import Manifest, is_shared
from pipeline_tasks.recipe import load_recipe
from pipeline_tasks.run.tasks.state_cost import NO_STATES, StateCost
from pipeline_tasks.run.tasks.task import load_receipt
from pipeline_tasks.scorers.answers import NothingKnown
from pipeline_tasks.scorers.classifier import Classifier
from pipeline_tasks.scorers.report import COMPUTING
from pipeline_tasks.scorers.scorer import Scorer, kind_of, load, tolerance
from pipeline_tasks.stage import FilePath, Shard
from pipeline_tasks.stages.score_quality import STAGE
from pipeline_tasks.stages.score_quality.classifying import MEASURED, classify
from pipeline_tasks.store import storage
from pipeline_tasks.store.files import digest_of_named, localize
from pipeline_tasks.store.reading import read_shards

HEAL = (
    "restore it from a backup; without one, refine the snapshot into another root: layers and caches of this one may "
    "have the same score"
)

NAME_IT = "name its file or folder by --model {name}=PATH"


@dataclass(frozen=True, slots=True)
class Sample:
    """How many documents each classifier scores again, and where models are, by the classifier's name."""

    documents: int = 0
    models: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rescored:
    """A classifier of a manifest whose scores were computed again; `skipped` is why they were not, "" if they were.

    Of the documents `largest` is the largest difference between two scores from 0 to 1, and `tolerance` the largest
    that may be. `hardware` is what computed them again; `computed_by` has rows by the hardware that receipts name.
    `done` is what was done again.
    """

    manifest: str
    classifier: str
    documents: int = 0
    of: int = 0
    largest: float = 0.0
    tolerance: float = 0.0
    hardware: str = ""
    computed_by: Mapping[str, int] = field(default_factory=dict)
    skipped: str = ""
    done: str = "scored"


def classifiers_of(manifest: Manifest) -> Mapping[str, Any]:
    """Return the params of the classifiers of a manifest by name, none for one of another stage."""
    return manifest.params.get("classifiers", {}) if manifest.stage == STAGE.name else {}


def check_scores(root: str, recipe: str, read: Committed, sample: Sample, findings: Findings) -> Iterator[Rescored]:
    """Score a sample of a manifest's documents again by each of its classifiers, and yield what came of it.

    A score that differs by more than is tolerated is a problem. A model that is not to be had, or is another than that
    of the manifest, is no damage of the root: its scores are skipped, and the reason is said.
    """
    manifest, written = read.manifest, classifiers_of(read.manifest)
    shards = (*manifest.shards, *manifest.rejects)
    whole = _is_whole(manifest, root, findings)
    names = [f"score_{name}" for name in sorted(written)]
    documents = drawn(root, shards, sample.documents, manifest.fingerprint, names) if whole and written else []
    states = _states(root, manifest) if written else NO_STATES
    for name in sorted(written):
        rows = sum(shard.rows for shard in shards)
        about = Rescored(read.path, name, of=rows, computed_by=states.hardware.get(name, {}))
        try:
            require_comparable(manifest, STAGE.version, root, findings)
            classifier = _classifier(written[name], _model(name, recipe, sample))
            scorer = load(classifier)
        except (RefineryError, OSError) as error:
            yield replace(about, skipped=str(error))
            continue
        most = tolerance(kind_of(classifier.model), str(classifier.numerics))
        found = [_compared(root, name, document, scorer) for document in documents]
        for each in found:
            findings.count("scores")
            if each.difference > most:
                findings.add(each.problem(most))
        largest = max((each.difference for each in found), default=0.0)
        yield replace(about, documents=len(found), largest=largest, tolerance=most, hardware=scorer.hardware)


def _is_whole(manifest: Manifest, root: str, findings: Findings) -> bool:
    return not any(findings.is_damaged(f"{root}/{shard.path}") for shard in manifest.stored)


def require_comparable(manifest: Manifest, version: int, root: str, findings: Findings) -> None:
    """Raise RecipeError for rows that cannot be compared with what version `version` of their stage computes."""
    if not _is_whole(manifest, root, findings):
        message = "a shard is damaged, which is a problem of its own; heal it first"
        raise RecipeError(message)
    if manifest.version != version:
        message = f"version {manifest.version} of the stage computed them, and this release has version {version}"
        raise RecipeError(message)


# --- Models ---------------------------------------------------------------------------------------------------


def _model(name: str, recipe: str, sample: Sample) -> str:
    """Return where a model is: as it was named, else where the recipe of that name has it; RecipeError if unknown."""
    if name in sample.models:
        return sample.models[name]
    with suppress(RefineryError):
        step = next((step for step in load_recipe(recipe).steps if step.stage == STAGE.name), None)
        known = bind(STAGE, step.params).classifiers if step else {}
        if name in known:
            return str(known[name].model)
    message = f"no recipe {recipe} here says where its model is; {NAME_IT.format(name=name)}"
    raise RecipeError(message)


def _classifier(written: Mapping[str, Any], where: str) -> Classifier:
    """Return the classifier of a manifest with the model at `where`; RecipeError if that is another model."""
    expected, actual = str(written["model"]).removeprefix("sha256:"), digest_of_named(where)
    if actual != expected:
        message = f"{where} is another model: its SHA-256 is {actual}, and the manifest has {expected}"
        raise RecipeError(message)
    known = {name: written[name] for name in COMPUTING if name in written}  # not its bound, nor its check
    return Classifier(FilePath(localize(where, expected)), **known)


def _states(root: str, manifest: Manifest) -> StateCost:
    """Return what computed the rows that a manifest rests on, by the receipts beside them."""
    return states_in(root, manifest, [shard for shard in manifest.below if is_shared(shard.path)])


def states_in(root: str, manifest: Manifest, shards: Iterable[Shard]) -> StateCost:
    """Return what computed the rows of shards that a manifest names, by the receipts beside them."""
    store, named, states = storage.connect(root), {shard.path for shard in manifest.stored}, NO_STATES
    for folder in sorted({shard.path.rpartition("/data/")[0] for shard in shards}):
        for entry in store.list(f"{folder}/receipts"):
            with suppress(RefineryError):  # one that is damaged is a problem of its own
                receipt = load_receipt(store.read(entry.path))
                states += StateCost(receipt.hardware) if receipt.shard.path in named else NO_STATES
    return states


# --- Documents ------------------------------------------------------------------------------------------------


class Document(NamedTuple):
    """A document of the sample: its shard, and its row with `id`, `text` and the stored scores."""

    shard: Shard
    row: pa.RecordBatch


def drawn(
    root: str, shards: Sequence[Shard], count: int, seed: str, columns: Sequence[str], counted: str = ""
) -> list[Document]:
    """Return the documents with the lowest hashes of their ids; another version's `seed` draws others.

    Reads the ids of all documents, and the texts of the shards that have a drawn one. With `counted`, documents are
    drawn of which that column is above 0.
    """
    lowest = heapq.nsmallest(count, _ranked(root, shards, seed, counted))
    ids = pa.array(sorted({key for _, key, _ in lowest}), pa.string())
    found = []
    for at in sorted({at for _, _, at in lowest}):
        for batch in read_shards(root, [shards[at]], ["id", "text", *columns]):
            is_drawn = pc.is_in(batch.column("id"), value_set=ids)
            chosen = batch.filter(pc.and_(is_drawn, pc.not_equal(batch.column("text"), "")))  # an erased one has none
            found += [Document(shards[at], chosen.slice(row, 1)) for row in range(chosen.num_rows)]
    return found


def _ranked(root: str, shards: Sequence[Shard], seed: str, counted: str) -> Iterator[tuple[bytes, str, int]]:
    """Yield the rank and the id of each document, and the number of its shard."""
    for at, shard in enumerate(shards):
        for rows in read_shards(root, [shard], ["id", *([counted] if counted else [])]):
            batch = rows.filter(pc.greater(rows.column(counted), 0)) if counted else rows
            for key in batch.column("id").drop_null().to_pylist():
                yield hashlib.blake2b(f"{seed} {key}".encode(), digest_size=8).digest(), key, at


class Compared(NamedTuple):
    """A document whose score was computed again: NaN is a text without a score."""

    where: str
    document: str
    classifier: str
    stored: float
    again: float
    error: str = ""

    @property
    def difference(self) -> float:
        """How far both scores are apart; infinite if one text has no score."""
        if isnan(self.stored) and isnan(self.again):
            return 0.0
        apart = abs(self.stored - self.again)
        return inf if isnan(apart) else apart

    def problem(self, most: float) -> Problem:
        """Return the problem that it is to be further apart than `most`."""
        words = f"document {self.document}: score_{self.classifier} is not what its model gives (tolerance {most:g})"
        return Problem(self.where, words, self.error or _shown(self.again), _shown(self.stored), HEAL)


def _compared(root: str, name: str, document: Document, scorer: Scorer) -> Compared:
    """Score a document as the stage does."""
    shard, row = document
    (again,) = classify(scorer, iter([row]), NothingKnown(), name=name)
    answer = again.column(MEASURED + name)[0].as_py() or {}
    stored = row.column(f"score_{name}")[0].as_py()
    before, after = (nan if value is None else float(value) for value in (stored, answer.get("score")))
    return Compared(f"{root}/{shard.path}", row.column("id")[0].as_py(), name, before, after, answer.get("error") or "")


def _shown(value: float) -> str:
    return "no score" if isnan(value) else f"{value:.6f}"


# --- Lines ----------------------------------------------------------------------------------------------------


def rescored_lines(rescored: Iterable[Rescored]) -> Iterator[str]:
    """Yield what was scored again, and what was not, as lines for a person."""
    for each in rescored:
        by = ", ".join(f"{hardware} {rows / max(each.of, 1):.0%}" for hardware, rows in each.computed_by.items())
        computed = f" (computed by {by})" if by else ""
        if each.skipped:
            yield f"SKIPPED    scores of {each.classifier} in {each.manifest}{computed}: {each.skipped}"
            continue
        yield (
            f"scores     {each.classifier} in {each.manifest}{computed}: {each.documents:,} of {each.of:,} documents "
            f"{each.done} again on {each.hardware}; largest difference {each.largest:g}, tolerated {each.tolerance:g}"
        )
