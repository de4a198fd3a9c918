"""Messages reach a webhook, Slack and a mail server that listen on loopback; a channel that is down holds up nothing."""

import json
import logging
import re
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline_tasks.alerts.alert import Alert
from pipeline_tasks.alerts.verdicts import gate_warned
from pipeline_tasks.errors import ContractError, GateRefused
from pipeline_tasks.recipe import AlertLimits
from pipeline_tasks.service.work.earlier import Earlier, store_earlier
from tests.channels import Hooks, Mails, serving
from tests.cluster.containers import wait_until
from tests.gate.drifts import language_days, quality_days, site_days
from tests.gate.test_snapshots import committed, day

LINES = ("warning: retention is 0.1, and must be at least 0.25", "    of 60 rows & <none> left")
WARNED = gate_warned("extract", "snapshot 2026-11-20 of recipe web", LINES)
SLOW = Alert(
    "slow_partitions", "The slowest partitions of extract took 8.0 times their median", ("p99 400 s",), "Look."
)


@pytest.fixture(autouse=True, scope="module")
def _imported() -> None:
    import refinery_airflow.alerts.alerts  # noqa: F401 -- Airflow configures logging when it is first imported


@pytest.fixture
def hooks() -> Iterator[Hooks]:
    with serving(Hooks()) as hooks:
        yield hooks


@pytest.fixture
def mails() -> Iterator[Mails]:
    with serving(Mails()) as mails:
        yield mails


def context(**more: Any) -> Any:
    from airflow.sdk import DAG, BaseOperator

    ti = SimpleNamespace(dag_id="refine", run_id="of 1", task_id="extract.gate", map_index=-1, max_tries=3)
    dag_run = SimpleNamespace(dag_id="refine", run_id="of 1", partition_key=None, logical_date=None)
    with DAG("refine", schedule=None) as dag:
        BaseOperator(task_id="sense")
    return {"ti": ti, "dag": dag, "dag_run": dag_run, "params": {"snapshot": "2026-11-20"}, **more}


def connect(monkeypatch: pytest.MonkeyPatch, name: str, **fields: Any) -> None:
    monkeypatch.setenv(f"AIRFLOW_CONN_REFINERY_ALERTS_{name}", json.dumps(fields))


def mail_to(port: int) -> dict[str, Any]:
    extra = {"from_email": "refinery@example.org", "to": "ada@example.org, ops@example.org"}
    plain = {"disable_ssl": True, "disable_tls": True}
    return {"conn_type": "smtp", "host": "127.0.0.1", "port": port, "extra": extra | plain}


def sent(*alerts: Alert, **more: Any) -> None:
    from refinery_airflow.alerts.alerts import send

    send(context(**more), alerts)


# --- Channels ----------------------------------------------------------------------------------------------------------


def test_a_webhook_receives_json_with_its_login_and_headers(hooks: Hooks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFINERY_RUNBOOK", "https://docs.example.org/respond-to-alerts.html")
    about = {"conn_type": "http", "host": f"{hooks.url}/alerts", "login": "ada", "password": "secret"}
    connect(monkeypatch, "WEBHOOK", **about, extra={"X-Team": "data"})
    sent(WARNED, SLOW)
    ((path, headers, body),) = hooks.received
    assert (path, headers["X-Team"], headers["Authorization"]) == ("/alerts", "data", "Basic YWRhOnNlY3JldA==")
    assert {name: body[name] for name in ("version", "source", "severity", "dag", "run", "task")} == {
        "version": 1,
        "source": "refinery",
        "severity": "warning",
        "dag": "refine",
        "run": "of 1",
        "task": "extract.gate",
    }
    assert body["title"] == "The gate of extract warns of snapshot 2026-11-20 of recipe web (and 1 more)"
    assert body["link"].endswith("/dags/refine/runs/of%201/tasks/extract.gate")
    first, second = body["alerts"]
    assert (first["kind"], first["numbers"]) == ("gate_warned", list(LINES))
    assert first["runbook"] == "https://docs.example.org/respond-to-alerts.html#a-gate-warned"
    assert first["remedy"].startswith("The run goes on.")
    assert (second["kind"], second["numbers"]) == ("slow_partitions", ["p99 400 s"])


def test_slack_receives_escaped_text_at_a_secret_address(hooks: Hooks, monkeypatch: pytest.MonkeyPatch) -> None:
    connect(monkeypatch, "SLACK", conn_type="http", host=f"{hooks.url}/services", password="T0/B0/secret")
    sent(WARNED)
    ((path, headers, body),) = hooks.received
    assert path == "/services/T0/B0/secret"
    assert "Authorization" not in headers
    assert body["text"] == "[warning] The gate of extract warns of snapshot 2026-11-20 of recipe web"
    section, about = body["blocks"]
    text = section["text"]["text"]
    assert text.startswith("*[warning] The gate of extract warns of snapshot 2026-11-20 of recipe web*\n>warning: ")
    assert ">    of 60 rows &amp; &lt;none&gt; left" in text
    assert "docs/how-to/operate/respond-to-alerts.md#a-gate-warned" in text
    assert "/tasks/extract.gate|Open in Airflow> · refine · of 1 · extract.gate" in about["elements"][0]["text"]


def test_a_mail_goes_to_every_address_as_html(mails: Mails, monkeypatch: pytest.MonkeyPatch) -> None:
    connect(monkeypatch, "EMAIL", **mail_to(mails.port))
    sent(WARNED)
    ((recipients, mail),) = mails.received
    assert recipients == ["ada@example.org", "ops@example.org"]
    assert mail["From"] == "refinery@example.org"
    assert mail["Subject"] == "[warning] The gate of extract warns of snapshot 2026-11-20 of recipe web"
    (part,) = mail.get_payload()  # type: ignore[misc]
    html = part.get_payload(decode=True).decode()  # type: ignore[union-attr]
    assert "<h3>The gate of extract warns of snapshot 2026-11-20 of recipe web</h3>" in html
    assert "of 60 rows &amp; &lt;none&gt; left" in html
    assert "/tasks/extract.gate" in html


def test_a_name_with_line_ends_is_mailed(mails: Mails, monkeypatch: pytest.MonkeyPatch) -> None:
    connect(monkeypatch, "EMAIL", **mail_to(mails.port))
    sent(gate_warned("extract", "snapshot a\nBcc: eve@example.org\n\nbody", LINES))
    ((recipients, mail),) = mails.received
    assert recipients == ["ada@example.org", "ops@example.org"]
    assert "Bcc" not in mail
    assert mail["Subject"] == "[warning] The gate of extract warns of snapshot a Bcc: eve@example.org body"


def test_without_connections_the_log_has_the_alert(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="refinery"):
        sent(SLOW)
    (line,) = [record for record in caplog.records if record.getMessage().startswith("alert  The")]
    assert line.levelno == logging.WARNING
    assert line.getMessage().splitlines()[1:] == [
        "    p99 400 s",
        "    Look.",
        "    runbook: docs/how-to/operate/respond-to-alerts.md#slow-partitions",
    ]


def test_no_alert_is_no_message(hooks: Hooks, monkeypatch: pytest.MonkeyPatch) -> None:
    connect(monkeypatch, "WEBHOOK", conn_type="http", host=hooks.url)
    sent()
    assert hooks.received == []


# --- Channels that are down --------------------------------------------------------------------------------------------


def test_a_channel_that_fails_is_named_without_its_secret_and_the_others_are_sent(
    hooks: Hooks, mails: Mails, closed_port: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    hooks.status = 404
    connect(
        monkeypatch, "SLACK", conn_type="http", host=f"http://127.0.0.1:{closed_port}/services", password="topsecret"
    )
    connect(monkeypatch, "WEBHOOK", conn_type="http", host=f"{hooks.url}/topsecret")
    connect(monkeypatch, "EMAIL", **mail_to(mails.port))
    with caplog.at_level(logging.DEBUG):
        sent(WARNED)
    assert len(mails.received) == 1
    assert "alert  refinery_alerts_slack  failed: ConnectionError; look at this connection" in caplog.text
    assert "alert  refinery_alerts_webhook  failed: HTTPError 404; look at this connection" in caplog.text
    assert "alert  refinery_alerts_email  sent" in caplog.text
    ours = [record.getMessage() for record in caplog.records if not record.name.startswith("urllib3")]
    assert "topsecret" not in "\n".join(ours)


def test_a_channel_that_never_answers_is_left_behind(
    hooks: Hooks, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from refinery_airflow.alerts import alerts as refinery_alerts

    monkeypatch.setattr(refinery_alerts, "ALL", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts, and says nothing
        connect(monkeypatch, "EMAIL", **mail_to(silent.getsockname()[1]))
        connect(monkeypatch, "WEBHOOK", conn_type="http", host=hooks.url)
        with caplog.at_level(logging.INFO, logger="refinery"):
            sent(WARNED)
        assert "alert  refinery_alerts_email  has not answered for 0 s" in caplog.text
        for _ in wait_until("the other channel has its message", 60, each=0.01):
            if hooks.received:
                break
    assert len(hooks.received) == 1


def test_a_wrong_connection_and_an_alert_that_cannot_be_computed_harm_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from refinery_airflow.alerts.alerts import send

    connect(monkeypatch, "EMAIL", conn_type="smtp", host="127.0.0.1", extra={})
    with caplog.at_level(logging.INFO, logger="refinery"):
        sent(WARNED)
        send(context(), (alert for alert in (WARNED, SLOW) if 1 / (alert is WARNED)))
    assert "refinery_alerts_email  failed: RecipeError: it has no addresses" in caplog.text
    assert "alert  it could not be sent (ZeroDivisionError)" in caplog.text


def test_a_connection_that_cannot_be_read_is_named(
    hooks: Hooks, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_REFINERY_ALERTS_SLACK", "{topsecret")
    connect(monkeypatch, "WEBHOOK", conn_type="http", host=hooks.url)
    with caplog.at_level(logging.INFO, logger="refinery"):
        sent(WARNED)
    assert len(hooks.received) == 1
    assert "alert  refinery_alerts_slack  failed: AIRFLOW_CONN_REFINERY_ALERTS_SLACK is no connection" in caplog.text
    assert "topsecret" not in caplog.text


# --- Failed tasks ------------------------------------------------------------------------------------------------------


def failed(hooks: Hooks, monkeypatch: pytest.MonkeyPatch, error: BaseException) -> list[Any]:
    from refinery_airflow.alerts.alerts import FailureAlert

    connect(monkeypatch, "WEBHOOK", conn_type="http", host=hooks.url)
    FailureAlert()(context(exception=error))
    return [body["alerts"][0] for body in hooks.bodies()]


def test_a_task_that_failed_is_told_with_what_our_own_errors_say(hooks: Hooks, monkeypatch: pytest.MonkeyPatch) -> None:
    (alert,) = failed(hooks, monkeypatch, ContractError("land/1/manifest.json was changed; restore it"))
    assert alert["headline"] == "The task extract.gate of snapshot 2026-11-20 in refine failed"
    assert alert["numbers"] == ["ContractError: land/1/manifest.json was changed; restore it"]
    assert alert["severity"] == "critical"


def test_the_text_of_another_error_stays_in_the_log(hooks: Hooks, monkeypatch: pytest.MonkeyPatch) -> None:
    (alert,) = failed(hooks, monkeypatch, RuntimeError("postgresql://ada:secret@db"))
    assert alert["numbers"] == ["RuntimeError; the task's log has its text"]


def test_partitions_that_fail_at_one_moment_send_one_message(
    tmp_path: Path, hooks: Hooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a run had sent was read, and written again with one more: 16 failures were 16 messages."""
    from refinery_airflow.alerts.alerts import FailureAlert

    connect(monkeypatch, "WEBHOOK", conn_type="http", host=hooks.url)
    params = {"snapshot": "2026-11-20", "root": str(tmp_path)}
    given = [context(params=params, exception=ContractError(f"file {number} is damaged")) for number in range(16)]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(FailureAlert(), given))
    ((alert,),) = [body["alerts"] for body in hooks.bodies()]
    assert re.fullmatch(r"ContractError: file \d+ is damaged", alert["numbers"][0])
    cleared = context(params=params, exception=ContractError("file 3 is damaged"))
    cleared["ti"].max_tries = 7
    FailureAlert()(cleared)
    assert len(hooks.bodies()) == 2


def test_a_root_that_cannot_be_written_to_is_no_reason_to_be_silent(
    tmp_path: Path, hooks: Hooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "root").write_text("a file")
    connect(monkeypatch, "WEBHOOK", conn_type="http", host=hooks.url)
    sent(WARNED, params={"snapshot": "2026-11-20", "root": str(tmp_path / "root")})
    assert len(hooks.bodies()) == 1


def test_a_task_whose_process_was_lost_is_told_from_where_dags_are_parsed(
    tmp_path: Path, hooks: Hooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Airflow calls the callback there without an error, and there nothing answers who writes an XCom."""
    from refinery_airflow.alerts.alerts import FailureAlert

    connect(monkeypatch, "WEBHOOK", conn_type="http", host=hooks.url)
    for _ in range(2):
        FailureAlert()(context(params={"snapshot": "2026-11-20", "root": str(tmp_path)}))
    (body,) = hooks.bodies()
    assert body["alerts"][0]["numbers"][0].startswith("its process ended without an error: it was killed")
    assert len(list((tmp_path / "alerts").iterdir())) == 1


def test_the_refusal_of_a_gate_is_not_told_again_as_a_failure(hooks: Hooks, monkeypatch: pytest.MonkeyPatch) -> None:
    from refinery_airflow.alerts.alerts import Refusal

    assert failed(hooks, monkeypatch, Refusal("the gate of extract refuses")) == []


def test_a_refusal_of_another_task_is_told(hooks: Hooks, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of a tokenizer comes from the task that trains it."""
    (alert,) = failed(hooks, monkeypatch, GateRefused("tokenize: 20 documents are too little"))
    assert (alert["kind"], alert["numbers"]) == ("task_failed", ["GateRefused: tokenize: 20 documents are too little"])


LANDED = "land/f00d/manifest.json"
"""Beside it lies what is earlier."""


# --- Drifts ------------------------------------------------------------------------------------------------------------


def gate(root: Path, stage: str, days: list[str], last: str) -> Any:
    """Return the gate of a day's stage after usual days, as the DAG wires it."""
    from refinery_airflow.tasks.operators import Gate

    earlier = store_earlier(str(root), Earlier(snapshots=tuple({stage: path} for path in days)), LANDED)
    landed = {"earlier": earlier, "landing": ""}
    refined = {"manifest": last, "rows_in": 400, "rows": 400, "rejected": {}, "quarantined": {}, "wall": 1.0, "ran": 1}
    step = {"bounds": {}, "alerts": asdict(AlertLimits())}
    return Gate(task_id="gate", recipe="web", stage=stage, step=step, landed=landed, refined=refined, next_cut={})


def bodies(root: Path, task: Any, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the messages that a gate's task sends to a webhook."""
    from refinery_airflow.runs.run import HERE

    monkeypatch.setenv(HERE, "1")
    params = {
        "snapshot": "2026-11-20",
        "root": str(root),
        "partitions": 0,
        "input": "landing/{snapshot}",
        "approval": 0,
    }
    with serving(Hooks()) as hooks:
        connect(monkeypatch, "WEBHOOK", conn_type="http", host=hooks.url)
        given = context(params=params, task=task)
        given["dag_run"].run_type, given["dag_run"].conf = "scheduled", {}
        with suppress(GateRefused):
            task.execute(given)
    return hooks.bodies()


def message(root: Path, task: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[str, list[str]]:
    """Return the title of the one message that a gate's task sends, and its numbers as one line per bound."""
    (body,) = bodies(root, task, monkeypatch)
    text = "\n".join(line for alert in body["alerts"] for line in alert["numbers"])
    return body["title"], [" ".join(bound.split()) for bound in re.split(r"\n(?=\w+: )", text)]


def test_a_drift_of_mean_quality_is_sent_by_the_gate_of_score_quality(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    days, worse = quality_days(tmp_path)
    title, bounds = message(tmp_path, gate(tmp_path, "score_quality", days, worse), monkeypatch)
    assert title == "The gate of score_quality refuses snapshot 2026-11-20 of recipe web"
    (line,) = [bound for bound in bounds if bound.startswith("warning: score_mean ")]
    assert re.search(
        r"score_mean is 0\.\d+, and must be at least 0\.\d+ and at most 0\.\d+ learned from the last 4", line
    )
    assert "The mean quality is more than 5 % from what is usual: the texts drift, or the model was exchanged." in line


def test_a_snapshot_of_which_less_is_left_is_sent_by_the_gate_of_publish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from refinery_airflow.tasks.operators import PublishGate

    usual = [committed(tmp_path, *day(short=1_000 + 10 * number, words=1_000)) for number in range(4)]
    now = committed(tmp_path, *day(short=1_240, words=1_060))
    gates = {stage: [{"manifest": path, "verdict": ""}] for stage, path in now.items()}
    landed = {"earlier": store_earlier(str(tmp_path), Earlier(snapshots=tuple(usual)), LANDED), "landing": ""}
    task = PublishGate(task_id="publish_gate", recipe="web", landed=landed, gates=gates, bounds={})
    title, bounds = message(tmp_path, task, monkeypatch)
    assert title == "The gate of publish warns of snapshot 2026-11-20 of recipe web"
    (line,) = bounds
    assert line.startswith("warning: retention is 0.425, and must be at least 0.")
    assert "learned from the last 4 published snapshots, whose median is 0.49" in line


def test_a_language_that_vanishes_is_sent_by_the_gate_of_filter_language(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    days, vanished = language_days(tmp_path)
    title, bounds = message(tmp_path, gate(tmp_path, "filter_language", days, vanished), monkeypatch)
    assert title == "The gate of filter_language refuses snapshot 2026-11-20 of recipe web"
    (line,) = [bound for bound in bounds if bound.startswith("warning: language_share.fr ")]
    assert line.startswith(
        "warning: language_share.fr is 0, and must be at least 0.166667 and at most 0.5 learned from"
    )
    assert "A language has half as much again as usual, half of it, or vanished:" in line


def test_a_site_that_floods_is_sent_by_the_gate_of_dedup_exact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    days, flooded = site_days(tmp_path)
    title, bounds = message(tmp_path, gate(tmp_path, "dedup_exact", days, flooded), monkeypatch)
    assert title == "The gate of dedup_exact warns of snapshot 2026-11-20 of recipe web"
    (line,) = [bound for bound in bounds if bound.startswith("warning: site_rise_max ")]
    assert re.search(r"site_rise_max is 0\.1\d+, and must be at most 0\.05", line)
    assert "A site floods the snapshot: it has 5 % more of all documents than usual." in line


def test_a_usual_day_sends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (*days, last), _ = quality_days(tmp_path)
    assert bodies(tmp_path, gate(tmp_path, "score_quality", days, last), monkeypatch) == []
