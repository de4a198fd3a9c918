"""Counts rows by the type of the file that they are of, and those that a stage rejected by their reason, too.

Every stage that profiles anything counts it, of all rows that have a type: no card names it.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.manifest import Manifest
from pipeline_tasks.schema import OF_GENERATOR, ORIGIN

TYPE = "type"
"""The column of the types of files (`file_types`)."""

TYPES = "file types"
"""Name of the profile, which is that of no column."""

NO_TYPE = ""
"""The type of a row that is a file of no known type, or no file."""

NEEDS = (TYPE, "reason")
"""The columns that the profile reads; kept rows have no `reason`."""


class OfType(NamedTuple):
    """What became of the rows of a type in one stage; `removed` are counts by reason, of quarantined rows, too."""

    kept: int
    removed: Mapping[str, int]

    @property
    def rows_in(self) -> int:
        """Rows that the stage read."""
        return self.kept + sum(self.removed.values())


def type_profile(batch: pa.RecordBatch | pa.Table) -> dict[str, dict[str, Any]]:
    """Return the profile of the types, nothing of rows without that column: `pdf`, or `pdf extract:damaged`.

    A generated document is no file.
    """
    if TYPE not in batch.schema.names or not pa.types.is_string(batch.schema.field(TYPE).type):
        return {}
    names = pc.fill_null(batch.column(TYPE), NO_TYPE)
    if "reason" in batch.schema.names:
        names = pc.binary_join_element_wise(names, batch.column("reason"), " ")
    if ORIGIN in batch.schema.names:
        names = names.filter(pc.fill_null(pc.not_equal(batch.column(ORIGIN), OF_GENERATOR), fill_value=True))
    counted = pc.value_counts(names)
    pairs = zip(counted.field("values").to_pylist(), counted.field("counts").to_pylist(), strict=True)
    return {TYPES: {"kind": "name", "count": len(names), "bins": dict(sorted(pairs))}}


def rows_by_type(manifest: Manifest) -> dict[str, OfType]:
    """Return what became of the rows of each type, the most frequent first: all rows, or none if none were counted.

    Rows that were quarantined with their partition were not read: they are among those of no known type.
    """
    origins = manifest.metrics.get("rejects", {}).get(ORIGIN, {}).get("bins", {})
    generated = {name.removeprefix(f"{OF_GENERATOR} "): rows for name, rows in origins.items()}
    kept, removed = ({**manifest.metrics.get(rows, {}).get(TYPES, {}).get("bins", {})} for rows in ("kept", "rejects"))
    if not kept and not removed:
        return {}
    reasons: dict[str, dict[str, int]] = {}
    for named, rows in removed.items():
        name, _, reason = named.partition(" ")
        reasons.setdefault(name, {})[reason] = rows
    for reason, rows in {**manifest.rejected, **manifest.quarantined}.items():
        counted = sum(of_type.get(reason, 0) for of_type in reasons.values()) + generated.get(reason, 0)
        if rows > counted:
            of_none = reasons.setdefault(NO_TYPE, {})
            of_none[reason] = of_none.get(reason, 0) + rows - counted
    return _ranked({name: OfType(kept.get(name, 0), reasons.get(name, {})) for name in {**kept, **reasons}}.items())


def _ranked(found: Iterable[tuple[str, OfType]]) -> dict[str, OfType]:
    return dict(sorted(found, key=lambda pair: (pair[0] == NO_TYPE, -pair[1].rows_in, pair[0])))
