"""Asks a person in Airflow's web UI whether what a gate refused may pass: a form with Approve, Reject and a reason.

The gate's own task waits in the state `awaiting_input`, which holds no worker. A person's answer, or the end of the
time to answer, resumes it.
"""

import logging
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import chain
from textwrap import wrap
from typing import Any, NoReturn, Protocol, get_args
from urllib.parse import quote

from airflow.sdk import Context, Param
from airflow.sdk.exceptions import TaskAwaitingInput
from airflow.sdk.execution_time.hitl import upsert_hitl_detail

from pipeline_tasks.alerts.alert import Alert
from pipeline_tasks.alerts.verdicts import gate_awaits, gate_refused, gate_warned
from pipeline_tasks.constraints import Note
from pipeline_tasks.counted import counted
from pipeline_tasks.service.requests.gates import JudgeReply
from refinery_airflow.alerts.alerts import Refusal, send
from refinery_airflow.runs.run import Run, run_of, task_page

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

REMOVED = ("rejected", "quarantined")
"""What a stage's reply counts by reason."""

MOST_REASONS = 20
"""Reasons whose rows the form counts, the most frequent ones; the manifest's page has all."""

WIDTH = 100
"""Columns of a line of the log."""

FORM = {
    REASON: {
        "value": None,
        "description": "Why the data may pass, or may not. It is stored with your name and the time.",
        "schema": {"type": "string", "title": "Reason", "minLength": 1, "maxLength": MOST},
    }
}

_MARKUP = re.compile(r"([\\`*_{}\[\]<>()#+!|~&])")
_NOTE = get_args(Note)[1]


@dataclass(frozen=True, slots=True)
class Review:
    """What a person decides on: the gate, what it refuses, the lines of its verdict, and what would pass.

    `subject` is what is refused, as the log names it; `data` is whose it is, in words. `passing` are the rows that go
    on if it is approved, by name; `pages` are the addresses of pages that show more, by title. `docs` is the path of
    the Data Docs below the root. None has text of a record: who may look at the DAG may read the form.
    """

    gate: str
    subject: str
    data: str
    lines: Sequence[str]
    docs: str
    passing: Mapping[str, str] = field(default_factory=dict)
    pages: Mapping[str, str] = field(default_factory=dict)


class Judge(Protocol):
    """What a gate has of its own, which `Reviewed` needs."""

    def judge(self, context: Context, run: Run, override: str) -> JudgeReply:
        """Return the verdict, under a person's override unless it is empty."""

    def review(self, run: Run, verdict: JudgeReply) -> Review:
        """Return what a person decides on."""

    def end(self, context: Context, run: Run, verdict: JudgeReply) -> Any:  # noqa: ANN401 -- what the task returns
        """Return what the task returns when the gate lets pass."""

    def alerts(self, verdict: JudgeReply) -> Iterable[Alert]:
        """Return the alerts of what was judged, beside those of the verdict; an error must wait for their use."""


class Reviewed:
    """The course of a gate's task: judge, ask a person if the gate refuses, and judge again under what they say.

    What is out of bounds is sent once, before anybody answers, and again if the gate refuses for good.
    """

    def execute(self: Judge, context: Context) -> Any:  # noqa: ANN401 -- as `end`
        """Return what the gate passes on; ask a person about a refusal, or raise Refusal where nobody is asked."""
        run = run_of(context)
        verdict = self.judge(context, run, "")
        if verdict["outcome"] == "refuse":
            review, until = self.review(run, verdict), datetime.now(UTC) + timedelta(hours=run.approval)
            if run.approval:
                awaits = gate_awaits(review.gate, review.data, review.lines, minute(until))
                send(context, chain([awaits], self.alerts(verdict)), FORM_TAB)
                ask(context, review, until)
            send(context, chain([gate_refused(review.gate, review.data, review.lines)], self.alerts(verdict)))
            raise Refusal(refusal_text(review))
        passed = self.end(context, run, verdict)
        send(context, chain(warnings_of(self.review(run, verdict), verdict), self.alerts(verdict)))
        return passed

    def resume(self: Judge, context: Context, event: Mapping[str, Any], until: str) -> Any:  # noqa: ANN401 -- as `end`
        """Return what the gate passes on if a person approved; raise Refusal if they rejected, or nobody answered."""
        run = run_of(context)
        verdict = self.judge(context, run, "")  # stored, unless bounds were changed meanwhile
        if verdict["outcome"] == "refuse":
            reason = approval(context, self.review(run, verdict), event, datetime.fromisoformat(until))
            verdict = self.judge(context, run, reason)
        return self.end(context, run, verdict)


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


def warnings_of(review: Review, verdict: JudgeReply) -> list[Alert]:
    """Return the alert of a gate that lets pass and warns, none if it does not."""
    return [gate_warned(review.gate, review.data, review.lines)] if verdict["outcome"] == "warn" else []


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


def rows_of(reply: Mapping[str, Any]) -> dict[str, str]:
    """Return what a stage's reply says of its rows, by name: kept, and rejected or quarantined by reason."""
    removed = Counter({f"{name}, {reason}": rows for name in REMOVED for reason, rows in reply[name].items()})
    shown = {name: f"{rows:,}" for name, rows in removed.most_common(MOST_REASONS)}
    rest = removed.total() - sum(removed[name] for name in shown)
    kept = {"kept": f"{reply['rows']:,} of {counted(reply['rows_in'], 'row')}"}
    return kept | shown | ({"removed for other reasons": f"{rest:,}"} if rest else {})


def question(review: Review, address: str, until: datetime) -> list[str]:
    """Return the lines that say what is refused, and how a person lets it pass."""
    return [
        f"the gate of {review.gate} refuses {review.subject}",
        *review.lines,
        f"It waits for a person until {minute(until)}. Approve or reject it, with a reason, at",
        f"    {address}",
        "Without an answer it refuses, and the run fails.",
    ]


def refusal_text(review: Review, decision: str = "") -> str:
    """Return the lines of a refusal: what is out of bounds, what a person decided, and the way out."""
    gate, again = review.gate, "; or clear this task, and approve it" if decision else ""
    way_out = [
        f"Look at {review.docs} in the root.",
        f"If the data is as it should be, run again with --override {gate}=WHY. In Airflow, trigger the",
        f"DAG with {gate} under Gates to accept, and a reason{again}.",
    ]
    decided = wrap(decision, WIDTH, break_long_words=False)
    return "\n".join([f"the gate of {gate} refuses {review.subject}", *review.lines, *decided, *way_out])


def actions_page(context: Context) -> str:
    """Return the address of the task's form in the web UI."""
    return f"{task_page(context)}{FORM_TAB}"


def minute(time: datetime) -> str:
    """Return a time as people read it, in UTC."""
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _escaped(text: str) -> str:
    """Return a text as Markdown that shows it as it is."""
    return _MARKUP.sub(r"\\\1", text)
