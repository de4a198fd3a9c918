"""Alerts of a gate's verdict, and of a task that failed."""

from collections.abc import Sequence

from pipeline_tasks.alerts.alert import Alert
from pipeline_tasks.errors import KernelFailed, RefineryError

MOST_ERROR = 600
"""Characters of an error that a message shows."""


def gate_awaits(gate: str, data: str, lines: Sequence[str], until: str) -> Alert:
    """Return the alert of a gate that refuses `data` and waits for a person; `lines` are those of its verdict."""
    headline = f"The gate of {gate} refuses {data}, and awaits approval"
    remedy = (
        f"Read the form and its Data Docs, then approve or reject with a reason until {until}. Without an answer the "
        "run fails. Later snapshots wait meanwhile."
    )
    return Alert("gate_awaits_approval", headline, tuple(lines), remedy)


def gate_refused(gate: str, data: str, lines: Sequence[str], decision: str = "") -> Alert:
    """Return the alert of a gate that refuses `data` for good; `decision` is what a person decided, if anybody did."""
    remedy = (
        "The run has failed, and nothing is published. If the data is right, clear the gate's task or run again with "
        f"{gate} under Gates to accept, and a reason. If it is not, mend it and clear the run."
    )
    numbers = (*lines, *([decision] if decision else []))
    return Alert("gate_refused", f"The gate of {gate} refuses {data}", numbers, remedy)


def gate_warned(gate: str, data: str, lines: Sequence[str]) -> Alert:
    """Return the alert of a gate that warns of `data` and lets it pass."""
    remedy = (
        "The run goes on. Look at the gate's Data Docs, and retract the snapshot later if it should not have passed."
    )
    return Alert("gate_warned", f"The gate of {gate} warns of {data}", tuple(lines), remedy)


def task_failed(task: str, data: str, error: object) -> Alert:
    """Return the alert of a task that failed for good; without an error, its process was lost."""
    remedy = "Read the end of the task's log. When the cause is gone, clear the failed tasks: finished work is kept."
    return Alert("task_failed", f"The task {task} of {data} failed", (failure_reason(error)[:MOST_ERROR],), remedy)


def failure_reason(error: object) -> str:
    """Return why a task failed. Of an error that no refusal is only the class can be sent: its text may be anything."""
    if not isinstance(error, BaseException):
        return "its process ended without an error: it was killed, was out of memory, or its machine was lost"
    known = isinstance(error, RefineryError) and not isinstance(error, KernelFailed)
    return f"{type(error).__name__}: {error}" if known else f"{type(error).__name__}; the task's log has its text"
