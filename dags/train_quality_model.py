"""Train a model of the quality of texts, check it, and publish it below the root for recipes to name.

Good texts come from references and published versions, others from a crawl. `train` holds sites out whole, and compares
the model with the one of the same name that was published last. `check` measures what it tells from nonsense, and
whether it sorts by source. `publish` adds it to the log of its name, with both reports and its digest, at once and
last. The command `refinery model quality --root` does the same.

**Runbook**

- *When it runs*: by hand, once it is unpaused. Nothing uses a model by itself: a recipe names its file and its report
  (`docs/how-to/models/score-documents.md`), whose lines are at the end of the log of `publish`.
- *`check` failed*: the gate refuses the model. The error has the bounds and the path of the report. Train on texts of
  more sources; or trigger the DAG again with a *Reason*, which is stored with the model.
- *`train` failed*: its error says which side has too few texts or sites.
- *Agreement with the old model is low*: the log of `train` names the documents that moved most.
- What a run stores before it fails is named by nothing, and is found again when the same texts are trained on.
"""

from airflow.sdk import DAG, get_current_context, task
from refinery_airflow.runs.form import labeled
from refinery_airflow.tasks.models import check_model, params_of_training, publish_model, train_model
from refinery_airflow.tasks.wiring import arguments_of, of_roots, task_arguments_by
from refinery_models.requests import CheckModelReply, PublishModelReply, TrainModelReply

from pipeline_tasks.deployment import Settings, deployment


@task  # type: ignore[untyped-decorator]  # loaded lazily: Any
def train() -> TrainModelReply:
    """Train the model, and compare it with the old one."""
    context = get_current_context()
    return train_model(context["params"], context["run_id"])


@task  # type: ignore[untyped-decorator]  # loaded lazily: Any
def check(trained: TrainModelReply) -> CheckModelReply:
    """Check the model; the task fails if its gate refuses it."""
    context = get_current_context()
    return check_model(context["params"], context["run_id"], trained)


@task  # type: ignore[untyped-decorator]  # loaded lazily: Any
def publish(trained: TrainModelReply, checked: CheckModelReply) -> PublishModelReply:
    """Publish the model with its reports."""
    context = get_current_context()
    return publish_model(context["params"], context["run_id"], trained, checked)


def wire(name: str, settings: Settings) -> DAG:
    """Wire the training of models of one root."""
    with DAG(
        name,
        description="Good texts and a crawl in, a checked model that scores documents out",
        schedule=None,
        max_active_runs=1,
        default_args=task_arguments_by(settings),
        params=labeled(params_of_training(settings.its_root)),
        doc_md=__doc__,
        **arguments_of(settings),
    ) as dag:
        trained = train()
        publish(trained, check(trained))
    return dag


for _name, _, _settings in of_roots("train_quality_model", deployment().rooted()):
    globals()[_name] = wire(_name, _settings)
