"""Counts what stages did through Airflow's own metrics: StatsD or OpenTelemetry, as Airflow is configured.

Names are as Airflow has them: `refinery.stage.rows_in` with tags, and, unless `[metrics] legacy_names_on` is off,
`refinery.stage.<recipe>.<stage>.rows_in` for receivers that know no tags. Airflow adds its own prefix, and sends
nothing from `refinery run`.
"""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from airflow.sdk.configuration import conf
from airflow.sdk.observability import stats

from pipeline_tasks.alerts.sent import harmless

Tags = dict[str, str]


def count_stage(dag: str, recipe: str, stage: str, reply: Mapping[str, Any]) -> None:
    """Send what a stage did, given the reply of its refinement; nothing if it was found done."""
    if not (reply["ran"] or reply.get("times", {}).get("partitions", 0)):
        return
    with harmless("metrics", "they could not be sent"):
        for end, count in counts_of(reply).items():
            for name, tags in names_of("stage", {"recipe": recipe, "stage": stage}, end, dag):
                stats.incr(name, count, tags=tags)
        for name, tags in names_of("stage", {"recipe": recipe, "stage": stage}, "seconds", dag):
            stats.timing(name, timedelta(seconds=reply["wall"]), tags=tags)


def count_alert(dag: str, kind: str) -> None:
    """Send that an alert was raised."""
    with harmless("metrics", "they could not be sent"):
        for name, tags in names_of("alerts", {"kind": kind}, "raised", dag):
            stats.incr(name, tags=tags)


def counts_of(reply: Mapping[str, Any]) -> dict[str, int]:
    """Return what is counted of a stage: its rows, the tokens and the bytes that it kept."""
    return {
        "rows_in": reply["rows_in"],
        "rows_kept": reply["rows"],
        "rows_rejected": sum(reply["rejected"].values()),
        "rows_quarantined": sum(reply["quarantined"].values()),
        "tokens": reply["tokens"],
        "bytes": reply["bytes"],
        **({"offspring_in": reply["offspring_in"]} if "offspring_in" in reply else {}),
    }


def names_of(kind: str, parts: Mapping[str, str], end: str, dag: str) -> Iterator[tuple[str, Tags]]:
    """Yield the names of a metric, each with its tags; a point in a part would be a level of the name."""
    yield f"refinery.{kind}.{end}", {"dag_id": dag, **parts}
    if conf.getboolean("metrics", "legacy_names_on"):
        levels = ".".join(part.replace(".", "__") for part in parts.values())
        yield f"refinery.{kind}.{levels}.{end}", {}
