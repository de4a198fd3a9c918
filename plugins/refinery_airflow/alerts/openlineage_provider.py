"""Hands what tasks read and wrote to Airflow's provider of OpenLineage, where that sends their events.

The package `apache-airflow-providers-openlineage` is imported where it is there, and asked for nothing else.
"""

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from airflow.sdk import Context

from pipeline_tasks.alerts.open_lineage import NOTHING, Facet, Lineage

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage


def provider_sends(context: Context) -> bool:
    """Return whether Airflow's provider of OpenLineage sends the events of a task: it is installed and has a server.

    It listens to Airflow's own runner of tasks, and not to `refinery run`.
    """
    try:
        from airflow.providers.openlineage import conf
    except ImportError:
        return False
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    return isinstance(context["ti"], RuntimeTaskInstance) and not conf.is_disabled()


class Traced:
    """An operator that says to Airflow's provider of OpenLineage what it read and wrote."""

    lineage: Lineage = NOTHING
    """What a task that succeeded has read and written; a class attribute, as a task that did not has nothing."""

    def get_openlineage_facets_on_complete(self, _task_instance: object) -> "OperatorLineage":
        """Return what was read and written, as the provider sends it."""
        return _of_provider(self.lineage)

    def get_openlineage_facets_on_failure(self, _task_instance: object) -> "OperatorLineage":
        """Return nothing: a try that failed has committed nothing."""
        return _of_provider(NOTHING)


def _of_provider(lineage: Lineage) -> "OperatorLineage":
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.event_v2 import InputDataset, OutputDataset
    from openlineage.client.facet_v2 import DatasetFacet, InputDatasetFacet, OutputDatasetFacet

    inputs = [
        InputDataset(
            each.namespace,
            each.name,
            facets=_typed(each.own_facets(), DatasetFacet),
            inputFacets=_typed(each.facets_of_run("input"), InputDatasetFacet),
        )
        for each in lineage.inputs
    ]
    outputs = [
        OutputDataset(
            each.namespace,
            each.name,
            facets=_typed(each.own_facets(), DatasetFacet),
            outputFacets=_typed(each.facets_of_run("output"), OutputDatasetFacet),
        )
        for each in lineage.outputs
    ]
    return OperatorLineage(inputs=inputs, outputs=outputs)


def _typed(facets: Mapping[str, Facet], kind: type) -> dict[str, Any]:
    return {name: _facet_of(_open(kind, facet["_schemaURL"]), facet) for name, facet in facets.items()}


def _facet_of(kind: type, facet: Facet) -> object:
    fields = {name: value for name, value in facet.items() if not name.startswith("_")}
    return kind(producer=facet["_producer"]).with_additional_properties(**fields)


@cache
def _open(kind: type, schema: str) -> type:
    """Return a class of facets of a schema, with any fields, whose values are sent as they are.

    The provider hides what is below a key that is like a secret's, and columns have such names: `tokens`, `n_tokens`.
    """
    import attrs

    class Open(kind):  # type: ignore[misc]  # of a package that need not be installed
        @property
        def skip_redact(self) -> list[str]:
            return [each.name for each in attrs.fields(type(self))]

        @staticmethod
        def _get_schema() -> str:
            return schema

    return Open
