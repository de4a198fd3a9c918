"""Which failures of a task are tried again, by error class, and after how long."""

from dataclasses import dataclass

from pipeline_tasks.errors import ClusterUnreachable, KernelFailed, RefineryError, Transient

MORE = 3
"""Tries of a task after its first."""

PAUSE, GROWTH, LONGEST_PAUSE = 15.0, 2.0, 600.0
"""Seconds before the second try; by what each further pause grows; and the longest pause in seconds."""

SOON = 5.0
"""Seconds before `refinery run` tries a cluster again that was not reached: somebody waits at the screen."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What becomes of a task that raises one of some errors; `pause` are seconds, 0 for those of any other try."""

    errors: tuple[type[Exception], ...]
    again: bool
    why: str
    pause: float = 0.0


def rules(*, here: bool) -> tuple[Rule, ...]:
    """Return the rules of a scheduler's tasks, or of those of `refinery run`, which are `here`; the first one counts.

    Anything else (a lost worker, Airflow's own API) is tried again, too.
    """
    own = (
        Rule((ClusterUnreachable,), again=True, why="nothing answers", pause=SOON)
        if here
        else Rule((KernelFailed,), again=True, why="another worker may do it")
    )
    return (
        own,
        Rule((Transient,), again=True, why="the world was busy"),
        Rule((RefineryError,), again=False, why="the same request would be refused again"),
        Rule(
            (TypeError, ValueError, LookupError, AttributeError, ImportError),
            again=False,
            why="a defect: the same again would fail again",
        ),
    )


def pause_after(error: Exception, number: int) -> float | None:
    """Return the seconds that `refinery run` waits after a try (the first is 1); None if it was the last."""
    rule = next((rule for rule in rules(here=True) if isinstance(error, rule.errors)), None)
    if number > MORE or (rule and not rule.again):
        return None
    return (rule.pause if rule else 0.0) or min(PAUSE * GROWTH ** (number - 1), LONGEST_PAUSE)
