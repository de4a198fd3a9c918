"""Says in words what became of a page: the verdict, what could not be looked at, and what a person may do next."""

import re
import shlex
from collections.abc import Iterator, Sequence

from pipeline_tasks.ask.parts import Note, Part
from pipeline_tasks.cards import known_card
from pipeline_tasks.counted import counted
from pipeline_tasks.facets import NO_COPIES
from pipeline_tasks.inspect.document import KEPT
from pipeline_tasks.inspect.why.records import PUBLISHED, RETRACTED, Record, Snapshot
from pipeline_tasks.inspect.why.sought import LEAST, WHOLE
from pipeline_tasks.inspect.why.standing import GONE, IN, SUPERSEDED, TAKEN_DOWN, TRIAL, Replaced, Taken
from pipeline_tasks.inspect.why.story import Story, listed, named
from pipeline_tasks.run.sizes import in_bytes
from pipeline_tasks.text.urls.takedown import DOC

OPTIONS = {DOC: "document"}
"""Options that name what was taken down, where they are no word of the list itself."""

_NAME = re.compile(r"[\w.:/-]+")
"""The name of a record, as SQL and a shell take it between quotes."""

TAKEDOWNS = 3
"""Takedowns that are told of in words; the table has all."""


def verdict(story: Story) -> Iterator[Part]:
    """Yield the answer in a sentence, after those on takedowns."""
    for taken in story.takedowns[:TAKEDOWNS]:
        yield Note(_taken(story, taken), "warn")
    if story.published:
        yield Note(_published(story))
    elif story.records:
        yield Note(f"It is not in the dataset. {_because(story)}{_in_trial(story)}".strip())
    else:
        yield Note(_nothing(story), "warn")


def _published(story: Story) -> str:
    """Return where it is; of several documents with an id or words how many are, and how many generated of it."""
    where, made = listed(_snapshots(story.published)), story.generated
    if made:
        own = len(story.published) > len(made)
        of_it = f"{counted(len(made), 'document')} generated of it {'is' if len(made) == 1 else 'are'}"
        return f"It is in the dataset, and {of_it}: {where}." if own else f"It is not in the dataset; {of_it}: {where}."
    documents, known = named(story.records), named(story.published)
    if story.wanted.kind == "address" or len(known) == len(documents):
        return f"It is in the dataset: {where}."
    are = "is" if len(known) == 1 else "are"
    return f"{len(known):,} of {len(documents):,} documents with {story.wanted.words} {are} in the dataset: {where}."


def _snapshots(records: Sequence[Record]) -> list[str]:
    return [*dict.fromkeys(f"{each.of.recipe} {each.of.name}" for each in records)]


def _taken(story: Story, taken: Taken) -> str:
    subject = story.subject(taken)
    are = "are" if ", " in subject else "is"
    return f"{subject} {are} {taken.state}, by takedown {taken.number} of {taken.at[:10]}: {taken.reason}"


def _in_trial(story: Story) -> str:
    """Return the sentence on trials, from which nothing is published."""
    trials = _snapshots(story.that_stand(TRIAL))
    return f" It is in a trial, which is no part of the dataset: {listed(trials)}." if trials else ""


def _because(story: Story) -> str:
    """Return why its newest record is not in the dataset; of a trial there is no more to say."""
    record, stands = story.records[0], story.stands[0]
    of = f"{record.of.recipe} {record.of.name}"
    gave_way = [each for each in story.replaced if (each.id, each.snapshot) == (record.id, record.of.name)]
    if record.outcome != KEPT:
        said = f"Its newest record, of {of}, was {record.outcome} by `{record.stage}`: {record.reason}."
        return f"{said} {_copied(record.stage, gave_way[0])}" if gave_way else said
    if record.of.state == RETRACTED:
        return f"Every stage of {of} kept it, and the snapshot was {record.of.note}."
    if record.of.state != PUBLISHED:
        return f"Every stage so far of {of} kept it, and its run has published nothing: {record.of.note}."
    return _gone(of, stands, [each for each in gave_way if each.became == SUPERSEDED])


def _gone(of: str, stands: str, later: Sequence[Replaced]) -> str:
    """Return why a published record is not in the dataset any more."""
    if stands == GONE:
        return f"{of} kept it, and it is {GONE}: why is shown to stewards."
    if stands == SUPERSEDED and later:
        return f"{of} kept it, and a document of {later[0].by_snapshot} superseded it."
    return "" if stands in (IN, TRIAL) else f"{of} kept it, before it was {stands}."


def _copied(stage: str, copy: Replaced) -> str:
    where = f", {copy.where}" if copy.where else ""
    card = known_card(stage)
    copies = card.copies if card else NO_COPIES
    near = "Its text is nearly that of" if copies.over_snapshots else "In its place is that of"
    return f"{'Its text is that of' if copies.equal else near} {copy.by_url or copy.by} of {copy.by_snapshot}{where}."


def _nothing(story: Story) -> str:
    """Return the sentence on what was not found: of all records, what did not land in a snapshot is in none."""
    words, reading = story.wanted.words, story.reading
    snapshots = counted(len(story.snapshots) - len(story.unknown), "snapshot")
    if story.kept_only:
        return f"No kept document of {snapshots} has {words}. What stages rejected is shown to stewards."
    if reading.unread:
        return f"No record that was read has {words}."
    if story.wanted.kind == "text":
        return f"No text of {snapshots} has {words}, kept or rejected."
    read = f"{counted(reading.records, 'record')} of {snapshots} were looked at"
    if story.unknown:
        return f"No record that is known has {words}: {read}{_nameless(story)}."
    return f"Nothing that landed has {words}: {read}, each of them kept or rejected{_nameless(story)}."


def _nameless(story: Story) -> str:
    """Return how many records have nothing that could be looked at, and why."""
    reading, name = story.reading, "address" if story.wanted.kind == "address" else "id"
    damaged = f", and {counted(reading.nameless, 'damaged one')} without an {name}" if reading.nameless else ""
    have = counted(reading.pageless, "record has", "records have")
    sound = f"; {have} no {name}, being of no page (as warcinfo) or a text alone" if reading.pageless else ""
    return f"{damaged}{sound}"


def unread(story: Story) -> Iterator[Part]:
    """Yield what was not looked at: parts behind a bound, and snapshots that a page may be in, if it is in none."""
    reading = story.reading
    for each in () if story.published else story.unknown:
        yield Note(f"Not looked at: {each.recipe} {_unknown(story, each)}.", "warn")
    if reading.unread:
        parts = counted(reading.unread, "part was", "parts were")
        yield Note(f"{in_bytes(reading.bytes)} were read; {parts} not: the command without a bound reads all.", "warn")


def _unknown(story: Story, each: Snapshot) -> str:
    if story.wanted.kind == "text":
        return f"{each.name}, whose run has published nothing: words are looked for in what is published"
    return each.unread


def next_steps(story: Story, root: str) -> Iterator[str]:
    """Yield what a person may do."""
    if story.takedowns:
        if all(each.state == TAKEN_DOWN for each in story.takedowns):
            kind, value = next(iter(story.takedowns[0].of.items()))
            asked = f"{root} --undo --{OPTIONS.get(kind, kind)} {shlex.quote(str(value))}"
            yield f"`refinery takedown {asked} --reason WHY` takes it back; it holds from the next run on."
        return
    if story.records:
        if story.wanted.is_beginning and (count := len(named(story.records))) > 1:
            yield f"{count:,} ids begin with {story.wanted.value}: name more digits to ask for one of them."
        yield from _with_record(story, story.records[0], root)
    else:
        yield from _not_found(story, root)
    if story.unknown and not story.published:
        yield f"Ask again once it is known. {story.unknown[0].name} {story.unknown[0].note}"


def _with_record(story: Story, first: Record, root: str) -> Iterator[str]:
    if first.outcome == KEPT and first.of.state == RETRACTED:
        yield f"`refinery retract --undo {first.of.name} {root} --recipe {first.of.recipe}` brings the snapshot back."
    elif first.id:
        asked = f"{first.id} {root} --recipe {first.of.recipe}"
        snapshot = f"--snapshot {first.of.name}"
        if first.of.version:
            yield f"`refinery document {asked} {snapshot}` shows every value that a stage measured on it."
        if any(each.id == first.id for each in story.replaced):
            yield f"`refinery look duplicates {asked}` shows both texts, and where they differ."
        elif first.outcome == "rejected" and first.of.version:
            yield from _other_bounds(first, f"{root} --recipe {first.of.recipe} {snapshot}")
    elif first.outcome != KEPT:  # before documents have ids
        asked = f"{root} --recipe {first.of.recipe} --snapshot {shlex.quote(first.of.name)} --stage {first.stage}"
        alike = f"`refinery rejects {asked} --reason {shlex.quote(first.reason)}`"
        yield f"{alike} counts the records of this reason, and with `--to FOLDER` writes them with their evidence."


def _other_bounds(first: Record, asked: str) -> Iterator[str]:
    """Yield how to ask what other bounds of the stage that rejected a record would keep, if it has any."""
    from pipeline_tasks.inspect.whatif import JUDGE

    card = known_card(first.stage)
    if first.stage == JUDGE:
        yield f"`refinery whatif {asked}` says what other bounds would keep."
    elif card and card.bounds:
        yield f"`refinery whatif {asked} --set {first.stage}.PARAM=VALUE` says what another bound would keep."


def _by_record(name: str, root: str) -> str:
    """Return the command that finds the document of a record by its own id, in the version published last."""
    views = [f"(FROM {view} SELECT id, url, record_id)" for view in ("kept", "rejects")]
    return f"""refinery sql {root} "FROM ({" UNION ALL ".join(views)}) WHERE record_id = '{name}'\""""


def _not_found(story: Story, root: str) -> Iterator[str]:
    if story.nearest:
        yield "Ask for one of the addresses above, if it is the page that you mean."
    if story.wanted.may_be_id:
        yield f"If it is the beginning of an id, name {LEAST} digits or more of its {WHOLE}."
    if story.wanted.is_beginning:
        asked = shlex.quote(f'"{story.wanted.value}"')
        yield f"If it is a word of a text, `refinery why {asked} {root}` looks for it there."
    if story.wanted.kind == "text":
        yield "Ask for fewer words, or for the address: a stage may have cut or changed the words."
        if _NAME.fullmatch(story.wanted.value):
            asked = _by_record(story.wanted.value, root)
            yield f"If it is the `id` of a record of your data, `{asked}` has its document."
    elif not (story.kept_only or story.reading.unread or story.unknown):
        yield "It has to land first: no file of a snapshot has it."
    if story.reading.nameless and not story.kept_only:
        yield f"`refinery sql {root} 'FROM quarantine'` lists damaged records: it may be one of them."
