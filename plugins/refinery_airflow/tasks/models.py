"""Sends the requests of the DAG that trains a model of the quality of texts, and logs what they found."""

from collections.abc import Mapping
from typing import Any

from airflow.sdk import Param
from refinery_models.requests import (
    CheckModelReply,
    CheckModelRequest,
    PublishModelReply,
    PublishModelRequest,
    TrainModelReply,
    TrainModelRequest,
)

from refinery_airflow.runs.form import ADVANCED, OPTIONAL, TEXT
from refinery_airflow.tasks.launch import send_logged
from refinery_airflow.tasks.wiring import confined

LIST: Mapping[str, Any] = {"type": ["array", "null"], "items": {"type": "string"}}
"""Type of a field with one name a line."""

NAMED = "files of records (.jsonl, .parquet) with text, language and url, ROOT, or @RECIPE:SNAPSHOT of the root below"


def params_of_training(root: str) -> dict[str, Param]:
    """Return the params of a training, as the form shows them."""
    return {
        "positives": Param(
            [], type="array", items=TEXT, minItems=1, title="Good texts", description=f"One a line: {NAMED}"
        ),
        "negatives": Param(
            None, title="Texts of a crawl", description="The same; empty: nonsense made of the good texts", **LIST
        ),
        "sample": Param(
            None,
            title="Texts to check on",
            description="The same, with labels for a calibration; empty: those of the crawl, else the good ones",
            **LIST,
        ),
        "name": Param("quality", title="Name", description="The name that it is published by", **TEXT),
        "accepted": Param(
            None,
            title="Reason",
            description="Why the model may be published although its check refuses it; stored with it",
            **OPTIONAL,
        ),
        "root": Param(root, section=ADVANCED, description="Root below which it is published", **TEXT, **confined(root)),
        "against": Param(
            None,
            section=ADVANCED,
            description="Model to compare with, or RECIPE:NAME; empty: the one of this name that was published last",
            **OPTIONAL,
        ),
        "embeddings": Param(
            None,
            section=ADVANCED,
            description="Folder of static embeddings to train a head over; empty: fastText",
            **OPTIONAL,
        ),
        "texts": Param(50_000, type="integer", minimum=20, section=ADVANCED, description="Most texts of each side"),
        "seed": Param(1, type="integer", minimum=0, section=ADVANCED, description="The seed that texts are drawn by"),
    }


def train_model(params: Mapping[str, Any], run_id: str) -> TrainModelReply:
    """Train the model of a run's params, and compare it with the old one; return where it and its report are."""
    return send_logged(
        TrainModelRequest(
            params["root"],
            params["name"],
            tuple(params["positives"]),
            tuple(params["negatives"] or ()),
            params["embeddings"] or "",
            params["against"] or "",
            params["texts"],
            params["seed"],
            run_id,
        )
    )


def check_model(params: Mapping[str, Any], run_id: str, trained: TrainModelReply) -> CheckModelReply:
    """Check the trained model; GateRefused, with the bounds, if it may not decide and nobody has accepted it."""
    sample = tuple(params["sample"] or params["negatives"] or params["positives"])
    return send_logged(
        CheckModelRequest(
            params["root"],
            params["name"],
            trained["model"],
            trained["label"],
            sample,
            seed=params["seed"],
            accepted=params["accepted"] or "",
            run_id=run_id,
        )
    )


def publish_model(
    params: Mapping[str, Any], run_id: str, trained: TrainModelReply, checked: CheckModelReply
) -> PublishModelReply:
    """Publish the trained model with both reports; the log has the lines that a recipe names it by."""
    reports = trained["model"], trained["training"], checked["check"]
    accepted = params["accepted"] or ""
    return send_logged(PublishModelRequest(params["root"], params["name"], *reports, accepted, run_id))
