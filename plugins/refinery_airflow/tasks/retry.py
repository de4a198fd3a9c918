"""The table of failures that are retried, by error class."""

import os
from datetime import timedelta

from airflow.sdk import Context, ExceptionRetryPolicy, RetryAction, RetryRule

from pipeline_tasks.flow.tries import GROWTH, LONGEST_PAUSE, MORE, PAUSE, Rule, rules
from refinery_airflow.runs.run import is_here


def policy(*, here: bool) -> ExceptionRetryPolicy:
    """Return the table of a scheduler's tasks, or of those of `refinery run`, which are `here`."""
    return ExceptionRetryPolicy(rules=[_rendered(rule) for rule in rules(here=here)])


def _rendered(rule: Rule) -> RetryRule:
    names = [f"{error.__module__}.{error.__qualname__}" for error in rule.errors]
    return RetryRule(
        exception=names if len(names) > 1 else names[0],
        action=RetryAction.RETRY if rule.again else RetryAction.FAIL,
        retry_delay=timedelta(seconds=rule.pause) if rule.pause else None,
        reason=rule.why,
    )


POLICY = policy(here=is_here())

RETRIES = {
    "retries": MORE,
    "retry_delay": timedelta(seconds=PAUSE),
    "retry_exponential_backoff": GROWTH,
    "max_retry_delay": timedelta(seconds=LONGEST_PAUSE),
    "retry_policy": POLICY,
}
"""Task arguments: three more tries after 15, 30 and 60 seconds (with Airflow's jitter)."""


LONGEST = timedelta(hours=48)
"""How long a task may hold a worker: what takes longer hangs. What waits in the triggerer meanwhile does not count."""

POOL = os.environ.get("REFINERY_POOL", "default_pool")
"""The pool of all tasks, by whose slots an Airflow that others use, too, bounds what they take."""

BOUNDS = {"pool": POOL} | ({} if is_here() else {"execution_timeout": LONGEST})
"""Task arguments. Who runs `refinery run` sees that it hangs."""


def is_last_try(context: Context, error: Exception) -> bool:
    """Return whether Airflow will not try a task again that raises `error`."""
    task = context["ti"]
    action = POLICY.evaluate(error, task.try_number, task.max_tries).action
    return bool(action == RetryAction.FAIL or task.try_number > task.max_tries)
