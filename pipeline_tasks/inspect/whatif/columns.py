"""Predicts what a version would keep by conditions on columns of its documents: types, topics, scores, or any other."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.conditions import Condition
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.chosen import ordered_manifests
from pipeline_tasks.inspect.conditions import Conditions, columns_read, conditions_of, meets, select_lines
from pipeline_tasks.inspect.grouping import can_group, columns_grouped, groups_of
from pipeline_tasks.inspect.tokens import tokens_of
from pipeline_tasks.inspect.whatif import ALL, sampled_shards
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.store.reading import read_manifest, read_shards

pc: Any = pyarrow.compute

BY = ("language", "source")
"""Columns whose values are the groups, unless another is named: the first that the documents have."""

ESTIMATE, CHARS = "token_estimate", "chars"

VALUES_SHOWN = 12
"""Values of a column that are named, the most frequent."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Documents and their tokens, (now, then); tokens are None where nothing says how many a document has."""

    documents: tuple[int, int]
    tokens: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class ColumnForecast:
    """What conditions would keep of a version's documents, as a whole and by the values of the column `by`.

    `alone` are the documents that each condition would keep by itself. Tokens are those that `enrich` estimates
    (`tokens_by` is `token_estimate`), else those of the version by the characters (`chars`), or unknown (""). Counts
    are exact if `rows_read` has all `rows`, and estimates if not.
    """

    recipe: str
    snapshot: str
    conditions: Mapping[str, Condition]
    alone: Mapping[str, int]
    by: str
    whole: Kept
    groups: Mapping[str, Kept]
    tokens_by: str
    rows_read: int
    rows: int


@dataclass(frozen=True, slots=True)
class KnownColumn:
    """A column that conditions may name, its type, its most frequent values, and its lowest and highest bin.

    Both are what the stage that wrote it counted; a column that no stage profiles has neither.
    """

    name: str
    kind: str
    values: Sequence[str] = ()
    ends: tuple[float, float] | None = None


def columns_of(root: str, version: Version) -> dict[str, str]:
    """Return the types of the columns of a version's documents by name."""
    return dict(read_manifest(root, version.refined).schema)


def default_group(columns: Mapping[str, str]) -> str:
    """Return the column that groups documents where none is named."""
    return next(name for name in BY if name in columns)


def known_columns(root: str, version: Version) -> list[KnownColumn]:
    """Return the columns of a version's documents that conditions may name, with what its manifests say of them."""
    profiles: dict[str, Any] = {}
    for manifest in ordered_manifests(root, version).values():
        profiles |= manifest.metrics.get("kept", {})
    return [
        _known(name, kind, profiles.get(name, {}))
        for name, kind in columns_of(root, version).items()
        if _is_plain(kind)
    ]


def _is_plain(kind: str) -> bool:
    return not kind.startswith(("list", "large_list", "struct", "map", "binary", "large_binary"))


def _known(name: str, kind: str, profile: Mapping[str, Any]) -> KnownColumn:
    bins: Mapping[str, int] = profile.get("bins", {})
    if not bins:
        return KnownColumn(name, kind)
    if profile["kind"] == "name":
        return KnownColumn(name, kind, sorted(bins, key=lambda value: (-bins[value], value))[:VALUES_SHOWN])
    scale = 100 if profile["kind"] == "ratio" else 1
    numbers = [int(key) / scale for key in bins]
    return KnownColumn(name, kind, (), (min(numbers), max(numbers)))


def whatif_columns(
    root: str, version: Version, written: Sequence[str], by: str = "", most: int = ALL
) -> ColumnForecast:
    """Return what conditions, as `conditions_of` reads them, would keep of a version's documents.

    Of a version with more than `most` documents whole shards are read, in the order of their digests. RecipeError for a
    column that the documents do not have, which names those that they have, and for a condition that it cannot meet.
    """
    manifest = read_manifest(root, version.refined)
    columns = dict(manifest.schema)
    conditions = conditions_of(written, columns)
    by = by or default_group(columns)
    if not can_group([*columns], by):
        message = f"--by {by[:100]!r}: the documents have no column of this name; they have {', '.join(columns)}"
        raise RecipeError(message)
    tokens_by = next((name for name in (ESTIMATE, CHARS) if name in columns), "")
    sample, weight = sampled_shards(manifest.shards, most / max(manifest.rows, 1))
    tally = _Tally(conditions, by, tokens_by)
    for batch in read_shards(root, sample, [*columns_read(conditions), *columns_grouped(by), tokens_by]):
        tally.add(batch)
    rate = _rate(root, version, manifest, tally, tokens_by)
    groups = sorted(tally.groups, key=lambda name: (-tally.groups[name][0], name))
    return ColumnForecast(
        recipe=version.recipe,
        snapshot=version.snapshot,
        conditions=conditions,
        alone={name: round(count * weight) for name, count in tally.alone.items()},
        by=by,
        whole=_kept(sum(tally.groups.values(), np.zeros(4)), weight, rate),
        groups={name: _kept(tally.groups[name], weight, rate) for name in groups},
        tokens_by=tokens_by if rate is not None else "",
        rows_read=tally.rows,
        rows=manifest.rows,
    )


class _Tally:
    """Counts documents and the sizes of their texts by group, all and those that meet the conditions."""

    def __init__(self, conditions: Conditions, by: str, size: str) -> None:
        self._conditions, self._by, self._size = conditions, by, size
        self.rows = 0
        self.groups: defaultdict[str, npt.NDArray[np.float64]] = defaultdict(lambda: np.zeros(4))
        self.alone = dict.fromkeys(conditions, 0)

    def add(self, batch: pa.RecordBatch) -> None:
        self.rows += batch.num_rows
        for name, condition in self._conditions.items():
            self.alone[name] += pc.sum(meets(batch, {name: condition})).as_py() or 0
        names = groups_of(batch, self._by)
        sizes = batch[self._size] if self._size else pa.array([0] * batch.num_rows, pa.int64())
        judged = pa.table({"name": names, "met": meets(batch, self._conditions), "size": sizes})
        for group in judged.group_by(["name", "met"]).aggregate([([], "count_all"), ("size", "sum")]).to_pylist():
            amounts = np.array([group["count_all"], group["size_sum"] or 0], np.float64)
            self.groups[group["name"]] += np.concatenate([amounts, amounts * group["met"]])


def _rate(root: str, version: Version, manifest: Manifest, tally: _Tally, tokens_by: str) -> float | None:
    """Return the tokens of one unit of size; None where nothing says so."""
    if tokens_by == ESTIMATE:
        return 1.0
    read = sum(float(amounts[1]) for amounts in tally.groups.values())
    tokens = tokens_of(root, version) if read else 0
    return tokens * (tally.rows / manifest.rows) / read if tokens else None


def _kept(amounts: npt.NDArray[np.float64], weight: float, rate: float | None) -> Kept:
    documents, size, kept, kept_size = (float(amount) * weight for amount in amounts)
    tokens = None if rate is None else (round(size * rate), round(kept_size * rate))
    return Kept((round(documents), round(kept)), tokens)


# --- Output ---------------------------------------------------------------------------------------------------------


def column_facts(forecast: ColumnForecast) -> dict[str, Any]:
    """Return the forecast as plain JSON values."""
    return asdict(forecast)


def column_lines(forecast: ColumnForecast) -> Iterator[str]:
    """Yield the forecast for a person, and what a build's recipe says to keep the same."""
    rows = {"all": forecast.whole, **forecast.groups}
    width = max(len(forecast.by), *(len(name) for name in rows)) + 2
    about = "" if forecast.rows_read == forecast.rows else f", estimated from {forecast.rows_read:,}"
    yield f"{forecast.snapshot} of {forecast.recipe}: {forecast.rows:,} documents{about}"
    for name, count in forecast.alone.items():
        yield f"{name} alone: {count:,} would stay"
    yield ""
    yield f"{forecast.by:<{width}}{'documents':>11}{'then':>11}{'share':>8}{'tokens':>15}{'then':>15}"
    for name, kept in rows.items():
        now, then = kept.documents
        tokens = "".join(f"{count:>15,}" for count in kept.tokens or ())
        yield f"{name:<{width}}{now:>11,}{then:>11,}{then / max(now, 1):>8.1%}{tokens}"
    if forecast.tokens_by:
        how = "`enrich` estimates them" if forecast.tokens_by == ESTIMATE else "those of the version, by characters"
        yield f"tokens: {how}"
    yield ""
    yield from select_lines(forecast.conditions)
