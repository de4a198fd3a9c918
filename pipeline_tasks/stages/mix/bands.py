"""Cut each group at exact quantiles of a number: count its values, find the documents on borders, name the bands.

Two rounds find the borders, so that no worker holds a group. The first counts ranges of values. The second orders the
documents of those ranges alone in which a border is. Everything is whole numbers and orders of values and ids, so that
bands do not depend on shards, batches or engines.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate, pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.stage import Batches, Engine, Layer, Shards, buckets_for, column_of, replace_column
from pipeline_tasks.stages.mix.groups import groups_of
from pipeline_tasks.stages.mix.params import Params
from pipeline_tasks.stages.mix.quality import BAND, Quality

RANGE_BITS = 46
"""Bits of a double that a range leaves out: 64 ranges for each power of two. So few documents share a border's."""

_COUNT = pa.schema([pa.field("group", pa.string()), pa.field("range", pa.int64()), pa.field("weight", pa.int64())])

_RANGES = pa.schema(
    [
        pa.field("group", pa.string()),
        pa.field("range", pa.int64()),
        pa.field("before", pa.int64()),  # weight of the group in lower ranges
        pa.field("total", pa.int64()),  # weight of the group
    ]
)
"""Ranges of values in which a group has a border."""

_DOCUMENTS = pa.schema(
    [
        pa.field("group", pa.string()),
        pa.field("value", pa.float64()),
        pa.field("id", pa.string()),
        pa.field("weight", pa.int64()),
        *(_RANGES.field(name) for name in ("before", "total")),
    ]
)

BORDERS = pa.schema(
    [
        pa.field("group", pa.string()),
        pa.field("band", pa.int64()),
        pa.field("value", pa.float64()),
        pa.field("id", pa.string()),
    ]
)
"""The last document of each band of each group but the highest band: what is above it is in a higher band."""


def banded(shards: Shards, params: Params, quality: Quality, on: Engine) -> tuple[Shards, Shards]:
    """Return the shards with the column `quality_band`, and the borders of the bands."""
    top = quality.column.partition(".")[0]
    reads = ("id", "n_tokens", *params.by.split("+"), top)
    counts = on.map(partial(count_ranges, params=params, quality=quality), shards, reads=reads)
    ranges = on.group(partial(border_ranges, quality=quality), counts, by="group", order=("range", "weight"), buckets=1)
    documents = on.map(partial(documents_in, params=params, quality=quality), shards, broadcast=ranges, reads=reads)
    buckets = buckets_for(documents)
    found = on.group(
        partial(borders, quality=quality), documents, by="group", order=("value", "id", "weight"), buckets=buckets
    )
    layer = Layer(reads=reads, stores=(BAND,))
    return on.map(partial(name_bands, params=params, quality=quality), shards, broadcast=found, layer=layer), found


def count_ranges(docs: Batches, *, params: Params, quality: Quality) -> Batches:
    """Yield the shard's weight per group and range of values, sorted."""
    weights: Counter[tuple[str, int]] = Counter()
    for batch in docs:
        table = _weighed(batch, params, quality)
        columns = {"group": table["group"], "range": _ranges(table["value"]), "weight": table["weight"]}
        for row in pa.table(columns).group_by(["group", "range"]).aggregate([("weight", "sum")]).to_pylist():
            weights[row["group"], row["range"]] += row["weight_sum"]
    rows = [dict(zip(_COUNT.names, (*key, weights[key]), strict=True)) for key in sorted(weights)]
    yield pa.RecordBatch.from_pylist(rows, schema=_COUNT)


def _weighed(batch: pa.RecordBatch, params: Params, quality: Quality) -> pa.RecordBatch:
    """Return group, value, id and weight of the documents that have a value."""
    values = values_of(batch, quality)
    ones = pa.array(np.ones(batch.num_rows, np.int64))
    columns = {
        "group": groups_of(batch, params),
        "value": values,
        "id": batch["id"],
        "weight": batch["n_tokens"].cast(pa.int64()) if quality.measure == "tokens" else ones,
    }
    return pa.RecordBatch.from_pydict(columns).filter(pc.is_valid(values))


def values_of(batch: pa.RecordBatch, quality: Quality) -> pa.Array:
    """Return the number that bands are of, null where there is none; RecipeError if it is no number."""
    if quality.column.partition(".")[0] not in batch.schema.names:
        message = f"mix.quality: the documents have no column {quality.column!r}; name a number that a stage wrote"
        raise RecipeError(message)
    column = column_of(batch, quality.column, "mix.quality")
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        message = f"mix.quality: {quality.column} is a column of {column.type}; bands cut numbers"
        raise RecipeError(message)
    values = np.asarray(column.cast(pa.float64(), safe=False).fill_null(np.nan)) + 0.0  # one zero, not two
    return pa.array(values, mask=np.isnan(values))


def _ranges(values: pa.Array) -> pa.Array:
    """Return the range of each value: whole numbers in the order of the values."""
    bits = np.asarray(values).view(np.int64)
    return pa.array((bits ^ ((bits >> 63) & np.int64(2**63 - 1))) >> RANGE_BITS)


def border_ranges(counts: Batches, *, quality: Quality) -> Batches:
    """Yield the ranges in which each group has a border, and what it has below them: rows of `_RANGES`."""
    groups: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for batch in counts:
        for row in batch.to_pylist():
            groups[row["group"]][row["range"]] += row["weight"]
    rows = []
    for group, weights in sorted(groups.items()):
        ranges = sorted(weights)
        through = np.fromiter(accumulate(weights[number] for number in ranges), np.int64, len(ranges))
        total = int(through[-1])
        at = np.unique(np.searchsorted(through, _targets(total, quality.bands)))
        for index in at[at < len(ranges)].tolist() if total else ():
            before = int(through[index]) - weights[ranges[index]]
            rows.append({"group": group, "range": ranges[index], "before": before, "total": total})
    yield pa.RecordBatch.from_pylist(rows, schema=_RANGES)


def _targets(total: int, bands: int) -> npt.NDArray[np.int64]:
    """Return what is to be in the lowest band, in the lowest two, and so on: the weight at each border."""
    return np.fromiter((-(-band * total // bands) for band in range(1, bands)), np.int64, bands - 1)


def documents_in(docs: Batches, ranges: Batches, *, params: Params, quality: Quality) -> Batches:
    """Yield the documents of the ranges in which their group has a border: rows of `_DOCUMENTS`."""
    table = pa.Table.from_batches(ranges, schema=_RANGES).combine_chunks()
    known = _keys(table["group"].combine_chunks(), table["range"].combine_chunks())
    yield pa.RecordBatch.from_pylist([], schema=_DOCUMENTS)
    for batch in docs:
        rows = _weighed(batch, params, quality)
        at = pc.index_in(_keys(rows["group"], _ranges(rows["value"])), value_set=known)
        for name in ("before", "total"):
            rows = rows.append_column(name, table[name].combine_chunks().take(at))
        yield rows.filter(pc.is_valid(at)).cast(_DOCUMENTS)


def _keys(groups: pa.Array, ranges: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(groups, ranges.cast(pa.string()), "\0")


def borders(documents: Batches, *, quality: Quality) -> Batches:
    """Yield the borders of each group, whose documents come sorted by value and id: rows of `BORDERS`.

    The border of a band is the document with which the group reaches what is to be in it and all lower ones.
    """
    run, through = ("", -1), 0
    yield pa.RecordBatch.from_pylist([], schema=BORDERS)
    for batch in documents:
        rows = []
        for key, start, stop in _runs(batch):
            part = batch.slice(start, stop - start)
            through = key[1] if key != run else through
            sums = through + np.cumsum(np.asarray(part["weight"]))
            targets = _targets(part["total"][0].as_py(), quality.bands)
            first, last = np.searchsorted(targets, [through, int(sums[-1])], side="right")
            for band in range(first, last):
                at = int(np.searchsorted(sums, targets[band]))
                rows.append([key[0], band + 1, part["value"][at], part["id"][at]])
            run, through = key, int(sums[-1])
        columns = zip(*rows, strict=True) if rows else [[]] * len(BORDERS)
        yield pa.RecordBatch.from_arrays(
            [pa.array(list(column), entry.type) for column, entry in zip(columns, BORDERS, strict=True)], schema=BORDERS
        )


def _runs(batch: pa.RecordBatch) -> Iterator[tuple[tuple[str, int], int, int]]:
    """Yield (group, weight before) of each run of rows that have both alike, and where it starts and ends."""
    groups, before = batch["group"].dictionary_encode(), np.asarray(batch["before"])
    codes = np.asarray(groups.indices)
    changes = np.flatnonzero((codes[1:] != codes[:-1]) | (before[1:] != before[:-1])) + 1
    edges = [0, *changes.tolist(), batch.num_rows] if batch.num_rows else []
    for start, stop in pairwise(edges):
        yield (groups.dictionary[int(codes[start])].as_py(), int(before[start])), start, stop


Ends = Mapping[str, Sequence[tuple[float, str]]]
"""Value and id of the last document of each band but the highest, by group, in order."""


def ends_of(found: Batches) -> Ends:
    """Return the borders of each group, the lowest first."""
    ends: defaultdict[str, list[tuple[int, float, str]]] = defaultdict(list)
    for batch in found:
        for row in batch.to_pylist():
            ends[row["group"]].append((row["band"], row["value"], row["id"]))
    return {group: [(value, id_) for _, value, id_ in sorted(rows)] for group, rows in ends.items()}


def name_bands(docs: Batches, found: Batches, *, params: Params, quality: Quality) -> Batches:
    """Yield every document with its band within its group, null without a value."""
    ends = ends_of(found)
    for batch in docs:
        column, groups = values_of(batch, quality), groups_of(batch, params).dictionary_encode()
        values, codes = np.asarray(column.fill_null(np.nan)), np.asarray(groups.indices)
        bands = np.ones(batch.num_rows, np.int64)
        for code, group in enumerate(groups.dictionary.to_pylist()):
            at = np.flatnonzero(codes == code)
            bands[at] += _borders_below(values[at], batch["id"].take(pa.array(at)), ends.get(group, ()))
        yield replace_column(batch, BAND, pa.array(bands, mask=np.isnan(values)))


def _borders_below(
    values: npt.NDArray[np.float64], ids: pa.Array, ends: Sequence[tuple[float, str]]
) -> npt.NDArray[np.int64]:
    """Return how many borders are below each document, by value and then by id."""
    below = np.searchsorted(np.asarray([value for value, _ in ends], np.float64), values, side="left")
    for value, id_ in ends:
        tied = np.flatnonzero(values == value)
        if len(tied):
            below[tied] += np.asarray(pc.greater(ids.take(pa.array(tied)), id_)).astype(np.int64)
    return below
