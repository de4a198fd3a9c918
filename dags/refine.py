"""Refine every landed crawl snapshot into clean documents, which `build` DAGs make training datasets of.

One run per date. It waits until the snapshot of that date has landed completely. Then each stage of the recipe
refines it (mapped over partitions where the stage splits), and the stage's gate judges the manifest. At the end
`publish_gate` judges the snapshot from what landed to what is left, and a dataset version is published. Committed work
is reused and not done again, so clearing and rerunning is always safe.

**Runbook**

- *A task failed.* Its log ends with one paragraph that names the record or manifest and the way out. Clear the
  failed task: only what is missing runs again; other partitions keep their work.
- *A partition is `QUARANTINED`.* It failed every try; its rows are in quarantine, and the snapshot is partial.
  Mend what the end of its log names, then clear it with what is downstream.
- *A message came.* It names what happened, and its section of `docs/how-to/operate/respond-to-alerts.md`. Connections
  `refinery_alerts_slack`, `_webhook` and `_email` say where messages go.
- *A gate awaits input.* It refuses the data, and waits `approval` hours for a person: open *Required Actions*, read the
  form and its *Data Docs*, and approve or reject with a reason. The reason, your name and the time are stored in the
  verdict. Runs of later snapshots wait meanwhile. In a backfill a gate does not wait.
- *A gate refused.* Nobody approved, or somebody rejected. If the data is right after all, clear the gate's task to be
  asked again, or trigger the DAG with the same `snapshot`, the gate under *Gates to accept* (`publish` for
  `publish_gate`), and a reason. If it is not, mend it and clear the run.
- *`sense` waits.* Its XCom `arrival` and its log say what is missing, which files are short, and until when it waits.
  Without a list of its files a snapshot is whole when nothing has changed for `settling` minutes.
- *`index` failed.* The snapshot is published all the same; `refinery look similar` reads its shards until the task is
  cleared. It does nothing where pylance is not installed (the extra `vectors`).
- *Files came late*: the logs of `publish` and of `arrivals`, the *Refinery* page and `refinery status` name them. Clear
  the run, or trigger the DAG with the same `snapshot`: it takes them.
- *A date was skipped.* Nothing had landed `patience` hours after the date's midnight. Land it, then clear the run.
- *`sense` failed.* A part of the snapshot had landed by then. The error names the files. Land them, then clear the run.
- *`turn` waits.* Runs of earlier snapshots are under way: its XCom `ahead` names them. Snapshots so see each other, and
  are published in order. Mark `turn` as success to go first; the snapshot is stale when they have published.
- *Runs stay queued.* The DAG is paused, or as many runs as may be are active.
- *Refine a range again*: `airflow backfill create --dag-id refine --from-date 2026-11-01 --to-date 2026-11-07
  --reprocess-behavior completed`.
- *Snapshots are stale*: trigger the DAG `arrivals` with `stale` on.
- *Refine one snapshot by hand*: trigger with the param `snapshot`, and `input` if it is elsewhere.
- *Try a recipe on 1 %*: trigger with `sample` 0.01. A trial reads whole files, passes the same gates, and is published
  as a version of `RECIPE.trial`, which no other run reads or waits for.
- *In growing parts*: a recipe with `rollout` has no schedule. `arrivals` starts its DAG `rollout_RECIPE`, which starts
  runs of this one.
- *`verdict_gate` refuses or awaits input.* The recipe `requires` a verdict of trained models. Its log has what the log
  of ablations says, and the command that compares the recipe. It asks a person as other gates do.
- *Where it runs*: the connections `spark_default` and `ray_default` decide, or those that the deployment's file names.
"""

from airflow.sdk import DAG, CronTriggerTimetable, Param
from refinery_airflow.runs.form import ADVANCED, OPTIONAL, TEXT, labeled, params_of_runs
from refinery_airflow.tasks.approval import approval_param
from refinery_airflow.tasks.operators import CALLBACKS
from refinery_airflow.tasks.wiring import dag_arguments, refine_recipes, render, task_arguments, wired

from pipeline_tasks.deployment import deployed
from pipeline_tasks.flow.plan import refine_flow
from pipeline_tasks.recipe import PUBLISH, Recipe


def params(recipe: Recipe) -> dict[str, Param]:
    """Return the params of a run, which the form in the web UI shows; a run with others is refused at once."""
    landing = deployed(recipe.name).its_landing
    of_every_run = params_of_runs([*recipe.gates_before, *(step.stage for step in recipe.steps), PUBLISH], recipe.name)
    return {
        "snapshot": Param(
            None, title="Snapshot", description="Its name, as it landed; empty: the date of the run", **OPTIONAL
        ),
        "sample": Param(
            1,
            title="Sample",
            type="number",
            exclusiveMinimum=0,
            maximum=1,
            description="Share of the landed bytes to read; 1: all. Less is a trial, which is kept beside the dataset",
        ),
        **of_every_run,
        "approval": approval_param(),
        "input": Param(
            f"{landing}/{{snapshot}}",
            section=ADVANCED,
            description="Where the snapshot is; {snapshot} is its name",
            **TEXT,
        ),
        "text_field": Param(
            None,
            section=ADVANCED,
            description="Field or column of the text in JSON lines and Parquet; empty: the recipe's",
            **OPTIONAL,
        ),
        "patience": Param(
            20,
            section=ADVANCED,
            type="number",
            minimum=0,
            description="Hours after its date to wait for a snapshot; 0: none",
        ),
        "settling": Param(
            30,
            section=ADVANCED,
            type="number",
            minimum=0,
            description="Minutes without a change after which a snapshot without a list of its files is whole",
        ),
        "accept_partial": Param(
            recipe.accept_partial,
            section=ADVANCED,
            type="number",
            exclusiveMinimum=0,
            maximum=1,
            description="Share of the files that a list promises with which a snapshot is refined when nothing changes "
            "any more; 1: all",
        ),
    }


def wire(recipe: Recipe) -> DAG:
    """Wire one recipe: sense, land, (stage, gate)*, gate of the whole snapshot, publish, index if it embeds."""
    flow = refine_flow(recipe)
    with DAG(
        flow.dag,
        description=recipe.title or "Crawl snapshots in, clean documents out",
        # explicit: as text, `create_cron_data_intervals` would start each run a day later, past its snapshot's deadline
        schedule=None if recipe.rollout else CronTriggerTimetable("0 0 * * *", timezone="UTC"),
        max_active_runs=16,  # most wait, for their snapshot or their turn: one is refined at a time
        default_args={**task_arguments(recipe.name), **CALLBACKS},
        params=labeled(params(recipe)),
        doc_md=__doc__,
        **dag_arguments(recipe.name),
    ) as dag:
        render(flow)
    return dag


globals().update(wired(refine_recipes(), wire))
