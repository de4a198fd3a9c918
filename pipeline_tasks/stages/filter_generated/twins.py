"""Makes of a stage that judges documents one that judges generated documents alone, under another name."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar, cast

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.facets import Bound, Wiring
from pipeline_tasks.schema import OF_GENERATOR, ORIGIN
from pipeline_tasks.stage import Batches, Engine, Kernel, Layer, Prepare, Shards, Stage, reject

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

P = TypeVar("P", bound="DataclassInstance")

pc: Any = pyarrow.compute

VERDICT_COLUMNS = ("reason", "evidence")


def of_generated(card: Stage[P], name: str, title: str) -> Stage[P]:
    """Return the card of a stage that does to generated documents what `card` does to all, by the same params.

    Sources pass as they are: their text, columns, and what was found in them stay those of the first time, so that it
    reads the columns that `card` writes.
    """
    columns = pa.schema([*card.writes, pa.field(ORIGIN, pa.string())])
    found = tuple(column for column in card.writes.names if column not in card.reads.names)
    return replace(
        card,
        name=name,
        run=partial(_run, card=card, name=name),
        reads=columns,
        writes=columns,
        reasons=tuple(_renamed(reason, card.name, name) for reason in card.reasons),
        bounds=partial(_bounds, card=card, name=name) if card.bounds else None,
        title=title,
        canceled=None,  # params are those of `card`, where they are found
        wiring=Wiring(twin_of=card.name),
        changes=(*card.changes, *found),
        derived_from=(*card.derived_from, *card.writes.names, ORIGIN) if card.derived_from else (),
        cost=replace(card.cost, rows=None, published=None),
    )


def _renamed(reason: str, old: str, new: str) -> str:
    head, _, why = reason.partition(":")
    return f"{head}:{new}" if why == old else f"{new}:{why}" if head == old else reason


def _bounds(params: P, *, card: Stage[P], name: str) -> tuple[Bound, ...]:
    found = card.bounds(params) if card.bounds else ()
    return tuple(replace(bound, reason=_renamed(bound.reason, card.name, name)) for bound in found)


def _run(shards: Shards, params: P, on: Engine, *, card: Stage[P], name: str) -> Shards:
    return card.run(shards, params, cast("Engine", _OfGenerated(on, card.name, name)))


class _OfGenerated:
    """An engine whose layers say something of generated documents alone; all else is the engine itself."""

    def __init__(self, on: Engine, stage: str, name: str) -> None:
        self._on, self._stage, self._name = on, stage, name

    def __getattr__(self, name: str) -> object:
        return getattr(self._on, name)

    def map(
        self,
        kernel: Kernel,
        *inputs: Shards,
        layer: Layer | None = None,
        prepare: Prepare | None = None,
        cache: str = "",
    ) -> Shards:
        """Run a kernel that writes a layer over generated documents, and any other as it is."""
        if layer is None:
            return self._on.map(kernel, *inputs, layer=layer, prepare=prepare, cache=cache)
        function, bound = (kernel.func, kernel.keywords) if isinstance(kernel, partial) else (kernel, {})
        apart = partial(
            judge_apart,
            function=f"{function.__module__}:{function.__qualname__}",
            names=(self._stage, self._name),
            has_state=prepare is not None,
            bound=bound,
        )
        wider = replace(layer, reads=(*layer.reads, ORIGIN) if layer.reads else ())
        return self._on.map(apart, *inputs, layer=wider, prepare=prepare, cache=cache)


def judge_apart(
    *given: object,
    function: str,
    names: tuple[str, str],
    has_state: bool,
    bound: dict[str, Any],
) -> Iterator[pa.RecordBatch]:
    """Give a kernel the generated documents of each batch, and put what it yields back between the others.

    `given` is what it gets: its state, if it has one, the rows, and what is known of them.
    """
    module, _, qualified = function.partition(":")
    kernel: Callable[..., Batches] = getattr(import_module(module), qualified)
    state, (rows, *rest) = given[:has_state], given[has_state:]
    documents = cast("Batches", rows)
    waiting: deque[pa.RecordBatch] = deque()

    def generated() -> Iterator[pa.RecordBatch]:
        for batch in documents:
            waiting.append(batch)
            yield batch.filter(_is_generated(batch))

    for judged in kernel(*state, generated(), *rest, **bound):
        yield _between(waiting.popleft(), judged, names)


def _is_generated(batch: pa.RecordBatch) -> pa.Array:
    return pc.fill_null(pc.equal(batch.column(ORIGIN), OF_GENERATOR), fill_value=False)


def _between(batch: pa.RecordBatch, judged: pa.RecordBatch, names: tuple[str, str]) -> pa.RecordBatch:
    """Return the rows of a batch in their order: generated ones as judged, others as they were."""
    mask = _is_generated(batch)
    if mask.true_count != judged.num_rows:
        message = f"{names[0]} yields {judged.num_rows} rows of {mask.true_count}: it does not keep batches apart"
        raise ValueError(message)
    others = batch.filter(pc.invert(mask))
    places = pa.concat_arrays([pc.indices_nonzero(pc.invert(mask)), pc.indices_nonzero(mask)])
    order = pc.sort_indices(places)
    columns = {
        name: _joined(others, judged.column(name), name).take(order)
        for name in judged.schema.names
        if name not in VERDICT_COLUMNS
    }
    rows = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
    if "reason" not in judged.schema.names:
        return rows
    renamed = [reason and _renamed(reason, *names) for reason in judged.column("reason").to_pylist()]
    none = pa.nulls(others.num_rows, pa.string())
    reasons = pa.concat_arrays([none, pa.array(renamed, pa.string())]).take(order)
    return reject(rows, reasons, pa.concat_arrays([none, judged.column("evidence").cast(pa.string())]).take(order))


def _joined(others: pa.RecordBatch, judged: pa.Array, name: str) -> pa.Array:
    """Return a column of the rows that are not judged, as they have it, then of those that are."""
    if name not in others.schema.names:
        return pa.concat_arrays([pa.nulls(others.num_rows, judged.type), judged])
    return pa.concat_arrays([others.column(name).cast(judged.type), judged])
