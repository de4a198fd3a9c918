"""Sweep what no manifest names (leftovers of killed attempts, of losers of a race), and compact what is remembered.

**Runbook**

- By default nothing is removed: the task returns what would go, with the reason. Set `delete` to remove it.
- Nothing younger than `grace` days goes, and nothing that a committed manifest names. Work that was never committed
  is fenced first (its commit slot is taken), so an attempt that wakes up later cannot commit into what was swept.
- A sweep that would take more than `limit` of the stored bytes is refused; what a committed stage left does not count.
- `compact` merges what eight snapshots in a row remembered, and eight such merges again, so that a lookup in a long
  history reads a few pages and not one for every day. It adds files and changes none; what it replaced is swept.
- `expire` above 0 also removes stages that no dataset version names and that are older than so many days.
"""

import os
from datetime import UTC, datetime
from typing import Any

from airflow.sdk import DAG, Param, get_current_context, task
from refinery_retry import RETRIES

DAY = 86_400.0


@task  # type: ignore[untyped-decorator]  # loaded lazily: Any
def sweep() -> dict[str, Any]:
    """Survey the root and, if asked to, compact what is remembered and remove what was found."""
    from refinery_launch import launch

    params = get_current_context()["params"]
    days = {name: float(params[name]) * DAY for name in ("grace", "expire")}
    request = {"verb": "tend", "root": params["output"], "delete": params["delete"], "limit": params["limit"]}
    request |= {"compact": params["compact"], **days}
    return dict(launch(request))


with DAG(
    "tend",
    description="Sweep what no manifest names, and compact what snapshots remembered",
    schedule="0 4 * * *",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args=RETRIES,
    params={
        "output": Param(os.environ.get("REFINERY_ROOT", "s3://refinery/refined"), type="string"),
        "delete": Param(default=False, type="boolean", description="Remove; otherwise only list"),
        "compact": Param(default=True, type="boolean", description="Merge what many snapshots remembered"),
        "grace": Param(7, type="number", minimum=1, description="Days for which everything is left alone"),
        "expire": Param(0, type="number", minimum=0, description="Days after which unnamed stages go; 0: never"),
        "limit": Param(0.1, type="number", minimum=0, maximum=1, description="Largest share of bytes to remove"),
    },
    doc_md=__doc__,
    tags=["refinery"],
) as dag:
    sweep()
