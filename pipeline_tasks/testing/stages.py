"""The suite of stages: rows are conserved, and are the same for any batches and again; the card says what it does.

Of no rows a stage keeps none, with the columns that it always has.
"""

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from pipeline_tasks.cards import is_stage, stage_card
from pipeline_tasks.errors import RefineryError
from pipeline_tasks.facets import DEAREST
from pipeline_tasks.manifest import Manifest
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
        return Checked(rows(root, manifest), rows(root, manifest, "rejects"), manifest)


def _check_rows(name: str, given: pa.Table, whole: Checked) -> None:
    manifest, card = whole.manifest, stage_card(name)
    assert not manifest.quarantined, f"{name} quarantined {dict(manifest.quarantined)}"
    if card.conserves == "rows":
        left = len(whole.kept) + len(whole.rejects)
        assert left == len(given), f"{name}: of {len(given)} rows {len(whole.kept)} were kept, {left} accounted for"
    unknown = sorted(set(manifest.rejected) - set(card.reasons))
    assert not unknown, f"{name}: the card does not have the reasons {', '.join(unknown)}"
    for row in whole.rejects.select(["reason", "evidence"]).to_pylist() if len(whole.rejects) else ():
        assert json.loads(row["evidence"] or "null") is not None, f"{name}: {row['reason']} has no evidence"


def _require_same(name: str, whole: Checked, other: Checked, how: str) -> None:
    kept, rejects = whole.kept.combine_chunks(), sorted(map(repr, whole.rejects.to_pylist()))
    assert kept.equals(other.kept.combine_chunks()), f"{name}: other rows are kept, or other values, {how}"
    assert rejects == sorted(map(repr, other.rejects.to_pylist())), f"{name}: other rows are rejected {how}"
    assert whole.manifest.metrics["kept"] == other.manifest.metrics["kept"], f"{name}: other metrics {how}"
