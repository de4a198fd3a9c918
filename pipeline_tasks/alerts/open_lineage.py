"""Run events of OpenLineage: what a task of a DAG run read and wrote, as the JSON that lineage servers take.

The fields are those of the specification 2-0-2 (https://openlineage.io/spec/2-0-2/OpenLineage.json) and of its facets.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit
from uuid import NAMESPACE_URL, uuid5

from pipeline_tasks.sealed import path_of

EventType = Literal["START", "COMPLETE", "FAIL"]

SPEC = "https://openlineage.io/spec"

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
    """What is read or written: a URI's namespace and name, its version ("" without), and its counts (None: unknown)."""

    namespace: str
    name: str
    version: str = ""
    rows: int | None = None
    size: int | None = None


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
    return dataset_of(root, recipe, path.partition("/")[0], version=path, **counts)


def run_event(
    event: EventType,
    time: str,
    work: Work,
    *,
    inputs: Sequence[Dataset] = (),
    outputs: Sequence[Dataset] = (),
    error: str = "",
) -> dict[str, Any]:
    """Return a run event; `time` is that of ISO 8601 with its offset from UTC."""
    run_facets = {"parent": _parent(work)}
    if error:
        run_facets["errorMessage"] = _facet("1-0-1/ErrorMessageRunFacet", message=error, programmingLanguage="PYTHON")
    job_facets = {"jobType": _facet("2-0-4/JobTypeJobFacet", processingType="BATCH", integration="REFINERY")}
    return {
        "eventType": event,
        "eventTime": time,
        "producer": PRODUCER,
        "schemaURL": f"{SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": work.run_id, "facets": run_facets},
        "job": {"namespace": work.namespace, "name": f"{work.dag}.{work.job}", "facets": job_facets},
        "inputs": [_described(dataset, "input", "1-0-0/InputStatisticsInputDatasetFacet") for dataset in inputs],
        "outputs": [_described(dataset, "output", "1-0-2/OutputStatisticsOutputDatasetFacet") for dataset in outputs],
    }


def _parent(work: Work) -> Facet:
    job = {"namespace": work.namespace, "name": work.dag}
    return _facet("1-2-0/ParentRunFacet", run={"runId": work.parent_id}, job=job)


def _described(dataset: Dataset, side: Literal["input", "output"], kind: str) -> dict[str, Any]:
    """Return a dataset with its version, and with its counts as a facet of a kind."""
    counts = {"rowCount": dataset.rows, "size": dataset.size}
    known = {name: count for name, count in counts.items() if count is not None}
    version = {"version": _facet("1-0-1/DatasetVersionDatasetFacet", datasetVersion=dataset.version)}
    return {
        "namespace": dataset.namespace,
        "name": dataset.name,
        "facets": version if dataset.version else {},
        f"{side}Facets": {f"{side}Statistics": _facet(kind, **known)} if known else {},
    }


def _facet(kind: str, **fields: object) -> Facet:
    """Return a facet of a kind, which is its version and name in the specification."""
    return {
        "_producer": PRODUCER,
        "_schemaURL": f"{SPEC}/facets/{kind}.json#/$defs/{kind.partition('/')[2]}",
        **fields,
    }


def _uuid(*names: str) -> str:
    return str(uuid5(NAMESPACE_URL, "\n".join(names)))
