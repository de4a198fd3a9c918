"""Breaks a snapshot's documents down by a column, or by two: how many were kept, or rejected, and of which sites."""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import accumulate
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.ask.answer import Answer
from pipeline_tasks.ask.parts import Column, Note, Part, Table
from pipeline_tasks.ask.question import Question, Role
from pipeline_tasks.cards import is_stage, stage_card
from pipeline_tasks.constraints import Range
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.chosen import ordered_manifests
from pipeline_tasks.inspect.command import NewestSnapshot, OnlyRecipe, version_of
from pipeline_tasks.inspect.grouping import SITE, UNSAID, can_group, columns_grouped, groups_of, sites_of
from pipeline_tasks.inspect.looks import names_of
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.stage import Shard, Stage
from pipeline_tasks.stages import enrich
from pipeline_tasks.store.reading import read_manifest, read_shards

pc: Any = pyarrow.compute

REASON = "reason"
"""Why a document was rejected, or that it was kept, as a column to break down by."""

KEPT = "kept"
"""What stands in place of a reason of a document that was kept."""

USUAL = (enrich.TYPE, "topic", enrich.LEVEL, enrich.NOTICE, "language", "extractor", "source")
"""Columns that are asked for most; the first is the default."""

ACROSS = (SITE, REASON)
"""What no column has to say, and is asked for most as the second of two."""

VALUES = 6
"""Values of the second column that are shown unless another number is named."""

ESTIMATE = "token_estimate"

OTHERS = "(others)"
"""Reasons or sites that are not named."""

ON_PAGE = 64_000_000
"""Bytes of shards that a request reads."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Documents of a group that have one value of the second column: all of them, those kept, and tokens of all."""

    documents: int
    kept: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Group:
    """The documents with one value of the column: how many were kept, or rejected by reason, and both by site.

    `tokens` are those of all, and `cells` all by the value of the second column, if there is one. Each mapping has the
    largest first.
    """

    name: str
    kept: int
    rejected: Mapping[str, int]
    sites: Mapping[str, int]
    tokens: int = 0
    cells: Mapping[str, Cell] = field(default_factory=dict)

    @property
    def documents(self) -> int:
        """All documents of the group."""
        return self.kept + sum(self.rejected.values())


@dataclass(frozen=True, slots=True)
class Breakdown:
    """The groups of a version's documents by a column, the largest first; `rows` were read of all `total`.

    `across` is the second column, "" for none, and `values` are those that it has, the most frequent first.
    """

    column: str
    groups: Sequence[Group]
    rows: int
    total: int
    across: str = ""
    values: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Params:
    """Which documents are broken down, by what, and how much of each value is shown."""

    root: str
    recipe: OnlyRecipe = ""
    snapshot: NewestSnapshot = ""
    by: Annotated[
        str,
        "a column, such as topic, language or extractor, or site, or reason (default: document_type)",
        "COLUMN",
        (*USUAL, *ACROSS),
    ] = USUAL[0]
    across: Annotated[str, "a second column, such as site or reason: a table of both", "COLUMN", (*ACROSS, *USUAL)] = ""
    values: Annotated[int, Range(1), f"values of the second ({VALUES})", "N"] = VALUES
    sites: Annotated[int, Range(), "largest sites of each value (3)", "N"] = 3
    reasons: Annotated[int, Range(), "reasons of each value (3)", "N"] = 3
    most_bytes: Annotated[float, Range(), "bytes of shards that are read at most (default: 0, all)", "N"] = 0
    role: Role = Role.STEWARD


def answer(params: Params) -> Answer:
    """Return the table: stewards see the values of rejected rows, too."""
    version = version_of(params)
    sees_rejected = params.role is Role.STEWARD
    known = breakdown(
        params.root, version, params.by, int(params.most_bytes), params.across, sees_rejected=sees_rejected
    )
    facts: dict[str, Any] = {"by": params.by, "groups": [_facts(group, params.sites) for group in known.groups]}
    facts |= {"across": known.across, "values": list(known.values)} if known.across else {}
    named = f"{params.by} and {params.across}" if params.across else params.by
    parts: list[Part] = [_crossed(known, params.values) if known.across else _table(known, params)]
    if known.across:
        left = f"; {len(known.values) - params.values:,} more by --values" if known.values[params.values :] else ""
        kept = "" if known.across == REASON else " that were kept, of all"
        parts.append(Note(f"cells: documents{kept} by {known.across}{left}"))
    if known.rows != known.total:
        parts.append(Note(f"{known.rows:,} of {known.total:,} rows were read, in shards that no order chose.", "warn"))
    return Answer(f"Documents by {named}", parts, facts, of=names_of(version))


QUESTION = Question(Params, answer, Role.CURATOR, {"sites": 3, "reasons": 3, "most_bytes": ON_PAGE})


REJECTED = "(rejected)"
"""The value of rejected rows for who may not see them."""


def breakdown(
    root: str, version: Version, column: str, most_bytes: int = 0, across: str = "", *, sees_rejected: bool = True
) -> Breakdown:
    """Return a version's documents by a column, and with `across` by two.

    Reads all that were kept, and all that a stage rejected or quarantined; with `most_bytes`, shards in the order of
    their digests, which is none of time or site, until one would be read beyond that. The type of a document and the
    estimate of its tokens are said of all that have a text, whether the recipe has `enrich` or not; `site` and `reason`
    of all; any other column is of the documents that reached the stage that writes it. Without `sees_rejected` a
    rejected row has the values alone that manifests count. RecipeError if no document has one of the columns.
    """
    counted = {enrich.TYPE, *ACROSS, *(name for each in _cards(version) for name in each.profiled)}
    tally = _Tally(column, across, frozenset() if sees_rejected else frozenset({column, across} - counted))
    shards = _shards(root, version)
    read = _within(shards, most_bytes)
    columns = (*columns_grouped(column), *columns_grouped(across), REASON, "url", "language", enrich.TYPE, ESTIMATE)
    for batch, is_kept in ((batch, is_kept) for shard, is_kept in read for batch in _batches(root, shard, columns)):
        tally.add(batch, is_kept=is_kept)
    for name, seen in ((column, tally.documents), (across, tally.values)):
        if name and {*seen} <= {UNSAID}:
            message = f"{root}: no document of version {version.number} has a column {name!r}; name one of its stages'"
            raise RecipeError(message)
    rows, total = (sum(shard.rows for shard, _ in some) for some in (read, shards))
    values = [name for name, _ in _largest(tally.values)]
    return Breakdown(column, tally.groups(), rows, total, across, values)


def _batches(root: str, shard: Shard, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield columns of a shard's rows, with their texts where nothing else says their type and tokens."""
    for batch in read_shards(root, [shard], columns):
        if not {enrich.TYPE, ESTIMATE} <= {*batch.schema.names}:
            yield from read_shards(root, [shard], [*columns, "text"])
            return
        yield batch


class _Tally:
    """Counts documents by group with their reason, site, tokens and value of the second column."""

    def __init__(self, column: str, across: str, hidden: frozenset[str]) -> None:
        self._column, self._across, self._hidden = column, across, hidden
        self.documents: Counter[str] = Counter()
        self.values: Counter[str] = Counter()
        self._tokens: Counter[str] = Counter()
        self._reasons: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._sites: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._cells: defaultdict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])

    def add(self, batch: pa.RecordBatch, *, is_kept: bool) -> None:
        typed = _typed(batch)
        reasons = pa.array([KEPT] * batch.num_rows) if is_kept else batch["reason"]

        def names(column: str) -> pa.Array:
            if column in self._hidden and not is_kept:
                return pa.array([REJECTED] * batch.num_rows, pa.string())
            return _names(batch, typed, reasons, column)

        table = pa.table(
            {
                "name": names(self._column),
                "reason": reasons,
                "site": sites_of(batch),
                "tokens": _tokens(batch, typed),
                "value": names(self._across) if self._across else pa.nulls(batch.num_rows),
            }
        )
        for counts, column in ((self._reasons, "reason"), (self._sites, "site")):
            for name, value, documents, _ in _counted(table, column):
                counts[name][value] += documents
        for name, value, documents, tokens in _counted(table, "value"):
            cell = self._cells[name, value]
            for at, amount in enumerate((documents, documents * is_kept, tokens)):
                cell[at] += amount
            self.documents[name] += documents
            self.values[value] += documents
            self._tokens[name] += tokens

    def groups(self) -> list[Group]:
        cells: defaultdict[str, dict[str, Cell]] = defaultdict(dict)
        order = sorted(self._cells.items(), key=lambda item: (-item[1][0], item[0]))
        for (name, value), amounts in order if self._across else ():
            cells[name][value] = Cell(*amounts)
        return [self._group(name, cells[name]) for name, _ in _largest(self.documents)]

    def _group(self, name: str, cells: Mapping[str, Cell]) -> Group:
        reasons = Counter(self._reasons[name])
        kept = reasons.pop(KEPT, 0)
        return Group(name, kept, dict(_largest(reasons)), dict(_largest(self._sites[name])), self._tokens[name], cells)


def _counted(table: pa.Table, column: str) -> Iterator[tuple[str, str, int, int]]:
    """Yield each name and value of a column, with the documents that have both, and their tokens."""
    counted = table.group_by(["name", column]).aggregate([([], "count_all"), ("tokens", "sum")])
    names = ("name", column, "count_all", "tokens_sum")
    yield from zip(*(counted[name].to_pylist() for name in names), strict=True)


def _largest(counts: Mapping[str, int]) -> Sequence[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _cards(version: Version) -> Iterator[Stage[Any]]:
    return (stage_card(stage) for stage in version.manifests if is_stage(stage))


def _shards(root: str, version: Version) -> list[tuple[Shard, bool]]:
    """Return the shards of the rows that were kept, and of those that each stage did not keep, by their digests."""
    shards = [(shard, True) for shard in read_manifest(root, version.refined).shards]
    for manifest in ordered_manifests(root, version).values():
        shards += [(shard, False) for shard in (*manifest.rejects, *manifest.quarantine)]
    return sorted(shards, key=lambda entry: entry[0].digest)


def _within(shards: Sequence[tuple[Shard, bool]], most_bytes: int) -> Sequence[tuple[Shard, bool]]:
    """Return the first shards that have no more bytes, at least one; all without a bound."""
    through = list(accumulate(shard.weight for shard, _ in shards))
    return shards[: max(bisect_right(through, most_bytes), 1)] if most_bytes else shards


def _typed(batch: pa.RecordBatch) -> pa.RecordBatch | None:
    """Return rows with what `enrich` says of their texts; None of rows that it cannot read."""
    if {enrich.TYPE, ESTIMATE} <= {*batch.schema.names}:
        return batch
    if not {"text", "url"} <= {*batch.schema.names} or batch["text"].null_count == batch.num_rows:
        return None  # the loops that read texts take seconds to load
    known = batch.select([name for name in ("text", "url", "language") if name in batch.schema.names])
    [typed] = enrich.enrich(iter([known]))
    return typed


def _names(batch: pa.RecordBatch, typed: pa.RecordBatch | None, reasons: pa.Array, column: str) -> pa.Array:
    """Return the value of the column of each row as text."""
    if column == REASON:
        return reasons
    if can_group(batch.schema.names, column):
        return groups_of(batch, column)
    if column == enrich.TYPE and typed is not None:
        return pc.if_else(pc.is_valid(batch["text"]), typed[column], UNSAID)
    return pa.array([UNSAID] * batch.num_rows, pa.string())


def _tokens(batch: pa.RecordBatch, typed: pa.RecordBatch | None) -> pa.Array:
    """Return the estimate of each row's tokens, 0 of one without a text."""
    if typed is None:
        return pa.array([0] * batch.num_rows, pa.int64())
    known = (
        pc.if_else(pc.is_valid(batch["text"]), typed[ESTIMATE], 0) if "text" in batch.schema.names else typed[ESTIMATE]
    )
    return pc.fill_null(known, 0)


def _facts(group: Group, most_sites: int) -> dict[str, Any]:
    sites = dict([*group.sites.items()][:most_sites])
    counts = {
        "documents": group.documents,
        "kept": group.kept,
        "tokens": group.tokens,
        "rejected": dict(group.rejected),
    }
    cells = {"cells": {name: asdict(cell) for name, cell in group.cells.items()}} if group.cells else {}
    return {"name": group.name, **counts, "sites": sites, "other_sites": max(len(group.sites) - most_sites, 0), **cells}


def _row(group: Group) -> dict[str, object]:
    return {name: getattr(group, name) for name in ("name", "documents", "kept", "tokens")}


def _table(known: Breakdown, params: Params) -> Table:
    """Return a row for each group, with the reasons and the sites that most of its documents have."""
    rows = [
        {
            **_row(group),
            "share": group.kept / group.documents,
            "rejected": _most(group.rejected, params.reasons),
            "sites": _most(group.sites, params.sites),
        }
        for group in known.groups
    ]
    tallies = Column("rejected", "rejected for", "tally"), Column("sites", "largest sites", "tally")
    return Table((*_columns(known, Column("share", kind="share")), *tallies), rows)


def _columns(known: Breakdown, *behind_kept: Column) -> Iterator[Column]:
    yield Column("name", known.column)
    yield from (Column("documents", kind="count"), Column("kept", kind="count"), *behind_kept)
    yield Column("tokens", kind="count")


def _most(counts: Mapping[str, int], most: int) -> dict[str, int]:
    """Return the largest counts, and the sum of the others."""
    pairs = [*counts.items()]
    others = sum(rows for _, rows in pairs[most:]) if most else 0
    return dict(pairs[:most]) | ({OTHERS: others} if others else {})


def shown_cell(group: Group, value: str, across: str) -> str:
    """Return the documents of a cell as text, and how many of them were kept; of reasons the documents alone."""
    cell = group.cells.get(value)
    if cell is None:
        return ""
    return f"{cell.documents:,}" if across == REASON else f"{cell.kept:,}/{cell.documents:,}"


def _crossed(known: Breakdown, most: int) -> Table:
    """Return a row for each group, with a cell for each of the most frequent values of the second column."""
    values = [(f"across {value}", value) for value in known.values[:most]]
    rows = [
        {**_row(group), **{key: shown_cell(group, value, known.across) for key, value in values}}
        for group in known.groups
    ]
    return Table((*_columns(known), *(Column(key, value) for key, value in values)), rows)
