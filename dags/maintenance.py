"""Remove files that no manifest names, and compact the history of many snapshots.

Orphans are shards of killed attempts and of losers of a race, and intermediate shards of stages that group rows.

**Runbook**

- By default nothing is removed: the task returns the orphans, each with its reason. Set `delete` to remove them.
- Nothing younger than `grace` days is removed, and nothing that a committed manifest names. Work that was never
  committed is fenced first: its commit slot is taken, so an attempt that wakes up later cannot commit a manifest of
  removed shards.
- A removal of more than `limit` of the stored bytes is refused. Intermediate shards of a committed stage do not count.
- `compact` merges the history of eight snapshots in a row, and eight such merges again, so that a lookup in a long
  history reads a few pages and not one per snapshot. It adds files and changes none. What it replaced is removed later.
- `expire` above 0 also removes stages that no dataset version names and that are older than so many days.
"""

import os
from datetime import UTC, datetime
from typing import Any

from airflow.sdk import DAG, Param, get_current_context, task
from refinery_retry import RETRIES

DAY = 86_400.0


@task  # type: ignore[untyped-decorator]  # loaded lazily: Any
def maintain() -> dict[str, Any]:
    """List the orphans of the root; with `compact`, merge its history; with `delete`, remove the orphans."""
    from refinery_launch import launch

    params = get_current_context()["params"]
    days = {name: float(params[name]) * DAY for name in ("grace", "expire")}
    request = {"verb": "tend", "root": params["root"], "delete": params["delete"], "limit": params["limit"]}
    request |= {"compact": params["compact"], **days}
    return dict(launch(request))


with DAG(
    "maintenance",
    description="Remove files that no manifest names, and compact history",
    schedule="0 4 * * *",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args=RETRIES,
    params={
        "root": Param(os.environ.get("REFINERY_ROOT", "s3://refinery/refined"), type="string"),
        "delete": Param(default=False, type="boolean", description="Remove; otherwise only list"),
        "compact": Param(default=True, type="boolean", description="Merge the history of many snapshots"),
        "grace": Param(7, type="number", minimum=1, description="Days for which nothing is removed"),
        "expire": Param(
            0, type="number", minimum=0, description="Days after which unpublished stages are removed; 0: never"
        ),
        "limit": Param(0.1, type="number", minimum=0, maximum=1, description="Largest share of bytes to remove"),
    },
    doc_md=__doc__,
    tags=["refinery"],
) as dag:
    maintain()
