"""Makes annotations of rows: a record's key and place in Common Crawl's index, and what a version decided on it."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.cards import copies_of
from pipeline_tasks.profiles.removals import WINNER
from pipeline_tasks.text.urls.takedown import TakenDown, evidence
from refinery_exports.annotations.places import Places, crawls, require_known, subsets
from refinery_exports.annotations.surt import surt_keys

pc: Any = pyarrow.compute

PREFIX = "refinery_"
"""How the names of columns begin that the index has not: annotations of several sources are joined to one index."""

KEPT, REJECTED, QUARANTINED = "kept", "rejected", "quarantined"

QUALITY = "score"
"""The column of documents that is `quality_score` in annotations."""

READ = pa.schema(
    [
        *((name, pa.string()) for name in ("snapshot", "file", "url", "crawled_at", "kind")),
        *((name, pa.int64()) for name in ("offset", "length")),
        *((name, pa.string()) for name in ("id", "language", "reason", "evidence")),
    ]
)
"""Columns that are read of every row, besides its scores: no text is."""

INDEXED = pa.schema(
    [
        ("url_surtkey", pa.string()),
        ("url", pa.string()),
        ("fetch_time", pa.timestamp("ms")),
        ("warc_filename", pa.string()),
        ("warc_record_offset", pa.int64()),
        ("warc_record_length", pa.int64()),
    ]
)
"""Columns that the index has: by these annotations are joined. Times are in UTC, to the second."""

DECIDED = pa.schema(
    [
        ("version", pa.int64()),
        ("decision", pa.string()),
        ("stage", pa.string()),
        ("reasons", pa.list_(pa.string())),
        ("kind", pa.string()),
        ("id", pa.string()),
        ("duplicate_of", pa.string()),
        ("duplicate_of_snapshot", pa.string()),
        ("duplicate_of_warc_filename", pa.string()),
        ("duplicate_of_warc_record_offset", pa.int64()),
        ("language", pa.string()),
    ]
)
"""Columns of what was decided, as they are called behind `PREFIX`."""

CRAWL, SUBSET = "crawl", "subset"
"""Columns that are folders, as in the index."""

UNINDEXED = "unindexed"
"""The subset of records about a page or a file: they have its address and time, and no entry in the index."""

ABOUT = ("warcinfo", "request", "metadata")
"""WARC-Types of such records."""

_COPIES = ("duplicate_of", "duplicate_of_snapshot", "file", "offset", "url")


class Decision(NamedTuple):
    """What a version decided on some rows: `stage` did not keep them, "" for those that it kept."""

    version: int
    decision: str
    stage: str


def score_columns(columns: Iterable[tuple[str, str]]) -> list[str]:
    """Return the scores among columns by name and type, sorted: all numbers with decimals that documents have."""
    return sorted({name for name, kind in columns if kind in ("double", "float", "halffloat")})


def schema_of(scores: Iterable[str]) -> pa.Schema:
    """Return the columns of annotations with these scores."""
    decided = (field.with_name(f"{PREFIX}{field.name}") for field in DECIDED)
    return pa.schema([*INDEXED, *decided, *((_score_name(name), pa.float64()) for name in scores)])


def _score_name(name: str) -> str:
    return f"{PREFIX}{'quality_score' if name == QUALITY else name}"


def annotated(rows: pa.RecordBatch, by: Decision, scores: Sequence[str], places: Places, taken: TakenDown) -> pa.Table:
    """Return the annotations of rows, with the columns `CRAWL` and `SUBSET`.

    ContractError for a record whose place is not known. A copy does not name a document that is taken down.
    """
    files, offsets = places.of(rows["file"], rows["offset"])
    require_known(files, rows["file"])
    decided = {
        **{name: pa.repeat(value, rows.num_rows) for name, value in by._asdict().items()},
        "reasons": pa.array(
            map(_reasons, _texts(rows, "reason"), _texts(rows, "evidence")), DECIDED.field("reasons").type
        ),
        **{name: rows[name] for name in ("kind", "id", "language")},
        **_copies(rows, by.stage, places, taken),
    }
    if not by.stage:
        decided["stage"] = pa.nulls(rows.num_rows, pa.string())
    columns = {
        "url_surtkey": surt_keys(rows["url"]),
        "url": rows["url"],
        "fetch_time": _moments(rows["crawled_at"]),
        "warc_filename": files,
        "warc_record_offset": offsets,
        "warc_record_length": rows["length"],
        **{f"{PREFIX}{name}": column for name, column in decided.items()},
        **{_score_name(name): rows[name] for name in scores},
    }
    schema = schema_of(scores)
    table = pa.table([columns[field.name].cast(field.type) for field in schema], schema=schema)
    is_about = pc.is_in(rows["kind"], value_set=pa.array(ABOUT))
    table = table.append_column(CRAWL, crawls(files, rows["snapshot"]))
    return table.append_column(SUBSET, pc.if_else(is_about, UNINDEXED, subsets(files)))


def _texts(rows: pa.RecordBatch, name: str) -> Iterator[str | None]:
    texts: list[str | None] = rows[name].to_pylist()
    return iter(texts)


def _moments(written: pa.Array) -> pa.Array:
    """Return times as WARC and ARC files write them, null for others; the index has no fractions of seconds."""
    forms = {"%Y-%m-%dT%H:%M:%S": 19, "%Y%m%d%H%M%S": 14}
    read = (
        pc.strptime(pc.utf8_slice_codeunits(written, 0, size), format=form, unit="ms", error_is_null=True)
        for form, size in forms.items()
    )
    return pc.coalesce(*read)


def _reasons(reason: str | None, stored: str | None) -> list[str] | None:
    """Return every rule that a row fails, as its evidence lists them, else its reason; None of what is kept."""
    if reason is None:
        return None
    listed = json.loads(stored) if stored and stored.startswith("[") else []
    rules = dict.fromkeys(str(part["rule"]) for part in listed if isinstance(part, dict) and "rule" in part)
    return [*rules] or [reason]


def _copies(rows: pa.RecordBatch, stage: str, places: Places, taken: TakenDown) -> Mapping[str, pa.Array]:
    """Return the document in the place of each copy, null for what is none, or whose winner is taken down."""
    if not copies_of(stage).compared:
        return {
            field.name: pa.nulls(rows.num_rows, field.type) for field in DECIDED if field.name.startswith(_COPIES[0])
        }
    own = zip(*(rows[name].to_pylist() for name in ("id", "snapshot", "evidence")), strict=True)
    winners = [_winner(*each) for each in own]
    kinds = (pa.string(), pa.string(), pa.string(), pa.int64(), pa.string())
    columns = {
        name: pa.array([winner[at] for winner in winners], kind)
        for at, (name, kind) in enumerate(zip(_COPIES, kinds, strict=True))
    }
    if not taken.is_empty:
        gone = pc.is_valid(evidence(taken, pa.record_batch({"url": columns["url"], "id": columns["duplicate_of"]})))
        columns = {name: pc.if_else(gone, pa.scalar(None, column.type), column) for name, column in columns.items()}
    files, offsets = places.of(columns["file"], columns["offset"])
    return {
        **{name: columns[name] for name in _COPIES[:2]},
        "duplicate_of_warc_filename": files,
        "duplicate_of_warc_record_offset": offsets,
    }


class _Winner(NamedTuple):
    """The document in the place of a copy, in the order of `_COPIES`: its record where the evidence names it."""

    id: str | None = None
    snapshot: str | None = None
    file: str | None = None
    offset: int | None = None
    url: str | None = None


def _winner(own: str | None, snapshot: str | None, stored: str | None) -> _Winner:
    """Return the winner that evidence names; it has the id of the copy where it is of equal text."""
    proof = json.loads(stored) if stored and stored.startswith("{") else {}
    if "winner" not in proof:
        return _Winner()
    winner = proof["winner"] if isinstance(proof["winner"], dict) else proof
    match = re.search(WINNER, stored or "")
    named = (winner.get(name) for name in ("file", "offset", "url"))
    return _Winner(match["id"] if match else own, winner.get("snapshot") or snapshot, *named)
