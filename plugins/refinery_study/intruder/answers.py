"""Stores which document readers took for the foreign one, one object per answer, and says how often they were right."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.sealed import digest_of, seal
from pipeline_tasks.store import storage
from refinery_study.intruder.drawing import Draw
from refinery_study.read.answers import stored
from refinery_study.read.shares import Agreement, Judged, Share, agreement_of, share_of

INTRUDERS = "intruders"
"""The folder of a root that has the answers, by recipe."""


@dataclass(frozen=True, slots=True)
class IntruderAnswer:
    """Which of the documents `ids` a reader took for the foreign one, which was `foreign`, of the group `other`.

    `by` is the grouping, `group` that of the four. `version` is the prefix of what was published. Nothing of a text is
    in it. `at` is ISO 8601 in UTC.
    """

    recipe: str
    snapshot: str
    version: str
    by: str
    group: str
    other: str
    seed: int
    ids: tuple[str, ...]
    foreign: str
    chosen: str
    reader: str
    at: str

    @property
    def is_right(self) -> bool:
        """Whether it is the foreign document."""
        return self.chosen == self.foreign


@dataclass(frozen=True, slots=True)
class Found:
    """How often readers found the foreign document: of all draws of a grouping, by group, and by reader.

    A draw counts once, by the share of its readers who are right; how far they agree is a fact of its own.
    """

    whole: Share
    groups: tuple[Share, ...]
    readers: tuple[Share, ...]
    agreement: Agreement


def save(root: str, version: Version, by: str, draw: Draw, chosen: str, reader: str) -> IntruderAnswer:
    """Commit an answer that is given now. An answer is never replaced: another one comes beside it."""
    answer = IntruderAnswer(
        recipe=version.recipe,
        snapshot=version.snapshot,
        version=version.prefix,
        by=by,
        group=draw.group,
        other=draw.other,
        seed=draw.seed,
        ids=draw.ids,
        foreign=draw.foreign,
        chosen=chosen,
        reader=reader,
        at=datetime.now(UTC).isoformat(timespec="microseconds"),
    )
    storage.commit(storage.connect(root), f"{INTRUDERS}/{version.recipe}/{digest_of(answer)}.json", seal(answer))
    return answer


def answers(root: str, recipe: str, by: str = "") -> list[IntruderAnswer]:
    """Return the first answer of each reader to each draw, in the order in which they were given; of a grouping or all.

    Who has answered has seen which document was foreign, so a second answer of theirs counts for nothing.
    """
    first: dict[tuple[str, str, tuple[str, ...]], IntruderAnswer] = {}
    for answer in sorted(stored(root, INTRUDERS, recipe, IntruderAnswer), key=lambda answer: answer.at):
        if by in ("", answer.by):
            first.setdefault((answer.reader, answer.by, answer.ids), answer)
    return list(first.values())


def found(given: Sequence[IntruderAnswer]) -> Found:
    """Return the shares of right answers."""
    return Found(
        share_of("all", _judged(given)), _shares(given, "group"), _shares(given, "reader"), agreement_of(_judged(given))
    )


def _judged(given: Iterable[IntruderAnswer]) -> Judged:
    return (((answer.by, answer.ids), answer.is_right) for answer in given)


def _shares(given: Sequence[IntruderAnswer], key: str) -> tuple[Share, ...]:
    parts: dict[str, list[IntruderAnswer]] = {}
    for answer in given:
        parts.setdefault(getattr(answer, key), []).append(answer)
    return tuple(share_of(name, _judged(parts[name])) for name in sorted(parts))
