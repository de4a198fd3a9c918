"""Asks a person in Airflow's web UI whether what a gate refused may pass: a form with Approve, Reject and a reason.

The gate's own task waits in the state `awaiting_input`, which holds no worker. A person's answer, or the end of the
time to answer, resumes it.
"""

import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any, NoReturn, Protocol, get_args
from urllib.parse import quote

from airflow.sdk import Context, Param
from airflow.sdk.exceptions import TaskAwaitingInput
from airflow.sdk.execution_time.hitl import upsert_hitl_detail

from pipeline_tasks.alerts.verdicts import gate_awaits, gate_refused
from pipeline_tasks.constraints import Note
from pipeline_tasks.flow.attempt import Attempt, Run
from pipeline_tasks.flow.gates import Gate, Review, refusal_text, warnings_of
from pipeline_tasks.service.requests.gates import JudgeReply
from refinery_airflow.alerts.alerts import Refusal, send
from refinery_airflow.runs.run import run_of, task_page

log = logging.getLogger("refinery")

APPROVE, REJECT = "Approve", "Reject"
"""The options of the form; Airflow's page knows these two and shows them as buttons."""

FORM_TAB = "/required_actions"
"""The part of a task's page that has its form."""

REASON = "reason"
"""The form's only field."""

MOST = 1000
"""Characters of a reason; a verdict stores 2,000, with the name and the time."""

HOURS = 24
"""Hours that a refused gate waits for a person, unless the run says otherwise: one day waits for another."""

MOST_HOURS = 24 * 365

FORM = {
    REASON: {
        "value": None,
        "description": "Why the data may pass, or may not. It is stored with your name and the time.",
        "schema": {"type": "string", "title": "Reason", "minLength": 1, "maxLength": MOST},
    }
}

_MARKUP = re.compile(r"([\\`*_{}\[\]<>()#+!|~&])")
_NOTE = get_args(Note)[1]


class Judge(Protocol):
    """What a gate's operator has of its own, which `Reviewed` needs; `docs` is the path of the Data Docs."""

    docs: str

    def at(self, context: Context, run: Run) -> Attempt:
        """Return what the task knows while it works."""

    def gate(self) -> Gate:
        """Return what the task judges by."""

    def pages(self, verdict: JudgeReply) -> Mapping[str, str]:
        """Return the addresses of pages that show more, by title."""

    def announce(self, context: Context, run: Run, verdict: JudgeReply) -> None:
        """Tell other DAGs that the gate has let pass."""


class Reviewed:
    """The course of a gate's task: judge, ask a person if the gate refuses, and judge again under what they say.

    What is out of bounds is sent once, before anybody answers, and again if the gate refuses for good.
    """

    def announce(self, context: Context, run: Run, verdict: JudgeReply) -> None:
        """Tell nobody: no DAG waits for a stage."""

    def execute(self: Judge, context: Context) -> object:
        """Return what the gate passes on; ask a person about a refusal, or raise Refusal where nobody is asked."""
        gate, at = self.gate(), self.at(context, run_of(context))
        verdict = gate.judge(at)
        self.docs = verdict["docs"]
        review = gate.review(at, verdict)
        if verdict["outcome"] == "refuse":
            until = datetime.now(UTC) + timedelta(hours=at.run.approval)
            if at.run.approval:
                awaits = gate_awaits(review.gate, review.data, review.lines, minute(until))
                send(context, chain([awaits], gate.alerts(verdict)), FORM_TAB)
                ask(context, replace(review, pages=self.pages(verdict)), until)
            send(context, chain([gate_refused(review.gate, review.data, review.lines)], gate.alerts(verdict)))
            raise Refusal(refusal_text(review))
        passed = gate.end(at, verdict)
        self.announce(context, at.run, verdict)
        send(context, chain(warnings_of(review, verdict), gate.alerts(verdict)))
        return passed

    def resume(self: Judge, context: Context, event: Mapping[str, Any], until: str) -> object:
        """Return what the gate passes on if a person approved; raise Refusal if they rejected, or nobody answered."""
        gate, at = self.gate(), self.at(context, run_of(context))
        verdict = gate.judge(at)  # stored, unless bounds were changed meanwhile
        if verdict["outcome"] == "refuse":
            review = replace(gate.review(at, verdict), pages=self.pages(verdict))
            reason = approval(context, review, event, datetime.fromisoformat(until))
            verdict = gate.judge(at, reason)
        self.docs = verdict["docs"]
        passed = gate.end(at, verdict)
        self.announce(context, at.run, verdict)
        return passed


def approval_param() -> Param:
    """Return the param that says how long a refused gate of a run waits for a person."""
    return Param(
        HOURS,
        type="number",
        minimum=0,
        maximum=MOST_HOURS,
        description="Hours that a refused gate waits for a person's approval; 0: it refuses at once",
    )


def ask(context: Context, review: Review, until: datetime) -> NoReturn:
    """Show the form, say so in the log, and let the task wait for the answer."""
    upsert_hitl_detail(
        ti_id=context["ti"].id,
        options=[APPROVE, REJECT],
        subject=f"The gate of {review.gate} refuses {review.data}",
        body=body(review),
        params=FORM,
    )
    for line in question(review, actions_page(context), until):
        log.warning("%s", line)
    left = max(until - datetime.now(UTC), timedelta(seconds=1))
    raise TaskAwaitingInput(method_name="resume", kwargs={"until": until.isoformat()}, timeout=left)


def approval(context: Context, review: Review, event: Mapping[str, Any], until: datetime) -> str:
    """Return the reason of who approved, with their name and the time; ask again if there is none.

    Refusal if they rejected, or if nobody has answered by `until`.
    """
    if "error" in event:
        refuse(context, review, f"Nobody approved it by {minute(until)}.")
    who, reason = signature(event), reason_of(event)
    if event["chosen_options"] != [APPROVE]:
        refuse(context, review, f"It was rejected: {reason[:MOST] or 'no reason was given'} ({who}).")
    if override := override_of(event):
        log.info("%s gate  approved: %s", review.gate, override)
        return override
    log.warning("%s gate  was approved (%s) without a reason that can be stored:", review.gate, who)
    log.warning("          write one of 1 to %d characters. It asks again.", MOST)
    ask(context, review, until)


def refuse(context: Context, review: Review, decision: str) -> NoReturn:
    """Tell people what was decided, and end the task."""
    send(context, [gate_refused(review.gate, review.data, review.lines, decision)])
    raise Refusal(refusal_text(review, decision), decision)


def override_of(event: Mapping[str, Any]) -> str:
    """Return the reason of who approved, with their name and the time; "" if there is none that can be stored."""
    reason = reason_of(event)
    override = f"{reason} (approved by {signature(event)})"
    return override if 0 < len(reason) <= MOST and _NOTE.admits(override) else ""


def reason_of(event: Mapping[str, Any]) -> str:
    """Return the reason on one line; "" for what is no text, as Airflow's API takes anything."""
    reason = event["params_input"].get(REASON)
    return " ".join(reason.split()) if isinstance(reason, str) else ""


def signature(event: Mapping[str, Any]) -> str:
    """Return who answered, and when to the second in UTC."""
    name = " ".join(event["responded_by_user"]["name"].split())
    return f"{name}, {event['responded_at'].astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def body(review: Review) -> str:
    """Return the form's text, as Markdown."""
    passing = [f"- {_escaped(name)}: {_escaped(rows)}" for name, rows in review.passing.items()]
    pages = [f"[{title}]({quote(address, safe='/:@')})" for title, address in review.pages.items() if address]
    parts = [
        f"The gate of **{_escaped(review.gate)}** refuses {_escaped(review.data)}.",
        "**What is out of bounds**",
        "\n".join(_items(review.lines)),
        "**What would pass**",
        "\n".join(passing),
        " · ".join(pages),
        "*Approve* lets it pass, and the run goes on. *Reject* ends the run.",
    ]
    return "\n\n".join(part for part in parts if part)


def _items(lines: Iterable[str]) -> Iterable[str]:
    """Yield a verdict's lines as a list: an indented line belongs to the item before it."""
    for line in lines:
        yield f"  {_escaped(line.strip())}  " if line.startswith(" ") else f"- {_escaped(line)}  "


def question(review: Review, address: str, until: datetime) -> list[str]:
    """Return the lines that say what is refused, and how a person lets it pass."""
    return [
        f"the gate of {review.gate} refuses {review.subject}",
        *review.lines,
        f"It waits for a person until {minute(until)}. Approve or reject it, with a reason, at",
        f"    {address}",
        "Without an answer it refuses, and the run fails.",
    ]


def actions_page(context: Context) -> str:
    """Return the address of the task's form in the web UI."""
    return f"{task_page(context)}{FORM_TAB}"


def minute(time: datetime) -> str:
    """Return a time as people read it, in UTC."""
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _escaped(text: str) -> str:
    """Return a text as Markdown that shows it as it is."""
    return _MARKUP.sub(r"\\\1", text)
