"""Verify what is published, remove what no manifest names or a policy lets expire, compact history, and tidy vectors.

**Runbook**

- By default nothing is removed: the task `vacuum` returns what would go, with the reason. Set `delete` to remove it.
- Nothing younger than `grace` days goes, and nothing that a committed manifest names. An attempt that never committed
  is fenced first: its commit slot is taken, so it cannot commit later into what was removed.
- A vacuum that would remove more than `limit` of the stored bytes is refused. Shards that a committed stage wrote and
  does not name do not count.
- `compact` merges the history of eight snapshots in a row, and eight such merges again. A lookup in a long history
  then reads a few pages instead of one per day. It adds files and changes none; a vacuum removes what it replaced.
- `index` brings stores of vectors in line with what is published: what was retracted or taken down since leaves them,
  also while `delete` is off. `REFINERY_VECTORS` names a store that is not below the root.
- `verify` fails with the problems that it found, each with the way to heal it; nothing is compacted or removed then. It
  checks all JSON, sizes and small objects. Set `verify_full` to read every byte, and `verify_engine` to let a cluster
  do so. A try goes on where one was killed within a day.
- `retention` names a policy of how long objects of each kind are kept (`default`, or the path of a YAML file). What it
  asks for is listed with what it saves, and done if `delete` is on. Without a name the task is idle.
- A root of its own that the deployment's file gives to recipes has a DAG of its own, `maintenance_ENTRY`.
- `expire` above 0 also removes stages that no dataset version names and that are older than that many days.
"""

import os

from airflow.sdk import DAG, CronTriggerTimetable, Param, get_current_context, task
from refinery_airflow.runs.form import labeled
from refinery_airflow.tasks.launch import send
from refinery_airflow.tasks.wiring import arguments_of, confined, of_roots, task_arguments_by

from pipeline_tasks.deployment import Settings, deployment
from pipeline_tasks.recipe import LOCAL, engine_names
from pipeline_tasks.service.requests.publication import IndexReply, IndexRequest
from pipeline_tasks.service.requests.upkeep import (
    CompactReply,
    CompactRequest,
    Report,
    RetentionRequest,
    VacuumRequest,
    VerifyRequest,
)

DAY = 86_400.0


@task  # type: ignore[untyped-decorator]  # loaded lazily: Any
def verify() -> Report:
    """Verify everything that is published: fast, or every byte with the param `verify_full`."""
    params = get_current_context()["params"]
    return send(VerifyRequest(params["root"], bool(params["verify_full"]), str(params["verify_engine"])))


@task  # type: ignore[untyped-decorator]  # loaded lazily: Any
def compact() -> CompactReply:
    """Merge the history of many snapshots, unless the param `compact` is off."""
    params = get_current_context()["params"]
    return send(CompactRequest(params["root"])) if params["compact"] else {"compacted": {}}


@task  # type: ignore[untyped-decorator]  # loaded lazily: Any
def index() -> IndexReply:
    """Bring every store of vectors in line with what is published."""
    root = get_current_context()["params"]["root"]
    return send(IndexRequest(root, store=os.environ.get("REFINERY_VECTORS", "")))


@task  # type: ignore[untyped-decorator]  # loaded lazily: Any
def retention() -> Report:
    """List what the policy `retention` asks for, and do it if the param `delete` is on; idle without a policy."""
    context = get_current_context()
    params = context["params"]
    if not params["retention"]:
        return {"idle": "the param `retention` names no policy"}
    applied_by = f"maintenance {context['run_id']}"
    return send(RetentionRequest(params["root"], params["retention"], bool(params["delete"]), applied_by))


@task  # type: ignore[untyped-decorator]  # loaded lazily: Any
def vacuum() -> Report:
    """List the files that no manifest names, and remove them if the param `delete` is on."""
    params = get_current_context()["params"]
    grace, expire = (float(params[name]) * DAY for name in ("grace", "expire"))
    return send(VacuumRequest(params["root"], grace, expire, float(params["limit"]), bool(params["delete"])))


def wire(name: str, settings: Settings) -> DAG:
    """Wire the maintenance of one root."""
    with DAG(
        name,
        description="Verify what is published, remove what no manifest names or has expired, compact history",
        schedule=CronTriggerTimetable("0 4 * * *", timezone="UTC"),
        max_active_runs=1,
        default_args=task_arguments_by(settings),
        params=labeled(
            {
                "root": Param(settings.its_root, type="string", **confined(settings.its_root)),
                "delete": Param(default=False, type="boolean", description="Remove; otherwise only list"),
                "compact": Param(default=True, type="boolean", description="Merge the history of many snapshots"),
                "verify_full": Param(
                    default=False, type="boolean", description="Read every byte; otherwise sizes and JSON"
                ),
                "verify_engine": Param(
                    LOCAL, enum=list(engine_names()), description="Engine that reads what is verified"
                ),
                "grace": Param(7, type="number", minimum=1, description="Days for which nothing is removed"),
                "expire": Param(
                    0, type="number", minimum=0, description="Days until unpublished stages are removed; 0: never"
                ),
                "retention": Param(
                    os.environ.get("REFINERY_RETENTION", ""),
                    type="string",
                    description="How long objects are kept: `default`, or the path of a YAML file; empty: none",
                ),
                "limit": Param(
                    0.1, type="number", minimum=0, maximum=1, description="Largest share of bytes to remove"
                ),
            }
        ),
        doc_md=__doc__,
        **arguments_of(settings),
    ) as dag:
        verify() >> compact() >> index() >> retention() >> vacuum()
    return dag


for _name, _, _settings in of_roots("maintenance", deployment().rooted()):
    globals()[_name] = wire(_name, _settings)
