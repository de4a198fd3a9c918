"""A gate that refuses asks a person in Airflow's web API, under its own scheduler, and does what they say."""

import re
import urllib.error
from collections.abc import Callable, Iterator
from functools import partial
from http import HTTPStatus
from typing import Any

import pytest

from pipeline_tasks.gate.verdicts import read_verdict
from pipeline_tasks.inspect.unpublished import unpublished_runs
from pipeline_tasks.ledger import Ledger, ledger_of
from pipeline_tasks.publish.logs import version_log
from tests.airflow_server import Airflow, Server, land, until
from tests.channels import Hooks, Metrics

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.usefixtures("ordered"),  # its runs go on while this test waits
]

DATASET, DAG = "approved", "refine_approved"
REASONS = {"extract.gate": "a crawl of one site", "publish_gate": "a small day"}
DAY, NEXT_DAY = "2026-11-01", "2026-11-02"
RUN, NEXT_RUN = f"of_{DAY}", f"of_{NEXT_DAY}"


@pytest.fixture
def airflow(server: Server) -> Iterator[Airflow]:
    with server.airflow(DATASET) as airflow:
        yield airflow


def sent(hooks: Hooks) -> list[Any]:
    """Return what the DAG has sent, in order."""
    return [body for body in hooks.bodies() if body["dag"] == DAG]


def messages(hooks: Hooks, run: str, gate: str) -> list[str]:
    """Return the kinds of alerts that a gate has sent, a message each; those of processes that were lost left out."""
    own = [body for body in sent(hooks) if (body["run"], body["task"]) == (run, gate)]
    kinds = ["+".join(alert["kind"] for alert in body["alerts"]) for body in own]
    return [kind for kind in kinds if kind != "task_failed"]


def form(airflow: Airflow, gate: str) -> Any:
    return airflow.of_run(RUN, f"/taskInstances/{gate}/-1/hitlDetails")


def decide(airflow: Airflow, gate: str, option: str, done: Callable[[], bool], **params: Any) -> None:
    """Answer as often as the gate asks, until `done`."""
    airflow.decide(RUN, gate, partial(airflow.answer, RUN, gate, option, **params), done)


def why_stopped(root: str) -> str:
    """Return why the day's run has stopped, as commands and pages say it."""
    return unpublished_runs(root, DATASET)[DAY].why


def log_of(airflow: Airflow, run: str, gate: str) -> list[dict[str, Any]]:
    """Return the log of a gate, of all its tries that Airflow knows; it may know a try late."""
    tries = range(1, airflow.of_run(run, f"/taskInstances/{gate}")["try_number"] + 1)
    return [entry for at in tries for entry in log_of_try(airflow, run, gate, at)]


def log_of_try(airflow: Airflow, run: str, gate: str, number: int) -> list[dict[str, Any]]:
    try:
        entries: list[dict[str, Any]] = airflow.of_run(run, f"/taskInstances/{gate}/logs/{number}")["content"]
    except urllib.error.HTTPError as error:
        if error.code != HTTPStatus.NOT_FOUND:
            raise
        return []
    return entries


def text_of(airflow: Airflow, run: str, gate: str) -> str:
    return "\n".join(str(entry["event"]) for entry in log_of(airflow, run, gate))


def waits_for(words: str, look: Callable[[], str]) -> None:
    until(lambda: words in look(), look)


def is_done(airflow: Airflow, gate: str) -> bool:
    return airflow.state(RUN, gate) == "success"


def ahead_of_next_day(airflow: Airflow) -> str:
    """Return the runs that the next day waits for, as its task `turn` says; "" before it waits."""
    if airflow.state(NEXT_RUN, "turn") != "deferred":
        return ""
    return str(airflow.of_run(NEXT_RUN, "/taskInstances/turn/xcomEntries/ahead")["value"])


def require_messages(airflow: Airflow, hooks: Hooks) -> None:
    """Fail unless each question and each refusal was sent once."""
    question, refusal = "gate_awaits_approval", "gate_refused"
    assert messages(hooks, RUN, "extract.gate") == [question, refusal, question], "before and after it was cleared"
    assert messages(hooks, RUN, "publish_gate") == [question]
    assert messages(hooks, NEXT_RUN, "extract.gate") == [question, refusal]
    first = sent(hooks)[0]
    assert first["link"] == f"{airflow.url}/dags/{DAG}/runs/{RUN}/tasks/extract.gate/required_actions"
    headline = f"The gate of extract refuses snapshot {DAY} of recipe {DATASET}, and awaits approval"
    assert first["alerts"][0]["headline"] == headline
    assert {body["task"] for body in sent(hooks)} == {"extract.gate", "publish_gate"}, "a refusal is no failed task"


def test_a_person_approves_in_the_web_ui_what_a_gate_refused_and_is_recorded(
    server: Server, airflow: Airflow, hooks: Hooks, metrics: Metrics
) -> None:
    """A refused gate failed the run, with a traceback, and to approve it JSON was typed into another run.

    Each question and each refusal is sent once, however often Airflow tries the gate.
    """
    ada = airflow.as_user("ada")
    metrics.lines().clear()
    for number, (day, hours) in enumerate({DAY: 24, NEXT_DAY: 0.001}.items()):
        land(server.landing(DATASET), day, number * 20, listed=True)
        airflow.trigger(day, {"approval": hours})
    airflow.waits_until(RUN, "awaiting_input", "extract.gate")
    shown = form(ada, "extract.gate")
    assert shown["options"] == ["Approve", "Reject"]
    assert shown["params"]["reason"]["schema"]["minLength"] == 1
    assert "critical: retention is 1, and must be at least 0.25 and at most 0.5" in shown["body"]
    assert "- kept: 9 of 9 rows" in shown["body"]
    assert "[Data Docs](/refinery/files/extract/" in shown["body"]
    assert f"/runs/{RUN}/tasks/extract.gate/required_actions" in text_of(ada, RUN, "extract.gate")
    waits_for(f"{DAY}, which awaits approval in extract.gate", lambda: ahead_of_next_day(airflow))

    with pytest.raises(urllib.error.HTTPError) as refused:
        airflow.as_user("vera").answer(RUN, "extract.gate", "Approve", reason="a viewer")
    assert refused.value.code == HTTPStatus.FORBIDDEN
    no_reason = "without a reason that can be stored"
    decide(ada, "extract.gate", "Approve", lambda: no_reason in text_of(ada, RUN, "extract.gate"), reason=" \n")
    airflow.waits_until(RUN, "awaiting_input", "extract.gate")
    assert form(ada, "extract.gate")["responded_at"] is None

    decide(ada, "extract.gate", "Reject", lambda: ada.state(RUN, "extract.gate") == "failed", reason="the site is down")
    text = text_of(ada, RUN, "extract.gate")
    assert re.search(r"It was rejected: the site is down \(ada, 20[\d-]+ [\d:]+ UTC\)\.", text)
    assert "clear this task, and approve it" in text
    assert "Traceback" not in text
    assert not any(entry.get("error_detail") for entry in log_of(ada, RUN, "extract.gate"))
    waits_for("It was rejected: the site is down (ada, 20", partial(why_stopped, server.root(DATASET)))

    airflow.clear(RUN, "extract.gate")
    airflow.waits_until(RUN, "awaiting_input", "extract.gate")
    for gate, reason in REASONS.items():
        airflow.waits_until(RUN, "awaiting_input", gate)
        shown = form(ada, gate)["body"]
        decide(ada, gate, "Approve", partial(is_done, ada, gate), reason=reason)
    assert "- documents: 9" in shown
    airflow.waits_until(RUN, "success")

    root = server.root(DATASET)
    version = version_log.current(root, DATASET, DAY)
    signed = r"\(approved by ada, 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC\)"
    for stage, reason in zip(("extract", "publish"), REASONS.values(), strict=True):
        verdict = read_verdict(root, version.verdicts[stage])
        assert verdict.outcome == "warn"
        assert re.fullmatch(f"{reason} {signed}", verdict.override)
    with Ledger.open(ledger_of(root)) as ledger:
        reasons = [row["override_reason"] for row in ledger.query("overrides")]
    assert sorted(re.sub(f" {signed}$", "", reason) for reason in reasons) == sorted(REASONS.values())

    waits_for("Nobody approved it by 20", lambda: text_of(ada, NEXT_RUN, "extract.gate"))
    waits_for("failed", lambda: ada.state(NEXT_RUN, "extract.gate"))
    require_messages(airflow, hooks)
    lines = metrics.lines()
    assert lines.count(f"airflow.refinery.stage.{DATASET}.extract.rows_in:9|c") == 2, "once for each day"
    assert lines.count("airflow.refinery.alerts.gate_refused.raised:1|c") == 2
