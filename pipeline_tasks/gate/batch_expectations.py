"""Reads expectations over batches, and the suites that a team brings; refuses what is misspelt."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline_tasks.cards import is_stage, stage_names
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.gate.batches import BATCHES
from pipeline_tasks.gate.suites import FACTS, OPEN, SEVERITIES, batch_of, is_bound, origin_of, read_suite
from pipeline_tasks.nearest import nearest
from pipeline_tasks.recipe import EVERY, PUBLISH, VERDICT

FOLDER = "REFINERY_EXPECTATIONS"
"""Names a folder of suites that are added to ours."""

RANKS = (*SEVERITIES, "info")
"""Severities of an expectation over a batch: one that only informs changes no outcome."""

KEYS = ("type", "kwargs", "severity", "notes", "meta", "id", "description", "rendered_content")
"""What an expectation may have, as Great Expectations writes it."""

COLUMNS = ("column", "column_A", "column_B", "column_list")
"""Arguments that name columns of the batch."""


@dataclass(frozen=True, slots=True)
class BatchExpectation:
    """An expectation of Great Expectations over a batch of a gate; `origin` is its suite's file."""

    gate: str
    batch: str
    type: str
    kwargs: Mapping[str, Any]
    severity: str
    notes: str
    remedy: str
    needs: Mapping[str, float]
    origin: str

    @property
    def columns(self) -> list[str]:
        """The columns of the batch that it names."""
        named = [self.kwargs[name] for name in COLUMNS if name in self.kwargs]
        return [str(column) for each in named for column in (each if isinstance(each, list) else [each])]

    @property
    def title(self) -> str:
        """Its batch, type and columns."""
        return " ".join([f"{self.batch}:", self.type, *self.columns])


def own_suites() -> list[Path]:
    """Return the suites of the folder that `REFINERY_EXPECTATIONS` names; RecipeError if there is no such folder."""
    folder = os.environ.get(FOLDER, "")
    if folder and not Path(folder).is_dir():
        message = f"{FOLDER} is {folder}, and there is no such folder; correct it, or leave it out for our suites alone"
        raise RecipeError(message)
    return sorted(Path(folder).glob("*.json")) if folder else []


def gate_of(path: Path) -> str:
    """Return the gate that a suite is for: that of its meta, or else the name of its file; RecipeError for no gate."""
    gate = str(read_suite(path)["meta"].get("gate", path.stem))
    if gate not in (EVERY, PUBLISH, VERDICT) and not is_stage(gate):
        near = nearest(gate, (EVERY, PUBLISH, VERDICT, *stage_names()))
        message = (
            f"{origin_of(path)} is for no gate: {gate!r} is no stage{near}; name the file as one, or say meta: gate"
        )
        raise RecipeError(message)
    return gate


def batch_expectations_at(path: Path, gate: str) -> list[BatchExpectation]:
    """Return the expectations of a suite over batches; RecipeError for what Great Expectations would not read."""
    suite = read_suite(path)
    return [_read(raw, suite, gate, origin_of(path)) for raw in suite["expectations"] if not is_bound(raw, suite)]


def _read(raw: Mapping[str, Any], suite: Mapping[str, Any], gate: str, origin: str) -> BatchExpectation:
    kind, kwargs, severity = str(raw.get("type", "")), raw.get("kwargs", {}), raw.get("severity", SEVERITIES[0])
    where = f"{origin}: {kind or 'an expectation without a type'}"
    _require(where, "batch", batch_of(raw, suite), tuple(BATCHES))
    _require(where, "severity", str(severity), RANKS)
    for key in raw:
        _require(where, "key", key, KEYS)
    if not isinstance(kwargs, Mapping):
        message = f"{where}: kwargs must be a mapping, not {kwargs!r}"
        raise RecipeError(message)
    meta = raw["meta"]
    needs = meta.get("needs", suite["meta"].get("needs", {}))
    notes = " ".join(raw["notes"]) if isinstance(raw.get("notes"), list) else raw.get("notes") or ""
    return BatchExpectation(
        gate=gate,
        batch=batch_of(raw, suite),
        type=kind,
        kwargs=dict(kwargs),
        severity=str(severity),
        notes=notes,
        remedy=meta.get("remedy", ""),
        needs=needs,
        origin=origin,
    )


def check_kinds(expectations: Sequence[BatchExpectation], kinds: Mapping[str, Mapping[str, bool]]) -> None:
    """Raise RecipeError for a type that there is not, or arguments that it does not have or needs.

    `kinds` has the arguments of each type, and whether it needs them.
    """
    for each in expectations:
        _require(each.origin, "expectation type", each.type, tuple(kinds))
        arguments, where = kinds[each.type], f"{each.origin}: {each.type}"
        for name in each.kwargs:
            _require(where, "argument", name, tuple(arguments))
        for name in (name for name, needed in arguments.items() if needed and name not in each.kwargs):
            message = f"{where}: its argument {name!r} is missing"
            raise RecipeError(message)
        _check_values(where, each.kwargs)


def _check_values(where: str, kwargs: Mapping[str, Any]) -> None:
    """Raise RecipeError for a share or a regular expression that is none: Great Expectations says so of rows alone."""
    share = kwargs.get("mostly", 1)
    if isinstance(share, bool) or not (isinstance(share, int | float) and 0 <= share <= 1):
        message = f"{where}: `mostly` is a share of the rows, from 0 to 1, not {share!r}"
        raise RecipeError(message)
    for regex in (kwargs.get("regex", ""), *kwargs.get("regex_list", ())):
        try:
            re.compile(str(regex))
        except re.error as error:
            message = f"{where}: {regex!r} is no regular expression: {error}"
            raise RecipeError(message) from error


def check_columns(expectation: BatchExpectation, known: Sequence[str]) -> None:
    """Raise RecipeError for a column that a batch cannot have."""
    where = f"{expectation.origin}: {expectation.type}"
    for column in expectation.columns:
        if expectation.batch == FACTS and column.startswith(OPEN):
            continue  # its name is of the snapshot's languages, types or signals
        _require(where, f"column of the batch `{expectation.batch}` of {expectation.gate}", column, known)


def _require(where: str, what: str, name: str, known: Sequence[str]) -> None:
    if name not in known:
        most = f"; there are {', '.join(known)}" if len(known) <= len(KEYS) else ""
        message = f"{where}: there is no {what} {name!r}{nearest(name, known)}{most}"
        raise RecipeError(message)


def named_batches(expectations: Sequence[BatchExpectation]) -> Iterator[tuple[str, list[BatchExpectation]]]:
    """Yield each batch that expectations name, with those over it."""
    for name in BATCHES:
        if over := [each for each in expectations if each.batch == name]:
            yield name, over
