"""Say by small models which of two recipes, or of two training datasets, gives the better data.

Both recipes refine the same landed snapshots, a dataset is built of each, the same model is trained on both from
nothing, with several seeds and two learning rates, and both are scored on held-out documents. Tasks do what
`refinery ablate` does, in the same folder: the command goes on with what a run has begun, and the other way around.

**Runbook**

- *When it runs*: by hand, once it is unpaused. The form has the options of `refinery ablate`.
- *What it says*: the log of `judge`; the link *Verdict* of that task; the page *Verdicts*, below *Refinery*.
- *What it costs* is in the log of `forecast`, by the runs of the first arm, before the second one begins. If that is
  too much, mark `train_b` as failed, and trigger the DAG again with the same folder and params when there is time.
- *`plan` failed*: its error says which param is wrong, or that the interpreter that trains has no torch: install the
  extra `ablate` there, or name another one by `REFINERY_TRAIN_PYTHON` on the workers. Nothing was made then. Or a run
  of a recipe, or a build, was refused; the error has its last lines. Clear it once that is mended: what is made is
  found.
- *`train_a` or `train_b` failed, or was killed*: clear the failed run. It goes on at the state that it wrote at most a
  minute before. A finished run is never trained again.
- *A task finds no plan in the folder*: it ran on a worker that does not have the disk of the one before. Give all of
  them one, or name a queue by `REFINERY_TRAIN_QUEUE`.
- *`judge` failed with `GateRefused`*: the verdict is recorded and is not what was required. More seeds in the same
  folder may decide it. If it may pass, trigger the DAG again with an *Override*.
- *How many train at once*: one, or the slots of the pool that `REFINERY_TRAIN_POOL` names. `REFINERY_TRAIN_QUEUE` names
  the queue whose workers have torch.
"""

from airflow.sdk import DAG
from refinery_ablate.flow import FLOW
from refinery_airflow.runs.form import labeled
from refinery_airflow.tasks.ablation import OPERATORS, QUEUE, TURNS, params_of_ablation
from refinery_airflow.tasks.wiring import arguments_of, of_roots, recipe_of, render, task_arguments_by

from pipeline_tasks.deployment import Settings, deployment


def wire(name: str, entry: str, settings: Settings) -> DAG:
    """Wire comparisons that are recorded in one root."""
    with DAG(
        name,
        description="Two recipes and held-out documents in, a verdict of the models that their data trains out",
        schedule=None,
        max_active_runs=1,
        default_args={**task_arguments_by(settings), **QUEUE},
        params=labeled(params_of_ablation(settings.its_root)),
        doc_md=__doc__,
        **arguments_of(settings),
    ) as dag:
        render(FLOW, OPERATORS, train=TURNS, judge={"recipe": recipe_of(entry)})
    return dag


for _name, _entry, _settings in of_roots(FLOW.dag, deployment().rooted()):
    globals()[_name] = wire(_name, _entry, _settings)
