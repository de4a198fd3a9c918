"""A table of Lance with the vectors of one model: each commit moves its rows and its state together, or not at all.

The table has one row without a document, whose `state` says which documents the others are. Every commit writes that
row again, and Lance refuses one of two commits that began at the same state, as both wrote the same row: it begins anew
from what the other left. So a commit that is killed has done nothing, and no row is there twice or missing. Readers see
the table as a commit left it.

Lance compares a commit with those that it still has. One that began before a `tidy` and ended after it is not refused,
and leaves two rows with a state. That is how it is known: the table is torn, nobody uses it, and the next sync brings
back the last commit that left one.
"""

import json
import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.errors import ContractError, MachineFailed, RecipeError, StorageBusy
from pipeline_tasks.publish.datasets.vectors import FACTS, Made
from pipeline_tasks.schema import EMBEDDING, KNOWN_BY
from pipeline_tasks.store import storage
from pipeline_tasks.text.near.vectors import KIND

if TYPE_CHECKING:
    from lance import LanceDataset

VECTOR, STATE = "vector", "state"
SUFFIX = ".lance"

INDEXED = 100_000
"""Rows from which on a table gets an index; below, every vector is compared."""

RECALL = 0.95
"""Share of the ten nearest that a search by the index has to find, as measured when it is made."""

_NEAREST, _MEASURED = 10, 32
_FRAGMENTS = 32
"""Files from which on a table is rewritten, as each commit adds one."""

_INDEX = "nearest"

log = logging.getLogger("refinery")


class Overtaken(Exception):
    """Another sync has committed since the state was read: begin anew from what it left."""


class Torn(Overtaken):
    """A commit that began before a `tidy` was not refused: the table is to be mended."""


@dataclass(frozen=True, slots=True)
class Index:
    """An index as it was made: the rows then, its partitions, how many a search reads, and the recall by these."""

    rows: int
    partitions: int
    probes: int
    recall: float


@dataclass(frozen=True, slots=True)
class State:
    """What the rows of a table are: documents of `sources` (`source_of` by snapshot), less those that had left.

    `entry` and `takedown` are the last entries of both logs that it follows. A source of "" is to be read again. Where
    the table is `untidy`, files have bytes of what was removed.
    """

    entry: int = 0
    takedown: int = 0
    sources: Mapping[str, str] = field(default_factory=dict)
    index: Index | None = None
    untidy: bool = False


class VectorTable:
    """A table as a commit left it, with its state and how many `rows` it has; Torn if it is not to be used."""

    def __init__(self, uri: str, dataset: "LanceDataset") -> None:
        self.uri, self._dataset = uri, dataset
        known = [name for name in dataset.schema.names if name != VECTOR]
        if known != [*FACTS.names, STATE]:
            message = (
                f"{uri} has other columns than this release writes; remove it, and `refinery keep index` makes it anew"
            )
            raise ContractError(message)
        self.state = _state_of(dataset)
        self.dimensions: int = dataset.schema.field(VECTOR).type.list_size
        self.rows = int(dataset.count_rows()) - 1

    @property
    def model(self) -> str:
        """The name of the model that made the vectors."""
        return self.uri.rpartition("/")[2].removesuffix(SUFFIX)

    def facts(self) -> Iterator[pa.RecordBatch]:
        """Yield the snapshot of every document and by what it is known; vectors are not read."""
        names = ["snapshot", *KNOWN_BY]
        yield from self._dataset.scanner(columns=names, filter="id != ''").to_batches()

    def vectors_of(self, id_: str) -> pa.Table:
        """Return the rows of a document, `FACTS` and `embedding`; of several snapshots, one of each."""
        return self._shown(self._dataset.scanner(filter=f"id = '{id_}'").to_table())

    def commit(self, state: State, rows: Iterable[pa.RecordBatch] = (), gone: str = "") -> "VectorTable":
        """Return the table after one commit: `rows` are there, what SQL says is `gone` is not, and this is its state.

        A row replaces the one of the same snapshot and document. Rows that are given stay, whatever is gone. Overtaken,
        and nothing was done, if another commit came first.
        """
        failed: list[Exception] = []
        reader = pa.RecordBatchReader.from_batches(self._dataset.schema, self._batches(state, rows, failed))
        merge = self._dataset.merge_insert(["snapshot", "id"]).when_matched_update_all().when_not_matched_insert_all()
        merge = merge.when_not_matched_by_source_delete(gone) if gone else merge
        try:
            merge.conflict_retries(0).execute(reader)
        except (OSError, ValueError, RuntimeError) as error:
            if failed:
                raise failed[0] from error
            raise self._refusal(error) from error
        return VectorTable(self.uri, self._dataset)

    def tidy(self) -> "VectorTable":
        """Rewrite what has removed rows, and remove what earlier states alone need: then their bytes are gone.

        What a killed commit wrote stays until it is a week old, as it may be of one that is under way.
        """
        if not self.state.untidy and len(self._dataset.get_fragments()) <= _FRAGMENTS:
            return self
        try:
            self._dataset.optimize.compact_files(materialize_deletions=True, materialize_deletions_threshold=0.0)
            self._dataset.cleanup_old_versions(older_than=timedelta(0))
        except (OSError, ValueError, RuntimeError) as error:
            raise self._refusal(error) from error
        made = VectorTable(self.uri, self._dataset)
        return made.commit(replace(made.state, untidy=False))

    def indexed(self, least: int) -> "VectorTable":
        """Return the table with an index of all its rows, if it has `least` or more; a far smaller one is made anew."""
        rows, known = self.rows, self.state.index
        if rows < least:
            return self
        try:
            if known is not None and rows < 2 * known.rows:
                self._dataset.optimize.optimize_indices()
                return VectorTable(self.uri, self._dataset)
            partitions = max(1, math.isqrt(rows))
            self._dataset.create_index(
                VECTOR, "IVF_FLAT", name=_INDEX, metric="cosine", num_partitions=partitions, replace=True
            )
        except (OSError, ValueError, RuntimeError) as error:
            raise self._refusal(error) from error
        made = VectorTable(self.uri, self._dataset)
        return made.commit(replace(made.state, index=made.measured(partitions)))

    def measured(self, partitions: int) -> Index:
        """Return an index with the fewest partitions to read for `RECALL`, by vectors from all over the table."""
        rows = self.rows
        places = sorted({at * rows // _MEASURED for at in range(_MEASURED)})
        queries = [row for row in self._dataset.take(places, columns=[VECTOR])[VECTOR].to_pylist() if row]
        exact = [self._ids(query, 0) for query in queries]
        probes, recall = 1, 0.0
        while True:
            found = [self._ids(query, probes) for query in queries]
            recall = sum(len(a & b) for a, b in zip(exact, found, strict=True)) / max(sum(map(len, exact)), 1)
            if recall >= RECALL or probes >= partitions:
                return Index(rows, partitions, probes, round(recall, 4))
            probes = min(2 * probes, partitions)

    def nearest(self, vector: Sequence[float], count: int, where: str = "", *, exact: bool = False) -> pa.Table:
        """Return the `count` rows nearest to a vector, `FACTS` and `embedding`, of those that SQL chooses.

        The index is used if there is one, unless the answer has to be `exact`.
        """
        probes = 0 if exact or self.state.index is None else self.state.index.probes
        columns = [*FACTS.names, VECTOR]
        return self._shown(self._near(vector, count, probes, columns, where))

    def _near(self, vector: Sequence[float], count: int, probes: int, columns: Sequence[str], where: str) -> pa.Table:
        how = {"nprobes": probes} if probes else {"use_index": False}
        query = np.asarray(vector, np.float32)
        asked = {"column": VECTOR, "q": query, "k": count, "metric": "cosine", **how}
        chosen = {"filter": where, "prefilter": True} if where else {}
        return self._dataset.scanner(columns=[*columns, "_distance"], nearest=asked, **chosen).to_table()

    def _ids(self, vector: Sequence[float], probes: int) -> set[str]:
        return set(self._near(vector, _NEAREST, probes, ["id"], "")["id"].to_pylist())

    def _shown(self, table: pa.Table) -> pa.Table:
        """Return rows as `documents.vectors_of` has them."""
        vectors = table[VECTOR].combine_chunks()
        numbers = np.asarray(vectors.flatten().to_numpy(zero_copy_only=False), KIND).reshape(
            len(vectors), self.dimensions
        )
        body = pa.array([row.tobytes() for row in numbers], pa.large_binary())
        return table.select(FACTS.names).append_column(EMBEDDING, body)

    def _batches(
        self, state: State, rows: Iterable[pa.RecordBatch], failed: list[Exception]
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows and the state; an error of what yields them is kept, as Lance raises another in its place."""
        try:
            for batch in rows:
                columns = [batch[name] for name in FACTS.names]
                vectors, states = _lists(batch[EMBEDDING], self.dimensions), pa.nulls(batch.num_rows, pa.string())
                yield pa.RecordBatch.from_arrays([*columns, vectors, states], schema=self._dataset.schema)
        except Exception as error:
            failed.append(error)
            raise
        yield _row_of(state, self._dataset.schema)

    def _refusal(self, error: Exception) -> Exception:
        """Return Overtaken if another has committed, else the error of the store."""
        newest = _open(self.uri)
        if newest is None or newest.version != self._dataset.version:
            return Overtaken(self.uri)
        return StorageBusy(f"{self.uri}: {str(error)[:300]}; run `refinery keep index` again")


def existing_tables(store: str, *, mended: bool = False) -> list[VectorTable]:
    """Return the tables of a recipe, which are in the folder or prefix `store`, by the name of their model.

    Torn ones are left out, or `mended`.
    """
    tables = []
    for name in sorted(name for name in storage.connect(store).folders() if name.endswith(SUFFIX)):
        uri = f"{store}/{name}"
        if (dataset := _open(uri)) is None:
            continue
        try:
            tables.append(VectorTable(uri, dataset))
        except Torn:
            tables += [_mended(uri, dataset)] if mended else []
    return tables


def _mended(uri: str, dataset: "LanceDataset") -> VectorTable:
    """Bring back the last commit of a torn table that left one state; without one the table is empty again.

    A commit whose files are gone was removed by another sync, which has mended the table or is about to.
    """
    for version in sorted((each["version"] for each in dataset.versions()), reverse=True):
        try:
            earlier = lance().dataset(
                _local(uri), version=version, storage_options=storage.options_of_other_clients(uri)
            )
            if len(_states(earlier)) == 1:
                earlier.restore()
                return VectorTable(uri, earlier)
        except (OSError, ValueError) as error:
            log.info("%s: version %s cannot be brought back (%s)", uri, version, str(error)[:200])
    if (now := _open(uri)) is not None and len(_states(now)) == 1:
        return VectorTable(uri, now)
    first = pa.Table.from_batches([_row_of(State(), dataset.schema)])
    made = lance().write_dataset(
        first, _local(uri), mode="overwrite", storage_options=storage.options_of_other_clients(uri)
    )
    return VectorTable(uri, made)


def table_of(store: str, made: Made) -> VectorTable:
    """Return the table of a model, which is made if there is none."""
    uri = f"{store}/{made.model}{SUFFIX}"
    dataset = _open(uri)
    if dataset is None:
        dataset = _made(uri, made.dimensions)
    return VectorTable(uri, dataset)


def _made(uri: str, dimensions: int) -> "LanceDataset":
    """Make an empty table; of two at once one is made, and both are given it."""
    kind = pa.list_(pa.float16(), dimensions)
    facts = [pa.field(name, FACTS.field(name).type, nullable=name not in ("snapshot", "id")) for name in FACTS.names]
    schema = pa.schema([*facts, pa.field(VECTOR, kind), pa.field(STATE, pa.string())])
    first = pa.Table.from_batches([_row_of(State(), schema)])
    try:
        return lance().write_dataset(
            first, _local(uri), mode="create", storage_options=storage.options_of_other_clients(uri)
        )
    except OSError as error:
        dataset = _open(uri)
        if dataset is None:
            message = f"{uri} cannot be made ({str(error)[:300]}); make it writable, or name another place"
            raise MachineFailed(message) from error
        return dataset


def _open(uri: str) -> "LanceDataset | None":
    """Open a table; None if there is none, or its first commit has not come."""
    try:
        return lance().dataset(_local(uri), storage_options=storage.options_of_other_clients(uri))
    except (ValueError, FileNotFoundError) as error:
        if "not found" in str(error):
            return None
        raise


def was_removed(error: Exception) -> bool:
    """Return whether an error of Lance says that a file is gone: another sync has tidied the table since it was opened.

    Lance raises it as OSError or as ArrowInvalid, which is a ValueError.
    """
    return "not found" in str(error).lower()


def lance() -> Any:  # noqa: ANN401 -- an optional package
    """Return the package; RecipeError if it is not installed."""
    try:
        import lance as package
    except ModuleNotFoundError as error:
        message = "a store of vectors needs the package pylance: install the extra `vectors` (pip install '.[vectors]')"
        raise RecipeError(message) from error
    return package


def is_installed() -> bool:
    """Return whether this machine can read and write tables."""
    from importlib.util import find_spec

    return find_spec("lance") is not None


def _local(uri: str) -> str:
    return uri.removeprefix("file://")


def _state_of(dataset: "LanceDataset") -> State:
    states = _states(dataset)
    if len(states) != 1:
        raise Torn
    return state_written(states[0])


def state_text(state: State) -> str:
    """Return a state as a table has it."""
    return json.dumps(asdict(state), sort_keys=True)


def state_written(text: str) -> State:
    """Return the state that a table has."""
    fields = json.loads(text)
    index = Index(**fields["index"]) if fields["index"] else None
    return State(**{**fields, "index": index})


def _states(dataset: "LanceDataset") -> list[str]:
    found: list[str] = dataset.scanner(columns=[STATE], filter=f"{STATE} IS NOT NULL").to_table()[STATE].to_pylist()
    return found


def _row_of(state: State, schema: pa.Schema) -> pa.RecordBatch:
    row = {"snapshot": "", "id": "", STATE: state_text(state)}
    columns = [pa.array([row.get(field.name)], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _lists(bodies: pa.Array, dimensions: int) -> pa.Array:
    """Return packed vectors as lists of float16; ContractError if one has other dimensions than the table."""
    whole = b"".join(bodies.to_pylist())
    numbers: npt.NDArray[np.float16] = np.frombuffer(whole, KIND)
    if len(numbers) != len(bodies) * dimensions:
        message = f"vectors of one model have other dimensions than {dimensions}; refine their snapshot again"
        raise ContractError(message)
    return pa.FixedSizeListArray.from_arrays(pa.array(numbers.astype(np.float16), pa.float16()), dimensions)
