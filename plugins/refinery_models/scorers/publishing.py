"""Trains a quality model below a root, checks it there, and publishes it if its check does not refuse it."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline_tasks.errors import ContractError, GateRefused, RecipeError
from pipeline_tasks.publish.logs.model_log import (
    PublishedModel,
    commit_report,
    folder_of,
    publish_model,
    published_models,
)
from pipeline_tasks.scorers.classifier import Classifier
from pipeline_tasks.scorers.report import REFUSE, CheckReport, refusing_bounds
from pipeline_tasks.sealed import seal, unseal
from pipeline_tasks.stage import FilePath
from pipeline_tasks.store import storage
from pipeline_tasks.store.files import digest_of_named, localize
from refinery_models.scorers.check import check
from refinery_models.scorers.judges import Judge, of_classifier, of_trained
from refinery_models.scorers.texts import read_texts
from refinery_models.scorers.training import TrainingReport, gather, train

WAY_OUT = "train the model again"


@dataclass(frozen=True, slots=True)
class Sources:
    """The texts of both sides, and what a model is made of; `against` is the one to compare with.

    `positives` and `negatives` name texts as `texts.read_texts` does; `@SNAPSHOT` and `@RECIPE:SNAPSHOT` are versions
    of the root itself. Without `against` it is the other model of the same name that was published last.
    """

    positives: Sequence[str]
    negatives: Sequence[str] = ()
    embeddings: str = ""
    against: str = ""
    texts: int = 50_000
    seed: int = 1


def train_below(root: str, name: str, sources: Sources) -> tuple[str, str, TrainingReport]:
    """Train a model and store it below a root, unpublished; return its path, that of its report, and the report.

    The same sources give the same objects. RecipeError for texts or embeddings that make no model.
    """
    old = of_trained(sources.against) if sources.against else None
    examples = gather(of_root(root, sources.positives), of_root(root, sources.negatives), sources.texts, sources.seed)
    embeddings = _local(sources.embeddings) if sources.embeddings else ""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / ("model" if embeddings else "model.bin")
        report = train(examples, embeddings, output, lambda own: old or _last_other(root, name, own), sources.seed)
        path = f"{folder_of(name, report.model)}/{output.name}"
        for file in sorted(output.rglob("*")) if output.is_dir() else [output]:
            below = f"/{file.relative_to(output).as_posix()}" if output.is_dir() else ""
            storage.put_file(root, path + below, file)
    return path, commit_report(root, name, report.model, "training", seal(report)), report


def _local(embeddings: str) -> str:
    try:
        return localize(embeddings, digest_of_named(embeddings))
    except OSError as error:
        message = f"cannot read the embeddings {embeddings} ({error.strerror or error}); name their folder"
        raise RecipeError(message) from error


def of_root(root: str, named: Sequence[str]) -> list[str]:
    """Return the names of texts, those of the root's own versions with the root."""
    return [f"{root}{source}" if source.startswith("@") else source for source in named]


def _last_other(root: str, name: str, digest: str) -> Judge | None:
    """Return the model that was published last by a name and is another: training again gives the same report."""
    others = [model for model in published_models(root, name) if model.digest != digest]
    return of_trained(uri_of(root, others[-1].model)) if others else None


def uri_of(root: str, path: str) -> str:
    """Return the URI of an object, as recipes name it."""
    return f"{root.rstrip('/')}/{path}"


def check_below(
    root: str, name: str, model: str, label: str, sample: Sequence[str], texts: int = 2_000, seed: int = 1
) -> tuple[str, CheckReport]:
    """Check a model that is stored below a root on a sample; return the path of the report, and the report."""
    local = localize(uri_of(root, model), _digest(root, model))
    judge = of_classifier(Classifier(FilePath(local), label=label))
    drawn, inputs = read_texts(of_root(root, sample), texts, seed)
    report = check(judge, drawn, inputs, seed)
    return commit_report(root, name, report.model, "check", seal(report)), report


def require_admitted(root: str, path: str, report: CheckReport, accepted: str = "") -> None:
    """Raise GateRefused, with the bounds, if a check refuses a model and nobody has accepted it."""
    if report.outcome == REFUSE and not accepted:
        message = (
            f"the check refuses the model: {refusing_bounds(report)} (the report is {uri_of(root, path)}); train it on "
            "other texts, or say why it may be published all the same (`accepted`), which the log of models keeps"
        )
        raise GateRefused(message)


def publish_below(root: str, name: str, model: str, training: str, checked: str, accepted: str = "") -> PublishedModel:
    """Publish a model with both reports: one entry of the log of its name, last and once.

    ContractError if a report is of another model; GateRefused if its check refuses it and nobody has accepted it.
    """
    digest = _digest(root, model)
    trained, report = (_read(root, path) for path in (training, checked))
    for path, known in ((training, trained), (checked, report)):
        if known.get("model") != digest:
            message = f"{uri_of(root, path)} is about another model than {model}; {WAY_OUT}"
            raise ContractError(message)
    found = CheckReport(**report)
    require_admitted(root, checked, found, accepted)
    return publish_model(
        root,
        PublishedModel(
            number=0,
            name=name,
            model=model,
            digest=digest,
            kind=found.kind,
            label=str(trained["label"]),
            training=training,
            check=checked,
            outcome=found.outcome,
            accepted=accepted if found.outcome == REFUSE else "",
            at="",
        ),
    )


def _digest(root: str, model: str) -> str:
    try:
        return digest_of_named(uri_of(root, model))
    except OSError as error:
        message = f"{uri_of(root, model)} is not there ({error.strerror or error}); {WAY_OUT}"
        raise RecipeError(message) from error


def _read(root: str, path: str) -> dict[str, Any]:
    try:
        body = storage.connect(root).read(path)
    except FileNotFoundError as error:
        message = f"{uri_of(root, path)} is not there; {WAY_OUT}"
        raise RecipeError(message) from error
    return unseal(body, uri_of(root, path), WAY_OUT)


def recipe_lines(root: str, model: PublishedModel) -> list[str]:
    """Return the lines of a recipe by which a published model scores documents."""
    accepted = f", accepted: {model.accepted!r}" if model.accepted else ""
    named = f"model: {uri_of(root, model.model)}, label: {model.label}, report: {uri_of(root, model.check)}"
    return ["score_quality:", "  classifiers:", f"    {model.name}: {{{named}{accepted}}}"]
