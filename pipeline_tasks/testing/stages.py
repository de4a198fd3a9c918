"""The suite of stages: rows are conserved, and are the same for any batches and again; the card says what it does.

Of no rows a stage keeps none, with the columns that it always has.
"""

import json
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.binding import bind
from pipeline_tasks.cards import is_stage, stage_card
from pipeline_tasks.errors import RefineryError
from pipeline_tasks.facets import DEAREST
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.schema import N_GENERATED
from pipeline_tasks.stage import BY_ROW, Stage
from pipeline_tasks.testing.refining import commit_parent, refined, rows

MANY = 4096
"""Rows of a batch."""


class Checked(NamedTuple):
    """What a stage made of rows: those that it kept, those that it rejected, and its manifest."""

    kept: pa.Table
    rejects: pa.Table
    manifest: Manifest


def check_stage(name: str, given: pa.Table, params: Mapping[str, Any] | None = None) -> Checked:
    """Return what a stage makes of rows; AssertionError unless it keeps what every stage promises.

    `name` is that of the entry point, whose package must be installed. The rows need at least the columns that the card
    reads, and should be of each kind that the stage tells apart.
    """
    assert is_stage(name), f"there is no stage {name!r}; install its package first (pip install -e FOLDER)"
    _check_card(name)
    whole = _run(name, [given], params)
    _check_rows(name, given, whole)
    _check_columns(name, given, whole, params)
    _require_same(name, whole, _run(name, [given], params), "again")
    _require_same(name, whole, _run(name, [given], params, batch_rows=1), "for batches of 1 row")
    nothing = _run(name, [given.slice(0, 0)], params)
    assert len(nothing.kept) == len(nothing.rejects) == 0, f"{name}: rows come of none"
    assert nothing.manifest.schema == whole.manifest.schema, f"{name}: other columns of no rows"
    if stage_card(name).splits and len(given) > 1:
        half = len(given) // 2
        parts = _run(name, [given.slice(0, half), given.slice(half)], params)
        _require_same(name, whole, parts, "in two parts, and its card says `splits`")
    return whole


def _check_card(name: str) -> None:
    card = stage_card(name)
    assert card.cost is not DEAREST, f"{name}: its card has no `cost`, so that plans take it for the dearest of all"
    for reason in card.reasons:
        assert reason.partition(":")[2], f"{name}: the reason {reason!r} is not `what:why`"


def _run(name: str, tables: list[pa.Table], params: Mapping[str, Any] | None, batch_rows: int = MANY) -> Checked:
    """Run the stage in a root of its own: in another's it would be found there."""
    with tempfile.TemporaryDirectory() as root:
        parent = commit_parent(Path(root), tables)
        try:
            _, manifest = refined(root, name, parent, params, batch_rows=batch_rows)
        except RefineryError as error:
            message = f"{name}: {error}"
            raise AssertionError(message) from error
        return Checked(_given_first(name, rows(root, manifest)), rows(root, manifest, "rejects"), manifest)


def _given_first(name: str, kept: pa.Table) -> pa.Table:
    """Return rows with those that were given first: each shard of them may be followed by one of their offspring."""
    if stage_card(name).conserves != "offspring":
        return kept
    return pa.concat_tables([kept.filter(which(kept["parent"])) for which in (pc.is_null, pc.is_valid)])


def _check_rows(name: str, given: pa.Table, whole: Checked) -> None:
    manifest, card = whole.manifest, stage_card(name)
    assert not manifest.quarantined, f"{name} quarantined {dict(manifest.quarantined)}"
    if card.conserves in BY_ROW:
        left, due = len(whole.kept) + len(whole.rejects), len(given)
        if card.conserves == "offspring":
            due += pc.sum(given[N_GENERATED]).as_py() or 0
        assert left == due, f"{name}: of {due} rows {len(whole.kept)} were kept, {left} accounted for"
    unknown = sorted(set(manifest.rejected) - set(card.reasons))
    assert not unknown, f"{name}: the card does not have the reasons {', '.join(unknown)}"
    for row in whole.rejects.select(["reason", "evidence"]).to_pylist() if len(whole.rejects) else ():
        assert json.loads(row["evidence"] or "null") is not None, f"{name}: {row['reason']} has no evidence"


def _check_columns(name: str, given: pa.Table, whole: Checked, params: Mapping[str, Any] | None) -> None:
    """Raise AssertionError unless columns change, and follow from others, as the card says of both."""
    card = stage_card(name)
    kept = _given(card, whole.kept)
    same = [column for column in kept.column_names if column in given.column_names and column not in card.changes]
    if card.conserves != "tokens" and same:
        before = set(map(repr, given.select(same).to_pylist()))
        changed = [column for column in same if _values(kept[column]) - _values(given[column])]
        of_rows = {repr(row) for row in kept.select(same).to_pylist()} - before
        assert not of_rows, f"{name}: `changes` on its card lacks columns that it changes: {changed or same}"
    if card.derived_from:
        made = [column for column in kept.column_names if column not in same]
        other = _run(name, [_with_others(given, {*_sources(card, params), *card.changes, "id"})], params)
        again = _given(card, other.kept).select(made)
        assert kept.select(made).equals(again), f"{name}: {made} follow from more than `derived_from` says"


def _given(card: Stage[Any], kept: pa.Table) -> pa.Table:
    """Return the kept rows that were given: of generated documents a stage makes all columns."""
    return kept.filter(pc.is_null(kept["parent"])) if card.conserves == "offspring" else kept


def _values(column: pa.ChunkedArray) -> set[str]:
    return set(map(repr, column.to_pylist()))


def _sources(card: Stage[Any], params: Mapping[str, Any] | None) -> tuple[str, ...]:
    bound = bind(card, params or {})
    return (*card.derived_from, *(card.reads_for(bound) if card.reads_for else ()))


def _with_others(given: pa.Table, sources: Collection[str]) -> pa.Table:
    """Return rows with other texts and numbers in every column of those that is no source."""
    for at, field in enumerate(given.schema):
        if field.name not in sources and pa.types.is_integer(field.type):
            given = given.set_column(at, field, pc.add(given[field.name], pa.scalar(1, field.type)))
        elif field.name not in sources and (pa.types.is_string(field.type) or pa.types.is_large_string(field.type)):
            other = pa.scalar("~", field.type)
            given = given.set_column(at, field, pc.binary_join_element_wise(given[field.name], other, other))
    return given


def _require_same(name: str, whole: Checked, other: Checked, how: str) -> None:
    kept, rejects = whole.kept.combine_chunks(), sorted(map(repr, whole.rejects.to_pylist()))
    assert kept.equals(other.kept.combine_chunks()), f"{name}: other rows are kept, or other values, {how}"
    assert rejects == sorted(map(repr, other.rejects.to_pylist())), f"{name}: other rows are rejected {how}"
    assert whole.manifest.metrics["kept"] == other.manifest.metrics["kept"], f"{name}: other metrics {how}"
