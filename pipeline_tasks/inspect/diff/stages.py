"""Finds what differs between the manifests of two versions: settings, code and inputs, rows, and distributions."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pipeline_tasks.gate.facts.comparison import psi
from pipeline_tasks.gate.facts.subject import profiles_of
from pipeline_tasks.inspect.chosen import document_manifest
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.profiles.merging import quantile
from pipeline_tasks.sealed import canonical

MIDDLE = 0.5
URL = "url"
"""Column that every table of pages and documents has, and no other."""

LARGE, MODERATE = 0.25, 0.1
"""Population stability index from which on a shift is called large or moderate, as gates refuse and warn."""

FEWEST_ROWS = 100
"""Rows below which nothing is called a shift: chance is that of independent rows, and few pages are of a few sites."""

UNDECIDED = "too few rows to tell"

Rows = tuple[int | None, int | None]
"""Rows of something in both versions; None where nothing counted them."""

Manifests = Mapping[str, Manifest]
"""Manifests by stage, in order."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A setting that differs; None on a side that lacks it. Of lists only the elements that the other has not."""

    setting: str
    a: Any
    b: Any


@dataclass(frozen=True, slots=True)
class StageDifference:
    """A stage of one version or both: rows that came in and stayed (None where nothing counted them).

    `reasons` are the rows that it rejected or quarantined in each version, by reason; None where there is no such
    stage, which `present` says of each version.
    """

    stage: str
    rows_in: Rows
    rows: Rows
    differences: tuple[Difference, ...]
    reasons: Mapping[str, Rows]
    present: tuple[bool, bool] = (True, True)


@dataclass(frozen=True, slots=True)
class Shift:
    """How the values of a column differ: the population stability index, and what chance leaves open of it.

    `rows` are those of the version that has fewer. `a` and `b` are the medians of a column of numbers, None of a column
    of names.
    """

    column: str
    stage: str
    psi: float
    low: float
    high: float
    rows: int
    a: float | None
    b: float | None

    @property
    def size(self) -> str:
        """How large the shift surely is; few rows differ by chance alone, or do not differ by chance."""
        if self.high < MODERATE:
            return ""
        if self.rows < FEWEST_ROWS or self.low < MODERATE <= self.psi:
            return UNDECIDED
        return "large" if self.low >= LARGE else "moderate" if self.low >= MODERATE else ""

    @property
    def is_sure(self) -> bool:
        """Whether the column has surely shifted."""
        return self.size not in ("", UNDECIDED)

    @property
    def known_psi(self) -> float | None:
        """The index; None where the rows are too few to tell."""
        return None if self.size == UNDECIDED else self.psi


# --- Settings -------------------------------------------------------------------------------------------------------


def stage_differences(a: Manifests, b: Manifests) -> list[StageDifference]:
    """Return every stage of both versions, in order, with the settings that differ."""
    return [_stage_difference(stage, a.get(stage), b.get(stage)) for stage in _stages(a, b)]


def _stages(a: Manifests, b: Manifests) -> list[str]:
    """Return the stages of `b` in order, each stage of `a` alone behind the one that it follows there."""
    stages = list(b)
    for before, stage in zip((None, *a), a, strict=False):
        if stage not in b:
            stages.insert(stages.index(before) + 1 if before is not None else 0, stage)
    return stages


def _stage_difference(stage: str, a: Manifest | None, b: Manifest | None) -> StageDifference:
    left, right = _rows(a), _rows(b)
    differences = tuple(_differences(a, b)) if a and b else ()
    rows_in, rows = (left[0], right[0]), (left[1], right[1])
    return StageDifference(stage, rows_in, rows, differences, _reasons(a, b), (a is not None, b is not None))


def _reasons(a: Manifest | None, b: Manifest | None) -> dict[str, Rows]:
    """Return the rows of each reason in both manifests, the most frequent reason first."""
    left, right = ({**of.rejected, **of.quarantined} if of else None for of in (a, b))
    pairs = {reason: (_count(left, reason), _count(right, reason)) for reason in {**(left or {}), **(right or {})}}
    return dict(sorted(pairs.items(), key=lambda pair: (-max(filter(None, pair[1]), default=0), pair[0])))


def _count(reasons: Mapping[str, int] | None, reason: str) -> int | None:
    """Return the rows of a reason; None of a stage that is not there, which rejected none because it did not run."""
    return None if reasons is None else reasons.get(reason, 0)


def _rows(manifest: Manifest | None) -> tuple[int | None, int | None]:
    """Return the rows that came in, offspring with them, and stayed; None for those of landed files."""
    return (None, None) if manifest is None or manifest.landed else (manifest.rows_due, manifest.rows)


def _differences(a: Manifest, b: Manifest) -> Iterator[Difference]:
    left, right = _settings(a), _settings(b)
    for name in sorted({*left, *right}):
        if left.get(name) != right.get(name):
            yield Difference(name, *_without_common(left.get(name), right.get(name)))


def _settings(manifest: Manifest) -> dict[str, Any]:
    """Return what decides the output of a stage: params, code, files that params name, history, and landed files."""
    settings = {
        **dict(_flat("params", manifest.params)),
        **dict(_flat("resources", manifest.resources)),
        **dict(_flat("libraries", manifest.libraries)),
        "version": manifest.version,
        "writer": manifest.writer,
        "history": list(manifest.parents[1:]),
    }
    files = [f"{shard.path} {shard.digest}" for shard in manifest.shards] if manifest.landed else []
    return settings | {"files": files}


def _flat(name: str, value: object) -> Iterator[tuple[str, Any]]:
    """Yield the leaves of nested settings, their names joined by dots."""
    if isinstance(value, Mapping) and value:
        for key in value:
            yield from _flat(f"{name}.{key}", value[key])
    elif value != {}:
        yield name, value


def _without_common(a: object, b: object) -> tuple[object, object]:
    if not (isinstance(a, list) and isinstance(b, list)):
        return a, b
    left, right = ({canonical(part): part for part in parts} for parts in (a, b))
    own = [part for key, part in left.items() if key not in right]
    others = [part for key, part in right.items() if key not in left]
    return (own, others) if own or others else (a, b)


# --- Distributions --------------------------------------------------------------------------------------------------


def shifts(a: Manifests, b: Manifests) -> list[Shift]:
    """Return the shift of each column, as the last stage that profiles it in both has it, the largest first.

    Those of too few rows come last.
    Rows of packed sequences do not count, whose columns have the names of those of documents.
    """
    by_column: dict[str, Shift] = {}
    for stage in (stage for stage in b if stage in a and URL in dict(b[stage].schema)):
        by_column |= {shift.column: shift for shift in _stage_shifts(stage, a[stage], b[stage])}
    return sorted(by_column.values(), key=lambda shift: (shift.known_psi is None, -shift.psi, shift.column))


def _stage_shifts(stage: str, a: Manifest, b: Manifest) -> Iterator[Shift]:
    before, now = profiles_of(a), profiles_of(b)
    for column in sorted({*before} & {*now} & set(dict(b.schema))):
        if before[column]["kind"] == now[column]["kind"]:
            index = psi(now[column], before[column])
            if index is not None:
                medians = _median(before[column]), _median(now[column])
                yield Shift(column, stage, index.value, index.low, index.high, index.rows, *medians)


def _median(column: Mapping[str, Any]) -> float | None:
    return None if column["kind"] == "name" else quantile(column, MIDDLE)


def names_of(manifests: Manifests, column: str) -> dict[str, int]:
    """Return the documents of a version by value of a column of names; empty where no manifest has just these.

    Before deduplication, and wherever else rows are lost later, a profile has other documents than the version.
    """
    documents = document_manifest(manifests)
    if documents is None:
        return {}
    for manifest in reversed([*manifests.values()]):
        profile = profiles_of(manifest).get(column)
        if profile and profile["kind"] == "name" and manifest.rows == documents.rows and URL in dict(manifest.schema):
            return dict(sorted(profile["bins"].items()))
    return {}
