"""Shows every decision on one document of a snapshot: what each stage measured, why one rejected it, and its record."""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.counted import counted
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.chosen import ordered_manifests
from pipeline_tasks.inspect.command import add_snapshot, print_result, version_of
from pipeline_tasks.inspect.text_edits import COMPARED, TextEdit, changes
from pipeline_tasks.inspect.trace import landed_header
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.takedowns import valid_entries
from pipeline_tasks.publish.version_log import Version
from pipeline_tasks.recipe import COMPOSE
from pipeline_tasks.store.reading import read_shards
from pipeline_tasks.text.urls.takedown import DOC

pc: Any = pyarrow.compute

KEPT = "kept"
PARTS = {"shards": KEPT, "rejects": "rejected", "quarantine": "quarantined"}
"""What became of the rows of each part of a manifest."""

PLACE = ("snapshot", "file", "offset")
ORIGIN = (*PLACE, "record_id", "url", "crawled_at")
TEXT = "text"
UNSHOWN = frozenset(
    (*ORIGIN, TEXT, "title", "tokens", "id", "source", "length", "payload_digest", "reason", "evidence")
)
"""Columns that are no finding of a stage, or that are as long as the text."""


@dataclass(frozen=True, slots=True)
class Step:
    """What a stage did with a record: `kept`, `rejected` or `quarantined`, with the reason and the evidence as stored.

    `facts` are the columns that the stage added, in their order; of texts and tokens there are none.
    """

    stage: str
    manifest: str
    outcome: str
    reason: str = ""
    evidence: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Record:
    """A landed record that has the document's text, and its way through the stages.

    `text` is what the last stage left of it: personal data is replaced in it from `scrub_pii` on. `edits` are the texts
    before and after each stage that changed it, those before `scrub_pii` with personal data.
    """

    snapshot: str
    file: str
    offset: int
    record_id: str
    url: str
    crawled_at: str
    steps: tuple[Step, ...]
    text: str = ""
    edits: tuple[TextEdit, ...] = ()

    @property
    def last(self) -> Step:
        """The stage that rejected it, or the last one of the recipe."""
        return self.steps[-1]


@dataclass(frozen=True, slots=True)
class Document:
    """A document of a snapshot: all records of the snapshot with its text, in the order of their places."""

    id: str
    recipe: str
    snapshot: str
    landing: str
    records: tuple[Record, ...]

    @property
    def is_kept(self) -> bool:
        """Whether a record with its text came through every stage."""
        return any(record.last.outcome == KEPT for record in self.records)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the document, the root and the snapshot."""
    parser.add_argument("id", help="the document's id: 32 hex digits, as `find`, `trace` and any shard show")
    add_snapshot(parser)


def answer(options: argparse.Namespace) -> int:
    """Print the decisions on the document."""
    shown = document(options.root, version_of(options), options.id)
    facts = asdict(shown)
    for record, printed in zip(shown.records, facts["records"], strict=True):
        del printed[TEXT]
        printed["edits"] = [edit_facts(edit) for edit in record.edits]
    print_result(options, facts, document_lines(shown))
    return 0


def document(root: str, version: Version, wanted: str) -> Document:
    """Return every decision of a version on the document with the id `wanted`; RecipeError if it has none.

    Reads the ids of all rows of every stage, and all columns of the shards that have the document.
    """
    [(_, name)] = valid_entries([(DOC, wanted)])
    if COMPOSE in version.manifests:
        message = f"{version.recipe} is a training dataset, whose documents are decided on in their own snapshots"
        raise RecipeError(message)
    rows: dict[tuple[Any, ...], list[tuple[Step, Mapping[str, Any]]]] = {}
    before: list[Step] = []
    known: frozenset[str] = UNSHOWN
    for stage, manifest in ordered_manifests(root, version).items():
        columns = [column for column, _ in manifest.schema]
        if "id" in columns:
            for step, row in _found(root, manifest, version.manifests[stage], name, known):
                rows.setdefault(tuple(row[column] for column in PLACE), []).append((step, row))
        elif not manifest.landed and not rows:
            before.append(Step(stage, version.manifests[stage], KEPT))
        known |= frozenset(columns)
    if not rows:
        message = (
            f"{root}: snapshot {version.snapshot} of recipe {version.recipe} has no document {name}; `refinery find` "
            "says in which published tokens it is, and `refinery duplicates` looks at every snapshot"
        )
        raise RecipeError(message)
    records = tuple(_record(before, pairs) for _, pairs in sorted(rows.items()))
    return Document(name, version.recipe, version.snapshot, version.landing, records)


def bytes_read(root: str, version: Version) -> int:
    """Return how many bytes `document` reads at most: those of the shards of every stage that has ids."""
    manifests = [manifest for manifest in ordered_manifests(root, version).values() if "id" in dict(manifest.schema)]
    return sum(shard.weight for manifest in manifests for part in PARTS for shard in getattr(manifest, part))


def _found(
    root: str, manifest: Manifest, path: str, wanted: str, known: frozenset[str]
) -> Iterator[tuple[Step, Mapping[str, Any]]]:
    """Yield the rows of a stage that have the id, with what the stage decided on each."""
    for part, outcome in PARTS.items():
        for shard in getattr(manifest, part):
            if not any(_having(batch, wanted).num_rows for batch in read_shards(root, [shard], ("id",))):
                continue
            for batch in read_shards(root, [shard]):
                for row in _having(batch, wanted).to_pylist():
                    facts = {name: value for name, value in row.items() if name not in known and value is not None}
                    verdict = (outcome, row.get("reason") or "", row.get("evidence") or "")
                    yield Step(manifest.stage, path, *verdict, facts), row


def _having(batch: pa.RecordBatch, wanted: str) -> pa.RecordBatch:
    return batch.filter(pc.equal(batch.column("id"), wanted))


def _record(before: Sequence[Step], pairs: Sequence[tuple[Step, Mapping[str, Any]]]) -> Record:
    row = pairs[-1][1]
    texts = [(step.stage, str(row[TEXT])) for step, row in pairs if row.get(TEXT)]
    changed = [(before, edit) for (_, before), edit in pairwise(texts) if before != edit[1]]
    edits = tuple(TextEdit(stage, before, after) for before, (stage, after) in changed)
    origin = {name: str(row[name] or "") for name in ORIGIN if name != "offset"}
    steps = (*before, *(step for step, _ in pairs))
    return Record(**origin, offset=row["offset"], steps=steps, text=texts[-1][1] if texts else "", edits=edits)


def edit_facts(edit: TextEdit) -> dict[str, Any]:
    """Return how much a stage changed of a text, in characters: no text, as it may have personal data.

    `changes` are the stretches that differ, of the first `COMPARED` characters.
    """
    stretches = [change for change in changes(edit.before[:COMPARED], edit.after[:COMPARED]) if not change.is_same]
    return {
        "stage": edit.stage,
        "chars_before": len(edit.before),
        "chars_after": len(edit.after),
        "changes": len(stretches),
        "cut": sum(len(change.cut) for change in stretches),
        "added": sum(len(change.added) for change in stretches),
    }


# --- Output -----------------------------------------------------------------------------------------------------


def document_lines(shown: Document) -> Iterator[str]:
    """Yield the decisions on a document for a person; its text is left out."""
    yield f"document  {shown.id} of snapshot {shown.snapshot}, recipe {shown.recipe}"
    yield f"          {counted(len(shown.records), 'record')} with this text, {_fate(shown)}"
    for record in shown.records:
        yield ""
        yield f"record    {record.record_id} in {shown.landing}/{record.file} at byte {record.offset:,}"
        yield f"          {record.url or 'no URL'}, crawled {record.crawled_at or 'at an unknown time'}"
        yield from (f"          {line}" for line in landed_header(shown.landing, asdict(record)))
        edits = {edit.stage: edit for edit in record.edits}
        for step in record.steps:
            yield from _step_lines(step)
            yield from [_edit_line(edits[step.stage])] if step.stage in edits else []


def _fate(shown: Document) -> str:
    return "kept by every stage" if shown.is_kept else "none of which came through every stage"


def _edit_line(edit: TextEdit) -> str:
    facts = edit_facts(edit)
    sizes = f"{facts['chars_before']:,} -> {facts['chars_after']:,} characters"
    places = f"{counted(facts['changes'], 'place')}: {facts['cut']:,} characters cut, {facts['added']:,} added"
    return f"  {'':<18}text {sizes}, in {places}"


def _step_lines(step: Step) -> Iterator[str]:
    yield f"  {step.stage:<18}{step.outcome}{f': {step.reason}' if step.reason else ''}"
    if step.evidence:
        yield f"  {'':<18}{step.evidence}"
    for name, value in step.facts.items():
        yield f"  {'':<18}{name} {json.dumps(value, default=str)}"
