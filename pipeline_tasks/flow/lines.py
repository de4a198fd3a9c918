"""What tasks log: one line for each finished request, which `refinery run` shows and adds up."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline_tasks.counted import counted
from pipeline_tasks.flow.attempt import Attempt, Part, Run
from pipeline_tasks.run.request import RefineReply
from pipeline_tasks.run.tasks.state_cost import StateCost
from pipeline_tasks.service.requests.gates import JudgeReply
from pipeline_tasks.service.requests.stages import LandReply

log = logging.getLogger("refinery")

STALE_NAMED = 10
"""Stale snapshots that a line names."""


def log_reply(at: Attempt, stage: str, reply: Mapping[str, Any], text: str, part: Part | None = None) -> None:
    """Log a finished request as one line; `refinery run` shows these lines and adds them up."""
    number = at.index + 1
    which = f"partition {number}/{part['of']}" if part and number else ""
    facts = {"stage": stage, "task": at.task, "reply": dict(reply), "which": which}
    line = f"{stage:<18} {which:<15}  {text}" if which or "rows_in" in reply else f"{stage:<18} {text}"
    log.info("%s", line + waits_text(reply), extra={"refinery": facts})


def log_verdict(at: Attempt, gate: str, verdict: JudgeReply) -> None:
    """Log a verdict in one line, a warning with a line for each bound, and the notes of one that passes."""
    log_reply(at, f"{gate} gate", verdict, verdict["outcome"])
    if verdict["outcome"] == "warn":
        log.warning("%s gate  warns\n%s", gate, "\n".join(f"          {line}" for line in verdict["lines"]))
    elif verdict["outcome"] == "pass":
        for line in verdict["lines"]:
            log.info("%s gate  %s", gate, line)


def log_error(task: str, number: int, error: object, *, final: bool) -> None:
    """Log why a try of a task failed: for good, or before it is tried again."""
    outcome, level = ("failed", logging.ERROR) if final else ("is tried again", logging.WARNING)
    facts = {"task": task, "try": number, "error": error, "final": final}
    log.log(level, "%s  %s: %s", task, outcome, error, extra={"refinery": facts})


def log_idle(stage: str, reply: RefineReply) -> None:
    """Log what of a stage had nothing to work with, and who waited for whom where it has models."""
    for part in (*reply.get("idle", ()), states_of(reply).line):
        if part:
            log.info("%s  %s", stage, part)


def waits_text(reply: Mapping[str, Any]) -> str:
    """Return how S3 slowed a request down, "" if it did not."""
    if "s3_waits" not in reply:
        return ""
    waits = reply["s3_waits"]
    return f"  (S3 was busy: {counted(waits['requests'], 'request')} sent again after {waits['seconds']:.1f} s)"


def amount(files: Mapping[str, Any]) -> str:
    """Return the number of files, and their bytes."""
    return f"{counted(files['files'], 'file')}  {files['bytes'] / 1e6:,.1f} MB"


def sample_text(run: Run, reply: LandReply) -> str:
    """Return what a trial's files are a sample of, "" for a whole run."""
    if not run.is_trial:
        return ""
    share = reply["bytes"] / max(reply["landed"]["bytes"], 1)
    return f"  (a trial of {share:.2%} of {amount(reply['landed'])})"


def stale_line(stale: Sequence[str]) -> str:
    """Return which snapshots are stale, and how they are refined again."""
    more = f" and {len(stale) - STALE_NAMED:,} more" if len(stale) > STALE_NAMED else ""
    return (
        f"{counted(len(stale), 'snapshot is', 'snapshots are')} stale, refined without the history that there is now: "
        f"{', '.join(stale[:STALE_NAMED])}{more}. Run them again in this order (in Airflow: trigger `arrivals` with "
        "the param `stale`)"
    )


def states_of(reply: RefineReply) -> StateCost:
    """Return what the models of a reply took."""
    return StateCost(**reply.get("states", {}))


def funnel_line(reply: RefineReply) -> str:
    """Return where the rows of a reply went, as text."""
    counts = {"in": reply["rows_in"], "generated": reply.get("offspring_in", 0), "kept": reply["rows"]}
    refused = {name: sum(reply[name].values()) for name in ("rejected", "quarantined")}
    counts |= refused
    rows = "  ".join(f"{count:>7,} {name}" for name, count in counts.items() if count or name in ("in", "kept"))
    reused = "  (already done)" if reply["reused"] and not reply["ran"] else ""
    looked_up = reply.get("history_reads", {}).get("rows")
    history = f"  ({counted(looked_up, 'row')} of history read)" if looked_up else ""
    return f"{rows}  {reply['wall']:.1f} s{reused}{history}"
