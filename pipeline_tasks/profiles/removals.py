"""Counts removals of deduplication by source, site and cluster, and profiles the measured similarity.

These columns are in no table. If a card names one in `profiled`, it is derived from the origin and the evidence of
every row, so that a gate can check all removals by the manifest alone.
"""

import itertools
import json
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.manifest import total
from pipeline_tasks.profiles.file_types import TYPE
from pipeline_tasks.profiles.sums import SITE, SITE_COVERAGES, SUMS, columns_summed
from pipeline_tasks.text.urls.sites import sites

LEAST = 1000
"""Input rows from which on the losses of a source or site are stored and checked."""

LARGEST = 16
"""Clusters whose sizes a manifest contains, and sites that it names however few documents they have."""

MEASURED = 64
"""Sites whose coverage a manifest contains, those of the most pages."""

WINNER = r'"winner":(?:"|\{[^{}]*"id":")(?P<id>[^"]+)"'
"""The winner in evidence: its id, or an object with its id."""

SIMILARITY = r'"(?:jaccard|containment|cosine)":(?P<value>[0-9.eE+-]+)'

NO_BAND = '"bands":0,'
"""What evidence says of two documents that have no band in common, which are never a pair."""

OF_LANGUAGE = "language "
"""What comes before a code in the counts by language."""

pc: Any = pyarrow.compute


def origins(batch: pa.RecordBatch | pa.Table) -> pa.Array:
    """Return `source NAME` and `site NAME` for every row, and again with prefix `own ` for losses to its own snapshot.

    A document that is removed because an earlier snapshot has it is no own loss: a recrawl has many of them. A document
    that lost to one of the same snapshot, or has no winner, is.
    """
    named = [_prefixed("source ", batch.column("source")), _prefixed("site ", sites(_whole(batch, "url")))]
    if "evidence" in batch.schema.names:
        own = _own(batch)
        named += [_prefixed("own ", pc.if_else(own, names, pa.scalar(None, pa.string()))) for names in named]
    return pa.concat_arrays([names.drop_null() for names in named])


def languages(batch: pa.RecordBatch | pa.Table) -> pa.Array:
    """Return `language NAME` for every row, and again with prefix `own ` for losses to its own snapshot."""
    if "language" not in batch.schema.names:
        return pa.array([], pa.string())
    named = _prefixed(OF_LANGUAGE, _whole(batch, "language").cast(pa.string()))
    if "evidence" not in batch.schema.names:
        return named.drop_null()
    own = _prefixed("own ", pc.if_else(_own(batch), named, pa.scalar(None, pa.string())))
    return pa.concat_arrays([named.drop_null(), own.drop_null()])


def _own(batch: pa.RecordBatch | pa.Table) -> pa.Array:
    """Return which rows do not name a document of another snapshot as their winner."""
    evidence, snapshots = _whole(batch, "evidence").fill_null(""), _whole(batch, "snapshot").fill_null("")
    own = pc.invert(pc.match_substring(evidence, '"snapshot":'))
    for snapshot in pc.unique(snapshots).to_pylist():
        named = pc.match_substring(evidence, f'"snapshot":{json.dumps(snapshot)}')
        own = pc.or_(own, pc.and_(named, pc.equal(snapshots, snapshot)))
    return own


def clusters(batch: pa.RecordBatch | pa.Table) -> pa.Array:
    """Return the id of the kept document for every removed row; of equal texts that is the row's own id."""
    if "evidence" not in batch.schema.names:
        return pa.array([], pa.string())
    winners = pc.struct_field(pc.extract_regex(_whole(batch, "evidence"), WINNER), ["id"])
    return pc.coalesce(winners, _whole(batch, "id"))


def similarity(batch: pa.RecordBatch | pa.Table) -> pa.Array:
    """Return the similarity that was measured before a row was removed, null where none was, or of no pair."""
    if "evidence" not in batch.schema.names:
        return pa.array([], pa.float64())
    evidence = _whole(batch, "evidence")
    values = pc.struct_field(pc.extract_regex(evidence, SIMILARITY), ["value"]).cast(pa.float64())
    return pc.if_else(pc.match_substring(evidence, NO_BAND), pa.scalar(None, pa.float64()), values)


DERIVED: Mapping[str, Callable[[pa.RecordBatch | pa.Table], pa.Array]] = {
    "origins": origins,
    "languages": languages,
    "clusters": clusters,
    "similarity": similarity,
}
"""Names that a card's `profiled` may have besides columns, and the functions that derive them."""

NEEDS = ("source", "url", "snapshot", "id")
"""Columns that name a document and its origin; intermediate tables that lack one are not profiled."""


def columns_profiled(names: Iterable[str]) -> tuple[str, ...]:
    """Return the columns that a profile of `names` reads: none for no names."""
    named = tuple(names)
    if not named:
        return ()
    own = (*(name for name in named if name not in DERIVED and name not in SUMS), *columns_summed(named), TYPE)
    own = tuple(dict.fromkeys((*own, *(("language",) if "languages" in named else ()))))
    return (*own, *NEEDS) if any(name in DERIVED for name in named) else own


def derived(batch: pa.RecordBatch | pa.Table, names: Iterable[str]) -> dict[str, pa.Array]:
    """Return the derived columns among `names`; empty where the rows are no documents."""
    wanted = [name for name in names if name in DERIVED]
    if not wanted or not set(NEEDS) <= set(batch.schema.names):
        return {}
    return {name: DERIVED[name](batch) for name in wanted}


def with_sites(batch: pa.RecordBatch | pa.Table, names: Iterable[str]) -> pa.RecordBatch | pa.Table:
    """Return rows with their site, where one of the profiles sums by it."""
    wanted = any(SUMS[name].by == SITE for name in names if name in SUMS)
    if not wanted or "url" not in batch.schema.names:
        return batch
    return batch.append_column(SITE, sites(_whole(batch, "url")))


def _prefixed(prefix: str, names: pa.Array | pa.ChunkedArray) -> pa.Array:
    joined = pc.binary_join_element_wise(prefix, names, "")
    return joined.combine_chunks() if isinstance(joined, pa.ChunkedArray) else joined


def _whole(batch: pa.RecordBatch | pa.Table, name: str) -> pa.Array:
    column = batch.column(name)
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def notable(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Return a manifest's metrics with its large origins (`_large`), `LARGEST` clusters and `MEASURED` sites only.

    A snapshot has millions of sites, and a manifest should stay small; receipts contain them all.
    """
    kept, lost = (dict(metrics[key]) for key in ("kept", "rejects"))
    if "origins" in kept or "origins" in lost:
        large = _large(arrivals(metrics))
        for profiles in (kept, lost):
            _cut(profiles, "origins", large | {f"own {name}" for name in large})
    counts, *moments = SITE_COVERAGES
    covered = _largest(total(bins_of(metrics, rows, counts) for rows in ("kept", "rejects")), MEASURED)
    for profiles, name in itertools.product((kept, lost), (counts, *moments)):
        _cut(profiles, name, covered)
    if "clusters" in lost:
        _cut(lost, "clusters", _largest(lost["clusters"]["bins"]))
    return {**metrics, "kept": kept, "rejects": lost}


def _large(rows_in: Mapping[str, int]) -> set[str]:
    """Return the sources and sites of at least `LEAST` rows, and the `LARGEST` sites, which may have fewer."""
    sites = {name: count for name, count in rows_in.items() if name.startswith("site ")}
    return {name for name in rows_in if rows_in[name] >= LEAST} | _largest(sites)


def _largest(counts: Mapping[str, int], most: int = LARGEST) -> set[str]:
    """Return the names with the largest counts; of equal counts, the first names."""
    return set(sorted(counts, key=lambda name: (-counts[name], name))[:most])


def _cut(profiles: dict[str, Any], name: str, wanted: AbstractSet[str]) -> None:
    if name in profiles:
        bins = {key: count for key, count in profiles[name]["bins"].items() if key in wanted}
        profiles[name] = {**profiles[name], "bins": bins}


def arrivals(metrics: Mapping[str, Any], column: str = "origins") -> dict[str, int]:
    """Return how many rows came in from every source and site, or by another column like that one."""
    rows_in: dict[str, int] = {}
    for key in ("kept", "rejects"):
        for name, count in bins_of(metrics, key, column).items():
            if not name.startswith("own "):
                rows_in[name] = rows_in.get(name, 0) + count
    return rows_in


def bins_of(metrics: Mapping[str, Any], key: str, name: str) -> Mapping[str, int]:
    """Return the counts of one profile of a manifest's metrics, empty where there is none."""
    bins: Mapping[str, int] = metrics.get(key, {}).get(name, {}).get("bins", {})
    return bins


def losses(metrics: Mapping[str, Any], kind: str, *, own: bool) -> dict[str, float]:
    """Return the share that every `source` or `site` of `LEAST` rows lost; only to its own day if `own`."""
    lost = bins_of(metrics, "rejects", "origins")
    return {
        name.removeprefix(f"{kind} "): lost.get(f"own {name}" if own else name, 0) / count
        for name, count in arrivals(metrics).items()
        if name.startswith(f"{kind} ") and count >= LEAST
    }
