"""Answers why a page is not in a dataset, or is: its whole story over all snapshots, by any address, id or words."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any

from pipeline_tasks.ask.answer import Answer
from pipeline_tasks.ask.parts import Column, Note, Part, Table
from pipeline_tasks.ask.question import Question, Role
from pipeline_tasks.constraints import Range
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.search import Bounds, search_texts
from pipeline_tasks.inspect.why.records import (
    IS_GENERATED,
    PUBLISHED,
    Reading,
    Record,
    Snapshot,
    records_of,
    snapshots_of,
    unknown_of,
)
from pipeline_tasks.inspect.why.said import next_steps, unread, verdict
from pipeline_tasks.inspect.why.sought import WWW, Sought, sought
from pipeline_tasks.inspect.why.standing import looked_up, nearest, replaced, standings, taken_down, used
from pipeline_tasks.inspect.why.story import Story
from pipeline_tasks.recipe import is_trial
from pipeline_tasks.schema import PARENT
from pipeline_tasks.store.storage import require_root
from pipeline_tasks.text.urls.addresses import canonical_url
from pipeline_tasks.text.urls.takedown import DOC

HITS = 20
"""Documents with the words that are told of."""

DOCUMENT = re.compile(r"\b[0-9a-f]{32}\b")
"""The id of a document in a proof."""

ON_PAGE = 256_000_000
"""Bytes that a request reads."""


@dataclass(frozen=True, slots=True)
class Params:
    """What is asked about."""

    root: str
    what: Annotated[
        str, "an address in any form, the id of a document or its first digits, or words of its text", "WHAT"
    ]
    most_bytes: Annotated[float, Range(), "bytes that are read at most (default: 0, all)", "N"] = 0
    role: Role = Role.STEWARD


def answer(params: Params) -> Answer:
    """Return the story of a page: curators see what was kept, stewards all of it."""
    require_root(params.root)
    story = _story(params.root, sought(params.what), int(params.most_bytes), kept_only=params.role is not Role.STEWARD)
    nexts = list(next_steps(story, params.root))
    parts = [*verdict(story), *_tables(story), *unread(story), *(Note(step, "next") for step in nexts)]
    return Answer(f"Why: {params.what.strip()}", parts, _facts(story, nexts), [*dict.fromkeys(_shown(story))])


QUESTION = Question(Params, answer, Role.CURATOR, {"most_bytes": ON_PAGE})


def _story(root: str, wanted: Sought, most: int, *, kept_only: bool) -> Story:
    every = [each for each in snapshots_of(root) if not kept_only or each.state == PUBLISHED]
    if not every:
        message = f"{root}: no snapshot is published here, and none was begun; `refinery run` publishes one"
        raise RecipeError(message)
    reading = Reading(most)
    host = _host(wanted)
    if wanted.kind == "text":
        records = list(_with_words(root, every, wanted, reading, kept_only=kept_only))
    else:
        records = list(records_of(root, every, wanted, reading, kept_only=kept_only, host=host))
    records.sort(key=lambda record: (not is_trial(record.of.recipe), record.of.name), reverse=True)
    near = nearest(wanted, reading.hosted) if host and not records else []
    unknown = unknown_of(root, every, wanted, reading)
    uses = used(root, wanted, records, reading)
    gave_way, taken = replaced(root, records), taken_down(root, wanted, records)
    stands = standings(records, gave_way, taken)
    story = Story(wanted, every, records, stands, gave_way, taken, uses, near, unknown, reading, kept_only)
    return story.of_kept if kept_only else replace(story, replaced=looked_up(root, gave_way, every, reading))


def _host(wanted: Sought) -> str:
    """Return the host of an address as its other pages have it, without `www.`; of files, how their addresses begin."""
    if wanted.kind != "address":
        return ""
    scheme, _, rest = canonical_url(wanted.value).partition("://")
    return re.split("[/?#]", rest)[0].removeprefix(WWW) or f"{scheme}:///"


def _with_words(
    root: str, every: Sequence[Snapshot], wanted: Sought, reading: Reading, *, kept_only: bool
) -> Iterator[Record]:
    """Yield the records of documents with words, of versions: their texts have to be read."""
    for snapshot in every:
        if snapshot.version is None:
            continue
        if reading.is_full:
            reading.unread += 1
            continue
        left = reading.most - reading.bytes if reading.most else 0
        search = search_texts(root, snapshot.version, wanted.value, Bounds(0, HITS, left), kept_only=kept_only)
        reading.bytes += search.read
        reading.unread += not search.is_whole
        for name in dict.fromkeys(hit.id for hit in search.hits):
            yield from records_of(root, [snapshot], Sought("document", name), reading, kept_only=kept_only)


# --- Tables -------------------------------------------------------------------------------------------------------

RECORDS = (
    Column("snapshot", kind="version"),
    Column("recipe"),
    Column("outcome", kind="state"),
    Column("stage"),
    Column("reason"),
    Column("because"),
    Column("state", "snapshot is"),
    Column("stands", "it is"),
    Column("id", "document", "id"),
    Column(PARENT, "generated of", "id"),
    Column("crawled_at", "crawled (UTC)", "time"),
    Column("url", "address", "url"),
    Column("note"),
)

REPLACED = (
    Column("snapshot", kind="version"),
    Column("id", "document", "id"),
    Column("became"),
    Column("by", "of", "id"),
    Column("by_snapshot", "of snapshot"),
    Column("where", "which is"),
    Column("by_url", "its address", "url"),
)

USES = (
    Column("recipe", "dataset"),
    Column("version", kind="count"),
    Column("places", kind="count"),
    Column("tokens", kind="count"),
    Column("snapshot", "of snapshot"),
    Column("id", "document", "id"),
    Column("url", "address", "url"),
)

TAKEDOWNS = (
    Column("takedown", kind="count"),
    Column("at", "at (UTC)", "time"),
    Column("state", kind="state"),
    Column("of", kind="names"),
    Column("reason"),
)

NEAREST = (Column("url", "address", "url"), Column("became"))


def _tables(story: Story) -> Iterator[Part]:
    """Yield the tables that have rows; training datasets are always told of, where there is a record."""
    if story.records:
        told = [column for column in RECORDS if column.key != PARENT or any(map(IS_GENERATED, story.records))]
        yield Table(tuple(told), story.rows, "Its records, by snapshot")
    if story.replaced:
        yield Table(REPLACED, [asdict(each) for each in story.replaced], "Documents in its place")
    if story.takedowns:
        yield Table(TAKEDOWNS, [each.facts for each in story.takedowns], "Takedowns that hold of it")
    if story.records or story.uses:
        yield Table(USES, story.uses, "Training datasets that have it", "No training dataset has it.")
    if story.nearest:
        yield Table(NEAREST, story.nearest, "Addresses of the same site that are most like it")


def _shown(story: Story) -> Iterator[str]:
    """Yield the ids of documents that the answer shows: also of those in its place, in proofs, and in datasets."""
    for record in story.records:
        yield from filter(None, [record.id])
        yield from DOCUMENT.findall(record.evidence)
    yield from (name for each in story.replaced for name in (each.id, each.by) if name)
    yield from (str(each.of[DOC]) for each in story.takedowns if DOC in each.of)
    yield from (str(each["id"]) for each in story.uses)


def _facts(story: Story, nexts: Sequence[str]) -> dict[str, Any]:
    """Return the JSON."""
    reading = {
        name: getattr(story.reading, name) for name in ("shards", "bytes", "unread", "records", "nameless", "pageless")
    }
    return {
        "asked": {"kind": story.wanted.kind, "value": story.wanted.value},
        "in_dataset": bool(story.published),
        "records": story.rows,
        "replaced": [asdict(each) for each in story.replaced],
        "takedowns": [each.facts for each in story.takedowns],
        "uses": list(story.uses),
        "nearest": list(story.nearest),
        "snapshots": len(story.snapshots) - len(story.unknown),
        "not_looked_at": [{"recipe": each.recipe, "snapshot": each.name, "note": each.note} for each in story.unknown],
        "read": reading,
        "next": list(nexts),
    }
