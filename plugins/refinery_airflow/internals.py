"""What of Airflow is used that its public interface does not have, and why: where to look when Airflow changes.

Public are `airflow.sdk` and its exceptions, `airflow.exceptions`, `airflow.triggers.base`, `airflow.plugins_manager`
and providers (Airflow's documentation, *Public Interface*). All else that Refinery imports of Airflow is listed here.

    python -m refinery_airflow.internals

says which of it the Airflow of this environment does not have, before an upgrade; it ends with 1 if there is any.
"""

import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version

PUBLIC = (
    "airflow.exceptions",
    "airflow.plugins_manager",
    "airflow.sdk",
    "airflow.sdk.exceptions",
    "airflow.triggers.base",
)
"""Modules of Airflow's public interface; providers are, too."""

PROVIDERS = "airflow.providers."


@dataclass(frozen=True, slots=True)
class Internal:
    """A name of a module of Airflow, why it is used, and the parameters or attributes of it that are."""

    module: str
    name: str
    why: str
    has: tuple[str, ...] = ()


INTERNALS = (
    Internal("airflow.api_fastapi.app", "get_auth_manager", "pages ask it for the rights of who looks"),
    Internal(
        "airflow.api_fastapi.auth.managers.base_auth_manager",
        "BaseAuthManager",
        "the rights on DAGs and connections, by which roles are known",
        ("is_authorized_dag", "is_authorized_connection"),
    ),
    Internal("airflow.api_fastapi.auth.managers.models.base_user", "BaseUser", "who looks", ("get_name",)),
    Internal(
        "airflow.api_fastapi.auth.managers.models.resource_details",
        "AccessView",
        "pages are for those who may see the web site",
        ("WEBSITE",),
    ),
    Internal(
        "airflow.api_fastapi.auth.managers.models.resource_details",
        "ConnectionDetails",
        "who may edit the connection of a root is a steward",
        ("conn_id",),
    ),
    Internal(
        "airflow.api_fastapi.auth.managers.models.resource_details",
        "DagAccessEntity",
        "who may approve a gate is a curator",
        ("HITL_DETAIL",),
    ),
    Internal(
        "airflow.api_fastapi.auth.managers.models.resource_details",
        "DagDetails",
        "who may read a DAG",
        ("id", "team_name"),
    ),
    Internal(
        "airflow.api_fastapi.auth.tokens",
        "get_signing_key",
        "forms of pages are signed by Airflow's key",
        ("section", "key"),
    ),
    Internal("airflow.api_fastapi.core_api.security", "GetUserDep", "pages are for those who are logged in"),
    Internal("airflow.api_fastapi.core_api.security", "requires_access_view", "the same"),
    Internal(
        "airflow.cli.commands",
        "standalone_command",
        "`refinery up` starts components without log servers, which listen on all interfaces, and again when they end",
        ("SubCommand", "StandaloneCommand"),
    ),
    Internal("airflow.models", "Connection", "commands find connections as tasks do", ("get_connection_from_secrets",)),
    Internal(
        "airflow.models.dag",
        "DagModel",
        "the team of a DAG, which rights are asked for; pages name a DAG where there is one",
        ("get_team_name", "dag_id", "is_stale"),
    ),
    Internal(
        "airflow.models.dagrun", "DagRun", "pages show runs that have no version yet", ("run_after", "conf", "state")
    ),
    Internal("airflow.models.taskinstance", "TaskInstance", "pages show partitions of runs", ("map_index", "duration")),
    Internal("airflow.utils.session", "create_session", "pages read runs in the process that has the database"),
    Internal(
        "airflow.sdk.bases.operator", "ExecutorSafeguard", "`refinery run` executes operators itself", ("tracker",)
    ),
    Internal(
        "airflow.sdk.bases.xcom",
        "BaseXCom",
        "triggers and waiting tasks keep what they found",
        ("aset", "get_one", "set"),
    ),
    Internal("airflow.sdk.configuration", "conf", "settings of the deployment", ("get", "getboolean")),
    Internal(
        "airflow.sdk.definitions.param",
        "process_params",
        "`refinery run` checks params as a scheduler does",
        ("dag", "task"),
    ),
    Internal("airflow.sdk.execution_time.comms", "ErrorResponse", "`refinery run` answers tasks as a supervisor does"),
    Internal("airflow.sdk.execution_time.comms", "GetXCom", "the same"),
    Internal("airflow.sdk.execution_time.comms", "SetXCom", "the same"),
    Internal("airflow.sdk.execution_time.comms", "XComResult", "the same"),
    Internal("airflow.sdk.execution_time.supervisor", "set_supervisor_comms", "the same"),
    Internal(
        "airflow.sdk.execution_time.hitl",
        "upsert_hitl_detail",
        "a gate asks for approval after it has refused, which the operator of the provider cannot",
        ("ti_id", "options", "subject", "body", "params"),
    ),
    Internal(
        "airflow.sdk.execution_time.task_runner",
        "RuntimeTaskInstance",
        "a run waits for the runs of earlier days",
        ("get_task_states", "get_dagrun_state"),
    ),
    Internal("airflow.sdk.observability", "stats", "metrics of gates go where Airflow's go", ("incr", "timing")),
)

BEHAVIORS = {
    "a SystemExit with a message ends a task as failed, in one line of its log": "tests/dags/test_alerts.py",
    "a failed gate that awaits input is resumed by the answer": "tests/server/test_approval.py",
}
"""What no name stands for, and the test that would fail without it."""


def faults() -> Iterator[str]:
    """Yield each part that the Airflow of this environment does not have, or has otherwise, and what it is for."""
    for part in INTERNALS:
        named = f"{part.module}.{part.name}"
        try:
            found = _found(part)
        except (ImportError, AttributeError) as error:
            yield f"{named} is gone ({error}): {part.why}"
            continue
        for name in part.has:
            if not (hasattr(found, name) or name in _parameters(found)):
                yield f"{named} has no {name}: {part.why}"


def _found(part: Internal) -> object:
    """Return what a part names; a module is imported."""
    module = import_module(part.module)
    return getattr(module, part.name) if hasattr(module, part.name) else import_module(f"{part.module}.{part.name}")


def _parameters(found: object) -> set[str]:
    """Return the names of the parameters of a function, or of the fields of a class."""
    try:
        return {*inspect.signature(found).parameters} if callable(found) else set()
    except ValueError:
        return set()


if __name__ == "__main__":
    missing = list(faults())
    for line in missing:
        sys.stdout.write(f"{line}\n")
    sys.stdout.write(
        f"Airflow {version('apache-airflow-core')}: {len(INTERNALS)} private parts, {len(missing)} are otherwise\n"
    )
    sys.exit(bool(missing))
