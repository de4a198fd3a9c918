"""Decides in Airflow what becomes of a partition that failed its last try (`flow.poison`)."""

from airflow.sdk import Context

from pipeline_tasks.flow.attempt import Part
from pipeline_tasks.flow.poison import is_one_of_many, without_poison
from pipeline_tasks.run.request import RefineReply, RefineRequest
from refinery_airflow.tasks.launch import needs_session, prepared, send
from refinery_airflow.tasks.retry import is_last_try

OF_AIRFLOW = ("airflow", "httpx", "httpcore")
"""Packages whose errors are Airflow's own: no data causes them."""


def after_last_try(context: Context, request: RefineRequest, part: Part, error: Exception) -> RefineReply:
    """Return the reply of a partition that was refined alone, or of its quarantine; raise `error` if it is no poison.

    The reply of a quarantine has `poison`, and the task's name in the grid says so.
    """
    is_of_airflow = type(error).__module__.partition(".")[0] in OF_AIRFLOW
    if is_of_airflow or not is_one_of_many(part) or not is_last_try(context, error):
        raise error
    tries = context["ti"].try_number if needs_session(prepared(request)) else 0
    reply = without_poison(request, part, error, send, tries)
    if "poison" in reply:
        context["part_name"] = f"QUARANTINED {part['name']}"
    return reply
