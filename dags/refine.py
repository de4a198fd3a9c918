"""Refine every landed crawl snapshot into packed training tokens.

One run per date. It waits until the snapshot of that date has landed completely. Then each stage of the recipe
refines it (mapped over partitions where the stage splits), and the stage's gate judges the manifest. At the end
`publish_gate` judges the snapshot from what landed to what is left, and a dataset version is published. Committed work
is reused and not done again, so clearing and rerunning is always safe.

**Runbook**

- *A task failed.* Its log ends with one paragraph that names the record or manifest and the way out. Clear the
  failed task: only what is missing runs again; other partitions keep their work.
- *A gate refused.* Open the task's *Data Docs* link. If the data is right, trigger the DAG with the same `snapshot` and
  `override = {"<stage>": "<why it may pass>"}`, or `publish` for `publish_gate`. The reason is stored in the verdict.
- *A date was skipped.* Its snapshot had not landed after `patience` hours. Land it, then clear the run.
- *Refine a range again*: `airflow backfill create --dag-id refine --from-date 2026-11-01 --to-date 2026-11-07
  --reprocess-behavior completed --max-active-runs 1`. Each run sees as history only the snapshots before its own that
  are published already, so one run at a time gives what the daily runs gave.
- *Refine one snapshot by hand*: trigger with the param `snapshot`, and `input` if it is elsewhere.
- *Where it runs*: the connections `spark_default` and `ray_default` decide, nothing else.
"""

import os
from dataclasses import asdict
from datetime import UTC, datetime

from airflow.sdk import DAG, Asset, Param, TaskGroup, XComArg
from refinery_operators import Gate, Land, Publish, PublishGate, Refine, Seal, log_failure, log_retry
from refinery_retry import RETRIES
from refinery_sensor import SnapshotSensor

from pipeline_tasks.recipe import ENGINES, MAX_PARTITIONS, PUBLISH, Recipe, load_recipe, recipe_names, stage_card

DEFAULT = "web"


def params(recipe: Recipe) -> dict[str, Param]:
    """Return the params of a run, which the form in the web UI shows; a run with others is refused at once."""
    text = {"type": "string"}
    landing = os.environ.get("REFINERY_LANDING", "s3://refinery/landing")
    root = os.environ.get("REFINERY_ROOT", "s3://refinery/refined")
    return {
        "input": Param(f"{landing}/{{snapshot}}", description="Where the snapshot is; {snapshot} is its id", **text),
        "root": Param(root, description="Root that keeps every output", **text),
        "snapshot": Param("", description="Snapshot id; empty: the run's date", **text),
        "partitions": Param(
            0,
            type="integer",
            minimum=0,
            maximum=MAX_PARTITIONS,
            description="Partitions per stage; 0: as in the recipe",
        ),
        "engines": Param(
            {},
            type="object",
            additionalProperties={"enum": list(ENGINES)},
            description="stage (or *): engine",
        ),
        "override": Param(
            {},
            type="object",
            propertyNames={"enum": [*(step.stage for step in recipe.steps), PUBLISH]},
            additionalProperties={**text, "pattern": r"\S"},
            description="stage (or publish): why its gate may pass",
        ),
        "patience": Param(20, type="number", minimum=0, description="Hours to wait for the snapshot; 0: not at all"),
    }


def wire(recipe: Recipe) -> DAG:
    """Wire one recipe: sense, land, (stage, gate)*, gate of the whole snapshot, publish."""
    name = "refine" if recipe.name == DEFAULT else f"refine_{recipe.name}"
    mapped = [recipe.partitions if stage_card(step.stage).splits else 0 for step in recipe.steps]
    callbacks = {"on_failure_callback": log_failure, "on_retry_callback": log_retry}
    with DAG(
        name,
        description=recipe.title or "Crawl snapshots in, packed training tokens out",
        schedule="0 0 * * *",
        start_date=datetime(2026, 1, 1, tzinfo=UTC),
        catchup=False,
        max_active_runs=2,  # one may wait for its snapshot while another is refined
        default_args={**RETRIES, **callbacks},
        params=params(recipe),
        doc_md=__doc__,
        tags=["refinery"],
    ) as dag:
        land = Land(task_id="land", recipe=recipe.name, next_partitions=mapped[0])
        SnapshotSensor(task_id="sense") >> land
        landed, parts, gates = XComArg(land, key="landed"), land.output, {}
        for step, partitions, next_partitions in zip(recipe.steps, mapped, [*mapped[1:], 0], strict=True):
            settings = {
                "params": dict(step.params),
                "engine": step.engine,
                "error_budget": asdict(recipe.error_budget),
                "bounds": dict(recipe.gates.get(step.stage, {})),
            }
            about = {"recipe": recipe.name, "stage": step.stage, "step": settings, "landed": landed}
            with TaskGroup(step.stage, tooltip=stage_card(step.stage).title):
                if partitions:
                    name_of = {"map_index_template": "{{ part_name }}"}
                    mapped_task = Refine.partial(task_id="partition", **about, **name_of).expand(part=parts)
                    whole = Seal(task_id="seal", parts_in=parts, refined=mapped_task.output, **about)
                else:
                    whole = Refine(task_id="refine", part=parts, **about)
                gate = Gate(task_id="gate", refined=whole.output, next_partitions=next_partitions, **about)
            parts = gates[step.stage] = gate.output
        tokens = Asset(name=f"{recipe.name}_tokens", group="refinery")  # a URI would load every provider
        whole_snapshot = {"recipe": recipe.name, "landed": landed, "gates": gates}
        judged = PublishGate(task_id="publish_gate", bounds=dict(recipe.gates.get(PUBLISH, {})), **whole_snapshot)
        Publish(task_id="publish", judged=judged.output, outlets=[tokens], **whole_snapshot)
    return dag


def recipes() -> list[Recipe]:
    """Return the recipes to wire: all in `dags/recipes`, or only `REFINERY_RECIPE` (a name or a file's path)."""
    only = os.environ.get("REFINERY_RECIPE")
    return [load_recipe(name) for name in ([only] if only else recipe_names())]


for _recipe in recipes():
    _dag = wire(_recipe)
    globals()[_dag.dag_id] = _dag
