"""The log of the models that a root publishes, by name: which file, trained on what, and what its check said."""

from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from pipeline_tasks.errors import ContractError, cause
from pipeline_tasks.sealed import sha256
from pipeline_tasks.store import storage
from pipeline_tasks.store.log_chain import Log, append, next_number, read_chain

MODELS = "models"
"""The folder of a root that has trained models, by name."""

SHORT = 16
"""Hex digits of a digest in the name of a file."""


@dataclass(frozen=True, slots=True)
class PublishedModel:
    """A published model: paths below the root of its file or folder and of both reports, and the model's digest.

    `label` is the one whose probability is the score. `outcome` is that of its check; of one that the check refused
    `accepted` says why it is published all the same. `at` is ISO 8601 in UTC.
    """

    number: int
    name: str
    model: str
    digest: str
    kind: str
    label: str
    training: str
    check: str
    outcome: str
    accepted: str
    at: str


def folder_of(name: str, digest: str) -> str:
    """Return the folder of a model and of its reports."""
    return f"{MODELS}/{name}/{digest[:SHORT]}"


def commit_report(root: str, name: str, digest: str, kind: str, body: bytes) -> str:
    """Commit a report about a model below its folder; return its path, which names its content."""
    path = f"{folder_of(name, digest)}/{kind}.{sha256(body)[:SHORT]}.json"
    storage.commit(storage.connect(root), path, body)
    return path


def published_models(root: str, name: str) -> list[PublishedModel]:
    """Return the models that were published by a name, oldest first; ContractError unless their chain is whole."""
    log = log_of(name)
    models = []
    for entry in read_chain(root, log):
        fields = {key: value for key, value in entry.fields.items() if key != "log"}
        try:
            models.append(PublishedModel(**fields))
        except TypeError as error:
            message = f"{root}/{log.entry_path(entry.number)} is no published model ({cause(error)}); {log.way_out}"
            raise ContractError(message) from error
    return models


def publish_model(root: str, model: PublishedModel) -> PublishedModel:
    """Append a model to the log of its name, its number and time set; the last entry if that has the same already."""
    log = log_of(model.name)
    while True:
        chain, known = read_chain(root, log), published_models(root, model.name)
        if known and _content(known[-1]) == _content(model):
            return known[-1]
        fields = {**_content(model), "at": datetime.now(UTC).isoformat()}
        number = next_number(chain)
        if append(root, log, chain, fields):
            return published_models(root, model.name)[number - 1]


def _content(model: PublishedModel) -> dict[str, str]:
    return {name: value for name, value in asdict(model).items() if name not in ("number", "at")}


def log_of(name: str) -> Log:
    """Return the log of the models that are published by a name."""
    folder = f"{MODELS}/{name}/log"
    return Log(
        folder,
        {"log": f"{MODELS}/{name}"},
        f"entry {{number}} of the models {name}",
        f"restore it from a backup, or remove {folder} and publish the model again: recipes name its file, not the log",
    )
