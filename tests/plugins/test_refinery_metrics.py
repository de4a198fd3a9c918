"""What a stage did reaches a StatsD server on loopback, as Airflow is configured."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.channels import Hooks, Metrics, serving
from tests.embedded import embed

REPLY: dict[str, Any] = {
    "rows_in": 100,
    "rows": 90,
    "rejected": {"extract:empty": 6, "extract:timeout": 1},
    "quarantined": {"error:cut": 3},
    "tokens": 4321,
    "bytes": 65_536,
    "wall": 12.5,
    "ran": 2,
}
TAGS = "dag_id=refine,recipe=web_v1.2,stage=extract"


@pytest.fixture
def metrics() -> Iterator[Metrics]:
    metrics = Metrics()
    yield metrics
    metrics.close()


def counted(metrics: Metrics, monkeypatch: pytest.MonkeyPatch, reply: dict[str, Any], **settings: str) -> list[str]:
    """Return what is received of a stage's reply, by Airflow's own settings, as a task's process has them."""
    from airflow.sdk.configuration import conf
    from airflow.sdk.observability import stats
    from airflow.sdk.observability.metrics.stats_utils import get_stats_factory
    from refinery_airflow.alerts.metrics import count_stage

    for name, value in metrics.settings(**settings).items():
        monkeypatch.setenv(name, value)
    try:
        stats.initialize(factory=get_stats_factory(), export_legacy_names=conf.getboolean("metrics", "legacy_names_on"))
        count_stage("refine", "web_v1.2", "extract", reply)
    finally:
        monkeypatch.undo()
        stats.initialize(factory=get_stats_factory(), export_legacy_names=True)
    return [line for line in metrics.lines() if line.startswith("airflow.refinery.")]


def test_rows_tokens_bytes_and_seconds_of_a_stage_are_sent(metrics: Metrics, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = counted(metrics, monkeypatch, REPLY)
    counts = {
        "rows_in": 100,
        "rows_kept": 90,
        "rows_rejected": 7,
        "rows_quarantined": 3,
        "tokens": 4321,
        "bytes": 65_536,
    }
    stage = "airflow.refinery.stage"
    whole = {f"{stage}.{name}:{count}|c" for name, count in counts.items()}
    own = {f"{stage}.web_v1__2.extract.{name}:{count}|c" for name, count in counts.items()}
    times = {f"{stage}.seconds:12500.000000|ms", f"{stage}.web_v1__2.extract.seconds:12500.000000|ms"}
    assert set(lines) == whole | own | times
    assert len(lines) == 14


def test_generated_texts_that_became_rows_are_sent(metrics: Metrics, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = counted(metrics, monkeypatch, {**REPLY, "offspring_in": 40})
    assert "airflow.refinery.stage.offspring_in:40|c" in lines


def test_a_receiver_of_tags_gets_one_name_with_tags(metrics: Metrics, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = counted(metrics, monkeypatch, REPLY, STATSD_INFLUXDB_ENABLED="True", LEGACY_NAMES_ON="False")
    assert f"airflow.refinery.stage.rows_in,{TAGS}:100|c" in lines
    assert len(lines) == 7


def test_what_was_found_done_is_not_counted_again(metrics: Metrics, monkeypatch: pytest.MonkeyPatch) -> None:
    done = {**REPLY, "ran": 0}
    assert counted(metrics, monkeypatch, done) == []
    assert counted(metrics, monkeypatch, {**done, "times": {"partitions": 0}}) == []
    assert len(counted(metrics, monkeypatch, {**done, "times": {"partitions": 8}})) == 14


OTEL = """
from airflow.sdk._shared.observability.metrics.otel_logger import flush_otel_metrics
from airflow.sdk.observability import stats
from airflow.sdk.observability.metrics.stats_utils import get_stats_factory
from refinery_airflow.alerts.metrics import count_stage

stats.initialize(factory=get_stats_factory(), export_legacy_names=True)
count_stage("refine", "web", "extract", %r)
flush_otel_metrics()
"""
"""Sends what a stage did, from a process of its own: OpenTelemetry has one provider for each process."""


def test_a_collector_of_opentelemetry_receives_names_and_tags(tmp_path: Path) -> None:
    with serving(Hooks()) as collector:
        otel = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}
        env = {**embed(tmp_path), **otel, "AIRFLOW__METRICS__OTEL_ON": "True"}
        done = subprocess.run(
            [sys.executable, "-c", OTEL % REPLY], env=env, capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stderr
    path, _, body = collector.received[0]  # it exports all again as it exits
    assert path == "/v1/metrics"
    assert all(name in body for name in (b"airflow.refinery.stage.rows_in", b"airflow.refinery.stage.seconds"))
    assert all(tag in body for tag in (b"recipe", b"web", b"stage", b"extract"))


def test_without_settings_nothing_is_sent_and_a_name_that_cannot_be_found_harms_nothing(
    metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert counted(metrics, monkeypatch, REPLY, STATSD_ON="False") == []
    assert counted(metrics, monkeypatch, REPLY, STATSD_HOST="no.such.host.invalid") == []
