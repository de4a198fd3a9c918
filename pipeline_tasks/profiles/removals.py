"""Measures what deduplication removed: of which sources and sites, into which clusters, on what evidence.

These columns are in no table. A card that names one in `profiled` has it profiled from the origin and the evidence of
every row, so that a gate can judge all removals by the manifest alone.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.text.urls.keys import sites

LEAST = 1000
"""Documents that must have come in from a source or site before its losses are told, and judged."""

LARGEST = 16
"""Clusters whose sizes a manifest holds."""

WINNER = r'"winner":(?:"|\{[^{}]*"id":")(?P<id>[^"]+)"'
"""Where evidence names the document that stays: an id, or what is told of that document."""

SIMILARITY = r'"(?:jaccard|containment)":(?P<value>[0-9.eE+-]+)'

pc: Any = pyarrow.compute


def origins(batch: Any) -> pa.Array:  # noqa: ANN401 -- a batch or table of rows
    """Return `source NAME` and `site NAME` for every row, and again with `own ` before for losses to its own snapshot.

    A document of this snapshot that goes because an earlier snapshot has it is no loss of its own: a recrawl is full
    of them. What is lost to documents of the same snapshot (or without a winner at all) is.
    """
    named = [_prefixed("source ", batch.column("source")), _prefixed("site ", sites(_whole(batch, "url")))]
    if "evidence" in batch.schema.names:
        own = _own(batch)
        named += [_prefixed("own ", pc.if_else(own, one, pa.scalar(None, pa.string()))) for one in named]
    return pa.concat_arrays([one.drop_null() for one in named])


def _own(batch: Any) -> Any:  # noqa: ANN401 -- Arrow
    """Tell which rows do not name a document of another snapshot as their winner."""
    evidence, snapshots = _whole(batch, "evidence").fill_null(""), _whole(batch, "snapshot").fill_null("")
    own = pc.invert(pc.match_substring(evidence, '"snapshot":'))
    for snapshot in pc.unique(snapshots).to_pylist():
        named = pc.match_substring(evidence, f'"snapshot":{json.dumps(snapshot)}')
        own = pc.or_(own, pc.and_(named, pc.equal(snapshots, snapshot)))
    return own


def clusters(batch: Any) -> pa.Array:  # noqa: ANN401 -- a batch or table of rows
    """Return for every removed row the id of the document that stays; of equal texts that is its own id."""
    if "evidence" not in batch.schema.names:
        return pa.array([], pa.string())
    found = pc.struct_field(pc.extract_regex(_whole(batch, "evidence"), WINNER), ["id"])
    return pc.coalesce(found, _whole(batch, "id"))


def similarity(batch: Any) -> pa.Array:  # noqa: ANN401 -- a batch or table of rows
    """Return the similarity that was measured before a row was removed, null where none was."""
    if "evidence" not in batch.schema.names:
        return pa.array([], pa.float64())
    found = pc.struct_field(pc.extract_regex(_whole(batch, "evidence"), SIMILARITY), ["value"])
    return found.cast(pa.float64())


DERIVED: Mapping[str, Callable[[Any], pa.Array]] = {
    "origins": origins,
    "clusters": clusters,
    "similarity": similarity,
}
"""Names that a card's `profiled` may have beside columns, and what they are profiled from."""

NEEDS = ("source", "url", "snapshot", "id", "text")
"""Columns of a document; tables on the way that lack one are not profiled."""


def derived(batch: Any, names: Iterable[str]) -> dict[str, pa.Array]:  # noqa: ANN401 -- a batch or table of rows
    """Return the derived columns among `names`; none where the rows are no documents."""
    wanted = [name for name in names if name in DERIVED]
    if not wanted or not set(NEEDS) <= set(batch.schema.names):
        return {}
    return {name: DERIVED[name](batch) for name in wanted}


def _prefixed(prefix: str, names: Any) -> Any:  # noqa: ANN401 -- Arrow
    joined = pc.binary_join_element_wise(prefix, names, "")
    return joined.combine_chunks() if isinstance(joined, pa.ChunkedArray) else joined


def _whole(batch: Any, name: str) -> Any:  # noqa: ANN401 -- Arrow
    column = batch.column(name)
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def notable(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Return a manifest's metrics with the origins of at least `LEAST` rows and the `LARGEST` clusters only.

    A snapshot has millions of sites, and a manifest is read by everyone; receipts hold them all.
    """
    kept, lost = (dict(metrics[key]) for key in ("kept", "rejects"))
    if "origins" in kept or "origins" in lost:
        came = arrivals(metrics)
        for profiles in (kept, lost):
            large = {name for name in came if came[name] >= LEAST}
            _cut(profiles, "origins", large | {f"own {name}" for name in large})
    if "clusters" in lost:
        bins = lost["clusters"]["bins"]
        _cut(lost, "clusters", set(sorted(bins, key=lambda name: (-bins[name], name))[:LARGEST]))
    return {**metrics, "kept": kept, "rejects": lost}


def _cut(profiles: dict[str, Any], name: str, wanted: AbstractSet[str]) -> None:
    if name in profiles:
        bins = {key: count for key, count in profiles[name]["bins"].items() if key in wanted}
        profiles[name] = {**profiles[name], "bins": bins}


def arrivals(metrics: Mapping[str, Any]) -> dict[str, int]:
    """Return how many rows came in from every source and site."""
    came: dict[str, int] = {}
    for key in ("kept", "rejects"):
        for name, count in bins_of(metrics, key, "origins").items():
            if not name.startswith("own "):
                came[name] = came.get(name, 0) + count
    return came


def bins_of(metrics: Mapping[str, Any], key: str, name: str) -> Mapping[str, int]:
    """Return the counts of one profile of a manifest's metrics, empty where there is none."""
    found: Mapping[str, int] = metrics.get(key, {}).get(name, {}).get("bins", {})
    return found


def losses(metrics: Mapping[str, Any], kind: str, *, own: bool) -> dict[str, float]:
    """Return the share that every `source` or `site` of at least `LEAST` rows lost; only to its own day if `own`."""
    lost = bins_of(metrics, "rejects", "origins")
    return {
        name.removeprefix(f"{kind} "): lost.get(f"own {name}" if own else name, 0) / came
        for name, came in arrivals(metrics).items()
        if name.startswith(f"{kind} ") and came >= LEAST
    }
