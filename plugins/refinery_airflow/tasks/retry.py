"""The table of failures that are retried, by error class."""

import os
from datetime import timedelta

from airflow.sdk import Context, ExceptionRetryPolicy, RetryAction, RetryRule

from refinery_airflow.runs.run import is_here

UNREACHABLE = "pipeline_tasks.errors.ClusterUnreachable"
TRANSIENT = "pipeline_tasks.errors.Transient"
KERNEL = "pipeline_tasks.errors.KernelFailed"
REFUSAL = "pipeline_tasks.errors.RefineryError"
DEFECTS = [f"builtins.{name}" for name in ("TypeError", "ValueError", "LookupError", "AttributeError", "ImportError")]

SOON = timedelta(seconds=5)
"""The pause before `refinery run` tries a cluster again that was not reached: somebody waits at the screen."""


def policy(*, here: bool) -> ExceptionRetryPolicy:
    """Return the table of a scheduler's tasks, or of those of `refinery run`, which are `here`.

    Anything else (a lost worker, Airflow's own API) follows the task's ordinary retries.
    """
    own = (
        RetryRule(exception=UNREACHABLE, action=RetryAction.RETRY, retry_delay=SOON, reason="nothing answers")
        if here
        else RetryRule(exception=KERNEL, action=RetryAction.RETRY, reason="another worker may do it")
    )
    return ExceptionRetryPolicy(
        rules=[
            own,
            RetryRule(exception=TRANSIENT, action=RetryAction.RETRY, reason="the world was busy"),
            RetryRule(exception=REFUSAL, action=RetryAction.FAIL, reason="the same request would be refused again"),
            RetryRule(exception=DEFECTS, action=RetryAction.FAIL, reason="a defect: the same again would fail again"),
        ]
    )


POLICY = policy(here=is_here())

RETRIES = {
    "retries": 3,
    "retry_delay": timedelta(seconds=15),
    "retry_exponential_backoff": 2.0,
    "max_retry_delay": timedelta(minutes=10),
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
