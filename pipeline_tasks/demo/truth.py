"""What was planted in the demo's crawl, and how much of it a run found."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

KEPT = "kept"
"""Expected outcome of records that are worth keeping."""


@dataclass(frozen=True, slots=True)
class Plant:
    """Records planted for one purpose, and what should become of them.

    `expected` lists what a reason may start with (`dedup_exact:`; `error:` is quarantine; `kept` is none).
    `due` is how many of `records` should meet it: of a cluster of n duplicates, n - 1. A record that cannot
    be read has no id, so `places` (file, offset, length) finds it. `counts` are planted personal data.
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
    plants = [
        Plant(**{**one, "places": tuple(map(tuple, one["places"]))} | {name: tuple(one[name]) for name in _TUPLES})
        for one in facts["plants"]
    ]
    return Truth(facts["seed"], facts["records"], tuple(plants))


_TUPLES = ("urls", "records", "expected")


def compare(truth: Truth, rejected: Iterable[Mapping[str, Any]], kept: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return one line per kind of plant: how many are due, found, set aside for another reason, or missed.

    Rows carry the locator columns (`snapshot`, `file`, `offset`, `record_id`); rejected ones `reason` too,
    kept ones the counts of `scrub_pii`. Only snapshots that occur in the rows are compared, so the findings
    of one day's run may be given alone.
    """
    set_aside, survivors = list(rejected), list(kept)
    outcomes = {_key(row): str(row["reason"]) for row in set_aside}
    outcomes.update({_key(row): KEPT for row in survivors})
    damaged = [(str(row["file"]), int(row["offset"]), str(row["reason"])) for row in set_aside]
    seen = {str(row["snapshot"]) for row in [*set_aside, *survivors]}
    due, found, elsewhere = Counter[str](), Counter[str](), Counter[str]()
    for plant in truth.plants:
        if plant.snapshot in seen:
            results = [outcomes[record] for record in plant.records if record in outcomes] + _at(plant, damaged)
            met = sum(result.startswith(plant.expected) for result in results)
            due[plant.kind] += plant.due
            found[plant.kind] += min(met, plant.due)
            other = sum(result != KEPT and not result.startswith(plant.expected) for result in results)
            elsewhere[plant.kind] += min(other, plant.due - min(met, plant.due))
    lines = [_line(kind, due[kind], found[kind], elsewhere[kind]) for kind in due if due[kind]]
    return lines + _personal(truth, seen, survivors)


def _key(row: Mapping[str, Any]) -> str:
    return str(row["record_id"]).strip("<>")


def _at(plant: Plant, damaged: list[tuple[str, int, str]]) -> list[str]:
    """Return the first reason at each place of `plant`; offsets of unreadable stretches fall within it."""
    reasons = []
    for name, start, length in plant.places:
        hits = [why for file, offset, why in damaged if file.endswith(name) and start <= offset < start + length]
        reasons += hits[:1]
    return reasons


def _line(kind: str, due: int, found: int, elsewhere: int) -> str:
    missed = due - found - elsewhere
    return f"{kind:<22} planted {due:>5}   found {found:>5}   other reason {elsewhere:>4}   missed {missed:>4}"


def _personal(truth: Truth, seen: set[str], survivors: list[Mapping[str, Any]]) -> list[str]:
    """Return one line per kind of personal data, over the planted pages that were kept."""
    rows = {_key(row): row for row in survivors}
    due, found = Counter[str](), Counter[str]()
    for plant in truth.plants:
        if plant.snapshot in seen and plant.counts and plant.records[0] in rows:
            for name, count in plant.counts.items():
                due[name] += count
                found[name] += min(count, int(rows[plant.records[0]].get(name) or 0))
    return [_line(name, due[name], found[name], 0) for name in sorted(due)]
