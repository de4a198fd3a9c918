"""A message: the alerts of one moment of a run, as plain text, for Slack, as JSON, and as an e-mail."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate
from typing import Any

from pipeline_tasks.alerts.alert import KINDS, Alert, Severity
from pipeline_tasks.sealed import digest_of

VERSION = 1
"""Version of the JSON that webhooks receive."""

MOST_LINES = 40
"""Lines of numbers that a message has of an alert; the task's log has all."""

MOST_TEXT = 3000
"""Characters of a section of a Slack message."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The task that raised alerts: its DAG, run and id, its page in Airflow ("" without one), and its try."""

    dag: str
    run: str
    task: str
    page: str = ""
    clears: int = 0


@dataclass(frozen=True, slots=True)
class Message:
    """The alerts of one moment of a run, at least one, with the task that raised them, and the runbook's address."""

    origin: Origin
    alerts: tuple[Alert, ...]
    runbook: str

    @property
    def severity(self) -> Severity:
        """The severity of the worst alert."""
        return "critical" if any(alert.severity == "critical" for alert in self.alerts) else "warning"

    @property
    def title(self) -> str:
        """What happened, in one line."""
        more = len(self.alerts) - 1
        return self.alerts[0].headline + (f" (and {more} more)" if more else "")

    def key(self) -> str:
        """Return what is equal for messages that say the same of a task, whichever its try or partition."""
        said = [[alert.kind, alert.headline] for alert in self.alerts]
        return digest_of([self.origin.dag, self.origin.run, self.origin.task, self.origin.clears, said])


def plain_text(message: Message) -> str:
    """Return a message as lines of text."""
    return "\n".join(_lines(message))


def _lines(message: Message) -> Iterator[str]:
    for alert in message.alerts:
        yield f"[{alert.severity}] {alert.headline}"
        yield from (f"    {line}" for line in _numbers(alert))
        yield f"    What to do: {alert.remedy}"
        yield f"    Runbook: {alert.runbook(message.runbook)}"
    if message.origin.page:
        yield f"    Task: {message.origin.page}"


def log_lines(message: Message) -> list[str]:
    """Return what a task's log has of a message: no numbers and no remedy where the log has them."""
    lines = []
    for alert in message.alerts:
        shown = () if KINDS[alert.kind].in_log else (*_numbers(alert), alert.remedy)
        lines += [alert.headline, *(f"    {line}" for line in shown), f"    runbook: {alert.runbook(message.runbook)}"]
    return lines


def slack(message: Message) -> dict[str, Any]:
    """Return a message for an incoming webhook of Slack: the text of the notification, and a block per alert."""
    blocks = [{"type": "section", "text": _markup(_slack_section(message, alert))} for alert in message.alerts]
    links = [f"<{message.origin.page}|Open in Airflow>"] if message.origin.page else []
    about = f"{message.origin.dag} · {message.origin.run} · {message.origin.task}"
    context = _markup(" · ".join([*links, _slack_escaped(about)]))
    return {
        "text": _slack_escaped(f"[{message.severity}] {message.title}"),
        "blocks": [*blocks, {"type": "context", "elements": [context]}],
    }


def _slack_section(message: Message, alert: Alert) -> str:
    """Return an alert in Slack's markup; of long numbers the end is cut, and what to do stays."""
    head = f"*{_slack_escaped(f'[{alert.severity}] {alert.headline}')}*"
    runbook = alert.runbook(message.runbook)
    link = f"<{runbook}|Runbook>" if "://" in runbook else f"Runbook: {_slack_escaped(runbook)}"
    tail = f"_What to do:_ {_slack_escaped(alert.remedy)}\n{link}"
    quoted = [f">{_slack_escaped(line)}" for number in _numbers(alert) for line in number.splitlines()]
    return "\n".join([head, *_fitting(quoted, MOST_TEXT - len(head) - len(tail) - 2), tail])


def _fitting(lines: Sequence[str], room: int) -> Iterator[str]:
    """Yield the first lines that have `room` characters together with their ends, and how many are left out."""
    used = [len(line) + 1 for line in lines]
    if sum(used) <= room:
        yield from lines
        return
    last = len(f">and {len(lines)} more lines\n")
    fitting = sum(total + last <= room for total in accumulate(used))
    yield from lines[:fitting]
    yield f">and {len(lines) - fitting} more lines"


def _markup(text: str) -> dict[str, Any]:
    """Return a text of Slack in which names and addresses become no mentions and links."""
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def _slack_escaped(text: str) -> str:
    """Return a text as Slack shows it, without mentions and links of its own."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def webhook(message: Message) -> dict[str, Any]:
    """Return a message as the JSON that a webhook receives."""
    return {
        "version": VERSION,
        "source": "refinery",
        "id": message.key(),
        "severity": message.severity,
        "title": message.title,
        "dag": message.origin.dag,
        "run": message.origin.run,
        "task": message.origin.task,
        "link": message.origin.page,
        "alerts": [
            {
                "kind": alert.kind,
                "severity": alert.severity,
                "headline": alert.headline,
                "numbers": _numbers(alert),
                "remedy": alert.remedy,
                "runbook": alert.runbook(message.runbook),
            }
            for alert in message.alerts
        ],
    }


def mail(message: Message) -> tuple[str, str]:
    """Return the subject and the HTML of a message."""
    body = "".join(_mail_section(message, alert) for alert in message.alerts)
    page = escape(message.origin.page)
    link = f'<p><a href="{page}">Open in Airflow</a></p>' if page else ""
    about = f"<p>{escape(message.origin.dag)} · {escape(message.origin.run)} · {escape(message.origin.task)}</p>"
    return f"[{message.severity}] {message.title}", f"<html><body>{body}{link}{about}</body></html>"


def _mail_section(message: Message, alert: Alert) -> str:
    runbook = escape(alert.runbook(message.runbook))
    shown = f'<a href="{runbook}">Runbook</a>' if "://" in runbook else f"Runbook: {runbook}"
    numbers = escape("\n".join(_numbers(alert)))
    remedy = escape(alert.remedy)
    return f"<h3>{escape(alert.headline)}</h3><pre>{numbers}</pre><p>What to do: {remedy}</p><p>{shown}</p>"


def _numbers(alert: Alert) -> list[str]:
    hidden = len(alert.numbers) - MOST_LINES
    return [*alert.numbers[:MOST_LINES], *([f"and {hidden} more lines"] if hidden > 0 else [])]
