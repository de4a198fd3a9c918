"""Counts documents by their origin, source or generated, and those that a stage rejected by their reason, too."""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.manifest import Manifest
from pipeline_tasks.profiles.removals import bins_of
from pipeline_tasks.schema import OF_GENERATOR, OF_SOURCE, ORIGIN


def origin_profile(batch: pa.RecordBatch | pa.Table) -> dict[str, dict[str, object]]:
    """Return the profile of origins, nothing of rows without: `generated`, or `generated filter_generated:figures`."""
    if ORIGIN not in batch.schema.names:
        return {}
    names = batch.column(ORIGIN)
    if "reason" in batch.schema.names:
        names = pc.binary_join_element_wise(names, batch.column("reason"), " ")
    counted = pc.value_counts(names.drop_null())
    pairs = zip(counted.field("values").to_pylist(), counted.field("counts").to_pylist(), strict=True)
    bins = dict(sorted(pairs))
    return {ORIGIN: {"kind": "name", "count": sum(bins.values()), "bins": bins}}


def generated_kept(manifest: Manifest) -> int:
    """Return how many of the kept rows are generated documents."""
    return bins_of(manifest.metrics, "kept", ORIGIN).get(OF_GENERATOR, 0)


def generated_removed(manifest: Manifest) -> dict[str, int]:
    """Return how many generated documents were rejected or quarantined, by reason."""
    return _removed(manifest, OF_GENERATOR)


def sources_removed(manifest: Manifest) -> dict[str, int]:
    """Return how many of the documents beside generated ones were rejected or quarantined, by reason."""
    return _removed(manifest, OF_SOURCE)


def _removed(manifest: Manifest, origin: str) -> dict[str, int]:
    counted: Mapping[str, int] = bins_of(manifest.metrics, "rejects", ORIGIN)
    named = ((name.partition(" "), rows) for name, rows in counted.items())
    return {reason: rows for (of, _, reason), rows in named if of == origin}
