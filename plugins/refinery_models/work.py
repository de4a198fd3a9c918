"""Trains, checks and publishes a model of the quality of texts."""

from dataclasses import asdict
from typing import cast

from refinery_models.requests import (
    CheckModelReply,
    CheckModelRequest,
    PublishModelReply,
    PublishModelRequest,
    TrainModelReply,
    TrainModelRequest,
)
from refinery_models.scorers.lines import check_lines, training_lines


def train(request: TrainModelRequest) -> TrainModelReply:
    """Train a model, and store it below the root with its report."""
    from refinery_models.scorers import publishing as models

    sources = (request.positives, request.negatives, request.embeddings, request.against, request.texts, request.seed)
    path, training, report = models.train_below(request.root, request.name, models.Sources(*sources))
    lines = list(training_lines(asdict(report), path))
    return {"model": path, "training": training, "digest": report.model, "label": report.label, "lines": lines}


def check(request: CheckModelRequest) -> CheckModelReply:
    """Check a stored model; GateRefused if the check refuses it, and nobody has accepted it."""
    from refinery_models.scorers import publishing as models

    drawn = (request.sample, request.texts, request.seed)
    path, report = models.check_below(request.root, request.name, request.model, request.label, *drawn)
    models.require_admitted(request.root, path, report, request.accepted)
    return {"check": path, "outcome": report.outcome, "lines": list(check_lines(asdict(report)))}


def publish(request: PublishModelRequest) -> PublishModelReply:
    """Publish a stored model with both reports."""
    from refinery_models.scorers import publishing as models

    reports = (request.training, request.check)
    published = models.publish_below(request.root, request.name, request.model, *reports, request.accepted)
    lines = models.recipe_lines(request.root, published)
    return cast("PublishModelReply", {**asdict(published), "lines": lines})  # a test compares its keys
