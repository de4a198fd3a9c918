"""Find candidate pairs: members of a band, round by round, until every pair is compared or known to be connected."""

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.errors import ContractError
from pipeline_tasks.near_duplicates.history import check_version
from pipeline_tasks.near_duplicates.likeness import Likeness
from pipeline_tasks.near_duplicates.tables import DISTINCT_PAIRS, MEMBERS, PAIRS, RESULTS, UNSETTLED
from pipeline_tasks.schema import Array
from pipeline_tasks.stage import Batches, HistoryReader
from pipeline_tasks.text.base.tables import (
    RUN_ROWS,
    Flags,
    Rows,
    batch_of,
    batches_of,
    combined,
    empty_batch,
    flags,
    in_order,
    read_table,
    run_numbers,
    run_starts,
    tables_of,
    whole_numbers,
    whole_runs,
)
from pipeline_tasks.text.near.ranking import is_known, known_nodes, node_ids

if TYPE_CHECKING:
    from pipeline_tasks.text.near.candidates import Bands, Results

pc: Any = pyarrow.compute


def match_bands(bands: Batches, *history: HistoryReader, likeness: Likeness) -> Batches:
    """Yield `MEMBERS`: of each band with a new document and at least two members, new and known."""
    new = read_table(bands)
    starts = run_starts(new.column("key"))
    keys, sizes = whole_numbers(new.column("key"))[starts], np.diff(np.append(starts, new.num_rows))
    known = _known_members(history, keys, likeness)
    shared = (sizes > 1) | np.isin(keys, whole_numbers(known.column("key")))
    new = new.filter(pa.array(np.repeat(shared, sizes)))
    _check_new(new, known, likeness)
    members = pa.concat_tables([new.append_column("label", pa.nulls(new.num_rows, pa.string())), known])
    yield from batches_of(in_order(members, "key", "node"))


def _known_members(history: tuple[HistoryReader, ...], keys: Rows, likeness: Likeness) -> pa.Table:
    """Return the members of bands `keys` that earlier snapshots saved."""
    members = [MEMBERS.empty_table()]
    for reader in history:
        check_version(reader, likeness, likeness.history_version)
        rows = reader.rows(pa.array(keys, pa.int64()))
        node = known_nodes(rows.column("rank"), rows.column("id"), rows.column("snapshot"))
        batch = batch_of(MEMBERS, key=rows.column("key"), node=node, label=rows.column("label"))
        members.append(pa.Table.from_batches([batch]))
    return pa.concat_tables(members)


def _check_new(new: pa.Table, known: pa.Table, likeness: Likeness) -> None:
    ids = node_ids(known.column("node"))
    again = pc.is_in(ids, value_set=combined(node_ids(new.column("node"))))
    if pc.any(again).as_py():
        message = (
            f"{likeness.stage}: document {ids.filter(again)[0]} is new and in the history of an earlier snapshot; "
            "run dedup_exact before, with the same history"
        )
        raise ContractError(message)


def candidate_pairs(members: Batches, *results: Batches, turn: int, likeness: Likeness) -> Batches:
    """Yield the `PAIRS` to compare in round `turn`, given the `RESULTS` of each round before.

    `text.near.candidates.choose` decides which pairs these are.
    """
    from pipeline_tasks.text.near.candidates import choose

    rows = read_table(members)
    bands, compared = _bands_of(rows), _results_of(rows, results)
    chosen, centers, _ = choose(bands, compared, pairs=likeness.pairs, reach=likeness.reach, star=turn == 0)
    member_node, center_node = (rows.column("node").take(pa.array(side)) for side in (chosen, centers))
    yield batch_of(
        PAIRS,
        member=node_ids(member_node),
        member_node=member_node,
        center=node_ids(center_node),
        center_node=center_node,
        key=rows.column("key").take(pa.array(chosen)),
    )


def unsettled_bands(members: Batches, *results: Batches, likeness: Likeness) -> Batches:
    """Yield `UNSETTLED`, given the `RESULTS` of all rounds."""
    from pipeline_tasks.text.near.candidates import choose

    rows = read_table(members)
    bands, compared = _bands_of(rows), _results_of(rows, results)
    _, _, open_ = choose(bands, compared, pairs=likeness.pairs, reach=likeness.reach, star=False)
    left = rows.filter(pa.array(open_))
    yield batch_of(UNSETTLED, id=node_ids(left.column("node")), key=left.column("key"))


def _bands_of(members: pa.Table) -> "Bands":
    """Return the members of bands as rows: where each band starts, which rows are connected, which are known."""
    from pipeline_tasks.text.near.candidates import Bands

    starts = run_starts(members.column("key"))
    known = flags(is_known(members.column("node")))
    first = _first_of_label(members.column("label"), run_numbers(starts, members.num_rows), known)
    return Bands(np.append(starts, members.num_rows), first, known)


def _first_of_label(labels: Array, band: Rows, known: Flags) -> Rows:
    """Return, per row, the first row of its band with the same label; the row itself for a new member."""
    names = pc.unique(labels)
    places = band * (len(names) + 1) + _codes(labels, names)
    first = np.arange(len(places))
    _, rows, which = np.unique(places[known], return_index=True, return_inverse=True)
    first[known] = np.flatnonzero(known)[rows[which]]
    return first


def _results_of(members: pa.Table, results: tuple[Batches, ...]) -> "Results":
    """Return the results of comparisons, sorted by band, with documents as rows of `members`.

    A template's band has a result of each of its pages: of each only numbers are kept, and no ids.
    """
    from pipeline_tasks.text.near.candidates import Results

    starts = run_starts(members.column("key"))
    numbered = _Numbered(members, starts)
    given = map(numbered.results, tables_of(itertools.chain.from_iterable(results), max(members.num_rows, RUN_ROWS)))
    band, member, center, distances, passed = map(
        np.concatenate, zip(numbered.results(_NO_RESULTS), *given, strict=True)
    )
    order = np.argsort(band, kind="stable")
    first = np.searchsorted(band[order], np.arange(len(starts) + 1))
    return Results(first, member[order], center[order], distances[order], passed[order])


class _Numbered:
    """The members of bands by number: of their band, and of their id."""

    def __init__(self, members: pa.Table, starts: Rows) -> None:
        ids = node_ids(members.column("node"))
        self._keys = whole_numbers(members.column("key"))[starts]
        self._names = pc.unique(ids)
        places = self._places(run_numbers(starts, members.num_rows), ids)
        self._rows = np.argsort(places)
        self._sorted = places[self._rows]

    def _places(self, band: Rows, ids: Array) -> Rows:
        return band * (len(self._names) + 1) + _codes(ids, self._names)

    def results(self, batch: pa.RecordBatch | pa.Table) -> tuple[Any, ...]:
        """Return of `RESULTS` the band, the rows of both documents, how far apart they are, and whether they passed."""
        band = np.searchsorted(self._keys, whole_numbers(batch.column("key")))
        member, center = (
            self._rows[np.searchsorted(self._sorted, self._places(band, batch.column(side)))]
            for side in ("member", "center")
        )
        distances = np.asarray(1 - combined(batch.column("similarity")).to_numpy(zero_copy_only=False), np.float64)
        return band, member, center, distances, flags(batch.column("passed"))


_NO_RESULTS = empty_batch(RESULTS)


def _codes(values: Array, names: pa.Array) -> Rows:
    """Return the place of each value among `names`; their number for null."""
    return whole_numbers(pc.index_in(values, value_set=names).fill_null(len(names)).cast(pa.int64()))


def distinct_pairs(pairs: Batches) -> Batches:
    """Yield `DISTINCT_PAIRS` of `PAIRS` sorted by member and center."""
    for rows in whole_runs(pairs, "member", "center"):  # a pair has a row of each band at most
        starts = run_starts(rows.column("member"), rows.column("center"))
        bounds = pa.array(np.append(starts, rows.num_rows), pa.int32())
        keys = pa.ListArray.from_arrays(bounds, combined(rows.column("key")))
        once = rows.select(DISTINCT_PAIRS.names[:-1]).take(pa.array(starts)).append_column("keys", keys)
        yield from batches_of(once) if once.num_rows else [empty_batch(DISTINCT_PAIRS)]
