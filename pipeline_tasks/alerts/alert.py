"""An alert: what happened in one line, its numbers, what to do next, and the section of the runbook."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Severity = Literal["critical", "warning"]

MOST_HEADLINE = 300
"""Characters of a headline."""

RUNBOOK = "docs/how-to/operate/respond-to-alerts.md"
"""The runbook, unless REFINERY_RUNBOOK has the address where it is published."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of alert: the heading of its section in the runbook, and how urgent it is.

    `in_log` says that the task's own log already has its numbers.
    """

    heading: str
    severity: Severity
    in_log: bool = False

    @property
    def anchor(self) -> str:
        """The anchor of the heading, as Markdown's readers make it."""
        return self.heading.lower().replace(" ", "-")


KINDS: Mapping[str, Kind] = {
    "gate_awaits_approval": Kind("A gate awaits approval", "critical", in_log=True),
    "gate_refused": Kind("A gate refused", "critical", in_log=True),
    "gate_warned": Kind("A gate warned", "warning", in_log=True),
    "task_failed": Kind("A task failed", "critical", in_log=True),
    "partial": Kind("A partial snapshot", "critical"),
    "error_rate": Kind("Many errors", "warning"),
    "slow_partitions": Kind("Slow partitions", "warning"),
    "slow_stage": Kind("A slow stage", "warning"),
    "budget": Kind("Over budget", "warning"),
    "backlog": Kind("A backlog", "critical"),
}
"""Every kind of alert by its name, as messages have it."""


@dataclass(frozen=True, slots=True)
class Alert:
    """One condition that is sent to people; no field has text of a record.

    `kind` is a key of `KINDS`. `headline` is kept as one line that prints: it has names that people typed. `numbers`
    are lines, `remedy` says what to do next.
    """

    kind: str
    headline: str
    numbers: tuple[str, ...]
    remedy: str

    def __post_init__(self) -> None:
        """Cut the headline, and replace what would end a line of a log or a header of a mail."""
        object.__setattr__(self, "headline", _one_line(self.headline)[:MOST_HEADLINE])

    @property
    def severity(self) -> Severity:
        """How urgent it is."""
        return KINDS[self.kind].severity

    def runbook(self, base: str) -> str:
        """Return the address of its section in the runbook at `base`."""
        return f"{base}#{KINDS[self.kind].anchor}"


def _one_line(text: str) -> str:
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())
