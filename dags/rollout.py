"""Refine a snapshot in growing parts, with a person's approval before each larger one; the last part is all of it.

A recipe with `rollout: [0.01, 0.1, 0.25, 0.5, 1]` has this DAG, which `arrivals` starts in place of `refine`. Each step
is a run of `refine` with that share as `sample`: a trial, judged by the same gates. A gate that refuses ends the
rollout. Between two steps a person approves. The last step is the whole run, which publishes.

A larger step does not reuse what a smaller one refined, as shuffles see other rows: all steps of the list above read
1.86 times the snapshot. Files of a smaller part are in each larger one.

**Runbook**

- *`approve_...` awaits input*: open *Required Actions*, look at the page of the trial that the form names, and approve
  or reject. It waits until somebody answers. A rejection fails the run; clear the task to be asked again.
- *`refine_...` failed*: the run that it started failed, or a gate of it refused. Mend that run (its link is *Triggered
  DAG*), or clear this task: the run is started again, and finds what it has committed.
- *A step waits*: the run of `refine` that it started waits for its turn, or that DAG is paused.
"""

from itertools import pairwise

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import DAG, Param
from refinery_airflow.runs.form import ADVANCED, TEXT, labeled
from refinery_airflow.runs.run import base
from refinery_airflow.tasks.wiring import dag_arguments, dag_id_of, refine_recipes, rollout_of, task_arguments, wired

from pipeline_tasks.deployment import deployed
from pipeline_tasks.recipe import Recipe, trial_of

PATIENCE = 10
"""Seconds between two looks of the triggerer at the run of a step."""


def percent(share: float) -> str:
    """Return a share in percent as part of a name: `1`, `2_5`, `100`."""
    return f"{share * 100:g}".replace(".", "_")


def wire(recipe: Recipe) -> DAG:
    """Wire one recipe: (refine a part, approve)*, refine all."""
    landing = deployed(recipe.name).its_landing
    root = deployed(recipe.name).its_root
    with DAG(
        rollout_of(recipe),
        description="Refines a snapshot in growing parts, each after an approval",
        schedule=None,
        max_active_runs=16,
        default_args=task_arguments(recipe.name),
        params=labeled(
            {
                "snapshot": Param(title="Snapshot", description="Its name, as it landed", **TEXT),
                "input": Param(
                    f"{landing}/{{snapshot}}", section=ADVANCED, description="Where the snapshot is", **TEXT
                ),
                "root": Param(root, section=ADVANCED, description="Root that keeps every output", **TEXT),
            }
        ),
        doc_md=__doc__,
        **dag_arguments(recipe.name),
    ) as dag:
        steps = [step(recipe, share) for share in recipe.rollout]
        for (smaller, before), (share, after) in pairwise(zip(recipe.rollout, steps, strict=True)):
            before >> approval(recipe, smaller, share) >> after
    return dag


def step(recipe: Recipe, share: float) -> TriggerDagRunOperator:
    """Return the task that refines a part of the snapshot by a run of `refine`, and fails with it."""
    conf = {name: f"{{{{ params.{name} }}}}" for name in ("snapshot", "input", "root")}
    return TriggerDagRunOperator(
        task_id=f"refine_{percent(share)}",
        trigger_dag_id=dag_id_of(recipe),
        trigger_run_id=f"rollout_{percent(share)}__{{{{ params.snapshot }}}}",
        conf={**conf, "sample": share},
        reset_dag_run=True,  # a step that is cleared starts its run again
        wait_for_completion=True,
        deferrable=True,
        poke_interval=PATIENCE,
    )


def approval(recipe: Recipe, smaller: float, share: float) -> ApprovalOperator:
    """Return the task that asks a person whether a larger part is refined."""
    page = f"{base()}/snapshot/{trial_of(recipe.name)}/{{{{ params.snapshot }}}}"
    return ApprovalOperator(
        task_id=f"approve_{percent(share)}",
        subject=f"Refine {share * 100:g} % of snapshot {{{{ params.snapshot }}}} by {recipe.name}?",
        body=f"The gates let pass [a trial of {smaller * 100:g} %]({page}). *Approve* refines {share * 100:g} %, "
        "*Reject* ends the rollout.",
        fail_on_reject=True,
        retries=0,  # a rejection is an answer
    )


globals().update(wired((recipe for recipe in refine_recipes() if recipe.rollout), wire))
