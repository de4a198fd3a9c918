"""Brings the tables of a recipe in line with its log: what they should have follows from the log alone."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.errors import ContractError, RefineryError
from pipeline_tasks.publish.datasets.vectors import (
    Dataset,
    Made,
    dataset_of,
    facts_of,
    made_by,
    source_of,
    vectors_of,
)
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.store.taken_down import freed
from pipeline_tasks.text.urls.takedown import KEYED, evidence, in_memory
from refinery_vectors import FOLDER
from refinery_vectors.stores import VectorTable, existing_tables, require_client, table_of
from refinery_vectors.table import INDEXED, Overtaken, State, was_removed

pc: Any = pyarrow.compute

AT_ONCE = 20_000
"""Documents of a snapshot that one commit removes at most."""


TRIES = 16
"""How often a sync begins anew because another one removed files that it was reading."""


@dataclass(frozen=True, slots=True)
class Synced:
    """What a sync did with the table of a model: the rows that it has now, vectors that were read, rows that left.

    `snapshots` are those whose vectors were read.
    """

    model: str
    uri: str
    rows: int = 0
    read: int = 0
    removed: int = 0
    snapshots: tuple[str, ...] = ()
    recall: float | None = None


def store_of(root: str, recipe: str, store: str = "") -> str:
    """Return the place of a recipe's tables: in `store` (a folder, prefix or database), or below the root."""
    return f"{(store or f'{root}/{FOLDER}').rstrip('/')}/{recipe}"


def sync(root: str, recipe: str, store: str = "", indexed: int = INDEXED) -> list[Synced]:
    """Make the tables of a recipe what its log says; return what was done, by model.

    Vectors are read of versions alone that a table does not have yet. Any number of these may run at once, and be
    killed: each commit of a table is whole, and what is left to do follows from it. A table gets an index from
    `indexed` rows on.
    """
    require_client(store)
    version_log.require_kind(root, recipe, builds=False)
    folder = store_of(root, recipe, store)
    work: dict[str, _Work] = {}
    removed = 0
    while True:
        dataset = dataset_of(root, recipe)
        try:
            tables = {table.model: table for table in existing_tables(folder, mended=True)}
            models = models_of(dataset, tables.values())
            wanting = [made for made in models.values() if made and made.model not in tables]
            tables |= {made.model: table_of(folder, made) for made in wanting}
            done = []
            for model, table in sorted(tables.items()):
                wanted = {name: dataset.versions[name] for name, made in models.items() if made and made.model == model}
                done.append(_followed(dataset, table, wanted, work.setdefault(model, _Work()), indexed))
        except Overtaken:
            continue
        except (OSError, ValueError) as error:  # pyarrow's ArrowInvalid is one
            removed += 1
            if isinstance(error, RefineryError) or not was_removed(error) or removed > TRIES:
                raise
            continue
        now = dataset_of(root, recipe)
        if (now.entry, now.takedown) == (dataset.entry, dataset.takedown):
            return done


def models_of(dataset: Dataset, tables: Iterable[VectorTable]) -> dict[str, Made | None]:
    """Return the model of each snapshot's vectors; what a table says of a version is not looked up in its shards."""
    known = {
        (snapshot, source): Made(table.model, table.dimensions)
        for table in tables
        for snapshot, source in table.state.sources.items()
    }
    return {
        snapshot: known.get((snapshot, source_of(version))) or made_by(dataset.root, version)
        for snapshot, version in dataset.versions.items()
    }


@dataclass(slots=True)
class _Work:
    """What was done so far to a table, also before another sync committed in between."""

    read: int = 0
    removed: int = 0
    snapshots: tuple[str, ...] = ()


def _followed(dataset: Dataset, table: VectorTable, wanted: Mapping[str, Version], work: _Work, indexed: int) -> Synced:
    """Bring one table in line with a dataset; Overtaken if another sync committed in between."""
    _require_later(dataset, table.state)
    if _is_behind(table.state, dataset, wanted):
        for lighter in _without_left(dataset, table, wanted):
            work.removed += table.rows - lighter.rows
            table = lighter
    for snapshot, version in sorted(wanted.items()):
        if table.state.sources.get(snapshot) != source_of(version):
            table = _with_version(dataset, table, version, work)
            work.snapshots += (snapshot,)
    if work.read or table.state.index is None:
        table = table.indexed(indexed)
    table = table.tidy()
    index = table.state.index
    recall = index.recall if index else None
    return Synced(table.model, table.uri, table.rows, work.read, work.removed, work.snapshots, recall)


def _with_version(dataset: Dataset, table: VectorTable, version: Version, work: _Work) -> VectorTable:
    """Return a table with the documents of a version in place of those that it had of the snapshot."""
    snapshot, known = version.snapshot, table.state.sources
    state = replace(
        table.state,
        sources={**known, snapshot: source_of(version)},
        untidy=table.state.untidy or snapshot in known,
    )
    rows = _Counted(vectors_of(dataset.root, version, dataset.left), work)
    return table.commit(state, rows, gone=f"snapshot = {_quoted(snapshot)}" if snapshot in known else "")


def _require_later(dataset: Dataset, state: State) -> None:
    """Raise Overtaken if a table follows later entries than a dataset, ContractError if the logs have none of these."""
    if state.entry <= dataset.entry and state.takedown <= dataset.takedown:
        return
    now = dataset_of(dataset.root, dataset.recipe)
    if state.entry <= now.entry and state.takedown <= now.takedown:
        raise Overtaken
    message = (
        f"{dataset.root}: the store of vectors follows entry {state.entry} of the log of {dataset.recipe} and "
        f"{state.takedown} of that of takedowns, which have {now.entry} and {now.takedown}; restore them from a "
        "backup, or remove the store if it is of another root"
    )
    raise ContractError(message)


def _is_behind(state: State, dataset: Dataset, wanted: Mapping[str, Version]) -> bool:
    return (state.entry, state.takedown) != (
        dataset.entry,
        dataset.takedown,
    ) or not state.sources.keys() <= wanted.keys()


def _without_left(dataset: Dataset, table: VectorTable, wanted: Mapping[str, Version]) -> Iterator[VectorTable]:
    """Yield a table after each commit that removes what left the dataset since it was synced.

    The last marks the snapshots of which documents came back.
    """
    again = set(_restored(dataset, table.state, wanted))
    sources = {name: "" if name in again else source for name, source in table.state.sources.items() if name in wanted}
    gone = [f"snapshot = {_quoted(name)}" for name in table.state.sources if name not in wanted]
    gone += _leaving(dataset, table)
    for condition in gone[:-1]:
        table = table.commit(replace(table.state, untidy=True), gone=condition)
        yield table
    untidy = table.state.untidy or bool(gone)
    state = replace(table.state, entry=dataset.entry, takedown=dataset.takedown, sources=sources, untidy=untidy)
    yield table.commit(state, gone=gone[-1] if gone else "")


def _leaving(dataset: Dataset, table: VectorTable) -> Iterator[str]:
    """Yield, as SQL, the documents of a table that left the dataset."""
    ids: dict[str, list[str]] = {}
    for batch in table.facts():
        rows = batch.filter(dataset.left.of(batch))
        for snapshot, id_ in zip(rows["snapshot"].to_pylist(), rows["id"].to_pylist(), strict=True):
            ids.setdefault(snapshot, []).append(id_)
    for snapshot, named in sorted(ids.items()):
        for start in range(0, len(named), AT_ONCE):
            listed = ", ".join(map(_quoted, named[start : start + AT_ONCE]))
            yield f"snapshot = {_quoted(snapshot)} AND id IN ({listed})"


def _restored(dataset: Dataset, state: State, wanted: Mapping[str, Version]) -> Iterator[str]:
    """Yield the snapshots of a table of which documents came back: a takedown or a superseding holds no more."""
    before = dataset.left_as_of(state.entry, state.takedown)
    rows = pa.concat_tables([KEYED.empty_table(), *freed(dataset.root, state.takedown, dataset.takedown)])
    for snapshot in state.sources.keys() & wanted.keys():
        now = dataset.left.superseded.get(snapshot, pa.array([], pa.string()))
        then = before.superseded.get(snapshot, pa.array([], pa.string()))
        if not pc.all(pc.is_in(then, now), min_count=0).as_py() or (
            rows.num_rows and _has_any(dataset, wanted[snapshot], rows)
        ):
            yield snapshot


def _has_any(dataset: Dataset, version: Version, rows: pa.Table) -> bool:
    named = in_memory(rows)
    batches = facts_of(dataset.root, version)
    return any(evidence(named, batch).null_count < batch.num_rows for batch in batches)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


class _Counted:
    """Batches whose rows are counted as they are read."""

    def __init__(self, batches: Iterator[pa.RecordBatch], work: _Work) -> None:
        self._batches, self._work = batches, work

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            self._work.read += batch.num_rows
            yield batch
