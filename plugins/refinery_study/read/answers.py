"""Stores what readers say of documents, one object per answer, beside the versions that they read."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeVar

from pipeline_tasks.errors import ContractError
from pipeline_tasks.sealed import digest_of, seal, unseal
from pipeline_tasks.store import storage

READINGS = "readings"
"""The folder of a root that has the answers, by recipe."""

LONGEST = 500
"""Characters of a reason."""

Verdict = Literal["good", "bad"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a reader says of a document: `good` if it belongs into the dataset as it is, else `bad`, and why.

    `stage` and `reason` are those of its rejection, empty for a document that was kept. `version` is the prefix of what
    was published. Nothing of the text is in it. `at` is ISO 8601 in UTC.
    """

    recipe: str
    snapshot: str
    version: str
    id: str
    stage: str
    reason: str
    language: str
    verdict: Verdict
    why: str
    reader: str
    at: str

    @property
    def is_kept(self) -> bool:
        """Whether the version has the document."""
        return not self.reason


def save(root: str, answer: Answer) -> str:
    """Commit an answer; return its path. Another answer of the same reader about the document comes beside it."""
    path = f"{READINGS}/{answer.recipe}/{digest_of(answer)}.json"
    storage.commit(storage.connect(root), path, seal(answer))
    return path


def answers(root: str, recipe: str) -> list[Answer]:
    """Return the last answer of each reader about each document of a recipe, in the order in which they were given."""
    last: dict[tuple[str, str, str], Answer] = {}
    for answer in sorted(stored(root, READINGS, recipe, Answer), key=lambda answer: answer.at):
        last.pop(key := (answer.reader, answer.snapshot, answer.id), None)
        last[key] = answer
    return list(last.values())


def stored(root: str, folder: str, recipe: str, kind: type[T]) -> Iterator[T]:
    """Yield the answers of a recipe in a folder of a root, each an object of its own; ContractError for another one."""
    for entry in storage.connect(root).list(f"{folder}/{recipe}/"):
        yield _answer(root, entry.path, kind)  # type: ignore[arg-type]  # mypy takes no type for hashable


@lru_cache(maxsize=10_000)
def _answer(root: str, path: str, kind: type[T]) -> T:
    """Return the answer of a path, which names its content: a page that is shown again reads each once."""
    fields: dict[str, Any] = unseal(storage.connect(root).read(path), path, "remove it: its reader is asked again")
    try:
        return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()})
    except TypeError as error:
        message = f"{path} is no answer of a reader ({error}); remove it"
        raise ContractError(message) from error
