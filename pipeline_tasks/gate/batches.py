"""Makes the batches that expectations of suites are over: the facts, a sample of the rows, and the histograms."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.cards import known_card
from pipeline_tasks.filters import load_filters
from pipeline_tasks.gate.estimates import Facts
from pipeline_tasks.gate.facts.subject import profiles_of
from pipeline_tasks.gate.suites import FACTS
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.profiles.distributions import profiled_by
from pipeline_tasks.profiles.signals import ALL, PREFIX, quantiles_of, value_at
from pipeline_tasks.schema import LOCATOR
from pipeline_tasks.stage import Stage
from pipeline_tasks.store.reading import read_shards

ROWS = "rows"
SIGNALS = "signals"

BATCHES: Mapping[str, str] = {
    FACTS: "one row: the facts of the manifest, each a column",
    ROWS: "at most 1,000 of the rows that the stage kept, with their columns and the fields of structs, no lists and "
    "no packed bytes: those whose ids have the least second halves, so that they are the same on every engine, and "
    "a document stays in the samples of later stages; from `extract` on",
    SIGNALS: "1,000 rows: each histogram of numbers (`chars`, `score`) and of signals (`gopher_quality.words`) that "
    "the manifest has is a column of its quantiles at equal steps, from least to largest",
}
"""The batches, and what each has."""

SAMPLE_ROWS = 1_000
SAMPLE_CHARS = 16 * 1024 * 1024
"""The sample ends before the row with which its texts would have more characters, but has one row at least."""

STEPS = 1_000
"""Quantiles of a histogram."""

KEYS = ("id", *("source", "snapshot", "file", "offset"), "copy")
"""What the sample is in the order of, behind its draw: of documents of the same text, too, the order is total."""

DRAWN = 16
"""The digits of an id that are no draw: shards are sorted, and winners among copies chosen, by the first ones."""

pc: Any = pyarrow.compute


def batch(name: str, root: str, manifest: Manifest, facts: Facts) -> pa.Table:
    """Return a batch of a manifest by its name."""
    if name == ROWS:
        return sampled_rows(root, manifest)
    return histograms(manifest) if name == SIGNALS else facts_table(facts)


def facts_table(facts: Facts) -> pa.Table:
    """Return the values of facts as one row."""
    values = {name: [estimate.value if estimate else None] for name, estimate in facts.items()}
    return pa.table({name: pa.array(value, pa.float64()) for name, value in values.items()})


# --- Rows -----------------------------------------------------------------------------------------------------------


def sampled_rows(root: str, manifest: Manifest) -> pa.Table:
    """Return the sample of the rows that a manifest keeps: the keys of all are read, and the shards of those drawn."""
    drawn = _drawn(root, manifest)
    columns = [name for name, kind in manifest.schema if _is_shown(kind)]
    tables = []
    for at in sorted(set(drawn.column("shard").to_pylist())):
        rows = drawn.filter(pc.equal(drawn.column("shard"), at))
        shard = manifest.shards[at]
        whole = pa.Table.from_batches(list(read_shards(root, (shard,), columns)))
        tables.append(whole.take(rows.column("row")).append_column("", rows.column("rank")))
    if not tables:
        return pa.table({name: [] for name in columns})
    return _flat(pa.concat_tables(tables).sort_by("").drop_columns([""]))


def _drawn(root: str, manifest: Manifest) -> pa.Table:
    """Return where the rows of the sample are: the number of the shard, the row in it, and the rank in the sample."""
    names = {name for name, _ in manifest.schema}
    keys = [name for name in KEYS if name in names]
    order = [("draw", "ascending"), *((name, "ascending") for name in keys)]
    least: pa.Table | None = None
    for at, shard in enumerate(manifest.shards if "id" in names else ()):
        begin = 0
        for rows in read_shards(root, (shard,), [*keys, *({"chars"} & names)]):
            here = pa.Table.from_batches([rows])
            places = np.arange(begin, begin + rows.num_rows)
            here = here.append_column("draw", pc.utf8_slice_codeunits(here.column("id"), DRAWN))
            here = here.append_column("row", pa.array(places)).append_column("shard", pa.array([at] * rows.num_rows))
            begin += rows.num_rows
            least = pa.concat_tables([least, here] if least else [here]).sort_by(order)[:SAMPLE_ROWS]
    if not least:
        return pa.table({"shard": pa.array([], pa.int64()), "row": pa.array([], pa.int64())})
    if "chars" in names:
        chars = np.cumsum(pc.fill_null(least.column("chars"), 0).to_numpy())
        least = least[: max(sum(takewhile(bool, (chars <= SAMPLE_CHARS).tolist())), 1)]
    return least.append_column("rank", pa.array(range(least.num_rows))).select(["shard", "row", "rank"])


def _is_shown(kind: str) -> bool:
    """Return whether the sample has a column of a type: values, and structs of values."""
    return not kind.startswith(("list", "large_list", "fixed_size_list", "map", "binary", "large_binary"))


def _flat(table: pa.Table) -> pa.Table:
    """Return a table with the fields of structs as columns, the signals named as the filters have them."""
    while any(pa.types.is_struct(field.type) for field in table.schema):
        table = table.flatten()
    return table.rename_columns([name.removeprefix(PREFIX) if "." in name else name for name in table.column_names])


# --- Histograms -----------------------------------------------------------------------------------------------------


def histograms(manifest: Manifest) -> pa.Table:
    """Return the quantiles of each histogram of a manifest's kept rows, at the middles of equal steps."""
    steps = (np.arange(STEPS) + 0.5) / STEPS
    columns = {name: _quantiles(profiles_of(manifest)[name], steps) for name in _numbers(manifest)}
    for signal, languages in quantiles_of(manifest.metrics).items():
        columns[signal] = [value_at(languages[ALL], step) for step in steps.tolist()]
    return pa.table({name: pa.array(values, pa.float64()) for name, values in sorted(columns.items())})


def _numbers(manifest: Manifest) -> Iterator[str]:
    """Yield the columns of the rows that have a histogram of numbers."""
    profiles, names = profiles_of(manifest), {name for name, _ in manifest.schema}
    yield from (name for name, of in profiles.items() if name in names and of["kind"] != "name" and of["count"])


def _quantiles(column: Mapping[str, Any], steps: "np.ndarray[Any, Any]") -> Sequence[float]:
    lows = np.array(sorted(int(low) for low in column["bins"]))
    ends = np.cumsum([column["bins"][str(low)] for low in lows.tolist()])
    values: Sequence[float] = (lows[np.searchsorted(ends, steps * ends[-1])] / _unit(column)).tolist()
    return values


def _unit(column: Mapping[str, Any]) -> int:
    return 100 if column["kind"] == "ratio" else 1


# --- Names ----------------------------------------------------------------------------------------------------------


def row_columns(stages: Iterable[str]) -> set[str]:
    """Return the columns that the sample of the last of some stages may have: those of all, as rows pass them on."""
    cards = [card for card in map(known_card, stages) if card]
    fields = [*LOCATOR, *(field for card in cards for field in card.writes)]
    names = {name for field in fields if _is_shown(str(field.type)) for name in _names(field)}
    return names.union(*map(_signals, cards))


def _names(field: pa.Field) -> Iterator[str]:
    """Yield the columns that a field is in a sample: one, or those of a struct."""
    if pa.types.is_struct(field.type):
        yield from (f"{field.name.removeprefix(PREFIX)}.{inner}" for each in field.type for inner in _names(each))
    else:
        yield field.name


def histogram_columns(stage: str) -> set[str]:
    """Return the columns that the histograms of a stage may be."""
    card = known_card(stage)
    return {*profiled_by(card), *_signals(card)} if card else set()


def _signals(card: Stage[Any]) -> set[str]:
    """Return the signals of all filters, if a stage stores some."""
    stored = {name.removeprefix(PREFIX) for name in card.profiled if name.startswith(PREFIX)}
    return {f"{name}.{signal}" for name, of in load_filters().items() if name in stored for signal in of.signals}
