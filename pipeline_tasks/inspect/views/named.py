"""The views of a version by their names: rows that its manifests name, and tables that manifests and the log are."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.cards import adds
from pipeline_tasks.gate.verdicts import read_verdict
from pipeline_tasks.inspect.chosen import document_manifest, ordered_manifests
from pipeline_tasks.inspect.funnel import funnel
from pipeline_tasks.inspect.recipe.recipe_verdicts import short_names
from pipeline_tasks.inspect.versions import list_versions
from pipeline_tasks.inspect.versions.lineage import lineage
from pipeline_tasks.inspect.views.column_types import LIST, schema_of
from pipeline_tasks.inspect.views.rows import Hidden, Part, Rows, columns_of, without_payload
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.ablation_log import ablations
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.schema import REDACTION

KEPT, REJECTS, QUARANTINE, REDACTIONS = "kept", "rejects", "quarantine", "redactions"
STAGES, REASONS, VERDICTS, LINEAGE, VERSIONS = "stages", "reasons", "verdicts", "lineage", "versions"
ABLATIONS = "ablations"

OUTCOME = "outcome"
OUTCOMES: Mapping[str, str] = {REJECTS: "rejected", QUARANTINE: "quarantined"}
"""A column for whoever joins views of rows that were not kept: what became of a row, by the view that has it."""

OF_DOCUMENTS = frozenset({KEPT, REJECTS, QUARANTINE, REDACTIONS})
"""Views with texts, or with addresses of pages: to query one is a look."""

NAMES = (KEPT, REJECTS, QUARANTINE, REDACTIONS, STAGES, REASONS, VERDICTS, LINEAGE, VERSIONS, ABLATIONS)

_BOUND = pa.struct(
    [
        pa.field("fact", pa.string()),
        pa.field("severity", pa.string()),
        pa.field("observed", pa.float64()),
        pa.field("min_value", pa.float64()),
        pa.field("max_value", pa.float64()),
        pa.field("why", pa.string()),
    ]
)

_DIFFERENCE = pa.struct([pa.field(name, pa.float64()) for name in ("rate", "value", "low", "high")])

TABLES: Mapping[str, pa.Schema] = {
    STAGES: pa.schema(
        [
            ("rank", pa.int32()),
            ("stage", pa.string()),
            ("rows_in", pa.int64()),
            ("kept", pa.int64()),
            ("rejected", pa.int64()),
            ("quarantined", pa.int64()),
            ("offspring_in", pa.int64()),
            ("generated", pa.int64()),
            ("bytes", pa.int64()),
            ("tokens", pa.int64()),
            ("manifest", pa.string()),
        ]
    ),
    REASONS: pa.schema(
        [("stage", pa.string()), ("reason", pa.string()), ("outcome", pa.string()), ("rows", pa.int64())]
    ),
    VERDICTS: pa.schema(
        [
            ("gate", pa.string()),
            ("outcome", pa.string()),
            ("override", pa.string()),
            ("evaluated", pa.int32()),
            ("failures", pa.list_(pa.field(LIST, _BOUND))),
            ("facts", pa.map_(pa.string(), pa.float64())),
            ("manifest", pa.string()),
        ]
    ),
    LINEAGE: pa.schema(
        [
            ("manifest", pa.string()),
            ("stage", pa.string()),
            ("kind", pa.string()),
            ("parent", pa.string()),
            ("parent_stage", pa.string()),
            ("recipe", pa.string()),
            ("snapshot", pa.string()),
            ("version", pa.int64()),
            ("state", pa.string()),
        ]
    ),
    VERSIONS: pa.schema(
        [
            ("recipe", pa.string()),
            ("number", pa.int64()),
            ("snapshot", pa.string()),
            ("state", pa.string()),
            ("documents", pa.int64()),
            ("tokens", pa.int64()),
            ("sequences", pa.int64()),
            ("tokenizer", pa.string()),
            ("published_at", pa.string()),
            ("is_file_time", pa.bool_()),
            ("note", pa.string()),
        ]
    ),
    ABLATIONS: pa.schema(
        [
            ("number", pa.int64()),
            ("kind", pa.string()),
            ("a", pa.string()),
            ("b", pa.string()),
            ("outcome", pa.string()),
            ("size", pa.string()),
            ("tokens", pa.int64()),
            ("seeds", pa.int64()),
            ("differences", pa.list_(pa.field(LIST, _DIFFERENCE))),
            ("detectable", pa.float64()),
            ("override", pa.string()),
            ("at", pa.string()),
        ]
    ),
}
"""The columns of the views that are no rows of shards."""


class VersionViews:
    """The views of one version; what a view is made of is read when `of` names it."""

    def __init__(self, root: str, version: Version, hidden: Hidden) -> None:
        self._root, self._version, self._hidden = root, version, hidden
        self._known: dict[str, Manifest] | None = None
        self._tables: Mapping[str, Callable[[], Iterable[Mapping[str, Any]]]] = {
            STAGES: self._stages,
            REASONS: self._reasons,
            VERDICTS: self._verdicts,
            LINEAGE: self._lineage,
            VERSIONS: self._versions,
            ABLATIONS: self._ablations,
        }

    @property
    def names(self) -> list[str]:
        """The views that there are: `redactions` only where personal data was looked for."""
        replaced = any(adds(REDACTIONS, stage) for stage in self._version.manifests)
        has = {REDACTIONS: replaced, KEPT: self._documents is not None}
        return [name for name in NAMES if has.get(name, True)]

    def of(self, name: str) -> Rows | pa.Table:
        """Return a view of `names`."""
        if name in self._tables:
            return pa.Table.from_pylist(list(self._tables[name]()), schema=TABLES[name])
        if name == KEPT:
            return self._kept()
        return self._redactions() if name == REDACTIONS else self._others(name)

    # --- Rows of shards -------------------------------------------------------------------------------------------

    @property
    def _manifests(self) -> dict[str, Manifest]:
        if self._known is None:
            self._known = ordered_manifests(self._root, self._version)
        return self._known

    @property
    def _documents(self) -> Manifest | None:
        return document_manifest(self._manifests)

    def _kept(self) -> Rows:
        """Return the documents of the version, as its last stage left them."""
        manifest = self._documents or next(iter(self._manifests.values()))
        schema = without_payload(schema_of(manifest.schema))
        return Rows(self._root, (Part("", manifest.shards),), schema, self._hidden)

    def _others(self, name: str) -> Rows:
        """Return the rows that any stage rejected or quarantined, with the columns that any of them has."""
        parts = tuple(Part(stage, getattr(manifest, name)) for stage, manifest in self._manifests.items())
        return Rows(self._root, parts, columns_of(self._root, parts), self._hidden)

    def _redactions(self) -> Rows:
        """Return a row for each stretch of personal data, of documents that are kept and of those that it rejected."""
        manifest = next(each for stage, each in self._manifests.items() if adds(REDACTIONS, stage))
        documents = [pa.field("id", pa.string()), pa.field("url", pa.string())]
        read = pa.schema([*documents, pa.field(REDACTIONS, pa.list_(REDACTION))])
        schema = pa.schema([*documents, *REDACTION.fields])
        parts = (Part("", (*manifest.shards, *manifest.rejects)),)
        return Rows(self._root, parts, schema, self._hidden, _by_redaction, read)

    # --- Tables ---------------------------------------------------------------------------------------------------

    def _stages(self) -> Iterable[Mapping[str, Any]]:
        for rank, step in enumerate(funnel(self._root, self._version)):
            counts = {name: sum(step[name].values()) for name in OUTCOMES.values()}
            yield {**step, **counts, "rank": rank, "kept": step["rows"]}

    def _reasons(self) -> Iterable[Mapping[str, Any]]:
        for step in funnel(self._root, self._version):
            for outcome in OUTCOMES.values():
                for reason, rows in step[outcome].items():
                    yield {"stage": step["stage"], "reason": reason, "outcome": outcome, "rows": rows}

    def _verdicts(self) -> Iterable[Mapping[str, Any]]:
        for gate, referred in self._version.verdicts.items():
            verdict = read_verdict(self._root, referred)
            failures = [{**asdict(failed), **failed.bound, "fact": failed.column} for failed in verdict.failures]
            yield {**asdict(verdict), "gate": gate, "failures": failures, "facts": list(verdict.facts.items())}

    def _lineage(self) -> Iterable[Mapping[str, Any]]:
        shown = lineage(self._root, self._version)
        for node in shown.own:
            for kind, parent in ((edge.kind, edge.parent) for edge in shown.edges if edge.child == node.path):
                [of] = [each for each in shown.nodes if each.path == parent]
                named = {"recipe": of.recipe, "snapshot": of.snapshot, "version": of.version, "state": of.state}
                own = {"manifest": node.path, "stage": node.stage, "kind": kind}
                yield {**named, **own, "parent": of.path, "parent_stage": of.stage}

    def _versions(self) -> Iterable[Mapping[str, Any]]:
        for recipe in version_log.recipes(self._root):
            yield from map(asdict, list_versions(self._root, recipe))

    def _ablations(self) -> Iterable[Mapping[str, Any]]:
        """Yield what trained models said of the root's datasets: `b` beside `a`, in bits per byte of held-out text."""
        for ablation in ablations(self._root):
            yield asdict(ablation) | dict(zip("ab", short_names(ablation), strict=True))


def _by_redaction(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a row for each entry of `redactions`, with the document that it is of."""
    column = batch.column(REDACTIONS)
    of = pc.list_parent_indices(column)
    fields = pc.list_flatten(column).flatten()
    columns = {name: batch.column(name).take(of) for name in ("id", "url")}
    return pa.record_batch({**columns, **{field.name: fields[at] for at, field in enumerate(REDACTION.fields)}})
