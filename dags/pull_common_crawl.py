"""Pull files of Common Crawl below the landing, whole or not at all; `arrivals` starts what has landed.

A run lands one crawl in a folder of its name. A crawl that has landed is asked nothing again, so that a run each week
finds a new crawl in the week in which it is published. The command `refinery pull cc` does the same.

**Runbook**

- *When it runs*: on Mondays, once it is unpaused. Unpause `arrivals`, too, and a DAG `refine` of your recipe.
- *`pull` failed with "refuses more requests"*: Common Crawl answered 403. It is not tried again. Wait until the time
  that the error names, and clear the task, or trigger the DAG with a smaller *rate*: it goes on with what is missing.
- *A listed file is not there, or damaged*: the error names it. Clear the task later, or pull by the command with
  `--without`.
- *"is of another query"*: the params have changed since the crawl was begun. Remove its folder, or set them back.
- A task that was killed goes on where it was: on the same worker with the bytes that it had, on another one with the
  files that were complete.
"""

import os
from datetime import UTC, datetime
from typing import Any

from airflow.sdk import DAG, CronTriggerTimetable, get_current_context, task
from refinery_alerts import FailureAlert
from refinery_retry import BOUNDS, RETRIES
from refinery_sources import params_of_pull, pull_crawl


@task  # type: ignore[untyped-decorator]  # loaded lazily: Any
def pull() -> dict[str, Any]:
    """Land the crawl."""
    return pull_crawl(get_current_context()["params"])


with DAG(
    "pull_common_crawl",
    description="A crawl of Common Crawl in, a landing that is whole out",
    schedule=CronTriggerTimetable("0 6 * * 1", timezone="UTC"),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args={**RETRIES, **BOUNDS, "on_failure_callback": FailureAlert()},
    params=params_of_pull(os.environ.get("REFINERY_LANDING", "s3://refinery/landing")),
    doc_md=__doc__,
    tags=["refinery"],
) as dag:
    pull()
