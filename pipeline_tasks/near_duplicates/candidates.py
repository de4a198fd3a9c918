"""Find candidate pairs: members of a band, round by round, until every pair is compared or known to be connected."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.errors import ContractError
from pipeline_tasks.near_duplicates.history import check_version
from pipeline_tasks.near_duplicates.likeness import Likeness
from pipeline_tasks.near_duplicates.tables import DISTINCT_PAIRS, MEMBERS, PAIRS, PROPOSALS, RESULTS, UNSETTLED
from pipeline_tasks.near_duplicates.windows import Window, in_parts, windows
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
    run_starts,
    whole_numbers,
)
from pipeline_tasks.text.near.ranking import NODE, is_known, known_nodes, node_ids

if TYPE_CHECKING:
    from pipeline_tasks.text.near.candidates import Results

pc: Any = pyarrow.compute


def match_bands(bands: Batches, *history: HistoryReader, likeness: Likeness) -> Batches:
    """Yield `MEMBERS`: of each band with a new document and at least two members, new and known."""
    for reader in history:
        check_version(reader, likeness, likeness.history_version)
    waiting = MEMBERS.empty_table()  # known members that are after all new ones so far
    last, of_last = np.zeros(0, np.int64), waiting  # the key of the last band, and its known members
    for rows in in_parts(bands, "key", rows=RUN_ROWS if history else 0):  # each part is looked up by itself
        starts = run_starts(rows.column("key"))
        keys, sizes = whole_numbers(rows.column("key"))[starts], np.diff(np.append(starts, rows.num_rows))
        going_on = np.isin(keys, last)  # of a band that is in several tables, all new members are shared
        known = _known_members(history, keys[~going_on])
        shared = (sizes > 1) | going_on | np.isin(keys, whole_numbers(known.column("key")))
        new, of_these = rows.filter(pa.array(np.repeat(shared, sizes))), pa.concat_tables([of_last, known])
        _check_new(new, of_these, likeness)
        last = keys[-1:]
        of_last = of_these.filter(pc.is_in(of_these.column("key"), value_set=pa.array(last)))
        members, waiting = _in_line(new, pa.concat_tables([waiting, known]))
        yield from batches_of(members)
    yield from batches_of(waiting)


def _in_line(new: pa.Table, known: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return new and known members in order up to the last new one, and those behind it."""
    members = new.append_column("label", pa.nulls(new.num_rows, pa.string()))
    if not known.num_rows:
        return members, known
    both = in_order(pa.concat_tables([members, known]), "key", "node")
    fresh = np.flatnonzero(~flags(is_known(both.column("node"))))
    stop = int(fresh[-1]) + 1 if len(fresh) else 0
    return both.slice(0, stop), both.slice(stop)


def _known_members(history: tuple[HistoryReader, ...], keys: Rows) -> pa.Table:
    """Return the members of bands `keys` that earlier snapshots saved."""
    members = [MEMBERS.empty_table()]
    for reader in history:
        rows = reader.rows(pa.array(keys, pa.int64()))
        node = known_nodes(rows.column("rank"), rows.column("id"), rows.column("snapshot"))
        batch = batch_of(MEMBERS, key=rows.column("key"), node=node, label=rows.column("label"))
        members.append(pa.Table.from_batches([batch]))
    return pa.concat_tables(members)


def _check_new(new: pa.Table, known: pa.Table, likeness: Likeness) -> None:
    if not known.num_rows:
        return
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
    yield empty_batch(PAIRS)
    for window, compared in _with_results(members, results):
        chosen, centers, _ = _choose(window, compared, likeness, star=turn == 0)
        if (chosen[1:] < chosen[:-1]).any():
            order = np.argsort(chosen, kind="stable")
            chosen, centers = chosen[order], centers[order]
        yield from _pairs(window, chosen, centers)


def _pairs(window: Window, chosen: Rows, centers: Rows) -> Batches:
    """Yield `PAIRS` of rows of a window; those of members are ascending."""
    some = np.unique(centers)
    center_nodes = pa.concat_arrays([pa.nulls(0, NODE), *(nodes for _, nodes in window.nodes(some))])
    for places, member_node in window.nodes(chosen):
        rows, band = chosen[places], window.band_of(chosen[places])
        center_node = center_nodes.take(pa.array(np.searchsorted(some, centers[places])))
        start = window.starts[band]
        yield batch_of(
            PAIRS,
            member=node_ids(member_node),
            member_node=member_node,
            center=node_ids(center_node),
            center_node=center_node,
            key=pa.array(window.keys[band]),
            member_at=pa.array(rows - start, pa.int32()),
            center_at=pa.array(centers[places] - start, pa.int32()),
        )


def unsettled_bands(members: Batches, *results: Batches, likeness: Likeness) -> Batches:
    """Yield `UNSETTLED`, given the `RESULTS` of all rounds."""
    yield empty_batch(UNSETTLED)
    for window, compared in _with_results(members, results):
        _, _, open_ = _choose(window, compared, likeness, star=False)
        rows = np.flatnonzero(open_)
        for places, nodes in window.nodes(rows):
            keys = window.keys[window.band_of(rows[places])]
            yield batch_of(UNSETTLED, id=node_ids(nodes), key=pa.array(keys))


def _choose(window: Window, compared: "Results", likeness: Likeness, *, star: bool) -> tuple[Rows, Rows, Flags]:
    from pipeline_tasks.text.near.candidates import Bands, choose

    if star and len(window.parts) > 1 and not window.known.any():
        # One band of new members, none of which was compared: its star is around the first of them.
        others = np.arange(1, len(window.known))
        return others, np.zeros_like(others), ~window.known
    bands = Bands(np.append(window.starts, len(window.known)), window.first_of_label(), window.known)
    return choose(bands, compared, pairs=likeness.pairs, reach=likeness.reach, star=star)


def _with_results(members: Batches, results: tuple[Batches, ...]) -> Iterator[tuple[Window, "Results"]]:
    """Yield windows, and the results of comparisons in them, sorted by band, with documents as rows of the window."""
    streams = [_ByBand(batches) for batches in results]
    for window in windows(members):
        yield window, _results_in(window, streams)


def _results_in(window: Window, streams: Sequence["_ByBand"]) -> "Results":
    from pipeline_tasks.text.near.candidates import Results

    given = [_columns(window, EMPTY_RESULTS)]
    given += [_columns(window, batch) for stream in streams for batch in stream.up_to(int(window.keys[-1]))]
    band, member, center, distances, passed = map(np.concatenate, zip(*given, strict=True))
    del given
    first = np.searchsorted(np.sort(band), np.arange(len(window.keys) + 1))
    if (band[1:] < band[:-1]).any():  # of several rounds
        order = np.argsort(band, kind="stable")
        member, center, distances, passed = (column[order] for column in (member, center, distances, passed))
    return Results(first, member, center, distances, passed)


def _columns(window: Window, batch: pa.RecordBatch) -> tuple[Any, ...]:
    """Return of `RESULTS` the band, the rows of both documents, how far apart they are, and whether they passed."""
    band = np.searchsorted(window.keys, whole_numbers(batch.column("key")))
    start = window.starts[band]
    member, center = (start + batch.column(name).to_numpy() for name in ("member_at", "center_at"))
    distances = np.asarray(1 - batch.column("similarity").to_numpy(), np.float64)
    return band.astype(np.int32), member, center, distances, flags(batch.column("passed"))


class _ByBand:
    """A stream of `RESULTS`, read forward band by band."""

    def __init__(self, batches: Batches) -> None:
        self._batches, self._rest = batches, EMPTY_RESULTS

    def up_to(self, key: int) -> Batches:
        """Yield the rows of the bands that are left up to one."""
        while True:
            if not self._rest.num_rows:
                following = next(self._batches, None)
                if following is None:
                    return
                self._rest = following
            stop = int(np.searchsorted(whole_numbers(self._rest.column("key")), key, side="right"))
            ended, self._rest = self._rest.slice(0, stop), self._rest.slice(stop)
            if stop:
                yield ended
            if self._rest.num_rows:
                return


EMPTY_RESULTS = empty_batch(RESULTS)


def distinct_pairs(pairs: Batches) -> Batches:
    """Yield `DISTINCT_PAIRS` of `PAIRS` sorted by member and center."""
    for rows in in_parts(pairs, "member", "center"):  # a pair has a row of each band at most
        starts = run_starts(rows.column("member"), rows.column("center"))
        bounds = pa.array(np.append(starts, rows.num_rows), pa.int32())
        lists = {name: pa.ListArray.from_arrays(bounds, combined(rows.column(one))) for name, one in PROPOSALS.items()}
        once = rows.select([name for name in DISTINCT_PAIRS.names if name not in lists]).take(pa.array(starts))
        yield batch_of(DISTINCT_PAIRS, **{name: once.column(name) for name in once.schema.names}, **lists)
