"""Facets of what a run of a job read and wrote, from its manifests and from the card of its stage.

They say of a dataset its columns, from which columns of its inputs these come, how many rows went where, and how rows
of the one are related to rows of the other. No facet has a row of a dataset.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import pyarrow as pa

from pipeline_tasks.alerts.open_lineage import PRODUCER, Dataset, Facet, Lineage, Side, facet, manifest_dataset
from pipeline_tasks.binding import bind
from pipeline_tasks.cards import known_card
from pipeline_tasks.gate.verdicts import read_verdict
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.sealed import path_of
from pipeline_tasks.stage import Stage
from pipeline_tasks.store.reading import read_once

Relation = Literal["1:1", "1:N", "N:1", "N:M"]
"""How many rows of what was read one row of what was written comes from, and the other way round."""

ROW_LINEAGE = "refinery_rowLineage"
"""The name of our own facet, as the specification asks for: a prefix and a name."""

ROW_LINEAGE_SCHEMA = "urn:refinery:facets:1-0-0:RowLineageOutputDatasetFacet"
"""The `$id` of its schema, `row_lineage.schema.json` beside this module: a change of it is another version."""

ID, PLACE, FILE = ("id",), ("snapshot", "file", "offset"), ("snapshot", "file")
"""Columns that name a document by its content, a record by its place, and a landed file."""

SUBSET: Mapping[Side, str] = {
    side: f"1-0-0/BaseSubsetDatasetFacet#{side.title()}Subset{side.title()}DatasetFacet" for side in ("input", "output")
}
"""The facets that say which part of a dataset was read or written."""


@dataclass(frozen=True, slots=True)
class Committed:
    """A dataset whose version is a manifest: the manifest, the digest of its bytes, and the card of its stage.

    `card` is None for what no stage made: what landed, and what a build is composed of.
    """

    dataset: Dataset
    manifest: Manifest
    digest: str
    card: Stage[Any] | None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns, none of landed files."""
        return tuple(name for name, _ in self.manifest.schema)

    @property
    def sources(self) -> Iterable[str]:
        """The columns from which follows what the stage adds and changes, and which rows it keeps."""
        if self.card is None:
            return ()
        params = bind(self.card, self.manifest.params) if self.card.reads_for else None
        more = self.card.reads_for(params) if self.card.reads_for else ()
        return dict.fromkeys((*(self.card.derived_from or self.card.reads.names), *more))


def described(root: str, lineage: Lineage, *, snapshot: str = "", verdict: str = "") -> Lineage:
    """Return what was read and written with all of its facets; datasets whose version is no manifest stay as they are.

    `snapshot` is that of the run, "" for a build, and `verdict` the reference of that on what was read.
    """
    made = [_committed(root, dataset) for dataset in lineage.outputs if dataset.manifest]
    inputs = lineage.inputs or [dataset for each in made for dataset in _composed_of(root, each)]
    read = [_committed(root, dataset) for dataset in inputs if dataset.manifest]
    judged = {"dataQualityAssertions": _assertions(root, verdict)} if verdict else {}
    of_input = {each.dataset.manifest: _as_read(each, made, snapshot, judged) for each in read}
    of_output = {each.dataset.manifest: _as_written(each, read, snapshot) for each in made}
    return Lineage(
        [of_input.get(dataset.manifest, dataset) for dataset in inputs],
        [of_output.get(dataset.manifest, dataset) for dataset in lineage.outputs],
    )


def _committed(root: str, dataset: Dataset) -> Committed:
    manifest, digest = read_once(root, dataset.manifest)
    return Committed(dataset, manifest, digest, known_card(manifest.stage))


def _composed_of(root: str, made: Committed) -> list[Dataset]:
    """Return the datasets that a build is composed of, by their last versions: those of a recipe's stage are one."""
    named: dict[str, Dataset] = {}
    parts: dict[str, list[dict[str, Any]]] = {}
    for version in made.manifest.params.get("versions", ()):
        dataset = manifest_dataset(root, version["recipe"], version["manifest"])
        named[dataset.name] = dataset
        parts.setdefault(dataset.name, []).append(_part(version["snapshot"], dataset.version))
    return [replace(dataset, of_run=_subset("input", parts[name])) for name, dataset in named.items()]


def _as_read(read: Committed, made: Sequence[Committed], snapshot: str, judged: Mapping[str, Facet]) -> Dataset:
    """Return what was read: its columns, its part, its verdict, and how much of it was read."""
    part = _subset("input", [_part(snapshot, read.dataset.version)]) if snapshot else {}
    of_run = {**(read.dataset.of_run or part), **judged}
    described = replace(read.dataset, facets=_schema(read.manifest), of_run=of_run)
    if not made:
        return _counted(described, read.manifest)
    if made[0].card is None:  # of several versions, and the last one is known here
        return described
    rows, size = made[0].manifest.rows_in, made[0].manifest.bytes_in
    return replace(described, rows=rows, size=size, files=_files(read.manifest))


def _as_written(made: Committed, read: Sequence[Committed], snapshot: str) -> Dataset:
    """Return what was written: its columns, its part, where these and its rows come from, and how much it is."""
    facets = _schema(made.manifest)
    of_run = _subset("output", [_part(snapshot, made.dataset.version)]) if snapshot else {}
    if read:
        of_run[ROW_LINEAGE] = row_lineage(made, read)
    if read and not any(each.manifest.landed for each in read):
        facets["columnLineage"] = column_lineage(made, read)
    return _counted(replace(made.dataset, facets=facets, of_run=of_run), made.manifest)


def _counted(dataset: Dataset, manifest: Manifest) -> Dataset:
    """Return a dataset with the rows, bytes and files of its manifest; the rows of landed files are not counted yet."""
    rows = None if manifest.landed else manifest.rows
    return replace(dataset, rows=rows, size=manifest.bytes, files=_files(manifest))


def _files(manifest: Manifest) -> int:
    return len({shard.path for shard in manifest.shards})


def _schema(manifest: Manifest) -> dict[str, Facet]:
    columns = [{"name": name, "type": kind} for name, kind in manifest.schema]
    return {"schema": facet("1-2-0/SchemaDatasetFacet", fields=columns)} if columns else {}


def _part(snapshot: str, version: str) -> dict[str, Any]:
    return {"identifier": version, "dimensions": {"snapshot": snapshot}}


def _subset(side: Side, parts: Sequence[Mapping[str, Any]]) -> dict[str, Facet]:
    condition = {f"{side}Condition": {"type": "partition", "partitions": list(parts)}}
    return {"subset": facet(SUBSET[side], **condition)}


# --- Columns ------------------------------------------------------------------------------------------------------


def column_lineage(made: Committed, read: Sequence[Committed]) -> Facet:
    """Return from which columns of its inputs each column comes, and from which it follows which rows there are.

    A column that the stage neither adds nor changes is the one of that name. Any other follows from all sources.
    """
    fields = {column: {"inputFields": _inputs_of(column, made, read)} for column in made.columns}
    filters = _fields(made.sources, read, "INDIRECT", "FILTER") if made.card and made.card.reasons else []
    is_sorted = made.card is not None and made.card.buckets is not None and made.card.buckets.by_id
    order = _fields(ID, read, "INDIRECT", "SORT") if is_sorted else []
    return facet("1-2-0/ColumnLineageDatasetFacet", fields=fields, dataset=[*filters, *order])


def _inputs_of(column: str, made: Committed, read: Sequence[Committed]) -> list[dict[str, Any]]:
    card = made.card
    changes = card.changes if card else ()
    is_read = any(column in each.columns for each in read)
    if is_read and column not in changes:
        return _fields([column], read, "DIRECT", "IDENTITY")
    masks = card is not None and card.clears_personal_data and column in changes
    how = "AGGREGATION" if card and card.conserves == "tokens" else "TRANSFORMATION"
    return _fields(dict.fromkeys([*([column] if is_read else []), *made.sources]), read, "DIRECT", how, masks=masks)


def _fields(
    columns: Iterable[str], read: Sequence[Committed], kind: str, subtype: str, *, masks: bool = False
) -> list[dict[str, Any]]:
    """Return those of the columns that each input has, as inputs of a transformation."""
    how = [{"type": kind, "subtype": subtype, "masking": masks}]
    return [
        {"namespace": each.dataset.namespace, "name": each.dataset.name, "field": column, "transformations": how}
        for each in read
        for column in columns
        if column in each.columns
    ]


# --- Rows ---------------------------------------------------------------------------------------------------------


def row_lineage(made: Committed, read: Sequence[Committed]) -> Facet:
    """Return how rows that were written are related to what was read, and where each row went that was not written.

    `rejected` and `quarantined` are rows by reason, and `tokens` are counted where rows have them. `keys` are columns
    that name a row, those of content first.
    """
    manifest, files = made.manifest, sum(_files(each.manifest) for each in read if each.manifest.landed)
    tokens = {"read": sum(each.manifest.tokens for each in read), "written": manifest.tokens}
    tokens["rejected"] = manifest.tokens_of("rejects")
    return {
        "_producer": PRODUCER,
        "_schemaURL": ROW_LINEAGE_SCHEMA,
        "relation": relation(made, files),
        "read": {
            "unit": "file" if files else "row",
            "count": files or manifest.rows_in,
            "keys": [list(FILE)] if files else keys_of(read[0]),
            "manifests": [_manifest(each) for each in read],
        },
        "written": {
            "count": manifest.rows,
            **({"uses": manifest.uses} if manifest.uses != manifest.rows else {}),
            "keys": keys_of(made),
            "manifest": _manifest(made),
        },
        "rowsIn": manifest.rows_in,
        **({"offspringIn": manifest.offspring_in} if manifest.offspring_in else {}),
        "rejected": dict(manifest.rejected),
        "quarantined": dict(manifest.quarantined),
        **({"tokens": tokens} if any(tokens.values()) else {}),
    }


def relation(made: Committed, files: int = 0) -> Relation:
    """Return how rows are related, by what the card says and by what was counted; `files` are those that landed."""
    card, manifest = made.card, made.manifest
    if files:
        return "1:N" if manifest.rows_in > files else "1:1"
    if card and card.conserves == "tokens":
        return "N:M"
    if card and card.conserves in ("copies", "offspring"):
        return "1:N" if manifest.rows > manifest.rows_in else "1:1"
    return "N:1" if card and card.copies.compared and manifest.rejected else "1:1"


def keys_of(committed: Committed) -> list[list[str]]:
    """Return the lists of columns that name a row: by its content, or, of rows that are made of several, theirs."""
    columns, card = set(committed.columns), committed.card
    whole = [list(key) for key in (ID, PLACE) if columns.issuperset(key)]
    return whole or [[f"{column.name}.{ID[0]}"] for column in (card.writes if card else ()) if _has_ids(column.type)]


def _has_ids(kind: pa.DataType) -> bool:
    of = kind.value_type if pa.types.is_list(kind) else kind
    return ID[0] in {entry.name for entry in of} if pa.types.is_struct(of) else False


def _manifest(committed: Committed) -> dict[str, str]:
    return {"path": path_of(committed.dataset.manifest), "sha256": committed.digest}


# --- Verdicts -----------------------------------------------------------------------------------------------------


def _assertions(root: str, referred: str) -> Facet:
    """Return what a gate decided, and each bound that is violated."""
    verdict = read_verdict(root, referred)
    whole = {
        "assertion": "gate",
        "success": verdict.outcome != "refuse",
        "actual": verdict.outcome,
        "params": {
            "evaluated": verdict.evaluated,
            "skipped": len(verdict.skipped),
            "overridden": bool(verdict.override),
        },
    }
    violated = [
        {
            "assertion": failure.expectation,
            "success": False,
            "severity": "error" if failure.severity == "critical" else "warn",
            "name": failure.column,
            "expected": ", ".join(f"{side} {value:g}" for side, value in failure.bound.items()),
            "actual": "" if failure.observed is None else f"{failure.observed:g}",
        }
        for failure in verdict.failures
    ]
    return facet("1-1-0/DataQualityAssertionsDatasetFacet", assertions=[whole, *violated])
