"""The plants of the demo's crawl, and how many of them a run detects."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

KEPT = "kept"
"""Expected outcome of records that are worth keeping."""

SUPERSEDES = "dedup_minhash:supersedes"
"""Outcome of a kept record whose near duplicate of an earlier snapshot is superseded by it."""


@dataclass(frozen=True, slots=True)
class Plant:
    """Records planted for one purpose, and what should become of them.

    `expected` lists what a reason may start with (`dedup_exact:`; `error:` is quarantine; `kept` is none).
    `due` is how many of `records` should have that outcome: of a cluster of n duplicates, n - 1. A record that cannot
    be read has no id and is matched by `places` (file, offset, length). `counts` are planted personal data.
    """

    kind: str
    snapshot: str
    urls: tuple[str, ...]
    records: tuple[str, ...]
    expected: tuple[str, ...]
    due: int
    places: tuple[tuple[str, int, int], ...] = ()
    counts: Mapping[str, int] | None = None
    jaccard: float | None = None


@dataclass(frozen=True, slots=True)
class Truth:
    """All plants, and records by WARC type for each snapshot."""

    seed: int
    records: Mapping[str, Mapping[str, int]]
    plants: tuple[Plant, ...]

    def dump(self) -> str:
        """Return the truth as JSON text."""
        return json.dumps(asdict(self), indent=1, sort_keys=True) + "\n"


def load(path: Path) -> Truth:
    """Read `truth.json`."""
    facts = json.loads(path.read_text("utf-8"))
    return Truth(facts["seed"], facts["records"], tuple(_plant(plant) for plant in facts["plants"]))


def _plant(facts: Mapping[str, Any]) -> Plant:
    tuples = {name: tuple(facts[name]) for name in ("urls", "records", "expected")}
    return Plant(**{**facts, **tuples, "places": tuple(map(tuple, facts["places"]))})


@dataclass(slots=True)
class _Outcomes:
    """What became of records: the reason, or `kept`, by record id; and of damaged stretches, by place."""

    snapshots: set[str] = field(default_factory=set)
    by_record: dict[str, str] = field(default_factory=dict)
    by_place: list[tuple[str, int, str]] = field(default_factory=list)

    def of(self, plant: Plant) -> list[str]:
        """Return the outcomes of a plant's records that are known, then those found at its places."""
        known = [self.by_record[record] for record in plant.records if record in self.by_record]
        return known + [reason for place in plant.places for reason in self._at(*place)]

    def _at(self, name: str, start: int, length: int) -> list[str]:
        """Return the first reason at a place; the offset of an unreadable stretch is within it."""
        reasons = (
            reason for file, offset, reason in self.by_place if file.endswith(name) and start <= offset < start + length
        )
        return list(islice(reasons, 1))


def compare(truth: Truth, rejected: Iterable[Mapping[str, Any]], kept: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return one line per kind of plant: how many are due, found, rejected for another reason, or missed.

    Rows have the locator columns (`snapshot`, `file`, `offset`, `record_id`); rejected rows also `reason`, and kept
    rows the counts of `scrub_pii`, and whether each `supersedes` a near duplicate of an earlier snapshot. Only
    snapshots that occur in the rows are compared, so the rows of one snapshot's run may be given alone.
    """
    survivors = list(kept)
    outcomes = _outcomes(rejected, survivors)
    plants = [plant for plant in truth.plants if plant.snapshot in outcomes.snapshots]
    due, detected, elsewhere = Counter[str](), Counter[str](), Counter[str]()
    for plant in plants:
        worth_keeping = KEPT in plant.expected
        reasons = [KEPT if worth_keeping and why == SUPERSEDES else why for why in outcomes.of(plant)]
        expected = [reason for reason in reasons if reason.startswith(plant.expected)]
        others = [reason for reason in reasons if reason != KEPT and not reason.startswith(plant.expected)]
        due[plant.kind] += plant.due
        detected[plant.kind] += min(len(expected), plant.due)
        elsewhere[plant.kind] += min(len(others), plant.due - min(len(expected), plant.due))
    lines = [_line(kind, due[kind], detected[kind], elsewhere[kind]) for kind in due if due[kind]]
    return lines + _personal_data(plants, survivors)


def _outcomes(rejected: Iterable[Mapping[str, Any]], kept: Iterable[Mapping[str, Any]]) -> _Outcomes:
    outcomes = _Outcomes()
    for row in rejected:
        outcomes.snapshots.add(str(row["snapshot"]))
        outcomes.by_record[_record_id(row)] = str(row["reason"])
        outcomes.by_place.append((str(row["file"]), int(row["offset"]), str(row["reason"])))
    for row in kept:
        outcomes.snapshots.add(str(row["snapshot"]))
        outcomes.by_record[_record_id(row)] = SUPERSEDES if row.get("supersedes") else KEPT
    return outcomes


def _record_id(row: Mapping[str, Any]) -> str:
    return str(row["record_id"]).strip("<>")


def _line(kind: str, due: int, detected: int, elsewhere: int) -> str:
    missed = due - detected - elsewhere
    return f"{kind:<22} planted {due:>5}   found {detected:>5}   other reason {elsewhere:>4}   missed {missed:>4}"


def _personal_data(plants: Iterable[Plant], kept: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return one line per kind of personal data, over the planted pages that were kept."""
    rows = {_record_id(row): row for row in kept}
    due, detected = Counter[str](), Counter[str]()
    for plant in plants:
        if plant.counts and plant.records[0] in rows:
            for name, count in plant.counts.items():
                due[name] += count
                detected[name] += min(count, int(rows[plant.records[0]].get(name) or 0))
    return [_line(name, due[name], detected[name], 0) for name in sorted(due)]
