"""Run events of OpenLineage: what a task of a DAG run read and wrote, as the JSON that lineage servers take.

The fields are those of the specification 2-0-2 (https://openlineage.io/spec/2-0-2/OpenLineage.json) and of its facets.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit
from uuid import NAMESPACE_URL, uuid5

from pipeline_tasks.sealed import path_of

EventType = Literal["START", "COMPLETE", "FAIL"]

Side = Literal["input", "output"]

SPEC = "https://openlineage.io/spec"

STATISTICS: Mapping[Side, str] = {
    "input": "1-0-0/InputStatisticsInputDatasetFacet",
    "output": "1-0-2/OutputStatisticsOutputDatasetFacet",
}
"""The facets that have the counts of what was read and written."""

PRODUCER = "urn:refinery"
"""The URI of what sends the events; each event and each facet of it names it."""

Facet = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Work:
    """A job of a DAG run, such as a stage; each `task`, which has a name of its own if it is cleared, is a run of it.

    Such a run has one START, and one COMPLETE or FAIL.
    """

    namespace: str
    dag: str
    dag_run: str
    job: str
    task: str

    @property
    def run_id(self) -> str:
        """The UUID of this run of the job, the same for each of its events."""
        return _uuid(self.namespace, self.dag, self.dag_run, self.task)

    @property
    def parent_id(self) -> str:
        """The UUID of the DAG run."""
        return _uuid(self.namespace, self.dag, self.dag_run)


@dataclass(frozen=True, slots=True)
class Dataset:
    """What is read or written: a URI's namespace and name, its version ("" without), and its counts (None: unknown).

    `size` is in bytes. `manifest` is the reference of the manifest whose path is the version, "" for another version.
    `facets` are of the dataset, `of_run` of this run's reading or writing, by their names.
    """

    namespace: str
    name: str
    version: str = ""
    rows: int | None = None
    size: int | None = None
    files: int | None = None
    manifest: str = ""
    facets: Mapping[str, Facet] = field(default_factory=dict)
    of_run: Mapping[str, Facet] = field(default_factory=dict)

    def own_facets(self) -> dict[str, Facet]:
        """Return the facets of the dataset, its version among them."""
        version = {"version": facet("1-0-1/DatasetVersionDatasetFacet", datasetVersion=self.version)}
        return {**(version if self.version else {}), **self.facets}

    def facets_of_run(self, side: Side) -> dict[str, Facet]:
        """Return the facets of this run's reading or writing, its counts among them."""
        counts = {"rowCount": self.rows, "size": self.size, "fileCount": self.files}
        known = {name: count for name, count in counts.items() if count is not None}
        return {**({f"{side}Statistics": facet(STATISTICS[side], **known)} if known else {}), **self.of_run}


class Lineage(NamedTuple):
    """What a run of a job read and wrote."""

    inputs: Sequence[Dataset] = ()
    outputs: Sequence[Dataset] = ()


NOTHING = Lineage()


def dataset_of(uri: str, *below: str, version: str = "", rows: int | None = None, size: int | None = None) -> Dataset:
    """Return the dataset at a URI, or at a name below it, as OpenLineage names those of S3 and of files."""
    parts = urlsplit(uri) if "://" in uri else None
    namespace = f"{parts.scheme}://{parts.netloc}" if parts and parts.netloc else "file"
    path = (parts.path if parts else uri).rstrip("/")
    path = path.lstrip("/") if namespace != "file" else path
    return Dataset(namespace, "/".join(filter(None, (path, *below))) or "/", version, rows, size)


def manifest_dataset(root: str, recipe: str, manifest: str, **counts: int | None) -> Dataset:
    """Return the dataset of a recipe's stage, whose versions are its manifests; `manifest` is a path or reference."""
    path = path_of(manifest)
    return replace(dataset_of(root, recipe, path.partition("/")[0], version=path, **counts), manifest=manifest)


def run_event(
    event: EventType,
    time: str,
    work: Work,
    lineage: Lineage = NOTHING,
    *,
    error: str = "",
) -> dict[str, Any]:
    """Return a run event; `time` is that of ISO 8601 with its offset from UTC."""
    run_facets = {"parent": _parent(work)}
    if error:
        run_facets["errorMessage"] = facet("1-0-1/ErrorMessageRunFacet", message=error, programmingLanguage="PYTHON")
    job_facets = {"jobType": facet("2-0-4/JobTypeJobFacet", processingType="BATCH", integration="REFINERY")}
    return {
        "eventType": event,
        "eventTime": time,
        "producer": PRODUCER,
        "schemaURL": f"{SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": work.run_id, "facets": run_facets},
        "job": {"namespace": work.namespace, "name": f"{work.dag}.{work.job}", "facets": job_facets},
        "inputs": [_described(dataset, "input") for dataset in lineage.inputs],
        "outputs": [_described(dataset, "output") for dataset in lineage.outputs],
    }


def _parent(work: Work) -> Facet:
    job = {"namespace": work.namespace, "name": work.dag}
    return facet("1-2-0/ParentRunFacet", run={"runId": work.parent_id}, job=job)


def _described(dataset: Dataset, side: Side) -> dict[str, Any]:
    return {
        "namespace": dataset.namespace,
        "name": dataset.name,
        "facets": dataset.own_facets(),
        f"{side}Facets": dataset.facets_of_run(side),
    }


def facet(kind: str, **fields: object) -> Facet:
    """Return a facet of a kind, which is the version, file and name of its definition in the specification.

    The name may be left out: it is that of the file.
    """
    path, _, name = kind.partition("#")
    return {
        "_producer": PRODUCER,
        "_schemaURL": f"{SPEC}/facets/{path}.json#/$defs/{name or path.partition('/')[2]}",
        **fields,
    }


def _uuid(*names: str) -> str:
    return str(uuid5(NAMESPACE_URL, "\n".join(names)))
