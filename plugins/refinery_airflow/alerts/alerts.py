"""Tells people of a run's alerts: in the task's log, and through the connections that are set.

`refinery_alerts_slack`    HTTP: an incoming webhook of Slack; the secret end of its address may be the password
`refinery_alerts_webhook`  HTTP: any address that takes JSON; login and password, or headers as extra
`refinery_alerts_email`    SMTP: with `from_email` and `to` (addresses with commas between) as extra

The file of the deployment may name other connections for a recipe.

A run says the same of a task once, whatever its tries and partitions. What was said is below `alerts/` of the
root. A channel that fails or does not answer is named in the log, and never fails or holds up a run.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from airflow.sdk import BaseNotifier, Connection, Context
from airflow.sdk.exceptions import AirflowNotFoundException

from pipeline_tasks.alerts.alert import Alert
from pipeline_tasks.alerts.message import Message, Origin, mail, slack, webhook
from pipeline_tasks.alerts.sent import harmless, log_message, note_message, runbook
from pipeline_tasks.alerts.verdicts import task_failed
from pipeline_tasks.deployment import Settings, deployment
from pipeline_tasks.errors import GateRefused, RecipeError, RefineryError
from pipeline_tasks.flow import gates
from refinery_airflow.alerts.metrics import count_alert
from refinery_airflow.runs.credentials import adopt_credentials
from refinery_airflow.runs.run import is_here, recipe_of_dag, snapshot_of, task_page

log = logging.getLogger("refinery")

SLACK, WEBHOOK, EMAIL = "refinery_alerts_slack", "refinery_alerts_webhook", "refinery_alerts_email"
"""Ids of the connections, where the deployment names no others; one that is not set is no channel."""

ANSWER = 5.0
"""Seconds that a channel has for each step of a message."""

ALL = 10.0
"""Seconds that a task waits for all of its channels; what takes longer goes on while the process lives."""

TAKEN = range(200, 300)
"""Statuses of HTTP with which a channel has taken a message; a redirected POST would lose it."""

Channel = Callable[[Connection, Message], None]


class Refusal(gates.Refusal, SystemExit):
    """A gate's refusal, or a person's: a decision and no defect, so the task's log has no traceback of it.

    Airflow logs an exception with its traceback, and a SystemExit in one line. The retry table and the callbacks see a
    GateRefused.
    """

    code = GateRefused.exit_code


def send(context: Context, alerts: Iterable[Alert], tab: str = "", recipe: str = "") -> None:
    """Send alerts that a task raises at one moment as one message, unless the run has sent it; never raise.

    `tab` is the part of the task's page that the message links to. `recipe` is that which a task of no recipe tells of.
    """
    with harmless("alert", "it could not be sent"):
        message = Message(origin_of(context, tab), tuple(alerts), runbook())
        settings = settings_of_alerts(context, recipe)
        if message.alerts and is_new(context, message):
            log_message(message)
            for alert in message.alerts:
                count_alert(message.origin.dag, alert.kind)
            _send_to_channels(message, channels_of(settings))


def settings_of_alerts(context: Context, recipe: str = "") -> Settings:
    """Return the settings of the deployment by which a task's alerts are sent: those of a recipe, or of its root."""
    if known := recipe or recipe_of_dag(context["ti"].dag_id):
        return deployment().of(known)
    return deployment().at(str(context["params"].get("root") or ""))


def channels_of(settings: Settings) -> dict[str, Channel]:
    """Return what sends a message, by the id of its connection."""
    if settings.alerts is None:
        return dict(CHANNELS)
    named = (settings.alerts.slack, settings.alerts.webhook, settings.alerts.email)
    return {name: channel for name, channel in zip(named, CHANNELS.values(), strict=True) if name}


class FailureAlert(BaseNotifier):  # type: ignore[misc]  # loaded lazily: Any
    """The `on_failure_callback` of every task: it sends that a task failed for good.

    A gate's refusal is left out: the gate has sent it. Airflow calls no failure callback for a try that is followed by
    another one. If the task's process was lost, it calls this where it parses DAG files, without the error.
    """

    def notify(self, context: Context) -> None:
        """Send the alert of the task that failed."""
        error = context.get("exception")
        if not isinstance(error, Refusal):
            alert = task_failed(context["ti"].task_id, data_of(context), error)
            send(context, [alert])


def data_of(context: Context) -> str:
    """Return in words what a task works on: its run's snapshot, and the DAG."""
    params, dag_run = context["params"], context["dag_run"]
    named = "snapshot" in params and (params["snapshot"] or dag_run.partition_key or dag_run.logical_date)
    return f"snapshot {snapshot_of(dag_run, params)} in {dag_run.dag_id}" if named else str(dag_run.dag_id)


def origin_of(context: Context, tab: str = "") -> Origin:
    """Return the task that raises alerts; `refinery run` has no web UI that could show its page."""
    task = context["ti"]
    page = "" if is_here() else f"{task_page(context)}{tab}"
    return Origin(task.dag_id, task.run_id, task.task_id, page, clears=task.max_tries)


# --- Once --------------------------------------------------------------------------------------------------------


def is_new(context: Context, message: Message) -> bool:
    """Return whether the run has not sent a message yet, and note that it has; a task that is cleared may repeat it.

    Who notes it first sends it: an object of the root is put if it is absent.
    """
    root = str(context["params"].get("root") or "")
    if not root:
        return True
    try:
        adopt_credentials(root, recipe=recipe_of_dag(context["ti"].dag_id))
    except RecipeError:
        if not deployment().path:
            raise
        return True  # a place that the run may not name is not written to, and people are told so
    return note_message(root, message)


# --- Channels ----------------------------------------------------------------------------------------------------


def _send_to_channels(message: Message, channels: Mapping[str, Channel]) -> None:
    """Send a message to all channels at once, and wait for them for a while.

    Each has a thread: no timeout of a library covers the time in which an address is looked up.
    """
    outcomes: dict[str, str] = {}
    connections = {name: connection for name in channels if (connection := _connection(name))}
    threads = [
        threading.Thread(target=_deliver, args=(channels[name], connection, message, outcomes), daemon=True)
        for name, connection in connections.items()
    ]
    deadline = time.monotonic() + ALL
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    for name in connections:
        outcome = outcomes.get(name, f"has not answered for {ALL:.0f} s")
        log.log(logging.WARNING if outcome else logging.INFO, "alert  %s  %s", name, outcome or "sent")


def _connection(name: str) -> Connection | None:
    """Return a connection if it is set; Airflow says of a variable that it cannot read that there is none."""
    try:
        return Connection.get(name)
    except AirflowNotFoundException:
        variable = f"AIRFLOW_CONN_{name.upper()}"
        if variable in os.environ:
            log.warning("alert  %s  failed: %s is no connection; write it as JSON", name, variable)
        return None


def _deliver(channel: Channel, connection: Connection, message: Message, outcomes: dict[str, str]) -> None:
    """Send a message to one channel; note why it failed, without the error's text: that may have the address."""
    name = connection.conn_id
    try:
        channel(connection, message)
        outcomes[name] = ""
    except RefineryError as error:  # ours has no address
        outcomes[name] = f"failed: {type(error).__name__}: {error}"
    except Exception as error:  # noqa: BLE001 -- whatever a provider raises, and the run goes on
        status = getattr(getattr(error, "response", None), "status_code", "")
        outcomes[name] = f"failed: {type(error).__name__}{f' {status}' if status else ''}; look at this connection"


def _to_slack(connection: Connection, message: Message) -> None:
    secret = "" if connection.login else connection.password or ""
    _post(connection, slack(message), secret)


def _to_webhook(connection: Connection, message: Message) -> None:
    _post(connection, webhook(message), "")


def _post(connection: Connection, body: Mapping[str, Any], endpoint: str) -> None:
    import requests
    from airflow.providers.http.hooks.http import HttpHook

    hook = HttpHook(method="POST", http_conn_id=connection.conn_id)
    session = hook.get_conn()  # with the connection's login, headers and certificates; `hook.run` logs addresses
    address = hook.url_from_endpoint(endpoint)
    response = session.post(address, json=dict(body), timeout=ANSWER, allow_redirects=False)
    if response.status_code not in TAKEN:
        raise requests.HTTPError(response=response)


def _to_email(connection: Connection, alerts: Message) -> None:
    from airflow.providers.smtp.hooks.smtp import SmtpHook

    to = [address.strip() for address in str(connection.extra_dejson.get("to") or "").split(",")]
    if not all(to):
        message = "it has no addresses; write them into its extra as `to`, with commas between"
        raise RecipeError(message)
    subject, html = mail(alerts)
    with SmtpHook(smtp_conn_id=connection.conn_id) as hook:
        hook.send_email_smtp(to=to, subject=subject, html_content=html)


CHANNELS: Mapping[str, Channel] = {SLACK: _to_slack, WEBHOOK: _to_webhook, EMAIL: _to_email}
"""What sends a message, by the id of its connection: in the order of `deployment.Channels`."""
