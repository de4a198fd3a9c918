"""Lists the published versions of every recipe: what each has, and whether it still counts."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Annotated

from pipeline_tasks.ask.answer import Answer
from pipeline_tasks.ask.parts import Column, Table
from pipeline_tasks.ask.question import Question
from pipeline_tasks.constraints import OptionalWord
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.unpublished import stopped_runs
from pipeline_tasks.nearest import nearest
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Retraction, Version
from pipeline_tasks.report.summary import read_summary
from pipeline_tasks.store import storage

PUBLISHED, SUPERSEDED, RETRACTED = "published", "superseded", "retracted"
"""States of a version: the newest of its snapshot, followed by a newer one of its snapshot, or taken out."""


@dataclass(frozen=True, slots=True)
class VersionLine:
    """One version of a recipe, for the list.

    `published_at` is the time that its entry has, ISO 8601 in UTC. An entry of an earlier release has none: then it is
    the time of the entry's file (`is_file_time`), which a copy of the root may have changed. `note` says when and why a
    retracted version was retracted, which version follows a superseded one, and what a partial one lacks.
    """

    recipe: str
    number: int
    snapshot: str
    state: str
    documents: int
    tokens: int
    sequences: int
    tokenizer: str
    published_at: str
    is_file_time: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class Params:
    """Of which recipe versions are listed."""

    root: str
    recipe: Annotated[OptionalWord, "recipe, or dataset of a build (default: every one)"] = ""


def answer(params: Params) -> Answer:
    """Return a row per version, the newest of each recipe last."""
    published = version_log.recipes(params.root)
    names = [params.recipe] if params.recipe else published
    if not names or not set(names) <= set(published):
        raise RecipeError(_nothing(params.root, params.recipe))
    lines = [asdict(line) for name in names for line in list_versions(params.root, name)]
    return Answer("Versions", [Table(COLUMNS, lines)])


COLUMNS = (
    Column("recipe"),
    Column("number", "version", "count"),
    Column("snapshot", kind="version"),
    Column("state", kind="state"),
    Column("documents", kind="count"),
    Column("tokens", kind="count"),
    Column("sequences", kind="count"),
    Column("tokenizer", kind="digest"),
    Column("published_at", "published (UTC)", "time"),
    Column("is_file_time", "time of its file", "flag"),
    Column("note"),
)

QUESTION = Question(Params, answer)


def _nothing(root: str, recipe: str) -> str:
    """Return the message for a root, or a recipe, without a version: where its runs stopped, or what is published."""
    others = version_log.recipes(root)
    subject = f"{root}: recipe {recipe} has not been published" if recipe else f"{root} has no published version"
    published = f"{nearest(recipe, others)} (published: {', '.join(others)})" if others else ""
    stopped = stopped_runs(root, recipe)
    return f"{subject}{published}; {stopped or 'publish one with `refinery run ROOT --input ...`'}"


def list_versions(root: str, recipe: str) -> list[VersionLine]:
    """Return the versions of a recipe, the newest last."""
    entries = version_log.log(root, recipe)
    newest = {entry.snapshot: entry for entry in entries}
    times = {entry.path: entry.modified for entry in storage.connect(root).list(f"datasets/{recipe}")}
    return [_line(root, entry, newest[entry.snapshot], times) for entry in entries if isinstance(entry, Version)]


def uncounted(root: str, versions: Iterable[Version]) -> Iterator[VersionLine]:
    """Yield the lines of those versions that do not count any more, as they are superseded or retracted."""
    lines: dict[str, dict[int, VersionLine]] = {}
    for version in versions:
        if version.recipe not in lines:
            lines[version.recipe] = {line.number: line for line in list_versions(root, version.recipe)}
        line = lines[version.recipe][version.number]
        if line.state != PUBLISHED:
            yield line


def _line(root: str, version: Version, newest: Version | Retraction, times: dict[str, float]) -> VersionLine:
    state, note = _state(root, version, newest)
    stored = datetime.fromtimestamp(times[version_log.version_path(version.recipe, version.number)], UTC)
    at = datetime.fromisoformat(version.at) if version.at else stored
    return VersionLine(
        recipe=version.recipe,
        number=version.number,
        snapshot=version.snapshot,
        state=state,
        documents=version.documents,
        tokens=version.tokens,
        sequences=version.sequences,
        tokenizer=version.tokenizer,
        published_at=at.isoformat(timespec="seconds"),
        is_file_time=not version.at,
        note=note,
    )


def _state(root: str, version: Version, newest: Version | Retraction) -> tuple[str, str]:
    if isinstance(newest, Retraction):
        return RETRACTED, newest.account
    if newest.number != version.number:
        return SUPERSEDED, f"version {newest.number} follows it"
    partial = read_summary(root, version).partial
    return PUBLISHED, f"partial: {sum(partial.values()):,} rows failed with their partitions" if partial else ""
