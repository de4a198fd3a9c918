"""Answers why a page is not in a dataset, or is: its whole story over all snapshots, by any address, id or words."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from pipeline_tasks.ask.answer import Answer
from pipeline_tasks.ask.parts import Column, Note, Part, Table
from pipeline_tasks.ask.question import Question, Role
from pipeline_tasks.constraints import Range
from pipeline_tasks.counted import counted
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.document import KEPT
from pipeline_tasks.inspect.search import Bounds, search_texts
from pipeline_tasks.inspect.why.records import PUBLISHED, RETRACTED, Reading, Record, Snapshot, records_of, snapshots_of
from pipeline_tasks.inspect.why.sought import WWW, Sought, sought
from pipeline_tasks.inspect.why.standing import Replaced, nearest, replaced, taken_down, used
from pipeline_tasks.run.sizes import in_bytes
from pipeline_tasks.store.storage import require_root
from pipeline_tasks.text.urls.addresses import canonical_url

HITS = 20
"""Documents with the words that are told of."""

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


@dataclass(frozen=True, slots=True)
class Story:
    """All that is known of what is sought."""

    wanted: Sought
    snapshots: Sequence[Snapshot]
    records: Sequence[Record]
    replaced: Sequence[Replaced]
    takedowns: Sequence[dict[str, object]]
    uses: Sequence[dict[str, object]]
    nearest: Sequence[dict[str, object]]
    reading: Reading
    kept_only: bool

    @property
    def published(self) -> list[Record]:
        """The records that the dataset has: of versions that count, less what gave way to later documents."""
        gone = {(each.id, each.snapshot) for each in self.replaced if each.became == "superseded"}
        return [each for each in self.records if each.is_published and (each.id, each.of.name) not in gone]


def answer(params: Params) -> Answer:
    """Return the story of a page: curators see what was kept, stewards all of it."""
    require_root(params.root)
    story = _story(params.root, sought(params.what), int(params.most_bytes), kept_only=params.role is not Role.STEWARD)
    nexts = list(_next_steps(story, params))
    parts = [*_verdict(story), *_tables(story), *_unread(story), *(Note(step, "next") for step in nexts)]
    documents = [*dict.fromkeys(record.id for record in story.records if record.id)]
    return Answer(f"Why: {params.what.strip()}", parts, _facts(story, nexts), documents)


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
    records.sort(key=lambda record: record.of.name, reverse=True)
    gave_way = [] if kept_only else replaced(root, records, every, reading)
    near = nearest(wanted, reading.hosted) if host and not records else []
    takedowns = [] if kept_only else taken_down(root, wanted, records)
    uses = used(root, wanted, records, reading)
    return Story(wanted, every, records, gave_way, takedowns, uses, near, reading, kept_only)


def _host(wanted: Sought) -> str:
    """Return the host of an address as its other pages have it, without `www.`."""
    if wanted.kind != "address":
        return ""
    return re.split("[/?#]", canonical_url(wanted.value).partition("://")[2])[0].removeprefix(WWW)


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


# --- Words --------------------------------------------------------------------------------------------------------


def _verdict(story: Story) -> Iterator[Part]:
    """Yield the answer in a sentence."""
    published, first = story.published, next(iter(story.records), None)
    if story.takedowns:
        yield Note(_taken(story), "warn")
    if published:
        names = dict.fromkeys(f"{each.of.recipe} {each.of.name}" for each in published)
        yield Note(f"It is in the dataset: {_listed(names)}.")
    elif first is not None:
        yield Note(f"It is not in the dataset. {_because(first, story.replaced)}")
    else:
        yield Note(_nothing(story), "warn")


def _listed(names: Sequence[str] | dict[str, None], most: int = 3) -> str:
    known = [*names]
    return ", ".join(known[:most]) + (f" and {len(known) - most:,} more" if len(known) > most else "")


def _taken(story: Story) -> str:
    [first, *_] = story.takedowns
    return f"It is {first['state']}, by takedown {first['takedown']} of {str(first['at'])[:10]}: {first['reason']}"


def _because(record: Record, gave_way: Sequence[Replaced]) -> str:
    of = f"{record.of.recipe} {record.of.name}"
    later = [each for each in gave_way if (each.id, each.snapshot) == (record.id, record.of.name)]
    if record.outcome != KEPT:
        said = f"Its newest record, of {of}, was {record.outcome} by `{record.stage}`: {record.reason}."
        return f"{said} {_copied(later[0])}" if later else said
    if record.of.state == RETRACTED:
        return f"Every stage of {of} kept it, and the snapshot was {record.of.note}."
    if record.of.state != PUBLISHED:
        return f"Every stage so far of {of} kept it, and its run has published nothing: {record.of.note}."
    return f"{of} kept it, and a document of {later[0].by_snapshot} superseded it." if later else ""


def _copied(copy: Replaced) -> str:
    where = f", {copy.where}" if copy.where else ""
    return f"Its text is that of {copy.by_url or copy.by} of {copy.by_snapshot}{where}."


def _nothing(story: Story) -> str:
    """Return the sentence on what was not found: of all records, what did not land in a snapshot is in none."""
    snapshots, words = counted(len(story.snapshots), "snapshot"), story.wanted.words
    if story.kept_only:
        return f"No kept document of {snapshots} has {words}. What stages rejected is shown to stewards."
    if story.reading.unread:
        return f"No record that was read has {words}."
    if story.wanted.kind == "text":
        return f"No text of {snapshots} has {words}, kept or rejected."
    read = f"{counted(story.reading.records, 'record')} of {snapshots}"
    return f"Nothing that landed has {words}: {read} were looked at, each of them kept or rejected."


def _unread(story: Story) -> Iterator[Part]:
    reading = story.reading
    if reading.unread:
        parts = counted(reading.unread, "part was", "parts were")
        yield Note(f"{in_bytes(reading.bytes)} were read; {parts} not: the command without a bound reads all.", "warn")


def _next_steps(story: Story, params: Params) -> Iterator[str]:
    """Yield what a person may do."""
    root, first = params.root, next(iter(story.records), None)
    if story.takedowns:
        if all(each["state"] == "taken down" for each in story.takedowns):
            yield f"`refinery takedown {root} --undo` takes a takedown back; it holds from the next run on."
        return
    if first is None:
        yield from _not_found(story, root)
    elif first.outcome == KEPT and first.of.state == RETRACTED:
        yield f"`refinery retract --undo {first.of.name} {root} --recipe {first.of.recipe}` brings the snapshot back."
    elif first.id:
        named = f"{first.id} {root} --recipe {first.of.recipe}"
        snapshot = f"--snapshot {first.of.name}"
        if first.of.version:
            yield f"`refinery document {named} {snapshot}` shows every value that a stage measured on it."
        if any(each.id == first.id for each in story.replaced):
            yield f"`refinery look duplicates {named}` shows both texts, and where they differ."
        elif first.outcome == "rejected" and first.of.version:
            yield f"`refinery whatif {root} --recipe {first.of.recipe} {snapshot}` says what other bounds would keep."


def _not_found(story: Story, root: str) -> Iterator[str]:
    if story.nearest:
        yield "Ask for one of the addresses above, if it is the page that you mean."
    if story.wanted.kind == "text":
        yield "Ask for fewer words, or for the address: a stage may have cut or changed the words."
    elif not story.kept_only and not story.reading.unread:
        yield f"It has to land first: `refinery look sources {root}` says what has landed of each source."


# --- Tables -------------------------------------------------------------------------------------------------------

RECORDS = (
    Column("snapshot", kind="version"),
    Column("recipe"),
    Column("outcome", kind="state"),
    Column("stage"),
    Column("reason"),
    Column("because"),
    Column("state", "snapshot is"),
    Column("id", "document", "id"),
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
        yield Table(RECORDS, [record.facts for record in story.records], "Its records, by snapshot")
    if story.replaced:
        yield Table(REPLACED, [asdict(each) for each in story.replaced], "Documents in its place")
    if story.takedowns:
        yield Table(TAKEDOWNS, story.takedowns, "Takedowns that hold of it")
    if story.records or story.uses:
        yield Table(USES, story.uses, "Training datasets that have it", "No training dataset has it.")
    if story.nearest:
        yield Table(NEAREST, story.nearest, "Addresses of the same site that are most like it")


def _facts(story: Story, nexts: Sequence[str]) -> dict[str, Any]:
    """Return the JSON."""
    reading = {name: getattr(story.reading, name) for name in ("shards", "bytes", "unread", "records")}
    return {
        "asked": {"kind": story.wanted.kind, "value": story.wanted.value},
        "in_dataset": bool(story.published) and not story.takedowns,
        "records": [record.facts for record in story.records],
        "replaced": [asdict(each) for each in story.replaced],
        "takedowns": list(story.takedowns),
        "uses": list(story.uses),
        "nearest": list(story.nearest),
        "snapshots": len(story.snapshots),
        "read": reading,
        "next": list(nexts),
    }
