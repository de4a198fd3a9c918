"""Shows every decision on one document of a snapshot: what each stage measured, why one rejected it, and its record."""

import argparse
import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import accumulate, groupby, pairwise
from operator import attrgetter
from typing import Any, NamedTuple

import pyarrow as pa

from pipeline_tasks.cards import is_by_id, maker_of, unfolds
from pipeline_tasks.counted import counted
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.file_types import OWN, brought_types
from pipeline_tasks.inspect.chosen import ordered_manifests
from pipeline_tasks.inspect.command import add_snapshot, print_result, version_of
from pipeline_tasks.inspect.document.generated import generated_of
from pipeline_tasks.inspect.document.page_blocks import PageBlocks, block_lines, page_blocks
from pipeline_tasks.inspect.document.text_edits import COMPARED, TextEdit, changes
from pipeline_tasks.inspect.document.trace import landed_header
from pipeline_tasks.inspect.expired import expired_in
from pipeline_tasks.inspect.looks import looked
from pipeline_tasks.inspect.unpublished import say
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.recipe import COMPOSE
from pipeline_tasks.run.shuffle import bucket_of
from pipeline_tasks.schema import GENERATED_TEXTS
from pipeline_tasks.stage import LANDING, Shard, Shards
from pipeline_tasks.store.shards.matching_rows import MatchingRows
from pipeline_tasks.text.urls.takedown import DOC
from pipeline_tasks.text.urls.takedown_entries import valid_entries

KEPT = "kept"
PARTS = {"shards": KEPT, "rejects": "rejected", "quarantine": "quarantined"}
"""What became of the rows of each part of a manifest."""

PLACE = ("snapshot", "file", "offset")
ORIGIN = (*PLACE, "record_id", "url", "crawled_at")
TEXT, BLOCKS = "text", "blocks"
UNSHOWN = frozenset(
    (
        *ORIGIN,
        TEXT,
        "title",
        GENERATED_TEXTS,
        "tokens",
        "id",
        "source",
        "length",
        "payload_digest",
        "reason",
        "evidence",
    )
)
"""Columns that are no finding of a stage, or that are as long as the text."""

LISTED = 8
"""Entries of a list up to which it is printed for a person."""


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
    before and after each stage that changed it, `extracted` is what `extract` wrote: those before `scrub_pii` with
    personal data.
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
    extracted: str = ""

    @property
    def facts(self) -> Mapping[str, Any]:
        """What all stages found of it."""
        return {name: fact for step in self.steps for name, fact in step.facts.items()}

    @property
    def last(self) -> Step:
        """The stage that rejected it, or the last one of the recipe."""
        return self.steps[-1]


@dataclass(frozen=True, slots=True)
class Unread:
    """Shards of rows with one outcome at a stage that were not read, and their bytes."""

    stage: str
    outcome: str
    shards: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Document:
    """A document of a snapshot: all records of the snapshot with its text, in the order of their places.

    `read` are the bytes of the shards that were read. What is `unread` may have more records, or more of these.
    """

    id: str
    recipe: str
    snapshot: str
    landing: str
    records: tuple[Record, ...]
    read: int = 0
    unread: tuple[Unread, ...] = ()

    @property
    def is_kept(self) -> bool:
        """Whether a record with its text came through every stage."""
        return any(record.last.outcome == KEPT for record in self.records)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the document, the root and the snapshot."""
    parser.add_argument("id", help="the document's id: 32 hex digits, as `find`, `trace` and any shard show")
    add_snapshot(parser)
    parser.add_argument(
        "--blocks",
        action="store_true",
        help="the blocks of its page with scores and texts, where `extract` chose among them",
    )


def answer(options: argparse.Namespace) -> int:
    """Print the decisions on the document."""
    version = version_of(options)
    say(expired_in(options.root, version.manifests))
    shown = document(options.root, version, options.id)
    looked(options, len(shown.records), [shown.id], version)
    facts = asdict(shown)
    pages = [blocks_of(options.root, version, record) if options.blocks else None for record in shown.records]
    for record, printed, page in zip(shown.records, facts["records"], pages, strict=True):
        del printed[TEXT], printed["extracted"]
        printed["edits"] = [edit_facts(edit) for edit in record.edits]
        printed.update({"page": asdict(page)} if page else {})
    print_result(options, facts, document_lines(shown, pages))
    return 0


def document(root: str, version: Version, wanted: str, most_bytes: int = 0, file: str = "") -> Document:
    """Return every decision of a version on the document with the id `wanted`; RecipeError if it has none.

    Each shard that may have the document is read once, up to `most_bytes` in all (0: no bound): where ids are in
    buckets one shard of a stage, and those of the landed `file`, if it is known; then the shards of the files of what
    is found; then the others, the smallest first.
    """
    try:
        [(_, name)] = valid_entries([(DOC, wanted)])
    except RecipeError as error:
        message = f"{error}; `refinery why` takes the address of a page, words of it, or the first digits of its id"
        raise RecipeError(message) from error
    if COMPOSE in version.manifests:
        message = f"{version.recipe} is a training dataset, whose documents are decided on in their own snapshots"
        raise RecipeError(message)
    manifests = ordered_manifests(root, version)
    search = _searched(list(_pieces(manifests, name)), MatchingRows(root, "id", name, most_bytes), file)
    if not search.rows:
        raise RecipeError(_not_found(root, version, name, search))
    records = tuple(_records(version, manifests, search))
    unread = tuple(_unread(search.unread))
    return Document(name, version.recipe, version.snapshot, version.landing, records, search.read, unread)


def blocks_of(root: str, version: Version, record: Record) -> PageBlocks | None:
    """Return the blocks of a record's page; None where `extract` did not choose among blocks."""
    facts = record.facts
    if not facts.get(BLOCKS):
        return None
    return page_blocks(root, version, record, facts[BLOCKS], record.extracted, str(facts.get("language") or ""))


def bytes_of(root: str, version: Version) -> int:
    """Return how many bytes the shards of every stage that has ids have, each counted once."""
    manifests = [manifest for manifest in ordered_manifests(root, version).values() if "id" in dict(manifest.schema)]
    parts = ("below", *PARTS)
    sizes = {shard.path: shard.bytes for manifest in manifests for part in parts for shard in getattr(manifest, part)}
    return sum(sizes.values())


# --- What is looked at ----------------------------------------------------------------------------------------------


class Stretch(NamedTuple):
    """The bytes `[start, end)` of a landed file; -1 at the end is all that follow."""

    file: str
    start: int
    end: int

    def has(self, file: str, offset: int) -> bool:
        """Return whether a record is in it."""
        return file == self.file and self.start <= offset and (self.end < 0 or offset < self.end)


class Piece(NamedTuple):
    """A shard of the rows with one outcome at a stage, that may have a document.

    `landed` is where its records landed, None where they are of any file. `is_indexed` is whether it is the only one of
    its stage's kept shards that may have the document.
    """

    stage: str
    outcome: str
    shard: Shard
    landed: Stretch | None = None
    is_indexed: bool = False

    def is_of(self, file: str) -> bool:
        """Return whether its records are of a landed file alone."""
        return self.landed is not None and self.landed.file == file

    def has_any(self, places: Iterable[tuple[str, int]]) -> bool:
        """Return whether a record, named by its file and offset, is known to be in it."""
        return self.landed is not None and any(self.landed.has(file, offset) for file, offset in places)


class _Search(NamedTuple):
    """The rows that were found, by piece; the pieces that were not read; and the bytes of those that were."""

    rows: Sequence[tuple[Piece, Mapping[str, Any]]]
    unread: Sequence[Piece]
    read: int


def _pieces(manifests: Mapping[str, Manifest], wanted: str) -> Iterator[Piece]:
    """Yield the shards that may have a document, in the order of their stages."""
    landed = next((_stretches(manifest.shards) for manifest in manifests.values() if manifest.landed), [])
    bucketed = in_buckets(manifests)
    for stage, manifest in manifests.items():
        landed = [] if unfolds(stage) else landed  # it has shards of its own between those of its input
        if "id" not in dict(manifest.schema):
            continue
        kept = manifest.shards
        if stage in bucketed:
            yield Piece(stage, KEPT, kept[int(bucket_of(pa.array([wanted]), len(kept))[0])], is_indexed=True)
        elif len(kept) == len(landed) and not manifest.poison:
            yield from (Piece(stage, KEPT, shard, stretch) for shard, stretch in zip(kept, landed, strict=True))
        else:
            yield from (Piece(stage, KEPT, shard) for shard in kept)
        for part, outcome in PARTS.items():
            if outcome != KEPT:
                yield from (Piece(stage, outcome, shard) for shard in getattr(manifest, part))


def _stretches(landed: Shards) -> list[Stretch]:
    """Return where each shard of a landed snapshot is: a piece of a file ends where the next piece of it begins."""
    files = [(shard.path.removeprefix(LANDING), max(shard.start, 0)) for shard in landed]
    following = [*files[1:], ("", 0)]
    return [
        Stretch(file, start, end if file == other else -1)
        for (file, start), (other, end) in zip(files, following, strict=True)
    ]


def in_buckets(manifests: Mapping[str, Manifest]) -> frozenset[str]:
    """Return the stages whose kept shards are buckets by id: those that make them, and those that map them."""
    counts: dict[str, int] = {}  # of buckets, by fingerprint
    stages = set()
    for stage, manifest in manifests.items():
        count = len(manifest.shards)
        follows = any(counts.get(parent) == count for parent in manifest.parents[:1])
        if (is_by_id(stage) or follows) and count.bit_count() == 1 and not manifest.poison:
            counts[manifest.fingerprint] = count
            stages.add(stage)
    return frozenset(stages)


def _searched(pieces: Sequence[Piece], matching: MatchingRows, file: str) -> _Search:
    """Look for rows where an index leads to and in the landed file, then in files of what is found, then elsewhere."""
    rows: list[tuple[Piece, Mapping[str, Any]]] = []
    unread: list[Piece] = []
    left = deque(sorted(pieces, key=lambda piece: (not (piece.is_indexed or piece.is_of(file)), piece.shard.weight)))
    while left:
        piece = left.popleft()
        found = matching.of(piece.shard)
        if found is None:
            unread.append(piece)
        elif found.num_rows:
            rows += [(piece, row) for row in found.to_pylist()]
            places = {(row["file"], row["offset"]) for _, row in rows}
            left = deque(sorted(left, key=lambda piece: not (piece.is_indexed or piece.has_any(places))))
    return _Search(rows, unread, matching.read)


def _unread(pieces: Sequence[Piece]) -> Iterator[Unread]:
    """Yield what was not read, by stage and outcome."""
    by = attrgetter("stage", "outcome")
    for (stage, outcome), shards in groupby(sorted(pieces, key=by), key=by):
        sizes = [piece.shard.bytes for piece in shards]
        yield Unread(stage, outcome, len(sizes), sum(sizes))


def _not_found(root: str, version: Version, wanted: str, search: _Search) -> str:
    if search.unread:
        left = ", ".join(unread_text(part) for part in _unread(search.unread))
        return (
            f"{root}: no document {wanted} is in the {search.read:,} bytes of snapshot {version.snapshot} that were "
            f"read; not read: {left}"
        )
    return (
        f"{root}: snapshot {version.snapshot} of recipe {version.recipe} has no document {wanted}; "
        f"`refinery why {wanted} {root}` looks at every snapshot, and at what was rejected"
    )


# --- Records --------------------------------------------------------------------------------------------------------


def _records(version: Version, manifests: Mapping[str, Manifest], search: _Search) -> Iterator[Record]:
    """Yield the records that were found, in the order of their places."""
    order = list(manifests)
    columns = {stage: frozenset(name for name, _ in manifest.schema) for stage, manifest in manifests.items()}
    added = (names if "id" in names else frozenset() for names in columns.values())  # rows without an id are not read
    known = dict(zip(order, accumulate(added, frozenset.union, initial=UNSHOWN), strict=False))
    has_ids = next(rank for rank, stage in enumerate(order) if "id" in columns[stage])
    unnamed = [stage for stage in order[:has_ids] if not manifests[stage].landed]
    before = [Step(stage, version.manifests[stage], KEPT) for stage in unnamed]
    rows: dict[tuple[Any, ...], list[tuple[Step, Mapping[str, Any]]]] = {}
    for piece, row in sorted(search.rows, key=lambda found: order.index(found[0].stage)):
        facts = {name: value for name, value in row.items() if name not in known[piece.stage] and value is not None}
        verdict = (piece.outcome, row.get("reason") or "", row.get("evidence") or "")
        step = Step(piece.stage, version.manifests[piece.stage], *verdict, facts)
        rows.setdefault(tuple(row[column] for column in PLACE), []).append((step, row))
    for (_, file, offset), pairs in sorted(rows.items()):
        is_whole = not any(piece.landed is None or piece.has_any([(file, offset)]) for piece in search.unread)
        yield _record(before, pairs, is_whole=is_whole)


def _record(before: Sequence[Step], pairs: Sequence[tuple[Step, Mapping[str, Any]]], *, is_whole: bool) -> Record:
    """Return a record; what a stage changed in its text is known only where each stage before it was read."""
    row = pairs[-1][1]
    texts = [(step.stage, str(row[TEXT])) for step, row in pairs if row.get(TEXT)]
    changed = [(before, edit) for (_, before), edit in pairwise(texts) if before != edit[1]]
    edits = tuple(TextEdit(stage, before, after) for before, (stage, after) in changed if is_whole)
    origin = {name: str(row[name] or "") for name in ORIGIN if name != "offset"}
    steps = (*before, *(step for step, _ in pairs))
    text, by_stage = texts[-1][1] if texts else "", dict(texts)
    extracted = by_stage.get(maker_of(by_stage), "")
    return Record(**origin, offset=row["offset"], steps=steps, text=text, edits=edits, extracted=extracted)


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


def unread_text(part: Unread) -> str:
    """Return what was not read, for a person."""
    return f"{counted(part.shards, 'shard')} {part.outcome} by {part.stage} ({part.bytes:,} bytes)"


def document_lines(shown: Document, pages: Sequence[PageBlocks | None]) -> Iterator[str]:
    """Yield the decisions on a document for a person, and the blocks of its pages; its text is left out."""
    yield f"document  {shown.id} of snapshot {shown.snapshot}, recipe {shown.recipe}"
    yield f"          {_of(shown)}, {_fate(shown)}"
    for record, page in zip(shown.records, pages, strict=True):
        yield ""
        yield f"record    {record.record_id} in {shown.landing}/{record.file} at byte {record.offset:,}"
        yield f"          {record.url or 'no URL'}, crawled {record.crawled_at or 'at an unknown time'}"
        yield from (f"          {line}" for line in file_lines(record.facts))
        yield from [f"          generated {made.line}"] if (made := generated_of(record.facts)) else []
        yield from (f"          {line}" for line in landed_header(shown.landing, asdict(record)))
        edits = {edit.stage: edit for edit in record.edits}
        for step in record.steps:
            yield from _step_lines(step)
            yield from [_edit_line(edits[step.stage])] if step.stage in edits else []
        yield from block_lines(page) if page else ()


def file_lines(facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield what kind of file a record is, if it is no page: its type, its pages, and those without text."""
    kind, pages, unread = facts.get("type"), facts.get("pages"), facts.get("unread_pages") or ()
    if kind is None or kind in OWN:
        return
    card = brought_types().get(kind)
    yield f"{card.title if card else kind} file" + (f" of {counted(pages, 'page')}" if pages else "")
    if unread:
        listed = ", ".join(map(str, unread[:LISTED])) + (", ..." if len(unread) > LISTED else "")
        yield f"{counted(len(unread), 'page')} without text: {listed}"


def _of(shown: Document) -> str:
    """Return what has the text: records that landed, or the document that it was generated of."""
    parents = [record.facts["parent"] for record in shown.records if record.facts.get("parent")]
    if parents:
        return f"a text that was generated of document {parents[0]}, whose record this is"
    return f"{counted(len(shown.records), 'record')} with this text"


def _fate(shown: Document) -> str:
    return "kept by every stage" if shown.is_kept else "none of which came through every stage"


def _edit_line(edit: TextEdit) -> str:
    facts = edit_facts(edit)
    sizes = f"{facts['chars_before']:,} -> {facts['chars_after']:,} characters"
    places = f"{counted(facts['changes'], 'place')}: {facts['cut']:,} characters cut, {facts['added']:,} added"
    return f"  {'':<18}text {sizes}, in {places}"


def _step_lines(step: Step) -> Iterator[str]:
    yield f"  {step.stage:<17} {step.outcome}{f': {step.reason}' if step.reason else ''}"
    if step.evidence:
        yield f"  {'':<18}{step.evidence}"
    for name, value in step.facts.items():
        is_long = isinstance(value, list) and len(value) > LISTED
        written = counted(len(value), "entry", "entries") if is_long else json.dumps(value, default=str)
        yield f"  {'':<18}{name} {written}"
